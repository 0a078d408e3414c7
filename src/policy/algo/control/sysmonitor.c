/* Implements the state machine drawn in sysmonitor.h. */
#include "policy/algo/control/sysmonitor.h"

#include <string.h>

/* Tells whether one metric has reached the level. */
static bool reached(
	const struct td_sysmonitor_limits *limits, const struct td_sysmonitor_metrics *metrics)
{
	return (limits->utilisation_ppm && metrics->utilisation_ppm >= limits->utilisation_ppm) ||
	       (limits->sm_activity_ppm && metrics->sm_activity_ppm >= limits->sm_activity_ppm) ||
	       (limits->memory_ppm && metrics->memory_ppm >= limits->memory_ppm) ||
	       (metrics->clock_mhz && metrics->clock_mhz < limits->clock_mhz);
}

static void forget_old(struct td_sysmonitor *monitor, uint64_t window_ns, uint64_t now_ns)
{
	uint32_t old = 0;

	while (old < monitor->entry_count && now_ns - monitor->entries_ns[old] >= window_ns)
		old++;
	if (old == 0 && monitor->entry_count == TD_SYSMONITOR_ENTRIES_MAX)
		old = 1; /* the period is at its bound after so many doublings */
	monitor->entry_count -= old;
	memmove(monitor->entries_ns, monitor->entries_ns + old,
		monitor->entry_count * sizeof(monitor->entries_ns[0]));
}

static uint64_t period_ns(const struct td_sysmonitor_params *params, uint32_t entries)
{
	uint64_t period = params->period_base_ns;

	while (--entries && period < params->period_max_ns)
		period = period > UINT64_MAX / 2 ? UINT64_MAX : period * 2;
	return period < params->period_max_ns ? period : params->period_max_ns;
}

static enum td_sysmonitor_state enter_overlimit(
	struct td_sysmonitor *monitor, const struct td_sysmonitor_params *params, uint64_t now_ns)
{
	uint64_t period;

	forget_old(monitor, params->window_ns, now_ns);
	monitor->entries_ns[monitor->entry_count++] = now_ns;
	period = period_ns(params, monitor->entry_count);
	monitor->until_ns = period > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + period;
	return TD_SYSMONITOR_OVERLIMIT;
}

static enum td_sysmonitor_state next_state(struct td_sysmonitor *monitor,
	const struct td_sysmonitor_params *params, const struct td_sysmonitor_metrics *metrics,
	uint64_t now_ns)
{
	if (!metrics->available)
		return TD_SYSMONITOR_DISABLED;
	switch (monitor->state) {
	case TD_SYSMONITOR_INIT:
		return metrics->initialised ? TD_SYSMONITOR_HEALTHY : TD_SYSMONITOR_INIT;
	case TD_SYSMONITOR_HEALTHY:
		if (reached(&params->overlimit, metrics))
			return enter_overlimit(monitor, params, now_ns);
		return reached(&params->unhealthy, metrics) ? TD_SYSMONITOR_UNHEALTHY
							    : TD_SYSMONITOR_HEALTHY;
	case TD_SYSMONITOR_UNHEALTHY:
		if (reached(&params->overlimit, metrics))
			return enter_overlimit(monitor, params, now_ns);
		return reached(&params->healthy, metrics) ? TD_SYSMONITOR_UNHEALTHY
							  : TD_SYSMONITOR_HEALTHY;
	case TD_SYSMONITOR_OVERLIMIT:
		if (now_ns < monitor->until_ns || reached(&params->overlimit, metrics))
			return TD_SYSMONITOR_OVERLIMIT;
		return TD_SYSMONITOR_UNHEALTHY;
	case TD_SYSMONITOR_DISABLED: return TD_SYSMONITOR_INIT;
	case TD_SYSMONITOR_N: break;
	}
	return TD_SYSMONITOR_INIT;
}

enum td_sysmonitor_state td_sysmonitor_step(struct td_sysmonitor *monitor,
	const struct td_sysmonitor_params *params, const struct td_sysmonitor_metrics *metrics,
	uint64_t now_ns)
{
	monitor->state = next_state(monitor, params, metrics, now_ns);
	return monitor->state;
}

bool td_sysmonitor_accepts(enum td_sysmonitor_state state)
{
	return state == TD_SYSMONITOR_HEALTHY;
}

bool td_sysmonitor_evicts(enum td_sysmonitor_state state)
{
	return state == TD_SYSMONITOR_OVERLIMIT || state == TD_SYSMONITOR_DISABLED;
}

const char *td_sysmonitor_name(enum td_sysmonitor_state state)
{
	static const char *const names[TD_SYSMONITOR_N] = {
		"init", "healthy", "unhealthy", "overlimit", "disabled"};

	return names[state];
}
