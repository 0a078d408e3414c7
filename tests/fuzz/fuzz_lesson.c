/* Parses bytes as a line of what was measured; an accepted one must be written as the same line. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "profile/lesson.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char line[1024], written[TD_LESSON_TEXT];
	struct td_lesson lesson, again;
	struct td_err err = {0};
	size_t n = size < sizeof(line) ? size : sizeof(line) - 1;

	memcpy(line, data, n);
	line[n] = 0;
	if (td_lesson_parse(line, &lesson, &err)) {
		if (!err.msg[0])
			abort();
		return 0;
	}
	n = td_lesson_write(&lesson, written);
	if (!n)
		abort();
	written[n - 1] = 0;
	if (td_lesson_parse(written, &again, &err) || memcmp(&lesson, &again, sizeof(lesson)))
		abort();
	return 0;
}
