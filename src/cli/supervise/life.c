/* Decides when a supervised program is ended and started again; see life.h. */
#include <assert.h>
#include <signal.h>
#include <string.h>

#include "cli/supervise/life.h"

#define NEVER UINT64_MAX

/* Adds a time. It saturates, since times from the daemon may be arbitrarily large. */
static uint64_t later(uint64_t now_ns, uint64_t ns)
{
	return ns < NEVER - now_ns ? now_ns + ns : NEVER;
}

static enum td_life_action enter(struct td_life *life, enum td_life_state state, uint64_t wake_ns,
	enum td_life_action action)
{
	life->state = state;
	life->wake_ns = wake_ns;
	return action;
}

static enum td_life_action start(struct td_life *life)
{
	life->starts++;
	life->order = TD_LIFE_ORDER_NONE;
	life->is_told = false;
	life->started_ns = 0;
	return enter(life, TD_LIFE_STARTING, NEVER, TD_LIFE_START);
}

enum td_life_action td_life_begin(
	struct td_life *life, const struct td_restart *restart, bool may_queue)
{
	memset(life, 0, sizeof(*life));
	life->restart = *restart;
	life->may_queue = may_queue;
	return start(life);
}

bool td_life_has_program(const struct td_life *life)
{
	return life->state == TD_LIFE_STARTING || life->state == TD_LIFE_RUNNING ||
	       life->state == TD_LIFE_STOPPING;
}

/* -- the decision to start again -- */

/* Returns whether one more restart would exceed `most` restarts within the window. */
static bool is_bound_reached(const struct td_life *life, uint64_t now_ns)
{
	uint32_t most = life->restart.most;

	if (!most || life->failures < most)
		return false;
	return !life->restart.window_ns ||
	       now_ns - life->times_ns[(life->failures - most) % TD_RESTARTS_MAX] <
		       life->restart.window_ns;
}

/*
 * Returns whether this end of the program is final, so that it is not started again. If it could
 * not be executed at all, its name was probably wrong. If it died of SIGPIPE, it would die of it
 * again at once.
 */
static bool is_final(const struct td_life *life, bool unstarted)
{
	const struct td_life_end *end = &life->end;

	if (life->is_interrupted || (unstarted && life->starts == 1) ||
		(end->by_signal && end->code == SIGPIPE))
		return true;
	switch (life->restart.when) {
	case TD_RESTART_ON_FAILURE: return !end->by_signal && !end->code;
	case TD_RESTART_ALWAYS: return false;
	case TD_RESTART_NEVER:
	case TD_RESTART_N: break;
	}
	return true;
}

static void back_off(struct td_life *life, uint64_t least_ns, uint64_t now_ns)
{
	bool was_healthy = life->started_ns && now_ns - life->started_ns >= TD_LIFE_HEALTHY_NS;
	uint64_t delay_ns = was_healthy ? 0 : 2 * life->delay_ns;

	if (delay_ns < least_ns)
		delay_ns = least_ns;
	life->delay_ns = delay_ns < TD_LIFE_DELAY_MAX_NS ? delay_ns : TD_LIFE_DELAY_MAX_NS;
	life->ready_ns = now_ns + life->delay_ns;
}

/* Sends SIGTERM to the job's processes. */
static enum td_life_action tell(
	struct td_life *life, enum td_life_state state, uint64_t kill_ns, uint64_t now_ns)
{
	life->is_told = true;
	life->kill_ns = kill_ns;
	return enter(life, state, later(now_ns, kill_ns), TD_LIFE_TERMINATE);
}

static enum td_life_action end(struct td_life *life)
{
	return enter(life, TD_LIFE_OVER, NEVER, TD_LIFE_END);
}

/* Decides after an end of the program that was not ordered. */
static enum td_life_action after_own_end(struct td_life *life, bool unstarted, uint64_t now_ns)
{
	if (is_final(life, unstarted))
		return end(life);
	if (is_bound_reached(life, now_ns)) {
		life->gave_up = true;
		return end(life);
	}
	life->times_ns[life->failures++ % TD_RESTARTS_MAX] = now_ns;
	back_off(life, TD_LIFE_DELAY_NS, now_ns);
	return tell(life, TD_LIFE_CLEARING, TD_LIFE_GRACE_NS, now_ns);
}

static enum td_life_action after_end(
	struct td_life *life, const struct td_life_input *input, uint64_t now_ns)
{
	if (!td_life_has_program(life))
		return TD_LIFE_NOTHING;
	life->end = input->end;
	if (life->state != TD_LIFE_STOPPING)
		return after_own_end(life, input->event == TD_LIFE_UNSTARTED, now_ns);
	if (life->is_interrupted)
		return end(life);
	life->ready_ns = now_ns;
	/* The job's other processes get the rest of the time. */
	return enter(life, TD_LIFE_CLEARING, life->wake_ns, TD_LIFE_NOTHING);
}

/* -- while no program runs -- */

static enum td_life_action wait_or_start(struct td_life *life, uint64_t now_ns)
{
	if (now_ns >= life->ready_ns)
		return start(life);
	return enter(life, TD_LIFE_BACKING_OFF, life->ready_ns, TD_LIFE_NOTHING);
}

/* Queues the job. It asks for admission when the back-off is over. */
static enum td_life_action queue(struct td_life *life, uint64_t now_ns)
{
	back_off(life, TD_LIFE_QUEUE_NS, now_ns);
	return enter(life, TD_LIFE_QUEUED, life->ready_ns, TD_LIFE_NOTHING);
}

static enum td_life_action after_clearing(struct td_life *life, uint64_t now_ns)
{
	if (life->order == TD_LIFE_ORDER_STOP ||
		(life->order == TD_LIFE_ORDER_REQUEUE && !life->may_queue))
		return end(life);
	if (life->order == TD_LIFE_ORDER_REQUEUE)
		return queue(life, now_ns);
	return wait_or_start(life, now_ns);
}

/* -- orders -- */

/* Handles an order to stop. A repeated order can only shorten the remaining times. */
static enum td_life_action stop(
	struct td_life *life, const struct td_life_input *input, uint64_t now_ns)
{
	bool is_first = life->state == TD_LIFE_STARTING || life->state == TD_LIFE_RUNNING;
	uint64_t wake_ns = later(now_ns, life->is_told ? input->kill_ns : input->leave_ns);

	if (is_first) {
		life->state = TD_LIFE_STOPPING;
		life->wake_ns = NEVER;
	}
	if (!life->is_told)
		life->kill_ns = input->kill_ns;
	if (!life->is_told && !input->leave_ns)
		return tell(life, life->state, input->kill_ns, now_ns);
	if (wake_ns < life->wake_ns)
		life->wake_ns = wake_ns;
	return TD_LIFE_NOTHING;
}

static enum td_life_action obey(
	struct td_life *life, const struct td_life_input *input, uint64_t now_ns)
{
	bool is_new = life->order != input->order;

	if (life->state == TD_LIFE_OVER)
		return TD_LIFE_NOTHING;
	life->order = input->order;
	switch (life->state) {
	case TD_LIFE_CLEARING:
		if (is_new)
			life->ready_ns = now_ns;
		return stop(life, input, now_ns);
	case TD_LIFE_STARTING:
	case TD_LIFE_RUNNING:
	case TD_LIFE_STOPPING: return stop(life, input, now_ns);
	case TD_LIFE_BACKING_OFF:
	case TD_LIFE_QUEUED:
		life->ready_ns = now_ns;
		return is_new ? after_clearing(life, now_ns) : TD_LIFE_NOTHING;
	case TD_LIFE_OVER:
	case TD_LIFE_STATE_N: break;
	}
	return TD_LIFE_NOTHING;
}

static enum td_life_action interrupt(struct td_life *life, int signal)
{
	life->is_interrupted = true;
	if (td_life_has_program(life) || life->state == TD_LIFE_OVER)
		return TD_LIFE_NOTHING;
	/* A job that was ordered to stop ends with its program's own status. */
	if (life->order != TD_LIFE_ORDER_STOP)
		life->end = (struct td_life_end){true, signal};
	return end(life);
}

static enum td_life_action be_later(struct td_life *life, uint64_t now_ns)
{
	if (now_ns < life->wake_ns)
		return TD_LIFE_NOTHING;
	switch (life->state) {
	case TD_LIFE_STOPPING:
	case TD_LIFE_CLEARING:
		if (!life->is_told)
			return tell(life, life->state, life->kill_ns, now_ns);
		/*
		 * A process that forks while it is killed leaves a child, which is found the next
		 * time.
		 */
		life->wake_ns = now_ns + TD_LIFE_DELAY_NS;
		return TD_LIFE_KILL;
	case TD_LIFE_BACKING_OFF: return start(life);
	case TD_LIFE_QUEUED:
		/* If the job is refused, it asks again, with growing delays. */
		back_off(life, TD_LIFE_QUEUE_NS, now_ns);
		life->wake_ns = life->ready_ns;
		return TD_LIFE_ASK;
	case TD_LIFE_STARTING:
	case TD_LIFE_RUNNING:
	case TD_LIFE_OVER:
	case TD_LIFE_STATE_N: break;
	}
	return TD_LIFE_NOTHING;
}

enum td_life_action td_life_step(
	struct td_life *life, const struct td_life_input *input, uint64_t now_ns)
{
	switch (input->event) {
	case TD_LIFE_STARTED:
		life->started_ns = now_ns;
		if (life->state == TD_LIFE_STARTING)
			life->state = TD_LIFE_RUNNING;
		return TD_LIFE_NOTHING;
	case TD_LIFE_UNSTARTED:
	case TD_LIFE_ENDED: return after_end(life, input, now_ns);
	case TD_LIFE_CLEARED:
		return life->state == TD_LIFE_CLEARING ? after_clearing(life, now_ns)
						       : TD_LIFE_NOTHING;
	case TD_LIFE_INTERRUPTED: return interrupt(life, input->end.code);
	case TD_LIFE_ORDERED: return obey(life, input, now_ns);
	case TD_LIFE_ADMITTED: return life->state == TD_LIFE_QUEUED ? start(life) : TD_LIFE_NOTHING;
	case TD_LIFE_TIME: return be_later(life, now_ns);
	case TD_LIFE_EVENT_N: break;
	}
	assert(false);
	return TD_LIFE_NOTHING;
}
