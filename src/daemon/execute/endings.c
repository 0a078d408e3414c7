/* This file implements endings.h. */
#include "daemon/execute/endings.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "daemon/execute/actions.h"
#include "daemon/model/job.h"
#include "daemon/model/node.h"
#include "daemon/node/gpus.h"
#include "daemon/node/hangs.h"
#include "daemon/node/pairing.h"
#include "proto/orders.h"
#include "proto/proto.h"

/* A supervisor that lost its connection connects again within 2 s, if it lives. */
#define LOST_NS 3000000000ull
/* After SIGKILL a process may take a while to be gone: the driver frees its memory first. */
#define GONE_NS 10000000000ull
/* An MPS server has this long to release a client before the client is killed. */
#define LET_GO_NS 500000000ull
/* A shadow is a second instance of a program. It loads its model first, which takes minutes. */
#define SHADOW_NS 600000000000ull

static const enum td_order_kind orders[TD_ACTION_N] = {
	[TD_ACTION_EVICT] = TD_ORDER_STOP,
	[TD_ACTION_RESTART] = TD_ORDER_RESTART,
	[TD_ACTION_START_SHADOW] = TD_ORDER_SHADOW,
};

/* The ability that an action needs of the supervisor, and the reason for refusal without it. */
static const struct {
	uint32_t can;
	const char *why;
} needs[TD_ACTION_N] = {
	[TD_ACTION_RESTART] = {TD_SUPERVISOR_RESTARTS,
		"nobody can start it again: start it with tandem run --restart or --requeue"},
	[TD_ACTION_START_SHADOW] = {TD_SUPERVISOR_SHADOWS,
		"nobody can start a second instance of it: start it with tandem run --shadow"},
};

static uint64_t left(uint64_t until_ns, uint64_t now_ns)
{
	return until_ns > now_ns ? until_ns - now_ns : 0;
}

static const char *reason_of(
	const struct td_node *node, const struct td_act *act, char *buf, size_t len)
{
	if (act->by_hand)
		snprintf(buf, len, "asked for by hand");
	else if (act->migration.bound.is_set)
		snprintf(buf, len, "it goes to GPU %u, planned by policy %s",
			td_gpu_number_of(node, act->migration.bound.gpu), node->policy->name);
	else
		snprintf(buf, len, "planned by policy %s", node->policy->name);
	return buf;
}

/* With a supervisor the act may take twice as long: it also ends the processes that use no GPU. */
static void set_deadlines(struct td_ending *e, uint64_t deadline_ns, uint64_t now_ns)
{
	e->term_ns = now_ns + deadline_ns / 2;
	e->kill_ns = now_ns + deadline_ns;
	e->end_ns = e->kill_ns + (e->order == TD_ORDER_NONE ? 0 : deadline_ns) + GONE_NS;
}

/* -- processes -- */

/* Returns whether the process is one that the act is to end. */
static bool is_to_end(const struct td_act *act, const struct td_process *process)
{
	return process->job->group == act->id &&
	       (!act->ending.last_id || process->id <= act->ending.last_id);
}

static unsigned count_left(const struct td_node *node, const struct td_act *act)
{
	unsigned count = 0;
	struct td_list *it;

	td_list_for_each (it, &node->processes)
		count += is_to_end(act, td_process_at(it));
	return count;
}

static bool may_signal(const struct td_node *node, const struct td_process *process)
{
	return node->io.signal && (!node->owner || node->owner == process->who.uid);
}

static bool can_end(const struct td_node *node, const struct td_process *process)
{
	return process->can & TD_CAN_LEAVE || may_signal(node, process);
}

int td_process_leaving(struct td_process *process, const struct td_msg_leaving *msg)
{
	if (msg->how >= TD_LEAVING_N || !process->leave.asked_ns)
		return -EPROTO;
	process->leave.answered = true;
	process->leave.how = msg->how;
	return 0;
}

/*
 * Returns whether the daemon controls the process by its gate. It does not if the process is
 * foreign (runs as without tandem), has failed, or has no client.
 */
static bool is_governed(const struct td_process *process)
{
	return !process->foreign && !process->failed && !td_list_empty(&process->clients);
}

static void send_signal(const struct td_node *node, struct td_act *act,
	const struct td_process *process, int signal)
{
	int r = may_signal(node, process) ? node->io.signal(process->peer, signal) : -EPERM;

	if (r && r != -ESRCH)
		snprintf(act->reason, sizeof(act->reason), "process %d cannot be ended: %s",
			(int)process->pid, strerror(-r));
}

static void tell_one(
	struct td_node *node, struct td_act *act, struct td_process *process, uint64_t now_ns)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_leave};

	process->leave = (struct td_leave){.asked_ns = now_ns};
	if (process->can & TD_CAN_LEAVE) {
		msg.leave.patience_ns = left(act->ending.term_ns, now_ns);
		msg.leave.drains = is_governed(process);
		(void)reason_of(node, act, msg.leave.reason, sizeof(msg.leave.reason));
		node->io.send(process->peer, &msg);
	} else {
		process->leave.signalled = true;
		send_signal(node, act, process, SIGTERM);
	}
}

/*
 * Returns the time at which SIGKILL is due. An MPS server may hang if a client with work in flight
 * is killed, so it is given time to release the client first.
 */
static uint64_t when_to_kill(
	struct td_node *node, const struct td_act *act, struct td_process *process, uint64_t now_ns)
{
	struct td_list *it;
	bool is_mps = false;

	td_list_for_each (it, &process->clients)
		is_mps |= td_container_of(it, struct td_client, of_process)->mps;
	if (!is_mps)
		return act->ending.kill_ns;
	if (now_ns < act->ending.kill_ns || process->leave.let_go)
		return act->ending.kill_ns + LET_GO_NS;
	process->leave.let_go = true;
	td_list_for_each (it, &process->clients)
		td_hangs_let_go(node, td_container_of(it, struct td_client, of_process));
	return act->ending.kill_ns + LET_GO_NS;
}

static void press_one(
	struct td_node *node, struct td_act *act, struct td_process *process, uint64_t now_ns)
{
	struct td_leave *leave = &process->leave;
	bool was_called = leave->answered && leave->how == TD_LEAVING_HANDLES;

	/*
	 * A program may take a second SIGTERM for an order to hurry, so none follows its own
	 * handler's call.
	 */
	if (now_ns >= act->ending.term_ns && !leave->signalled) {
		leave->signalled = true;
		if (!was_called)
			send_signal(node, act, process, SIGTERM);
	}
	if (now_ns >= when_to_kill(node, act, process, now_ns) && !leave->killed) {
		leave->killed = true;
		send_signal(node, act, process, SIGKILL);
	}
	if (leave->answered && leave->how != TD_LEAVING_HANDLES && is_governed(process))
		process->job->leaves = true;
	if (leave->answered && act->state == TD_ACTION_ASKED)
		td_act_enter(node, act, TD_ACTION_RUNNING, NULL, now_ns);
}

/* Sets the deadlines anew from now on, since the supervisor's answer may have taken long. */
static void begin_to_tell(struct td_node *node, struct td_act *act, uint64_t now_ns)
{
	struct td_ending *e = &act->ending;

	set_deadlines(e, node->options.evict_deadline_ns, now_ns);
	if (e->order != TD_ORDER_NONE)
		e->last_id = node->next_id - 1;
	e->told = true;
}

static void end_processes(struct td_node *node, struct td_act *act, uint64_t now_ns)
{
	struct td_list *it;

	if (!act->ending.told)
		begin_to_tell(node, act, now_ns);
	td_list_for_each (it, &node->processes) {
		struct td_process *process = td_process_at(it);

		if (!is_to_end(act, process))
			continue;
		if (!process->leave.asked_ns)
			tell_one(node, act, process, now_ns);
		press_one(node, act, process, now_ns);
	}
}

/* The act was given up: its processes run on and are not asked to leave any more. */
static void forgive(struct td_node *node, const struct td_act *act)
{
	struct td_list *it;

	td_list_for_each (it, &node->processes)
		if (is_to_end(act, td_process_at(it)))
			td_process_at(it)->leave = (struct td_leave){0};
}

/* -- orders to the supervisor -- */

static void send_order(struct td_node *node, struct td_act *act, uint64_t now_ns)
{
	const struct td_ending *e = &act->ending;
	struct td_msg msg = {.type = TD_MSG_TYPE_order};

	msg.order.number = act->number;
	msg.order.kind = (uint8_t)orders[act->kind];
	msg.order.epoch = e->epoch;
	/*
	 * With leave_ns 0 the supervisor does not send SIGTERM again to a handler that is saving
	 * its state.
	 */
	msg.order.leave_ns = e->hurried ? 0 : left(e->kill_ns, now_ns);
	msg.order.kill_ns = e->kill_ns - e->term_ns;
	if (act->kind == TD_ACTION_START_SHADOW) {
		msg.order.leave_ns = SHADOW_NS;
		msg.order.kill_ns = node->options.evict_deadline_ns;
	}
	msg.order.requeue = act->kind == TD_ACTION_EVICT;
	msg.order.sm_share_ppm = act->sm_share_ppm;
	(void)reason_of(node, act, msg.order.reason, sizeof(msg.order.reason));
	node->io.send(e->supervisor->peer, &msg);
}

static void order(struct td_node *node, struct td_act *act, const struct td_supervisor *supervisor,
	uint64_t now_ns)
{
	act->ending.supervisor = supervisor;
	act->ending.pid = supervisor->pid;
	act->ending.order = TD_ORDER_SENT;
	act->ending.order_until_ns = now_ns + TD_ORDER_ANSWER_NS;
	send_order(node, act, now_ns);
}

/*
 * Goes on without the supervisor. Nobody can start a process then, so only an EVICT can still
 * succeed.
 */
static void pass_by(struct td_node *node, struct td_act *act, enum td_action_state state,
	const char *why, uint64_t now_ns)
{
	struct td_supervisor *supervisor =
		td_supervisors_at(node, act->who, act->job, act->ending.pid);

	act->ending.order = TD_ORDER_NONE;
	act->ending.supervisor = NULL;
	if (supervisor)
		td_pairing_bind(supervisor, NULL);
	if (act->kind != TD_ACTION_EVICT)
		td_act_enter(node, act, state, why, now_ns);
}

void td_ending_ordered(
	struct td_node *node, struct td_act *act, const struct td_msg_ordered *msg, uint64_t now_ns)
{
	char why[sizeof(act->reason)];

	switch (msg->result) {
	case TD_ORDERED_RUNNING:
		act->ending.order = TD_ORDER_RUNS;
		if (act->state == TD_ACTION_ASKED)
			td_act_enter(node, act, TD_ACTION_RUNNING, NULL, now_ns);
		return;
	case TD_ORDERED_DONE:
		act->ending.order = TD_ORDER_ENDED;
		if (act->kind != TD_ACTION_EVICT)
			td_act_enter(node, act, TD_ACTION_DONE, NULL, now_ns);
		return;
	default:
		snprintf(why, sizeof(why), "%.160s", msg->reason);
		pass_by(node, act, TD_ACTION_REFUSED,
			*td_printable(why) ? why : "its supervisor refuses", now_ns);
		return;
	}
}

void td_ending_supervisor_gone(struct td_act *act, uint64_t now_ns)
{
	act->ending.supervisor = NULL;
	if (act->ending.order == TD_ORDER_SENT || act->ending.order == TD_ORDER_RUNS) {
		act->ending.order = TD_ORDER_LOST;
		act->ending.order_until_ns = now_ns + LOST_NS;
	}
}

static void step_order(struct td_node *node, struct td_act *act, uint64_t now_ns)
{
	struct td_ending *e = &act->ending;
	const struct td_supervisor *supervisor = NULL;

	if (e->order == TD_ORDER_LOST)
		supervisor = td_supervisors_at(node, act->who, act->job, e->pid);
	/*
	 * The order is sent again under the same number, so that the supervisor answers as before.
	 */
	if (supervisor)
		order(node, act, supervisor, now_ns);
	else if (e->order == TD_ORDER_LOST && now_ns >= e->order_until_ns)
		pass_by(node, act, TD_ACTION_REFUSED, "its supervisor has ended", now_ns);
	else if (e->order == TD_ORDER_SENT && now_ns >= e->order_until_ns)
		pass_by(node, act, TD_ACTION_TIMED_OUT, "its supervisor does not answer", now_ns);
	if (e->order == TD_ORDER_RUNS && e->told && !e->hurried && !count_left(node, act)) {
		e->hurried = true;
		send_order(node, act, now_ns);
	}
}

/* -- the act as a whole -- */

/* Returns why another share of the SMs would have no effect, or NULL: it would, for all we know. */
static const char *why_no_share(
	const struct td_node *node, const struct td_job *job, char *buf, size_t len)
{
	struct td_list *it, *at;

	td_list_for_each (it, &job->members)
		td_list_for_each (at, &td_container_of(it, struct td_process, of_job)->clients) {
			uint32_t gpu = td_container_of(at, struct td_client, of_process)->gpu;
			enum td_mps mps = node->gpu_views[gpu].mps;

			if (mps == TD_MPS_ON || mps == TD_MPS_UNKNOWN)
				continue;
			snprintf(buf, len,
				"a share of the SMs needs MPS, which %s on GPU %u: "
				"tandem set mps=on",
				mps == TD_MPS_FAILED ? "has failed" : "is off",
				td_gpu_number(node, gpu));
			return buf;
		}
	return NULL;
}

/* Returns why the act cannot begin, as a part of a sentence, or NULL if it can. */
static const char *why_not(const struct td_node *node, const struct td_act *act,
	const struct td_job *job, const struct td_supervisor *supervisor, char *buf, size_t len)
{
	struct td_list *it;

	if (act->kind == TD_ACTION_EVICT && !act->by_hand &&
		job->settings.class != TD_CLASS_BESTEFFORT)
		return "only besteffort jobs are evicted by a policy";
	if (needs[act->kind].can && (!supervisor || !(supervisor->can & needs[act->kind].can)))
		return needs[act->kind].why;
	if (act->kind == TD_ACTION_START_SHADOW)
		return why_no_share(node, job, buf, len);
	td_list_for_each (it, &job->members) {
		const struct td_process *process = td_container_of(it, struct td_process, of_job);

		if (supervisor || can_end(node, process))
			continue;
		snprintf(buf, len, "tandemd runs as user %u and may not end process %d of user %u",
			(unsigned)node->owner, (int)process->pid, (unsigned)process->who.uid);
		return buf;
	}
	return NULL;
}

/* Returns another act that is to end or restart the same job, or NULL. */
static struct td_act *rival_of(const struct td_node *node, const struct td_act *act)
{
	struct td_list *it;

	td_list_for_each (it, &node->acts) {
		struct td_act *other = td_container_of(it, struct td_act, of_node);

		if (other != act && other->id == act->id && !td_act_has_ended(other) &&
			(other->kind == TD_ACTION_EVICT || other->kind == TD_ACTION_RESTART ||
				other->kind == TD_ACTION_START_SHADOW))
			return other;
	}
	return NULL;
}

/*
 * An EVICT takes precedence over all other acts on the job. Returns false if this act has to give
 * way.
 */
static bool settle(struct td_node *node, struct td_act *act, uint64_t now_ns)
{
	struct td_act *rival;

	while ((rival = rival_of(node, act))) {
		if (act->kind != TD_ACTION_EVICT) {
			td_act_enter(node, act, TD_ACTION_REFUSED,
				"something else is being done to the job", now_ns);
			return false;
		}
		td_act_enter(node, rival, TD_ACTION_REFUSED, "the job is evicted instead", now_ns);
	}
	return true;
}

/* Returns what an exchange of the job is for, as a part of a sentence; NULL for other acts. */
static const char *goal_of(
	const struct td_node *node, const struct td_act *act, char *buf, size_t len)
{
	const struct td_bound *bound = &act->migration.bound;
	char before[32];

	if (!bound->is_set)
		return NULL;
	if (bound->from_ppm)
		snprintf(before, sizeof(before), "runs at %u%%", (bound->from_ppm + 5000) / 10000);
	else
		snprintf(before, sizeof(before), "waits");
	snprintf(buf, len,
		"from GPU %u, where it %s, to GPU %u, where it is to run at %u%% of its speed "
		"alone",
		bound->from, before, td_gpu_number_of(node, bound->gpu),
		(bound->to_ppm + 5000) / 10000);
	return buf;
}

void td_ending_begin(struct td_node *node, struct td_act *act, uint64_t now_ns)
{
	struct td_supervisor *supervisor = td_supervisors_named(node, act->who, act->job);
	struct td_ending *e = &act->ending;
	struct td_job *job = NULL;
	char buf[sizeof(act->reason)], goal[sizeof(act->reason)];
	const char *why;
	struct td_list *it;

	td_list_for_each (it, &node->jobs)
		if (td_container_of(it, struct td_job, of_node)->group == act->id)
			job = td_container_of(it, struct td_job, of_node);
	why = job ? why_not(node, act, job, supervisor, buf, sizeof(buf)) : "the job has ended";
	if (why) {
		td_act_enter(node, act, TD_ACTION_REFUSED, why, now_ns);
		return;
	}
	if (!settle(node, act, now_ns))
		return;
	set_deadlines(e, node->options.evict_deadline_ns, now_ns);
	if (act->kind == TD_ACTION_START_SHADOW)
		e->end_ns = now_ns + SHADOW_NS + 2 * node->options.evict_deadline_ns + GONE_NS;
	td_act_enter(node, act, TD_ACTION_ASKED, goal_of(node, act, goal, sizeof(goal)), now_ns);
	if (supervisor) {
		td_pairing_bind(supervisor, &act->migration.bound);
		e->epoch = supervisor->epoch;
		order(node, act, supervisor, now_ns);
	} else {
		end_processes(node, act, now_ns);
	}
}

static void give_up(struct td_node *node, struct td_act *act, uint64_t now_ns)
{
	char why[sizeof(act->reason)];

	snprintf(why, sizeof(why), "%u of its processes have not ended", count_left(node, act));
	forgive(node, act);
	td_act_enter(node, act, TD_ACTION_TIMED_OUT, *act->reason ? NULL : why, now_ns);
}

/*
 * Returns whether processes may be ended although the supervisor has not asked for it: it says that
 * the job has ended, or it has not answered in time.
 */
static bool is_put_off(const struct td_act *act, uint64_t now_ns)
{
	return act->kind == TD_ACTION_EVICT &&
	       (act->ending.order == TD_ORDER_ENDED || now_ns >= act->ending.kill_ns);
}

void td_ending_step(struct td_node *node, struct td_act *act, uint64_t now_ns)
{
	struct td_ending *e = &act->ending;
	bool ends = act->kind != TD_ACTION_START_SHADOW;

	step_order(node, act, now_ns);
	if (td_act_has_ended(act))
		return;
	if (ends && (e->told || e->order == TD_ORDER_NONE || e->order == TD_ORDER_RUNS ||
			    is_put_off(act, now_ns)))
		end_processes(node, act, now_ns);
	if (act->kind == TD_ACTION_EVICT && !count_left(node, act) &&
		(e->order == TD_ORDER_NONE || e->order == TD_ORDER_ENDED))
		td_act_enter(node, act, TD_ACTION_DONE, NULL, now_ns);
	else if (now_ns >= e->end_ns)
		give_up(node, act, now_ns);
}

/* Returns the earlier of two times. A time that is not after now_ns was dealt with in this step. */
static uint64_t earlier(uint64_t ns, uint64_t at_ns, uint64_t now_ns)
{
	return at_ns > now_ns && at_ns < ns ? at_ns : ns;
}

uint64_t td_ending_wakeup(const struct td_act *act, uint64_t now_ns)
{
	const struct td_ending *e = &act->ending;
	uint64_t ns = earlier(TD_NEVER, e->end_ns, now_ns);

	if (e->order == TD_ORDER_SENT || e->order == TD_ORDER_LOST)
		ns = earlier(ns, e->order_until_ns, now_ns);
	if (!e->told)
		return act->kind == TD_ACTION_EVICT ? earlier(ns, e->kill_ns, now_ns) : ns;
	ns = earlier(ns, e->kill_ns + LET_GO_NS, now_ns);
	return earlier(earlier(ns, e->term_ns, now_ns), e->kill_ns, now_ns);
}
