/*
 * One line per event on stderr: `level key=value ... prose`. For the daemons and tools that give up
 * or report; libraries never log. Does not allocate.
 */
#pragma once

enum td_log_level {
	TD_LOG_ERROR,
	TD_LOG_WARN,
	TD_LOG_INFO,
	TD_LOG_DEBUG,
	TD_LOG_N,
};

void td_log_set_level(enum td_log_level level);
void td_log(enum td_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
