/* Decides when a second instance takes the place of the first one; see shadow.h. */
#include "cli/supervise/shadow.h"

#include <assert.h>
#include <stdio.h>

#define NEVER UINT64_MAX
/* A process that forks while it is killed leaves a child, which is found the next time. */
#define AGAIN_NS (100ull * 1000 * 1000)

/* Adds a time. It saturates, since times from the daemon may be arbitrarily large. */
static uint64_t later(uint64_t now_ns, uint64_t ns)
{
	return ns < NEVER - now_ns ? now_ns + ns : NEVER;
}

static enum td_shadow_action enter(struct td_shadow *shadow, enum td_shadow_state state,
	uint64_t wake_ns, enum td_shadow_action action)
{
	shadow->state = state;
	shadow->wake_ns = wake_ns;
	return action;
}

static enum td_shadow_action begin(
	struct td_shadow *shadow, const struct td_shadow_input *input, uint64_t now_ns)
{
	if (shadow->state != TD_SHADOW_NONE)
		return TD_SHADOW_NOTHING;
	shadow->kill_ns = input->kill_ns;
	shadow->is_done = false;
	*shadow->reason = 0;
	return enter(shadow, TD_SHADOW_STARTING, later(now_ns, input->ready_ns), TD_SHADOW_START);
}

/* The first instance goes on, and the shadow gets SIGTERM. */
static enum td_shadow_action give_up(struct td_shadow *shadow, const char *why, uint64_t now_ns)
{
	snprintf(shadow->reason, sizeof(shadow->reason), "%s", why);
	return enter(shadow, TD_SHADOW_ENDING, later(now_ns, shadow->kill_ns), TD_SHADOW_TERMINATE);
}

static enum td_shadow_action end_other(struct td_shadow *shadow, const char *how)
{
	if (shadow->state == TD_SHADOW_STARTING)
		snprintf(shadow->reason, sizeof(shadow->reason),
			"the second instance has ended before it was ready: %s", how);
	shadow->is_done = shadow->state == TD_SHADOW_DRAINING;
	return enter(shadow, TD_SHADOW_NONE, NEVER, TD_SHADOW_NOTHING);
}

static enum td_shadow_action be_late(struct td_shadow *shadow, uint64_t now_ns)
{
	if (now_ns < shadow->wake_ns || shadow->state == TD_SHADOW_NONE)
		return TD_SHADOW_NOTHING;
	if (shadow->state == TD_SHADOW_STARTING)
		return give_up(shadow,
			"the second instance was not ready in time: it neither calls "
			"tandem_ready() nor listens where the first one does",
			now_ns);
	shadow->wake_ns = later(now_ns, AGAIN_NS);
	return TD_SHADOW_KILL;
}

enum td_shadow_action td_shadow_step(
	struct td_shadow *shadow, const struct td_shadow_input *input, uint64_t now_ns)
{
	bool starts = shadow->state == TD_SHADOW_STARTING;

	switch (input->event) {
	case TD_SHADOW_ORDERED: return begin(shadow, input, now_ns);
	case TD_SHADOW_READY:
		return starts ? enter(shadow, TD_SHADOW_DRAINING, later(now_ns, shadow->kill_ns),
					TD_SHADOW_HAND_OVER)
			      : TD_SHADOW_NOTHING;
	case TD_SHADOW_ENDED:
		return shadow->state == TD_SHADOW_NONE ? TD_SHADOW_NOTHING
						       : end_other(shadow, input->reason);
	case TD_SHADOW_FIRST_ENDED:
		if (!starts)
			return TD_SHADOW_NOTHING;
		shadow->is_done = true;
		return enter(shadow, TD_SHADOW_NONE, NEVER, TD_SHADOW_TAKE_OVER);
	case TD_SHADOW_CANCELLED:
		return starts ? give_up(shadow, input->reason, now_ns) : TD_SHADOW_NOTHING;
	case TD_SHADOW_TIME: return be_late(shadow, now_ns);
	case TD_SHADOW_EVENT_N: break;
	}
	assert(false);
	return TD_SHADOW_NOTHING;
}
