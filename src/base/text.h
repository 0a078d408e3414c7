/*
 * A text that grows as it is written. Who writes checks once, at the end, whether memory was short:
 * after that nothing more is added.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct td_text {
	char *text; /* NULL, or ends with a NUL */
	size_t length, room;
	bool failed; /* memory was short: the text is not complete */
};

/* A zeroed one is empty. */
void td_text_deinit(struct td_text *text);
/* Empties it and keeps its memory. */
void td_text_clear(struct td_text *text);

void td_text_put(struct td_text *text, const char *bytes, size_t length);
void td_text_add(struct td_text *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* A string of JSON, with its quotes. What is no UTF-8 becomes "?". */
void td_text_add_json(struct td_text *text, const char *value);
