/* The value of --restart as the user types it: `on-failure:5/10m`. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_err;

enum td_restart_when {
	TD_RESTART_NEVER,
	TD_RESTART_ON_FAILURE, /* after an exit status other than 0, or a signal */
	TD_RESTART_ALWAYS,
	TD_RESTART_N,
};

/* The largest N. The times of the last N restarts are remembered, in a table of this size. */
#define TD_RESTARTS_MAX 1000

struct td_restart {
	enum td_restart_when when;
	uint32_t most;      /* the most restarts; 0: no bound */
	uint64_t window_ns; /* the window in which they count; 0: since the job began */
};

/*
 * Parses "no", "on-failure" or "always"; the last two may be followed by ":N", or by ":N/TIME" for
 * N restarts within any TIME. Returns 0, or -EINVAL with an error that quotes the text.
 */
int td_restart_parse(const char *text, struct td_restart *ret, struct td_err *err);
