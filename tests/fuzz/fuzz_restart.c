/* Any text is a rule for restarts within its bounds, or an error that fits its buffer. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "cli/supervise/restart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct td_err err = {0};
	struct td_restart restart;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = 0;
	if (!td_restart_parse(text, &restart, &err) &&
		(restart.when >= TD_RESTART_N || restart.most > TD_RESTARTS_MAX ||
			(restart.window_ns && !restart.most)))
		abort();
	if (strlen(err.msg) >= sizeof(err.msg))
		abort();
	free(text);
	return 0;
}
