/*
 * td_err: an error made once, where a human's input is read, and returned unchanged by everyone
 * above.
 *
 * Functions that cannot be asked by a human return 0, -errno or a listed outcome > 0 instead
 * (STYLE: errors).
 */
#pragma once

#define TD_ERR_MSG_MAX 512

struct td_err {
	int code; /* -errno */
	char msg[TD_ERR_MSG_MAX];
};

/* Fills *err (which may be NULL) and returns code, so that callers write `return td_err_set(...)`.
 */
int td_err_set(struct td_err *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Sets an error about a typed value: `"text" is not valid: expected ...`; -ERANGE says "out of
 * range" instead.
 */
int td_err_expected(struct td_err *err, int code, const char *text, const char *expected);
