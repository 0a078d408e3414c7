/* Options of the compiler that loads and links take: only what comes back to the program matters here, there being no machine code. */
#pragma once

#include <stddef.h>

struct sg_jit {
	char *log; /* the program's; NULL: none is wanted */
	size_t log_bytes;
	void **log_size; /* where it is told how much was written; may be NULL */
};

/* Empties the logs. INVALID_VALUE: no such option. */
int sg_jit_read(unsigned count, const int *options, void **values, struct sg_jit *ret);
/* Into the error log; jit may be NULL. */
void sg_jit_say(const struct sg_jit *jit, const char *text);
