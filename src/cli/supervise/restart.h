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

/* A bound is at most this many restarts: the times of that many are remembered. */
#define TD_RESTARTS_MAX 1000

struct td_restart {
	enum td_restart_when when;
	uint32_t most;      /* restarts; 0: no bound */
	uint64_t window_ns; /* within so long; 0: since the job began */
};

/*
 * "no", "on-failure" or "always"; behind the last two ":N", or ":N/TIME" for N restarts within any
 * TIME. 0, or -EINVAL with *err, which quotes the text.
 */
int td_restart_parse(const char *text, struct td_restart *ret, struct td_err *err);
