/*
 * A text that grows as it is written. The writer checks `failed` once, at the end. After memory was
 * short nothing more is added.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct td_text {
	char *text; /* NULL, or ends with a NUL */
	size_t length, room;
	bool failed; /* memory was short, so the text is not complete */
};

/* Frees the text. A zeroed struct is an empty text. */
void td_text_deinit(struct td_text *text);
/* Empties the text and keeps its memory. */
void td_text_clear(struct td_text *text);

void td_text_put(struct td_text *text, const char *bytes, size_t length);
void td_text_add(struct td_text *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Adds a JSON string with its quotes. Bytes that are not UTF-8 become "?". */
void td_text_add_json(struct td_text *text, const char *value);

/*
 * Reads the beginning of a small file, such as those of /proc: at most len - 1 bytes, ended with a
 * NUL. Returns 0 or -errno; the text is empty then.
 */
int td_file_read(const char *path, char *ret, size_t len);
