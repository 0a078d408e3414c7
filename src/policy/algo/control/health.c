/* Implements the state machine drawn in health.h. */
#include "policy/algo/control/health.h"

#include <string.h>

const struct td_health_params td_health_default = TD_HEALTH_DEFAULT;

enum td_xid_class td_xid_class(uint32_t xid)
{
	switch (xid) {
#define XID(number, class, text)                                                                   \
	case number:                                                                               \
		return TD_XID_##class;
#include "policy/algo/control/xids.def"
#undef XID
	default: return TD_XID_SHOWN;
	}
}

const char *td_xid_text(uint32_t xid)
{
	switch (xid) {
#define XID(number, class, text)                                                                   \
	case number:                                                                               \
		return text;
#include "policy/algo/control/xids.def"
#undef XID
	default: return NULL;
	}
}

/*
 * Returns the class of an Xid that has come since the last step. It is TD_XID_SHOWN if none has
 * come, or if it is of a program outside of MPS. While the program is not known it is TD_XID_SHOWN,
 * too, and the next step looks at the Xid again.
 */
static enum td_xid_class take_xid(struct td_health *health, const struct td_health_metrics *metrics)
{
	enum td_xid_class class = td_xid_class(metrics->xid);

	if (!metrics->xid || metrics->xid_ns == health->xid_ns)
		return TD_XID_SHOWN;
	if (class == TD_XID_PROGRAM && metrics->xid_of == TD_XID_OF_UNKNOWN)
		return TD_XID_SHOWN;
	health->xid_ns = metrics->xid_ns;
	return class == TD_XID_PROGRAM && metrics->xid_of != TD_XID_OF_MPS ? TD_XID_SHOWN : class;
}

static bool is_error(const struct td_health_metrics *metrics, enum td_xid_class xid)
{
	if (metrics->server == TD_HEALTH_SERVER_FAILED)
		return true;
	return metrics->server == TD_HEALTH_SERVER_RUNS &&
	       (xid == TD_XID_PROGRAM || metrics->hangs);
}

static void forget_old_failures(struct td_health *health, uint64_t window_ns, uint64_t now_ns)
{
	uint32_t old = 0;

	while (old < health->failure_count && now_ns - health->failures_ns[old] >= window_ns)
		old++;
	if (!old && health->failure_count == TD_HEALTH_FAILURES_MAX)
		old = 1;
	health->failure_count -= old;
	memmove(health->failures_ns, health->failures_ns + old,
		health->failure_count * sizeof(health->failures_ns[0]));
}

static void fail(struct td_health *health, const struct td_health_params *params,
	const struct td_health_metrics *metrics, uint64_t now_ns)
{
	forget_old_failures(health, params->breaker_window_ns, now_ns);
	health->failures_ns[health->failure_count++] = now_ns;
	health->server_ns = metrics->server_ns;
	health->samples = 0;
	health->state = TD_HEALTH_FAILED;
	if (health->failure_count < params->breaker_failures)
		return;
	health->state = TD_HEALTH_BROKEN;
	health->until_ns =
		params->breaker_ns > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + params->breaker_ns;
}

static void count_sample(
	struct td_health *health, const struct td_health_params *params, bool has_figures)
{
	health->samples = has_figures ? health->samples + 1 : 0;
	if (health->samples >= params->good_samples)
		health->state = TD_HEALTH_GOOD;
}

/*
 * Tells whether the server has been restarted since the failure, or there is none any more. Errors
 * from before do not concern it.
 */
static bool is_another_server(
	const struct td_health *health, const struct td_health_metrics *metrics)
{
	return metrics->server == TD_HEALTH_SERVER_NONE ||
	       (metrics->server == TD_HEALTH_SERVER_RUNS &&
		       metrics->server_ns != health->server_ns);
}

static void start_again(struct td_health *health)
{
	health->state = TD_HEALTH_STARTING;
	health->samples = 0;
}

/* Ends the pause in resets: allows one more attempt and forgets the failures so far. */
static void end_breaker(struct td_health *health, const struct td_health_metrics *metrics)
{
	health->failure_count = 0;
	if (is_another_server(health, metrics))
		start_again(health);
	else
		health->state = TD_HEALTH_FAILED;
}

enum td_health_state td_health_step(struct td_health *health, const struct td_health_params *params,
	const struct td_health_metrics *metrics, uint64_t now_ns)
{
	enum td_xid_class xid = take_xid(health, metrics);

	if (xid == TD_XID_DEVICE)
		health->state = TD_HEALTH_LOST;
	switch (health->state) {
	case TD_HEALTH_STARTING:
	case TD_HEALTH_GOOD:
		if (is_error(metrics, xid))
			fail(health, params, metrics, now_ns);
		else if (health->state == TD_HEALTH_STARTING)
			count_sample(health, params, metrics->has_figures);
		break;
	case TD_HEALTH_FAILED:
		if (is_another_server(health, metrics))
			start_again(health);
		break;
	case TD_HEALTH_BROKEN:
		if (now_ns >= health->until_ns)
			end_breaker(health, metrics);
		break;
	case TD_HEALTH_LOST:
	case TD_HEALTH_N: break;
	}
	return health->state;
}

const char *td_health_name(enum td_health_state state)
{
	static const char *const names[TD_HEALTH_N] = {
		"starting", "good", "failed", "broken", "lost"};

	return names[state];
}
