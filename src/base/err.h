/*
 * td_err is an error with a sentence. It is made once, where a person's input is read, and returned
 * unchanged by all callers.
 *
 * Functions that read no person's input return 0, -errno, or a listed outcome > 0 instead.
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
 * Sets an error about a value that a person typed: `"text" is not valid: expected ...`; with
 * -ERANGE it says "out of range" instead.
 */
int td_err_expected(struct td_err *err, int code, const char *text, const char *expected);
