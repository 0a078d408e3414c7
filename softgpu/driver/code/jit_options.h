/*
 * The JIT options of module loads and links (CU_JIT_*). softgpu has no machine code, so only the
 * options that return something to the program, such as the logs, have an effect.
 */
#pragma once

#include <stddef.h>

struct sg_jit {
	char *log; /* the program's buffer; NULL: it wants no log */
	size_t log_bytes;
	void **log_size; /* receives the number of bytes written; may be NULL */
};

/* Reads the options and empties the program's logs. Returns INVALID_VALUE for an unknown option. */
int sg_jit_read(unsigned count, const int *options, void **values, struct sg_jit *ret);
/* Writes text to the program's error log. jit may be NULL. */
void sg_jit_say(const struct sg_jit *jit, const char *text);
