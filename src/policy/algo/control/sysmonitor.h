/*
 * MuxFlow's SysMonitor decides whether a GPU is fit to run offline work beside its online service.
 *
 * Purpose. The duty (pid.h) cannot react to what the online workload itself does. At the level of
 * the GPU, MuxFlow (4.1, Fig. 6b) keeps a state per GPU, evicts offline work when it is overloaded,
 * and tells the scheduler where offline work may go.
 *
 *                   initialised
 *         +------+ ------------> +---------+   one metric >= unhealthy    +-----------+
 *    +--> | INIT |               | HEALTHY | ---------------------------> | UNHEALTHY |
 *    |    +------+               |         | <--------------------------- |           |
 *    |                           +---------+   all metrics < healthy      +-----------+
 *    | available                      |                                     |      ^
 *    |                                | one metric >= overlimit             |      | (a)
 * +----------+                        v                                     v      |
 * | DISABLED |                   +-----------+ <----------------------------+      |
 * +----------+                   | OVERLIMIT | ------------------------------------+
 *    ^                           +-----------+      one metric >= overlimit
 *    |
 *    +--- not available, from every state
 *
 *   (a) all metrics < overlimit and the period is over
 *
 * Metrics and thresholds. Utilisation, SM activity and memory are bad when high, the SM clock is
 * bad when low; every metric has the three thresholds healthy, unhealthy and overlimit, in this
 * order. Between `healthy` and `unhealthy` nothing changes (hysteresis). The values are
 * "empirically selected" in the paper and parameters here; a threshold of 0 ppm or 0 MHz switches
 * the metric off.
 *
 * The overlimit period. "To avoid frequent eviction, the period is set to be the exponent of the
 * times going into the Overlimit state during the last two hours": entering for the n-th time
 * within the window, the GPU stays for base x 2^(n - 1), at most period_max_ns.
 *
 * Invariants
 * - one transition per step, and only those in the picture: OVERLIMIT never becomes HEALTHY without
 *   having been UNHEALTHY;
 * - OVERLIMIT is never left before its period is over, except for DISABLED;
 * - offline work is placed only on HEALTHY GPUs, and is evicted from OVERLIMIT and DISABLED ones;
 * - entries older than the window do not count.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum td_sysmonitor_state {
	TD_SYSMONITOR_INIT,
	TD_SYSMONITOR_HEALTHY,
	TD_SYSMONITOR_UNHEALTHY,
	TD_SYSMONITOR_OVERLIMIT,
	TD_SYSMONITOR_DISABLED,
	TD_SYSMONITOR_N,
};

/* Returns "init", "healthy", "unhealthy", "overlimit" or "disabled". */
const char *td_sysmonitor_name(enum td_sysmonitor_state state);

#define TD_SYSMONITOR_ENTRIES_MAX 32

struct td_sysmonitor_limits {
	/* A metric at or above its threshold has reached this level. */
	uint32_t utilisation_ppm, sm_activity_ppm, memory_ppm;
	/* A clock below this has reached this level. */
	uint32_t clock_mhz;
};

struct td_sysmonitor_params {
	struct td_sysmonitor_limits healthy, unhealthy, overlimit;
	uint64_t period_base_ns, period_max_ns;
	uint64_t window_ns; /* two hours in the paper */
};

struct td_sysmonitor_metrics {
	bool initialised, available;
	uint32_t utilisation_ppm, sm_activity_ppm, memory_ppm;
	uint32_t clock_mhz; /* 0: unknown, which counts as good */
};

/* A zeroed struct is in INIT and has no entries. */
struct td_sysmonitor {
	enum td_sysmonitor_state state;
	uint32_t entry_count;
	/* Times of entering OVERLIMIT, oldest first. */
	uint64_t entries_ns[TD_SYSMONITOR_ENTRIES_MAX];
	uint64_t until_ns; /* when the overlimit period ends */
};

/* Makes at most one transition and returns the state after it. */
enum td_sysmonitor_state td_sysmonitor_step(struct td_sysmonitor *monitor,
	const struct td_sysmonitor_params *params, const struct td_sysmonitor_metrics *metrics,
	uint64_t now_ns);

/* Tells whether the scheduler may place offline work here. */
bool td_sysmonitor_accepts(enum td_sysmonitor_state state);

/* Tells whether offline work must leave. */
bool td_sysmonitor_evicts(enum td_sysmonitor_state state);
