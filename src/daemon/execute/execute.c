/*
 * Carries a plan out. The order within a step is: gates close; limits fall; limits rise as far as
 * the account has room; a part of a request that is of no use is given back; ready gates open;
 * waiting allocations are answered (need.h). What cannot be done yet is left to a later step. Each
 * acknowledgement by a program causes one.
 */
#include <string.h>

#include "base/bounds.h"
#include "daemon/execute/actions.h"
#include "daemon/execute/had.h"
#include "daemon/execute/ready.h"
#include "daemon/execute/show.h"
#include "daemon/memory/capacity.h"
#include "daemon/memory/host.h"
#include "daemon/memory/need.h"
#include "daemon/memory/overhead.h"
#include "daemon/memory/quota.h"
#include "daemon/memory/soft.h"
#include "daemon/model/job.h"
#include "daemon/model/node.h"
#include "daemon/node/abilities.h"
#include "daemon/node/gpus.h"
#include "daemon/node/learning.h"
#include "daemon/node/stopped.h"
#include "daemon/node/tenant.h"
#include "proto/words.h"

#define HANDOVER_SMOOTHING 4

/* Returns the gate for a GRANT. OPEN: the program puts what does not fit on the host. */
static enum td_gate gate_of(const struct td_client *client, uint64_t device_bytes)
{
	switch (client->process->phase) {
	case TD_PHASE_OPEN: return TD_GATE_OPEN;
	case TD_PHASE_FILLING: break;
	default: return TD_GATE_CLOSED;
	}
	if (client->demanded_bytes <= device_bytes ||
		(td_soft_spills(client) && device_bytes >= client->grant.limit_bytes))
		return TD_GATE_OPEN;
	return TD_GATE_FILL;
}

void td_node_answer(struct td_node *node, struct td_client *client, uint64_t device_bytes,
	enum td_answer verdict)
{
	const struct td_process *process = client->process;
	struct td_msg msg = {.type = TD_MSG_TYPE_grant};
	struct td_msg_grant *grant = &msg.grant;

	client->ready = false;
	client->told_gate = gate_of(client, device_bytes);
	grant->slot = client->slot;
	grant->seq = ++node->next_seq;
	grant->gate = (uint8_t)client->told_gate;
	grant->others_wait = client->grant.others_wait;
	grant->device_bytes = device_bytes;
	grant->total_bytes = td_quota_total(client, device_bytes);
	grant->ticket = verdict == TD_ANSWER_NONE ? 0 : client->need_ticket;
	grant->verdict = (uint8_t)verdict;
	grant->drain_deadline_ns = node->options.drain_deadline_ns;
	if (device_bytes < td_client_charge(client)) {
		client->lowered_seq = grant->seq;
		client->lowered_bytes = device_bytes;
	}
	td_account_tell(
		&node->gpus[client->gpu].account, &client->device, device_bytes, grant->seq);
	td_account_tell(&process->job->on[client->gpu].account, &client->total, grant->total_bytes,
		grant->seq);
	td_stopped_told(node, client);
	node->rests_until_ns = 0; /* the view has the limit before, and an answer is due */
	node->io.send(process->peer, &msg);
}

void td_node_tell(struct td_node *node, struct td_client *client, uint64_t device_bytes)
{
	td_node_answer(node, client, device_bytes, TD_ANSWER_NONE);
}

/*
 * Returns the limit to tell. A program that was asked to drop caches has a limit below its charge.
 * While it drains, it is told its charge instead: the drain may be given up, and otherwise its
 * memory would begin to move as soon as it is drained.
 */
static uint64_t limit_to_tell(const struct td_client *client)
{
	bool asked = client->asked_ns && client->process->phase == TD_PHASE_DRAINING;

	return asked && client->device.told < td_client_charge(client) ? td_client_charge(client)
								       : client->device.told;
}

static void tell_all(struct td_node *node, struct td_process *process)
{
	struct td_list *it;

	td_list_for_each (it, &process->clients) {
		struct td_client *client = td_container_of(it, struct td_client, of_process);

		if (!client->failed)
			td_node_tell(node, client, limit_to_tell(client));
	}
}

/*
 * Writes the gate word. Each change that leaves a flag set also counts up, so that a thread that is
 * about to wait cannot miss it. An open gate without flags is exactly 0.
 */
static void write_word(struct td_node *node, struct td_process *process, uint32_t flags,
	const struct td_pacing *pacing)
{
	bool same = (process->word & TD_WORD_FLAGS) == flags && (flags || !process->word);

	if (same && !memcmp(&process->pacing, pacing, sizeof(*pacing)))
		return;
	/* New pacing changes the word only while a flag tells the program to read the pacing. */
	if (!same || flags & (TD_WORD_WINDOW | TD_WORD_DUTY))
		process->word = flags ? ++process->word_count * TD_WORD_STEP | flags : 0;
	process->pacing = *pacing;
	node->io.gate(process->peer, process->word, pacing);
}

/* The view has the phase before, so the next step is a whole one. */
static void enter(
	struct td_node *node, struct td_process *process, enum td_phase phase, uint64_t now_ns)
{
	process->phase = phase;
	process->phase_since_ns = now_ns;
	node->rests_until_ns = 0;
}

/* Returns the first client that plans apply to, or the first of all if there is none. */
static const struct td_client *first_client(const struct td_process *process)
{
	struct td_list *it;

	td_list_for_each (it, &process->clients)
		if (!td_container_of(it, struct td_client, of_process)->failed &&
			!td_container_of(it, struct td_client, of_process)->aside)
			return td_container_of(it, struct td_client, of_process);
	return td_container_of(process->clients.next, struct td_client, of_process);
}

static void close_gate(struct td_node *node, struct td_process *process, uint64_t now_ns)
{
	if (process->phase == TD_PHASE_OPEN) {
		if (process->retry_ns > now_ns)
			return;
		process->held_ns += now_ns - process->phase_since_ns;
		enter(node, process, TD_PHASE_DRAINING, now_ns);
		/* The factor of 2 lets the process give up first and say STUCK. */
		process->drain_deadline_ns = now_ns + 2 * node->options.drain_deadline_ns;
		write_word(node, process, TD_WORD_CLOSED, &(struct td_pacing){0});
		td_node_event(node, TD_EVENT_DRAINING, process, first_client(process)->gpu, now_ns,
			0, 0, NULL);
		tell_all(node, process);
	} else if (process->phase == TD_PHASE_FILLING) {
		enter(node, process, TD_PHASE_CLOSED, now_ns);
		tell_all(node, process);
	}
}

/* Returns the bytes that the client keeps on the device behind an open or opening gate. */
static uint64_t keeps(const struct td_client *client)
{
	if (!td_soft_spills(client))
		return client->demanded_bytes;
	/* Memory goes to the host before the gate opens; caches are dropped when asked. */
	if (client->process->phase == TD_PHASE_FILLING ||
		(client->process->phase == TD_PHASE_OPEN && client->asked_ns))
		return 0;
	return client->device.used;
}

/* Returns whether memory that waited is now to stay on the host, or is to wait again. */
static bool gate_has_changed(const struct td_client *client)
{
	return client->process->phase == TD_PHASE_FILLING &&
	       client->told_gate != gate_of(client, client->device.told);
}

/* Returns whether the client has memory from an earlier daemon's time but no GRANT yet. */
static bool has_unasked(const struct td_client *client)
{
	return !client->device.seq && client->process->phase == TD_PHASE_CLOSED &&
	       client->device.used > client->device.told;
}

static void lower_limits(struct td_node *node)
{
	for (uint32_t i = 0; i < node->shown_count; i++) {
		struct td_client *client = node->shown[i];
		uint64_t target = client->grant.limit_bytes, kept;

		/*
		 * A draining client is told once it is drained, unless its job needs the memory
		 * now.
		 */
		if (client->process->phase == TD_PHASE_DRAINING &&
			!client->process->job->on[client->gpu].needs)
			continue;
		/* An open client keeps what it has: no memory may leave while work runs on it. */
		kept = client->process->phase == TD_PHASE_CLOSED ? 0 : keeps(client);
		if (target < kept)
			target = kept;
		if (target >= client->device.told && !gate_has_changed(client) &&
			!has_unasked(client) && !td_quota_has_too_much(client))
			continue;
		if (target > client->device.told)
			target = client->device.told;
		td_node_tell(node, client, target);
	}
}

/* Returns whether the limit is above the client's demand but too low for its request. */
static bool has_a_part(const struct td_client *client, uint64_t limit_bytes)
{
	if (td_soft_spills(client))
		return false;
	return client->needs && limit_bytes > client->demanded_bytes &&
	       limit_bytes - client->demanded_bytes < client->need_bytes;
}

/* Returns whether the client lacks room for its request, or for its fill. */
static bool lacks_room(const struct td_client *client)
{
	uint64_t wanted = client->demanded_bytes + (client->needs ? client->need_bytes : 0);

	return (client->needs && client->device.told < wanted) ||
	       (client->process->phase == TD_PHASE_FILLING &&
		       client->device.told < client->grant.limit_bytes);
}

/*
 * If several clients lack room, those with only a part of what they ask for give it back, so that
 * one of them can have enough.
 */
static void pool_parts(struct td_node *node)
{
	uint32_t lacking[TD_GPU_MAX] = {0};

	if (!td_need_is_there(node))
		return;
	for (uint32_t i = 0; i < node->shown_count; i++)
		lacking[node->shown[i]->gpu] += lacks_room(node->shown[i]);
	for (uint32_t i = 0; i < node->shown_count; i++) {
		struct td_client *client = node->shown[i];

		if (lacking[client->gpu] > 1 && has_a_part(client, client->device.told) &&
			client->process->phase != TD_PHASE_DRAINING)
			td_node_tell(node, client, client->demanded_bytes);
	}
}

static void raise_limits(struct td_node *node)
{
	for (uint32_t i = 0; i < node->shown_count; i++) {
		struct td_client *client = node->shown[i];
		uint64_t room, target = client->grant.limit_bytes, quota;

		if (client->process->phase == TD_PHASE_DRAINING || target <= client->device.told)
			continue;
		room = td_client_charge(client) + td_account_left(&node->gpus[client->gpu].account);
		quota = td_quota_room(client);
		target = target < room ? target : room;
		if (td_quota_limit(client) < target)
			target = td_quota_limit(client);
		if (target <= client->device.told)
			continue;
		/*
		 * A part of what it asks for is of no use to it, but may do for its job's other
		 * clients.
		 */
		if (client->needs && quota < client->total.used + client->need_bytes)
			continue;
		if (has_a_part(client, target) && client->device.told >= client->demanded_bytes)
			continue;
		td_node_tell(node, client, target);
	}
}

static void measure_handover(
	struct td_node *node, const struct td_process *process, uint64_t now_ns)
{
	struct td_list *it, *other;

	td_list_for_each (it, &process->clients) {
		const struct td_client *client = td_container_of(it, struct td_client, of_process);
		struct td_gpu *gpu = &node->gpus[client->gpu];
		uint64_t moved = 0, took;

		if (!gpu->drained_ns)
			continue;
		td_list_for_each (other, &node->clients)
			if (td_client_at(other)->gpu == client->gpu)
				moved += td_client_at(other)->in_bytes +
					 td_client_at(other)->out_bytes;
		took = now_ns - gpu->drained_ns;
		if (moved > gpu->drained_moved && gpu->handover_ns)
			gpu->handover_ns +=
				took / HANDOVER_SMOOTHING - gpu->handover_ns / HANDOVER_SMOOTHING;
		else if (moved > gpu->drained_moved)
			gpu->handover_ns = took;
		gpu->handovers++;
		gpu->drained_ns = 0;
	}
}

static void open_gate(struct td_node *node, struct td_process *process, uint64_t now_ns)
{
	uint64_t waited = process->wants ? now_ns - td_process_waits_since_ns(process) : 0;
	struct td_list *it;

	process->waited_ns += waited;
	if (!process->exchanges) {
		process->handovers++;
		measure_handover(node, process, now_ns);
	}
	process->exchanges = false;
	enter(node, process, TD_PHASE_OPEN, now_ns);
	td_list_for_each (it, &process->clients) {
		struct td_client *client = td_container_of(it, struct td_client, of_process);

		td_soft_settled(client, now_ns);
		client->was_there = process->backend == TD_BACKEND_SWAP &&
				    client->device.used == client->demanded_bytes;
	}
	td_node_event(node, TD_EVENT_OPENED, process, first_client(process)->gpu, now_ns, waited,
		first_client(process)->device.used, NULL);
}

static uint32_t open_flags(const struct td_grant *grant, const struct td_pacing *pacing)
{
	uint32_t flags =
		(pacing->duty_ppm ? TD_WORD_DUTY : 0) | (pacing->detect ? TD_WORD_STEPS : 0);

	/*
	 * A process that is alone is not bounded by a window, but a window also lets its work be
	 * measured.
	 */
	if (grant->gate == TD_GATE_ARMED && pacing->window_ns == TD_WINDOW_METER)
		flags |= TD_WORD_WINDOW;
	if (grant->gate == TD_GATE_ARMED)
		return flags | TD_WORD_ARMED;
	return flags | (pacing->window_ns ? TD_WORD_WINDOW : 0);
}

/*
 * Sends a GRANT to clients that attached to another GPU while the process was already let in. If
 * their limit is 0, nothing else would cause one.
 */
static void tell_newcomers(struct td_node *node, const struct td_process *process)
{
	struct td_list *it;

	td_list_for_each (it, &process->clients) {
		struct td_client *client = td_container_of(it, struct td_client, of_process);

		if (!client->device.seq)
			td_node_tell(node, client, client->device.told);
	}
}

static void step_gate(struct td_node *node, struct td_process *process, uint64_t now_ns)
{
	const struct td_grant *grant;

	if (td_list_empty(&process->clients) || process->failed)
		return;
	grant = &first_client(process)->grant;
	if (grant->gate == TD_GATE_CLOSED ||
		(process->job->exchanges && process->phase == TD_PHASE_OPEN)) {
		process->exchanges = grant->gate != TD_GATE_CLOSED;
		close_gate(node, process, now_ns);
		return;
	}
	if (process->phase == TD_PHASE_CLOSED) {
		enter(node, process, TD_PHASE_FILLING, now_ns);
		td_node_event(node, TD_EVENT_FILLING, process, first_client(process)->gpu, now_ns,
			0, 0, NULL);
		tell_all(node, process);
	} else if (process->phase == TD_PHASE_FILLING || process->phase == TD_PHASE_OPEN) {
		tell_newcomers(node, process);
	}
}

/* Tells a process whose gate is open how to pace its work. */
static void pace(struct td_node *node, struct td_process *process)
{
	const struct td_grant *grant = &first_client(process)->grant;
	struct td_pacing pacing;

	if (process->phase != TD_PHASE_OPEN || grant->gate == TD_GATE_CLOSED)
		return;
	pacing = td_node_pacing(node, process, grant);
	write_word(node, process, open_flags(grant, &pacing), &pacing);
}

/* Opens the gate if the process is ready. Returns whether it was opened now. */
static bool finish_gate(struct td_node *node, struct td_process *process, uint64_t now_ns)
{
	bool opens;

	if (td_list_empty(&process->clients) || process->failed)
		return false;
	opens = process->phase == TD_PHASE_FILLING && td_ready_group(node, process->job->group);
	if (opens)
		open_gate(node, process, now_ns);
	pace(node, process);
	return opens;
}

/* Takes the grant. A change of others_wait alone must be told to the program, too. */
static void note_rivals(
	struct td_node *node, struct td_client *client, const struct td_grant *grant)
{
	bool changed = client->grant.others_wait != grant->others_wait;

	client->grant = *grant;
	if (changed && client->process->phase == TD_PHASE_OPEN)
		td_node_tell(node, client, client->device.told);
}

static void show_others(struct td_node *node)
{
	struct td_list *it;

	if (!node->io.others)
		return;
	td_list_for_each (it, &node->clients) {
		struct td_client *client = td_client_at(it);
		const struct td_job *job = client->process->job;
		uint64_t bytes = 0;

		if (*job->settings.mem)
			bytes = job->on[client->gpu].demanded_bytes +
				job->on[client->gpu].paged_bytes - client->total.used +
				td_quota_overhead(node, job, &node->gpus[client->gpu]);
		if (bytes == client->others_bytes)
			continue;
		client->others_bytes = bytes;
		node->io.others(client->process->peer, client->slot, bytes);
	}
}

/*
 * Handles a process that did not answer the order to drain. It is reported as stuck, and its gate
 * stays closed. It may have drained just now and be moving its memory, so it must not be let in.
 * Others get its turns until it sends a message.
 */
static void overdue(struct td_node *node, struct td_process *process, uint64_t now_ns)
{
	process->drain_overruns++;
	td_node_event(node, TD_EVENT_STUCK, process, TD_GPU_ANY, now_ns,
		now_ns - process->phase_since_ns, 0, "it does not answer");
	td_stopped_is_silent(node, process, now_ns);
}

static uint64_t expire_drains(struct td_node *node, uint64_t now_ns)
{
	uint64_t wakeup = TD_NEVER;
	struct td_list *it;

	td_list_for_each (it, &node->processes) {
		struct td_process *process = td_process_at(it);

		/* The gate of a stopped process closes at that time, too. */
		if (process->retry_ns > now_ns && process->retry_ns < wakeup)
			wakeup = process->retry_ns;
		if (process->stop.is)
			continue;
		if (process->phase == TD_PHASE_DRAINING && process->drain_deadline_ns <= now_ns)
			overdue(node, process, now_ns);
		else if (process->phase == TD_PHASE_DRAINING && process->drain_deadline_ns < wakeup)
			wakeup = process->drain_deadline_ns;
	}
	return wakeup;
}

/*
 * Gives each stopped client a closed gate and its present limit, since the plan does not cover it.
 */
static void pass_by_stopped(struct td_node *node)
{
	struct td_list *it;

	if (node->shown_count == node->client_count)
		return;

	td_list_for_each (it, &node->clients) {
		struct td_client *client = td_client_at(it);

		if (client->process->stop.is && !client->failed)
			client->grant = (struct td_grant){
				.gate = TD_GATE_CLOSED, .limit_bytes = client->device.told};
	}
}

static uint64_t execute(struct td_node *node, uint64_t now_ns)
{
	uint64_t wakeup;
	struct td_list *it;
	struct td_process *up[TD_CLIENT_MAX]; /* those whose gates are not closed */
	uint32_t up_count = 0;
	bool opened = false, refused;

	for (uint32_t i = 0; i < node->shown_count; i++) {
		struct td_client *client = node->shown[i];

		if (client->process->job->held_back || client->process->moving.closes ||
			client->process->parking.closes)
			node->grants[i].gate = TD_GATE_CLOSED;
		note_rivals(node, client, &node->grants[i]);
		client->sm_share_wanted_ppm = node->grants[i].sm_share_ppm;
		td_soft_plan(node, client);
		client->grant.limit_bytes = td_quota_plan(client, client->grant.limit_bytes);
	}
	pass_by_stopped(node);
	wakeup = td_soft_step(node, now_ns);
	td_list_for_each (it, &node->processes) {
		struct td_process *process = td_process_at(it);

		step_gate(node, process, now_ns);
		if (process->phase != TD_PHASE_CLOSED && !td_list_empty(&process->clients))
			up[up_count++] = process;
	}
	lower_limits(node);
	raise_limits(node);
	pool_parts(node);
	for (uint32_t i = 0; i < up_count; i++)
		opened |= finish_gate(node, up[i], now_ns);
	refused = td_need_step(node, now_ns);
	/* A client that was refused or let in may send nothing, so the next step is due at once. */
	return opened || refused ? now_ns : wakeup;
}

/* Has the policy decide by the view. Its plan has its grants and actions in the node. */
static struct td_plan decide(struct td_node *node, const struct td_view *view, uint64_t now_ns)
{
	const struct td_policy_options options = {
		.muxflow = &node->options.muxflow,
		.enabled = node->options.enabled,
		.quantum_ns = node->options.quantum_ns,
		.quantum_min_ns = node->options.quantum_min_ns,
		.swap_share_ppm = node->options.swap_share_ppm,
		.window_ns = node->options.window_ns,
		.swap_share_long_ppm = node->options.swap_share_long_ppm,
		.quantum_long_ns = node->options.quantum_long_ns,
		.stays = !node->options.moves,
	};
	struct td_plan plan = {.verdicts = node->verdicts,
		.grants = node->grants,
		.actions = node->actions,
		.action_max = TD_ACTION_MAX,
		.next_wakeup_ns = TD_NEVER};

	memset(node->verdicts, 0, sizeof(node->verdicts));
	node->policy->step(node->policy_state, &options, view, now_ns, &plan);
	node->stepped_ns = now_ns;
	return plan;
}

/* Carries the plan out. Returns when to look again even if nothing happens. */
static uint64_t carry_out(struct td_node *node, const struct td_plan *plan, uint64_t now_ns)
{
	uint64_t wakeup, needs, acts;

	memcpy(node->planned, node->grants, node->shown_count * sizeof(*node->grants));
	td_actions_plan(node, plan, now_ns);
	wakeup = execute(node, now_ns);
	td_quota_check(node);
	td_had_check(node);
	needs = td_need_deadline_ns(node, now_ns);
	wakeup = needs < wakeup ? needs : wakeup;
	acts = td_actions_wakeup(node, now_ns);
	return acts < wakeup ? acts : wakeup;
}

uint64_t td_node_step(struct td_node *node, uint64_t now_ns)
{
	struct td_plan plan;
	struct td_view view;
	uint64_t wakeup, shortages, exchanges, host, alone, imports, kept_out, stopped, tenants,
		services, learning, answers;
	uint32_t seq = node->next_seq;

	node->rests_until_ns = 0;
	if (now_ns < node->settle_ns)
		return node->settle_ns;
	if (td_show_is_moving(node))
		td_gpus_take_listed(node);
	wakeup = expire_drains(node, now_ns);
	stopped = td_stopped_step(node, now_ns);
	wakeup = stopped < wakeup ? stopped : wakeup;
	shortages = td_capacity_step(node, now_ns);
	wakeup = shortages < wakeup ? shortages : wakeup;
	host = td_host_step(node, now_ns);
	wakeup = host < wakeup ? host : wakeup;
	imports = td_overhead_step(node, now_ns);
	wakeup = imports < wakeup ? imports : wakeup;
	td_quota_gather(node);
	tenants = td_tenant_step(node, now_ns);
	wakeup = tenants < wakeup ? tenants : wakeup;
	kept_out = td_soft_wait(node, now_ns);
	wakeup = kept_out < wakeup ? kept_out : wakeup;
	td_soft_gather(node);
	alone = td_node_step_alone(node, now_ns);
	wakeup = alone < wakeup ? alone : wakeup;
	services = td_services_look(node, now_ns);
	wakeup = services < wakeup ? services : wakeup;
	show_others(node);
	td_abilities_step(node, now_ns);
	td_actions_step(node, now_ns);
	td_show_view(node, &view, now_ns);
	plan = decide(node, &view, now_ns);
	node->rests_until_ns = TD_NEVER;
	exchanges = carry_out(node, &plan, now_ns);
	wakeup = exchanges < wakeup ? exchanges : wakeup;
	answers = td_stopped_told_since(node, seq, now_ns);
	wakeup = answers < wakeup ? answers : wakeup;
	learning = td_learning_look(node, now_ns);
	wakeup = learning < wakeup ? learning : wakeup;
	if (!td_list_empty(&node->acts) || td_show_is_moving(node))
		node->rests_until_ns = 0;
	node->rests_until_ns = td_min_u64(node->rests_until_ns, wakeup);
	return plan.next_wakeup_ns < wakeup ? plan.next_wakeup_ns : wakeup;
}

/* Returns whether the two differ at most in what pace() tells the program. */
static bool has_same_gate(const struct td_grant *a, const struct td_grant *b)
{
	struct td_grant paced = *a;

	paced.duty_ppm = b->duty_ppm;
	paced.sm_share_ppm = b->sm_share_ppm;
	return !memcmp(&paced, b, sizeof(paced));
}

/* Takes over the new duties and shares, if the plan has changed nothing else. */
static bool pace_all(struct td_node *node, const struct td_plan *plan)
{
	if (plan->action_count)
		return false;
	for (uint32_t i = 0; i < node->shown_count; i++)
		if (!has_same_gate(&node->planned[i], &node->grants[i]))
			return false;
	for (uint32_t i = 0; i < node->shown_count; i++) {
		const struct td_grant *grant = &node->grants[i];
		struct td_client *client = node->shown[i];

		if (grant->duty_ppm == node->planned[i].duty_ppm &&
			grant->sm_share_ppm == node->planned[i].sm_share_ppm)
			continue;
		node->planned[i] = *grant;
		client->grant.duty_ppm = grant->duty_ppm;
		client->grant.sm_share_ppm = client->sm_share_wanted_ppm = grant->sm_share_ppm;
		if (!client->process->failed && client == first_client(client->process))
			pace(node, client->process);
	}
	return true;
}

bool td_node_step_on(struct td_node *node, uint64_t now_ns, uint64_t *ret_wakeup)
{
	struct td_plan plan;
	struct td_view view;
	uint64_t wakeup = node->rests_until_ns, other;
	uint32_t seq = node->next_seq;

	if (!node->policy->by_activity || now_ns >= node->rests_until_ns ||
		!td_show_again(node, &view, now_ns))
		return false;
	plan = decide(node, &view, now_ns);
	if (!pace_all(node, &plan)) {
		other = carry_out(node, &plan, now_ns);
		wakeup = td_min_u64(wakeup, other);
		other = td_stopped_told_since(node, seq, now_ns);
		wakeup = td_min_u64(wakeup, other);
		node->rests_until_ns = 0; /* the next step is a whole one */
	}
	*ret_wakeup = td_min_u64(plan.next_wakeup_ns, wakeup);
	return true;
}
