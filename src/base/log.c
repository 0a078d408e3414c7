/*
 * Writes log lines to stderr, each with one write() so that lines of several processes do not mix.
 */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define LINE_MAX_BYTES 1024

static enum td_log_level threshold = TD_LOG_INFO;

void td_log_set_level(enum td_log_level level)
{
	threshold = level;
}

void td_log(enum td_log_level level, const char *format, ...)
{
	static const char *const name[TD_LOG_N] = {"error", "warning", "info", "debug"};
	char line[LINE_MAX_BYTES];
	va_list args;
	int head, body;
	size_t len;

	if (level > threshold)
		return;
	head = snprintf(line, sizeof(line), "%s ", name[level]);
	va_start(args, format);
	body = vsnprintf(line + head, sizeof(line) - (size_t)head - 1, format, args);
	va_end(args);
	len = (size_t)head + (size_t)(body < 0 ? 0 : body);
	if (len > sizeof(line) - 2)
		len = sizeof(line) - 2;
	line[len++] = '\n';
	if (write(STDERR_FILENO, line, len) < 0)
		return;
}
