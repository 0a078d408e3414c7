/* Makes errors that carry a sentence for people; see err.h. */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int td_err_set(struct td_err *err, int code, const char *format, ...)
{
	va_list args;

	if (!err)
		return code;
	err->code = code;
	va_start(args, format);
	vsnprintf(err->msg, sizeof(err->msg), format, args);
	va_end(args);
	return code;
}

int td_err_expected(struct td_err *err, int code, const char *text, const char *expected)
{
	return td_err_set(err, code, "\"%.64s\" is %s: expected %s", text,
		code == -ERANGE ? "out of range" : "not valid", expected);
}
