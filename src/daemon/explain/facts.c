/* Gathers the facts of facts.h from the node. */
#include "daemon/explain/facts.h"

#include <stdio.h>

#include "base/uuid.h"
#include "daemon/execute/actions.h"
#include "daemon/execute/reshare.h"
#include "daemon/memory/quota.h"
#include "daemon/memory/soft.h"
#include "daemon/model/bursts.h"
#include "daemon/model/job.h"
#include "daemon/model/node.h"
#include "daemon/node/gpus.h"
#include "daemon/node/shares.h"
#include "daemon/node/pairing.h"
#include "daemon/node/stopped.h"
#include "policy/node/beside/sms.h"
#include "proto/orders.h"
#include "proto/unmovable.h"
#include "proto/words.h"

static bool shares_gpu(const struct td_process *a, const struct td_process *b)
{
	struct td_list *i, *j;

	td_list_for_each (i, &a->clients)
		td_list_for_each (j, &b->clients)
			if (td_container_of(i, struct td_client, of_process)->gpu ==
				td_container_of(j, struct td_client, of_process)->gpu)
				return true;
	return false;
}

static bool goes_before(
	const struct td_node *node, const struct td_process *a, const struct td_process *b)
{
	enum td_class of_a = a->job->settings.class, of_b = b->job->settings.class;

	if (node->policy->by_class && of_a != of_b)
		return of_a < of_b;
	return a->wants_since_ns < b->wants_since_ns;
}

/* A process that only has memory on the GPU, and does not use it, keeps nobody from a turn. */
static bool is_busy(const struct td_process *process)
{
	return process->phase == TD_PHASE_DRAINING || process->phase == TD_PHASE_FILLING ||
	       (process->phase == TD_PHASE_OPEN && process->wants);
}

static bool has_memory(const struct td_process *process)
{
	struct td_list *it;

	td_list_for_each (it, &process->clients)
		if (td_container_of(it, struct td_client, of_process)->device.used)
			return true;
	return false;
}

/* The first stopped process whose memory takes room that this process could use. */
static const struct td_process *find_stopped(
	const struct td_node *node, const struct td_process *process)
{
	struct td_list *it;

	td_list_for_each (it, &node->processes) {
		const struct td_process *other = td_process_at(it);

		if (other->stop.is && other->job != process->job && shares_gpu(other, process) &&
			has_memory(other))
			return other;
	}
	return NULL;
}

/*
 * Returns the process that keeps this one waiting: the first that is busy; else the first whose
 * gate is not closed; else a stopped one. Also counts the processes that wait before this one.
 */
static const struct td_process *find_holder(
	const struct td_node *node, const struct td_process *process, uint64_t *ret_before)
{
	const struct td_process *holder = NULL;
	struct td_list *it;

	*ret_before = 0;
	td_list_for_each (it, &node->processes) {
		const struct td_process *other = td_process_at(it);

		if (other->job == process->job || !shares_gpu(other, process))
			continue;
		/* A stopped process has no turn, but its memory may be what is missing. */
		if (other->stop.is)
			continue;
		if (other->phase != TD_PHASE_CLOSED &&
			(!holder || (is_busy(other) && !is_busy(holder))))
			holder = other;
		else if (other->phase == TD_PHASE_CLOSED && other->wants &&
			 !other->job->settings.paused && goes_before(node, other, process))
			(*ret_before)++;
	}
	return holder ? holder : find_stopped(node, process);
}

bool td_facts_is_waited_for(
	const struct td_node *node, const struct td_process *process, unsigned class)
{
	struct td_list *it;

	td_list_for_each (it, &node->processes) {
		const struct td_process *other = td_process_at(it);

		if (other->job != process->job && other->phase == TD_PHASE_CLOSED && other->wants &&
			!other->stop.is && !other->job->settings.paused && !other->failed &&
			(class == TD_CLASS_N || other->job->settings.class == class) &&
			shares_gpu(other, process))
			return true;
	}
	return false;
}

/*
 * Returns the turn that ends first, among those on the process's GPUs that others wait for; NULL if
 * there is none.
 */
static const struct td_grant *find_turn(const struct td_process *process)
{
	const struct td_grant *first = NULL;
	struct td_list *it;

	td_list_for_each (it, &process->clients) {
		const struct td_grant *grant =
			&td_container_of(it, struct td_client, of_process)->grant;

		if (grant->turn_reason != TD_TURN_NONE &&
			(!first || grant->turn_ns < first->turn_ns))
			first = grant;
	}
	return first;
}

static bool may_name(struct td_identity reader, const struct td_process *process)
{
	return td_identity_may(reader, process->who);
}

static const char *name_process(const struct td_process *process, char *buf, size_t len)
{
	snprintf(buf, len, "%s (pid %d)", *process->name ? process->name : process->job->name,
		(int)process->pid);
	return buf;
}

/*
 * Writes the numbers of the GPUs that the job was given, as "0, 1". A list that does not fit ends
 * in "...".
 */
static const char *list_placed(
	const struct td_node *node, const struct td_job *job, char *buf, size_t len)
{
	char uuid[TD_UUID_TEXT], number[12];
	size_t n = 0;

	*buf = 0;
	for (uint32_t i = 0; i < job->placed_count; i++) {
		uint32_t known = td_gpu_number_of(node, job->placed[i]);

		snprintf(number, sizeof(number), "%u", known);
		if (n + TD_UUID_TEXT + sizeof(", ...") > len) {
			snprintf(buf + n, len - n, ", ...");
			break;
		}
		n += (size_t)snprintf(buf + n, len - n, "%s%s", i ? ", " : "",
			known == TD_GPU_ANY ? td_uuid_format(uuid, job->placed[i]) : number);
	}
	return buf;
}

static void add_turn(struct td_facts *f, struct td_identity reader)
{
	static const char *const reasons[TD_TURN_N] = {
		[TD_TURN_FIXED] = "the policy fixes it",
		[TD_TURN_SHORT] = "a job that waits has used the GPU little lately",
		[TD_TURN_NEW] = "the holder had used the GPU little when the turn began",
		[TD_TURN_GROWS] = "the holder, or a job that waits, has used the GPU for that long",
		[TD_TURN_LONG] = "the holder and the jobs that wait are always busy",
		[TD_TURN_AHEAD] = "the holder has had more of the GPU than the next job",
	};
	const struct td_process *holder = f->waits_for_turn ? f->in_the_way : f->process;
	const struct td_grant *turn;

	if (!holder || holder->phase != TD_PHASE_OPEN)
		return;
	turn = find_turn(holder);
	if (!turn || turn->turn_ns >= TD_NEVER / 2)
		return;
	f->turn_ns = turn->turn_ns;
	if (may_name(reader, holder))
		f->turn_reason = reasons[turn->turn_reason];
}

static void add_others(struct td_facts *f, struct td_identity reader, uint64_t now_ns)
{
	const struct td_process *process = f->process, *stopped = find_stopped(f->node, process);
	uint64_t waits_since_ns = process->wants ? td_process_waits_since_ns(process)
						 : td_process_needs_since_ns(process);

	f->in_the_way = find_holder(f->node, process, &f->before);
	f->waits_for_turn = process->phase == TD_PHASE_CLOSED && process->wants;
	f->waited_ns = waits_since_ns ? now_ns - waits_since_ns : 0;
	if (f->in_the_way && may_name(reader, f->in_the_way)) {
		f->may_name_holder = true;
		f->holder = name_process(f->in_the_way, f->holder_text, sizeof(f->holder_text));
		f->holder_state = td_process_state(f->in_the_way);
		f->holding_ns = now_ns - f->in_the_way->phase_since_ns;
	}
	if (stopped && may_name(reader, stopped)) {
		f->may_name_stopped = true;
		f->stopped = name_process(stopped, f->stopped_text, sizeof(f->stopped_text));
		f->stopped_state = td_process_state(stopped);
	}
}

static void clear_text(struct td_facts *f)
{
#define TD_CLEAR_BYTES(name)
#define TD_CLEAR_NS(name)
#define TD_CLEAR_PPM(name)
#define TD_CLEAR_COUNT(name)
#define TD_CLEAR_TEXT(name) f->name = "";
#define FACT(kind, name)    TD_CLEAR_##kind(name)
#include "daemon/explain/facts.def"
#undef FACT
}

static const char *name_job(const struct td_process *process, char *buf, size_t len)
{
	if (*process->job->name)
		snprintf(buf, len, "%s", process->job->name);
	else
		snprintf(buf, len, "%d", (int)process->pid);
	return buf;
}

static void add_shares(struct td_facts *f)
{
	const struct td_shares *shares = &f->process->shares;

	f->handles = shares->handles;
	f->opened = shares->open;
	f->obstacle = td_shares_obstacle(shares->unreachable);
	f->denied = shares->denied[shares->last];
	f->denied_reason = td_shares_reason(shares->last);
}

static void add_service(struct td_facts *f)
{
	const struct td_service *service = f->process->service;

	if (!service || service->outside == TD_SERVICE_INSIDE)
		return;
	f->metrics = service->source;
	f->metrics_obstacle = service->why;
}

static void add_bursts(struct td_facts *f, uint64_t now_ns)
{
	struct td_bursts_seen seen;

	if (!td_bursts_of(f->process, now_ns, &seen))
		return;
	snprintf(f->bursts_text, sizeof(f->bursts_text), "%.3g", seen.per_s);
	f->bursts = f->bursts_text;
	f->burst_ns = seen.length_ns;
}

static void add_moves(struct td_facts *f, uint64_t now_ns)
{
	static const char *const reasons[TD_MOVE_REASON_N] = {
		[TD_MOVE_BY_HAND] = "by tandem migrate",
		[TD_MOVE_OVERLOAD] = "because the jobs there demanded more than the GPU has",
		[TD_MOVE_COMPACT] = "so that the GPU can be idle",
		[TD_MOVE_PAIRED] = "so that besteffort jobs are faster together",
	};
	const struct td_process *process = f->process;

	f->moves = process->moves;
	f->moved_from = process->moved.from;
	f->moved_ago_ns = process->moves ? now_ns - process->moved.at_ns : 0;
	f->moved_why = process->moves ? reasons[process->moved.why] : "";
	f->moved_bytes = process->moved.bytes;
	f->moved_pause_ns = process->moved.pause_ns;
	if (!(process->can & TD_CAN_MOVE))
		f->unmovable = td_unmovable_words(TD_UNMOVABLE(LIBRARY));
	else if (process->unmovable)
		f->unmovable = td_unmovable_words(process->unmovable);
}

static void add_reshares(struct td_facts *f, uint64_t now_ns)
{
	const struct td_process *process = f->process;
	const struct td_client *client = td_process_client(process);
	const char *obstacle = td_reshare_obstacle(process);

	f->reshares = process->reshares;
	f->reshared_ago_ns = process->reshares ? now_ns - process->reshared_ns : 0;
	f->reshare_pause_ns = process->reshare_pause_ns;
	if (!client || !client->mps)
		return;
	f->share_ppm = client->sm_share_ppm ? client->sm_share_ppm : TD_PPM;
	f->share_wanted_ppm = client->sm_share_wanted_ppm;
	f->unsharable =
		obstacle && !(process->job->supervised & TD_SUPERVISOR_SHADOWS) ? obstacle : "";
}

static void add_exchange(struct td_facts *f, uint64_t now_ns)
{
	const struct td_job *job = f->process->job;
	const char *obstacle = td_pairing_obstacle(f->node, f->process);

	if (obstacle)
		f->unexchanged = obstacle;
	if (!job->exchanged.is_set)
		return;
	f->exchanged_ago_ns = now_ns - job->exchanged_ns;
	f->exchanged_from = job->exchanged.from;
	f->exchanged_from_ppm = job->exchanged.from_ppm;
	f->exchanged_to_ppm = job->exchanged.to_ppm;
}

static void add_actions(struct td_facts *f, uint64_t now_ns)
{
	const struct td_act *act = td_actions_shown(f->node, f->process, false),
			    *refused = td_actions_shown(f->node, f->process, true);

	if (act) {
		f->action = td_action_name(act->kind);
		f->action_state = td_action_state_name(act->state);
		f->action_ns = now_ns - act->since_ns;
	}
	if (refused) {
		f->refused_action = td_action_name(refused->kind);
		f->refusal = refused->reason;
		f->refused_ns = now_ns - refused->changed_ns;
	}
}

void td_facts_of_process(struct td_facts *ret, const struct td_node *node,
	const struct td_process *process, struct td_identity reader, uint64_t now_ns)
{
	struct td_facts *f = ret;
	const struct td_job_settings *settings = &process->job->settings;

	*f = (struct td_facts){.node = node, .process = process};
	clear_text(f);
	f->stop = td_stopped_now(node, process);
	f->pid = (uint64_t)process->pid;
	f->job = name_job(process, f->job_text, sizeof(f->job_text));
	f->ungoverned = process->ungoverned;
	f->cuda_error = process->failed;
	f->since_ns = now_ns - process->phase_since_ns;
	f->placed = list_placed(node, process->job, f->placed_text, sizeof(f->placed_text));
	f->weight = settings->weight;
	if (settings->upgrade)
		f->upgrade = td_class_name((enum td_class)(settings->upgrade - 1));
	f->library = process->stays_for;
	f->duty_ppm = process->pacing.duty_ppm ? process->pacing.duty_ppm : settings->duty_ppm;
	f->window_ns = process->pacing.window_ns;
	f->steps = process->steps.count;
	f->step_ns = process->steps.median_ns;
	f->regular_ppm = process->steps.sure_ppm;
	f->host_wanted_bytes = process->host.wanted_bytes;
	f->host_limit_bytes = process->host.holding.told;
	f->patience_ns = node->options.memory_patience_ns;
	add_shares(f);
	add_service(f);
	add_bursts(f, now_ns);
	add_actions(f, now_ns);
	add_moves(f, now_ns);
	add_reshares(f, now_ns);
	add_exchange(f, now_ns);
	add_others(f, reader, now_ns);
	add_turn(f, reader);
}

void td_facts_add_client(struct td_facts *facts, const struct td_client *client)
{
	const struct td_job *job = facts->process->job;
	const struct td_gpu *gpu = &facts->node->gpus[client->gpu];

	facts->client = client;
	facts->gpu = td_gpu_number(facts->node, client->gpu);
	facts->forecast_ppm = facts->node->verdicts[client->gpu].forecast_ppm;
	facts->forecast_error_ns = facts->node->verdicts[client->gpu].forecast_error_ns;
	facts->need_bytes = client->need_bytes;
	facts->granted_bytes = client->device.told;
	facts->immovable_bytes = gpu->stays_bytes - job->on[client->gpu].stays_bytes;
	facts->job_bytes = client->others_bytes + client->total.used;
	facts->limit_bytes = td_quota_bytes(facts->node, job, gpu);
	facts->overhead_bytes = client->overhead_bytes;
	facts->soft_bytes = td_soft_bytes(facts->node, job, gpu);
	facts->spilled_bytes = client->spilled_bytes;
	facts->fixed_bytes = client->fixed_bytes;
	facts->step_peak_bytes = client->step_peak_bytes;
	facts->step_least_bytes = client->step_least_bytes;
	facts->cached_bytes = client->cached_bytes;
	facts->host_bytes = client->host_bytes;
}
