/* This file implements actions.h. */
#include "daemon/execute/actions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "daemon/execute/parking.h"
#include "daemon/execute/reshare.h"
#include "daemon/model/job.h"
#include "daemon/model/node.h"
#include "daemon/node/abilities.h"
#include "daemon/node/gpus.h"
#include "proto/orders.h"
#include "proto/proto.h"

static const char *const names[TD_ACTION_N] = {
	[TD_ACTION_MAKE_ROOM] = "make-room",
	[TD_ACTION_EVICT] = "evict",
	[TD_ACTION_MIGRATE] = "migrate",
	[TD_ACTION_PAUSE] = "pause",
	[TD_ACTION_RESUME] = "resume",
	[TD_ACTION_RESTART] = "restart",
	[TD_ACTION_START_SHADOW] = "start-shadow",
	[TD_ACTION_CHECKPOINT] = "checkpoint",
	[TD_ACTION_RESTORE] = "restore",
	[TD_ACTION_SHARE] = "share",
};

static const char *const state_names[TD_ACTION_STATE_N] = {
	[TD_ACTION_ASKED] = "asked",
	[TD_ACTION_RUNNING] = "running",
	[TD_ACTION_DONE] = "done",
	[TD_ACTION_REFUSED] = "refused",
	[TD_ACTION_TIMED_OUT] = "timed out",
};

const char *td_action_name(enum td_action_kind kind)
{
	return names[kind];
}

const char *td_action_state_name(enum td_action_state state)
{
	return state_names[state];
}

static struct td_act *act_at(struct td_list *it)
{
	return td_container_of(it, struct td_act, of_node);
}

static bool is_of_process(enum td_action_kind kind)
{
	return kind == TD_ACTION_CHECKPOINT || kind == TD_ACTION_RESTORE;
}

/* Each program of a job does this by itself (parking.h, moves.h). */
static bool is_of_program(enum td_action_kind kind)
{
	return kind == TD_ACTION_MIGRATE || kind == TD_ACTION_SHARE || is_of_process(kind);
}

static bool is_of_client(enum td_action_kind kind)
{
	return kind == TD_ACTION_MAKE_ROOM || kind == TD_ACTION_MIGRATE || kind == TD_ACTION_SHARE;
}

static bool is_ending(enum td_action_kind kind)
{
	return kind == TD_ACTION_EVICT || kind == TD_ACTION_RESTART ||
	       kind == TD_ACTION_START_SHADOW;
}

/*
 * MAKE_ROOM is routine: a plan names it in step after step while all goes well, so its states up to
 * DONE make no event.
 */
static bool is_routine(const struct td_act *act, enum td_action_state state)
{
	return act->kind == TD_ACTION_MAKE_ROOM && state <= TD_ACTION_DONE;
}

void td_act_enter(struct td_node *node, struct td_act *act, enum td_action_state state,
	const char *reason, uint64_t now_ns)
{
	char detail[256];

	act->state = state;
	act->changed_ns = now_ns;
	if (reason)
		snprintf(act->reason, sizeof(act->reason), "%s", reason);
	snprintf(detail, sizeof(detail), "%s: %s%s%s", names[act->kind], state_names[state],
		*act->reason ? ": " : "", act->reason);
	if (!is_routine(act, state))
		td_node_job_event(
			node, TD_EVENT_ACTION, act->who, act->job, act->name, now_ns, detail);
	if (node->io.acted)
		node->io.acted(node->io.arg, act);
}

static struct td_job *job_of(const struct td_node *node, uint32_t group)
{
	struct td_list *it;

	td_list_for_each (it, &node->jobs)
		if (td_container_of(it, struct td_job, of_node)->group == group)
			return td_container_of(it, struct td_job, of_node);
	return NULL;
}

static struct td_client *client_of(const struct td_node *node, uint32_t id)
{
	struct td_list *it;

	td_list_for_each (it, &node->clients)
		if (td_client_at(it)->id == id)
			return td_client_at(it);
	return NULL;
}

static bool has_process(const struct td_node *node, uint32_t id)
{
	struct td_list *it;

	td_list_for_each (it, &node->processes)
		if (td_process_at(it)->id == id)
			return true;
	return false;
}

static bool has_target(const struct td_node *node, const struct td_act *act)
{
	if (is_of_process(act->kind))
		return has_process(node, act->id);
	return is_of_client(act->kind) ? client_of(node, act->id) != NULL
				       : job_of(node, act->id) != NULL;
}

static struct td_act *find(const struct td_node *node, enum td_action_kind kind, uint32_t id)
{
	struct td_list *it;

	td_list_for_each (it, &node->acts)
		if (act_at(it)->kind == kind && act_at(it)->id == id)
			return act_at(it);
	return NULL;
}

static void drop(struct td_act *act)
{
	td_list_remove(&act->of_node);
	free(act);
}

void td_actions_deinit(struct td_node *node)
{
	struct td_list *it, *tmp;

	td_list_for_each_safe (it, tmp, &node->acts)
		drop(act_at(it));
}

static uint64_t new_number(struct td_node *node, uint64_t now_ns)
{
	node->last_act = now_ns > node->last_act ? now_ns : node->last_act + 1;
	return node->last_act;
}

/* -- the effect of each kind of action -- */

static void begin_pause(struct td_node *node, struct td_act *act, uint64_t now_ns)
{
	job_of(node, act->id)->held_back = true;
	td_act_enter(node, act, TD_ACTION_RUNNING, NULL, now_ns);
}

/*
 * Ends the pause that the policy asked for. A pause by the user is a setting of the job and stays.
 */
static void end_pause(struct td_node *node, uint32_t group, uint64_t now_ns)
{
	struct td_act *pause = find(node, TD_ACTION_PAUSE, group);
	struct td_job *job = job_of(node, group);

	if (job)
		job->held_back = false;
	if (pause && !td_act_has_ended(pause))
		td_act_enter(node, pause, TD_ACTION_DONE, "the pause is over", now_ns);
}

/* The memory leaves when the client is told the plan's lower limit; soft.c does that. */
static void begin_make_room(struct td_node *node, struct td_act *act, uint64_t now_ns)
{
	const struct td_client *client = client_of(node, act->id);

	if (client->spills && node->policy->needs & TD_HAS(HOST_MEMORY))
		td_act_enter(node, act, TD_ACTION_RUNNING, NULL, now_ns);
	else
		td_act_enter(node, act, TD_ACTION_REFUSED,
			"its memory leaves the GPU only while its gate is closed", now_ns);
}

static void begin(struct td_node *node, struct td_act *act, uint64_t now_ns)
{
	switch (act->kind) {
	case TD_ACTION_MAKE_ROOM: begin_make_room(node, act, now_ns); return;
	case TD_ACTION_MIGRATE: td_move_begin(node, act, now_ns); return;
	case TD_ACTION_PAUSE: begin_pause(node, act, now_ns); return;
	case TD_ACTION_RESUME:
		end_pause(node, act->id, now_ns);
		td_act_enter(node, act, TD_ACTION_DONE, NULL, now_ns);
		return;
	case TD_ACTION_EVICT:
	case TD_ACTION_RESTART:
	case TD_ACTION_START_SHADOW: td_ending_begin(node, act, now_ns); return;
	case TD_ACTION_CHECKPOINT:
	case TD_ACTION_RESTORE: td_parking_begin(node, act, now_ns); return;
	case TD_ACTION_SHARE: td_reshare_begin(node, act, now_ns); return;
	case TD_ACTION_N: return;
	}
}

static bool is_drained(const struct td_job *job)
{
	struct td_list *it;

	td_list_for_each (it, &job->members)
		if (td_container_of(it, struct td_process, of_job)->phase != TD_PHASE_CLOSED)
			return false;
	return true;
}

/* Returns whether the action has had its effect. Not for the kinds that endings.c carries out. */
static bool is_so(const struct td_node *node, const struct td_act *act)
{
	const struct td_job *job;

	if (act->kind == TD_ACTION_MAKE_ROOM)
		return !act->is_named || !client_of(node, act->id);
	job = job_of(node, act->id);
	return !job || !job->held_back || is_drained(job);
}

/* -- requests by users and by plans -- */

static struct td_act *make(struct td_node *node, enum td_action_kind kind, uint32_t id,
	const struct td_process *process, uint64_t now_ns)
{
	struct td_act *act = calloc(1, sizeof(*act));

	if (!act)
		return NULL;
	act->number = new_number(node, now_ns);
	act->kind = kind;
	act->id = id;
	act->who = process->who;
	snprintf(act->job, sizeof(act->job), "%s", process->job->name);
	snprintf(act->name, sizeof(act->name), "%s", process->name);
	act->since_ns = act->changed_ns = now_ns;
	td_list_append(&node->acts, &act->of_node);
	return act;
}

/*
 * Records a change of a job's setting as an act that is done at once. Its id is 0, so that no later
 * request can join it.
 */
static struct td_act *note(struct td_node *node, enum td_action_kind kind,
	const struct td_process *process, uint64_t now_ns)
{
	struct td_act *act = make(node, kind, 0, process, now_ns);

	if (act)
		td_act_enter(node, act, TD_ACTION_DONE, NULL, now_ns);
	return act;
}

/*
 * Joins the act of this kind that is under way, or makes one. process is one of the job's. `to`
 * says where a job shall move, else NULL. sm_share_ppm is for SHARE and START_SHADOW. Returns NULL
 * if memory is short.
 */
static struct td_act *ask_at(struct td_node *node, enum td_action_kind kind, uint32_t id,
	const struct td_process *process, const struct td_migration *to, uint32_t sm_share_ppm,
	bool by_hand, uint64_t now_ns)
{
	struct td_act *act = find(node, kind, id);

	if (act && (!td_act_has_ended(act) || !by_hand))
		return act;
	if (act)
		drop(act);
	act = make(node, kind, id, process, now_ns);
	if (!act)
		return NULL;
	act->by_hand = by_hand;
	if (to)
		act->migration = *to;
	act->sm_share_ppm = sm_share_ppm;
	begin(node, act, now_ns);
	return act;
}

void td_actions_shadow_instead(
	struct td_node *node, struct td_act *act, const struct td_process *process, uint64_t now_ns)
{
	struct td_act *other = find(node, TD_ACTION_START_SHADOW, process->job->group);

	if (other && !td_act_has_ended(other)) {
		td_act_enter(node, act, TD_ACTION_REFUSED,
			"a second instance of the job is already being started", now_ns);
		return;
	}
	if (other)
		drop(other);
	act->kind = TD_ACTION_START_SHADOW;
	act->id = process->job->group;
	act->changed_ns = now_ns;
	*act->reason = '\0';
	td_ending_begin(node, act, now_ns);
}

static struct td_act *ask(struct td_node *node, enum td_action_kind kind, uint32_t id,
	const struct td_process *process, bool by_hand, uint64_t now_ns)
{
	return ask_at(node, kind, id, process, NULL, 0, by_hand, now_ns);
}

static bool may_change(struct td_identity who, const struct td_process *process)
{
	return td_identity_may(who, process->who);
}

/* Returns a process of the job that the name fits and that the user may change, or NULL. */
static const struct td_process *named(
	const struct td_job *job, struct td_identity who, const char *name)
{
	struct td_list *it;

	td_list_for_each (it, &job->members) {
		const struct td_process *process = td_container_of(it, struct td_process, of_job);

		if (td_process_is_named(process, name) && may_change(who, process))
			return process;
	}
	return NULL;
}

static int check_order(const struct td_node *node, struct td_identity who, const char *name,
	enum td_action_kind kind, struct td_err *err)
{
	unsigned count = 0;
	struct td_list *it;

	if (kind != TD_ACTION_EVICT && kind != TD_ACTION_RESTART && kind != TD_ACTION_PAUSE &&
		kind != TD_ACTION_RESUME && kind != TD_ACTION_START_SHADOW && !is_of_program(kind))
		return td_err_set(err, -EINVAL,
			"action %u cannot be asked for by hand: expected evict, restart, migrate, "
			"pause, resume, checkpoint, restore, share or start-shadow",
			(unsigned)kind);
	td_list_for_each (it, &node->jobs)
		count += named(td_container_of(it, struct td_job, of_node), who, name) != NULL;
	if (!count)
		return td_job_unknown(name, err);
	if (count > TD_ACTS_MAX)
		return td_err_set(err, -E2BIG,
			"\"%.64s\" means %u jobs: expected at most %u, name one by its id", name,
			count, TD_ACTS_MAX);
	return 0;
}

/* Orders it of each process of the job. A process that uses no GPU has nothing to move. */
static int order_each(struct td_node *node, struct td_identity who, const struct td_job *job,
	const char *name, enum td_action_kind kind, const struct td_migration *to,
	uint32_t sm_share_ppm, uint64_t now_ns, struct td_act **ret_acts, uint32_t *ret_count,
	struct td_err *err)
{
	struct td_list *it;

	td_list_for_each (it, &job->members) {
		const struct td_process *process = td_container_of(it, struct td_process, of_job);
		const struct td_client *client = td_process_client(process);
		struct td_act *act;

		/*
		 * A program that was left checkpointed by an earlier daemon cannot say what it
		 * uses.
		 */
		if ((!client && kind != TD_ACTION_RESTORE) || !td_process_is_named(process, name) ||
			!may_change(who, process))
			continue;
		if (*ret_count == TD_ACTS_MAX)
			return td_err_set(err, -E2BIG,
				"\"%.64s\" means more than %u programs: name one by its pid", name,
				TD_ACTS_MAX);
		act = ask_at(node, kind, is_of_process(kind) ? process->id : client->id, process,
			to, sm_share_ppm, true, now_ns);
		if (!act)
			return td_err_set(err, -ENOMEM, "the daemon is out of memory");
		ret_acts[(*ret_count)++] = act;
	}
	return 0;
}

static int order_programs(struct td_node *node, struct td_identity who, const char *name,
	enum td_action_kind kind, const char *gpu, uint32_t sm_share_ppm, uint64_t now_ns,
	struct td_act **ret_acts, uint32_t *ret_count, struct td_err *err)
{
	struct td_migration to = {.why = TD_MOVE_BY_HAND};
	int r = kind == TD_ACTION_MIGRATE ? td_move_find_gpu(node, gpu, to.gpu, err) : 0;
	struct td_list *it;

	td_list_for_each (it, &node->jobs)
		if (!r)
			r = order_each(node, who, td_container_of(it, struct td_job, of_node), name,
				kind, &to, sm_share_ppm, now_ns, ret_acts, ret_count, err);
	if (!r && !*ret_count)
		r = td_err_set(err, -ENOENT, "\"%.64s\" uses no GPU yet", name);
	return r;
}

int td_actions_order(struct td_node *node, struct td_identity who, const char *name,
	enum td_action_kind kind, const char *to, uint64_t now_ns, struct td_act **ret_acts,
	uint32_t *ret_count, struct td_err *err)
{
	bool pauses = kind == TD_ACTION_PAUSE || kind == TD_ACTION_RESUME;
	int r = check_order(node, who, name, kind, err);
	uint32_t sm_share_ppm = 0;
	struct td_list *it;

	if (!r && (kind == TD_ACTION_START_SHADOW || kind == TD_ACTION_SHARE))
		r = td_parse_duty(to, &sm_share_ppm, err);
	if (!r && pauses)
		r = td_node_set_job(node, who, name, "paused",
			kind == TD_ACTION_PAUSE ? "on" : "off", now_ns, err);
	if (r)
		return r;
	*ret_count = 0;
	if (is_of_program(kind))
		return order_programs(
			node, who, name, kind, to, sm_share_ppm, now_ns, ret_acts, ret_count, err);
	td_list_for_each (it, &node->jobs) {
		const struct td_job *job = td_container_of(it, struct td_job, of_node);
		const struct td_process *process = named(job, who, name);
		struct td_act *act;

		if (!process)
			continue;
		act = pauses ? note(node, kind, process, now_ns)
			     : ask_at(node, kind, job->group, process, NULL, sm_share_ppm, true,
				       now_ns);
		if (!act)
			return td_err_set(err, -ENOMEM, "the daemon is out of memory");
		ret_acts[(*ret_count)++] = act;
	}
	return 0;
}

static void plan_one(struct td_node *node, const struct td_action *action, uint64_t now_ns)
{
	const struct td_client *client = client_of(node, action->client);
	struct td_migration to = {.why = action->why};
	struct td_act *act;

	bool pairs = action->kind == TD_ACTION_RESTART && action->why == TD_MOVE_PAIRED;

	if (!client || action->kind >= TD_ACTION_N ||
		((action->kind == TD_ACTION_MIGRATE || pairs) && action->gpu >= node->gpu_count))
		return;
	if (action->kind == TD_ACTION_MIGRATE)
		memcpy(to.gpu, node->gpus[action->gpu].uuid, sizeof(to.gpu));
	if (pairs) {
		to.bound = (struct td_bound){.is_set = true,
			.from = td_gpu_number(node, client->gpu),
			.from_ppm = action->from_ppm,
			.to_ppm = action->to_ppm};
		memcpy(to.bound.gpu, node->gpus[action->gpu].uuid, sizeof(to.bound.gpu));
	}
	act = ask_at(node, action->kind,
		is_of_client(action->kind) ? client->id : client->process->job->group,
		client->process, &to, action->sm_share_ppm, false, now_ns);
	if (act)
		act->is_named = true;
}

void td_actions_evict(struct td_node *node, const struct td_process *process, uint64_t now_ns)
{
	(void)ask(node, TD_ACTION_EVICT, process->job->group, process, false, now_ns);
}

void td_actions_restore(struct td_node *node, const struct td_process *process, uint64_t now_ns)
{
	(void)ask(node, TD_ACTION_RESTORE, process->id, process, true, now_ns);
}

void td_actions_restart_on(struct td_node *node, uint32_t gpu, uint64_t now_ns)
{
	struct td_list *it;

	for (uint32_t class = 0; class < TD_CLASS_N; class ++) {
		td_list_for_each (it, &node->clients) {
			const struct td_client *client = td_client_at(it);
			const struct td_job *job = client->process->job;

			if (client->gpu == gpu && client->mps && job->settings.class == class &&
				job->supervised & TD_SUPERVISOR_RESTARTS)
				(void)ask(node, TD_ACTION_RESTART, job->group, client->process,
					false, now_ns);
		}
	}
}

/* Ends the pauses that the previous policy asked for: the new policy decides anew. */
static void change_policy(struct td_node *node, uint64_t now_ns)
{
	struct td_list *it;

	if (node->acts_policy == node->policy)
		return;
	node->acts_policy = node->policy;
	td_list_for_each (it, &node->jobs)
		end_pause(node, td_container_of(it, struct td_job, of_node)->group, now_ns);
}

void td_actions_plan(struct td_node *node, const struct td_plan *plan, uint64_t now_ns)
{
	struct td_list *it;

	td_list_for_each (it, &node->acts)
		act_at(it)->is_named = false;
	for (uint32_t i = 0; i < plan->action_count; i++)
		plan_one(node, &plan->actions[i], now_ns);
}

/* -- progress over time -- */

void td_actions_ordered(struct td_node *node, const struct td_supervisor *supervisor,
	const struct td_msg_ordered *msg, uint64_t now_ns)
{
	struct td_list *it;

	td_list_for_each (it, &node->acts) {
		struct td_act *act = act_at(it);

		if (act->number == msg->number && act->ending.supervisor == supervisor &&
			!td_act_has_ended(act))
			td_ending_ordered(node, act, msg, now_ns);
	}
}

void td_actions_supervisor_gone(
	struct td_node *node, const struct td_supervisor *supervisor, uint64_t now_ns)
{
	struct td_list *it;

	td_list_for_each (it, &node->acts)
		if (supervisor && act_at(it)->ending.supervisor == supervisor)
			td_ending_supervisor_gone(act_at(it), now_ns);
}

/* Returns whether the act has ended and its result need not be remembered any longer. */
static bool is_over(const struct td_node *node, const struct td_act *act, uint64_t now_ns)
{
	const struct td_job *job;

	if (!td_act_has_ended(act))
		return false;
	if (act->state != TD_ACTION_DONE)
		return now_ns >= act->changed_ns +
					 (act->kind == TD_ACTION_MIGRATE ||
								 act->kind == TD_ACTION_SHARE
							 ? TD_MOVE_REFUSAL_NS
							 : TD_REFUSAL_NS) ||
		       !has_target(node, act);
	job = act->kind == TD_ACTION_PAUSE ? job_of(node, act->id) : NULL;
	return !job || !job->held_back;
}

void td_actions_step(struct td_node *node, uint64_t now_ns)
{
	struct td_list *it, *tmp;

	change_policy(node, now_ns);
	if (node->had.acts)
		td_list_for_each (it, &node->jobs)
			td_container_of(it, struct td_job, of_node)->leaves = false;
	node->had.acts = !td_list_empty(&node->acts);
	td_list_for_each_safe (it, tmp, &node->acts) {
		struct td_act *act = act_at(it);

		if (!td_act_has_ended(act) && is_ending(act->kind))
			td_ending_step(node, act, now_ns);
		else if (!td_act_has_ended(act) && act->kind == TD_ACTION_MIGRATE)
			td_move_step(node, act, now_ns);
		else if (!td_act_has_ended(act) && act->kind == TD_ACTION_SHARE)
			td_reshare_step(node, act, now_ns);
		else if (!td_act_has_ended(act) && is_of_program(act->kind))
			td_parking_step(node, act, now_ns);
		else if (!td_act_has_ended(act) && is_so(node, act))
			td_act_enter(node, act, TD_ACTION_DONE, NULL, now_ns);
		if (is_over(node, act, now_ns))
			drop(act);
	}
}

uint64_t td_actions_wakeup(const struct td_node *node, uint64_t now_ns)
{
	uint64_t wakeup = TD_NEVER;
	struct td_list *it;

	td_list_for_each (it, &node->acts) {
		const struct td_act *act = act_at(it);
		uint64_t ns = TD_NEVER;

		if (is_ending(act->kind) && !td_act_has_ended(act))
			ns = td_ending_wakeup(act, now_ns);
		else if (is_of_program(act->kind) && !td_act_has_ended(act))
			ns = td_move_wakeup(act);

		wakeup = ns < wakeup ? ns : wakeup;
	}
	return wakeup;
}

const struct td_act *td_actions_of(
	const struct td_node *node, const struct td_process *process, enum td_action_kind kind)
{
	const struct td_act *act = NULL;
	struct td_list *it;

	if (is_of_process(kind))
		return find(node, kind, process->id);
	if (!is_of_client(kind))
		return find(node, kind, process->job->group);
	td_list_for_each (it, &process->clients)
		if (!act)
			act = find(
				node, kind, td_container_of(it, struct td_client, of_process)->id);
	return act;
}

static bool is_about(const struct td_act *act, const struct td_process *process)
{
	struct td_list *it;

	if (is_of_process(act->kind))
		return act->id == process->id;
	if (!is_of_client(act->kind))
		return act->id == process->job->group;
	td_list_for_each (it, &process->clients)
		if (td_container_of(it, struct td_client, of_process)->id == act->id)
			return true;
	return false;
}

const struct td_act *td_actions_shown(
	const struct td_node *node, const struct td_process *process, bool refused)
{
	const struct td_act *found = NULL;
	struct td_list *it;

	td_list_for_each (it, &node->acts) {
		const struct td_act *act = act_at(it);
		bool fits = refused ? act->state > TD_ACTION_DONE
				    : !td_act_has_ended(act) && !is_routine(act, act->state);

		if (fits && is_about(act, process))
			found = act;
	}
	return found;
}
