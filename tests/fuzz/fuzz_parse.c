/* Any text is a value or an error that fits its buffer; percentages never exceed the whole. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct td_err err = {0};
	uint64_t value;
	uint32_t ppm;
	bool on;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = 0;
	if (!td_parse_size(text, 1000, &value, &err) && strchr(text, '%') && value > 1000)
		abort();
	if (!td_parse_u64(text, 3, 9, &value, &err) && (value < 3 || value > 9))
		abort();
	if (!td_parse_ratio(text, &ppm, &err) && ppm > 1000000)
		abort();
	if (!td_parse_duty(text, &ppm, &err) && (ppm < 10000 || ppm > 1000000))
		abort();
	if (!td_parse_limit(text, &err) && strlen(text) >= TD_LIMIT_TEXT)
		abort();
	td_parse_duration(text, &value, &err);
	td_parse_bool(text, &on, &err);
	if (strlen(err.msg) >= sizeof(err.msg))
		abort();
	free(text);
	return 0;
}
