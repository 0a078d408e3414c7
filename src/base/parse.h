/*
 * One function per kind of value that people type. On failure err quotes the text and says what was
 * expected. *ret is written only on success. All return 0, -EINVAL or -ERANGE.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_err;

/* Parses a decimal number such as "12", within [min, max]. */
int td_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret, struct td_err *err);

/*
 * Parses bytes: "1024", "8g", "8G", "8Gi", "8GiB" (all of base 1024, as GPU memory is counted),
 * "1.5g"; with whole_bytes > 0 also "50%" of it.
 */
int td_parse_size(const char *text, uint64_t whole_bytes, uint64_t *ret_bytes, struct td_err *err);

/* Parses a duration to ns: "30" or "30s" (seconds), "250ms", "50us", "7ns", "2m", "1h", "1.5s". */
int td_parse_duration(const char *text, uint64_t *ret_ns, struct td_err *err);

/* Parses a number of GPUs such as "2" or "1.5" to parts per million of a GPU; at most `most`. */
int td_parse_gpus(const char *text, uint64_t most, uint64_t *ret_ppm, struct td_err *err);

/* Parses a share such as "10%" or "0.1" to parts per million; at most 100 %. */
int td_parse_ratio(const char *text, uint32_t *ret_ppm, struct td_err *err);

/*
 * The words after "expected" in the errors of the functions below. A caller that accepts more
 * appends it, as in "..., or none".
 */
#define TD_EXPECTED_LIMIT                                                                          \
	"a size from 1 byte to below 16777216Ti such as 8Gi, or a share up to 100% such as 40%"
#define TD_EXPECTED_DUTY  "a share from 1% to 100% such as 30% or 0.3"
#define TD_EXPECTED_SLACK "a share from 0.1% to 100% such as 1% or 0.01"

/*
 * Parsers of the limits that a user may set on a job.
 * - A memory limit is "8Gi" or "40%", more than zero. It is kept as typed, because a share depends
 *   on each GPU's size, so its text has to fit TD_LIMIT_TEXT bytes.
 * - A duty is a share from 1% to 100%.
 * - A slack of steps is a share from 0.1% to 100%.
 */
#define TD_LIMIT_TEXT 32
int td_parse_limit(const char *text, struct td_err *err);
int td_parse_duty(const char *text, uint32_t *ret_ppm, struct td_err *err);
int td_parse_slack(const char *text, uint32_t *ret_ppm, struct td_err *err);

/* Parses "on", "off", "yes", "no", "true", "false", "1" or "0". */
int td_parse_bool(const char *text, bool *ret, struct td_err *err);

/*
 * Formats bytes for people, with three significant digits: "12.5 GiB", "640 MiB", "17 B". Returns
 * buf.
 */
char *td_format_size(char *buf, unsigned long len, uint64_t bytes);

/* Formats a duration for people: "1.25 s", "340 ms", "12 us". Returns buf. */
char *td_format_duration(char *buf, unsigned long len, uint64_t ns);

/*
 * Makes text safe for a terminal. Each byte that is not UTF-8, or that would move the cursor, begin
 * a line or change the direction of writing, becomes "?". Returns text.
 */
char *td_printable(char *text);

/* Decodes the UTF-8 character at text. Returns its length in bytes; 0: it is not valid. */
unsigned td_utf8_decode(const unsigned char *text, uint32_t *ret_code);
