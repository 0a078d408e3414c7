/* Errors that carry a sentence for a human; see err.h. */
#include "base/err.h"

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
