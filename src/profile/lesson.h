/*
 * A measurement of a service that runs beside a company, as a line of text. The
 * daemon writes such lines to tandem-profile, which keeps them and learns from them.
 *
 *     NAME <tab> layers, by commas <tab> batch <tab> share (ppm) <tab> latency (ns) <tab> GPU
 *
 * Invariants: what was written reads as the same lesson. Parsing trusts nothing; an error leaves
 * *ret as it was.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "policy/algo/fit/mudi_curve.h"

struct td_err;

struct td_lesson {
	char service[64], gpu[64];       /* names: td_profile_check_name(); of the GPU's kind */
	uint32_t layers[TD_MUDI_LAYERS]; /* of all that ran beside it; never all 0 */
	uint32_t batch, share_ppm;       /* the service's own share of the SMs, 1 to TD_PPM */
	uint64_t latency_ns;             /* of a full batch */
};

/* The longest line, with its newline and a zero. */
#define TD_LESSON_TEXT 384

/* Writes the line with its newline, and a zero. Returns its length; 0: a name has a bad byte. */
size_t td_lesson_write(const struct td_lesson *lesson, char ret[TD_LESSON_TEXT]);

/* Parses a line without its newline. Changes the text. Returns 0, or -EINVAL with err. */
int td_lesson_parse(char *line, struct td_lesson *ret, struct td_err *err);
