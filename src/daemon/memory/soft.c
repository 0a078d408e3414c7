/* This file implements soft.h. */
#include "daemon/memory/soft.h"

#include "base/bounds.h"
#include "base/parse.h"
#include "daemon/memory/capacity.h"
#include "daemon/memory/fixed.h"
#include "daemon/memory/quota.h"
#include "daemon/model/job.h"
#include "daemon/model/node.h"
#include "proto/words.h"

/* A job is not drained to move less than this fraction (1/64) of a GPU. */
#define WORTH_PART 64
/*
 * If draining for room changed nothing, it is repeated after 2 s, then after twice as long each
 * time, up to 2^VAIN_MAX times as long.
 */
#define VAIN_MAX 5
/* The shortest time that a program is given to drop its caches. */
#define ASK_LEAST_NS 100000000ull
/* The number of steps that a program is given after it has heard of its limit. */
#define ASK_STEPS 2

uint64_t td_soft_bytes(
	const struct td_node *node, const struct td_job *job, const struct td_gpu *gpu)
{
	uint64_t bytes;

	if (!*job->settings.mem_soft ||
		td_parse_size(job->settings.mem_soft,
			td_options_capacity(&node->options, gpu->total_bytes), &bytes, NULL))
		return UINT64_MAX;
	return bytes;
}

uint64_t td_soft_there(
	const struct td_node *node, const struct td_job *job, const struct td_gpu *gpu)
{
	uint64_t there = gpu->capacity_bytes + td_capacity_doubt(gpu),
		 others = gpu->stays_bytes - job->on[gpu - node->gpus].stays_bytes;

	return job->on[gpu - node->gpus].is_in ? there - td_min_u64(there, others) : there;
}

/*
 * Returns whether the job has, or asks for, more than there is for it. A request beyond the GPU's
 * size does not count, since it is refused.
 */
static bool is_too_much(
	const struct td_node *node, const struct td_job *job, const struct td_gpu *gpu)
{
	uint64_t demanded = job->on[gpu - node->gpus].demanded_bytes,
		 wanted = demanded + job->on[gpu - node->gpus].needed_bytes,
		 there = td_soft_there(node, job, gpu);

	return demanded > there ||
	       (wanted > there && wanted <= gpu->capacity_bytes + td_capacity_doubt(gpu));
}

/*
 * Returns the bytes that the job may have on the device. A job that has more than there is for it
 * runs with the rest on the host. That happens if others have memory there that cannot leave, if
 * contexts came later, or if a program without tandem took the room. Nothing is moved for a
 * shortage that may pass.
 */
static uint64_t device_bytes(
	const struct td_node *node, const struct td_job *job, const struct td_gpu *gpu)
{
	uint64_t limit = td_soft_bytes(node, job, gpu);

	if (limit != UINT64_MAX)
		limit -= td_min_u64(limit, job->on[gpu - node->gpus].overhead_bytes);
	return is_too_much(node, job, gpu) ? td_min_u64(limit, td_soft_there(node, job, gpu))
					   : limit;
}

/* Returns whether the driver pages the client's memory, so that no soft limit can be enforced. */
static bool pages_itself(const struct td_client *client)
{
	return client->process->backend == TD_BACKEND_MANAGED;
}

static uint64_t demanded(const struct td_client *client)
{
	return client->demanded_bytes + (client->needs ? client->need_bytes : 0);
}

/* Returns the bytes that the client asks for and that must be on the device. */
static uint64_t fixed_need(const struct td_client *client)
{
	return client->needs && client->asked != TD_ASKED_MOVES ? client->need_bytes : 0;
}

/* Returns the bytes that can only be on the device, with those asked for. */
static uint64_t fixed(const struct td_client *client)
{
	return td_min_u64(td_fixed_bytes(client) + fixed_need(client), demanded(client));
}

/* Moves up to `bytes` from the job's remaining limit on that GPU to the client's part. */
static void take(struct td_client *client, uint64_t bytes)
{
	uint64_t *left = &client->process->job->on[client->gpu].soft_left_bytes;

	bytes = td_min_u64(bytes, *left);
	*left -= bytes;
	client->soft_bytes += bytes;
}

/* Raises the client's part to `bytes` in the same way, but not above what it demands. */
static void take_up_to(struct td_client *client, uint64_t bytes)
{
	bytes = td_min_u64(bytes, demanded(client));
	take(client, bytes - td_min_u64(bytes, client->soft_bytes));
}

/*
 * Returns whether the job is kept out of one of its GPUs: the immovable memory of other programs
 * there leaves too little room for the job's memory.
 */
static bool is_kept_out(const struct td_node *node, const struct td_job *job)
{
	for (uint32_t i = 0; i < node->gpu_count; i++) {
		const struct td_gpu *gpu = &node->gpus[i];
		uint64_t there = gpu->capacity_bytes + td_capacity_doubt(gpu),
			 others = gpu->stays_bytes - job->on[i].stays_bytes,
			 wanted = td_min_u64(job->on[i].demanded_bytes + job->on[i].needed_bytes,
				 td_soft_bytes(node, job, gpu));

		if (job->on[i].clients && others && others + td_min_u64(wanted, there) > there)
			return true;
	}
	return false;
}

static bool has_immovable(const struct td_node *node)
{
	uint64_t stays_bytes = 0;

	for (uint32_t i = 0; i < node->gpu_count; i++)
		stays_bytes |= node->gpus[i].stays_bytes;
	return stays_bytes;
}

uint64_t td_soft_wait(struct td_node *node, uint64_t now_ns)
{
	uint64_t wakeup = TD_NEVER, until;
	struct td_list *it;

	/* Only memory that cannot leave a GPU keeps a job out. */
	if (!node->had.kept_out && !has_immovable(node))
		return TD_NEVER;
	node->had.kept_out = false;
	td_list_for_each (it, &node->jobs) {
		struct td_job *job = td_container_of(it, struct td_job, of_node);

		if (job->is_in)
			job->kept_out_since_ns = 0;
		node->had.kept_out |= job->kept_out_since_ns != 0;
		if (job->is_in || !job->asks || job->settings.paused)
			continue;
		if (!is_kept_out(node, job))
			job->kept_out_since_ns = 0;
		else if (!job->kept_out_since_ns)
			job->kept_out_since_ns = now_ns;
		node->had.kept_out |= job->kept_out_since_ns != 0;
		if (!job->kept_out_since_ns)
			continue;
		until = job->kept_out_since_ns + node->options.memory_patience_ns;
		for (uint32_t i = 0; i < node->gpu_count && until <= now_ns; i++)
			job->on[i].is_in = true;
		if (until > now_ns)
			wakeup = td_min_u64(wakeup, until);
	}
	return wakeup;
}

/*
 * Sets the limit of each job on each GPU. Returns whether some job has one; if not, no client has
 * one either, and nothing is left to divide.
 */
static bool gather_limits(struct td_node *node)
{
	bool limited = false;
	struct td_list *it;

	td_list_for_each (it, &node->clients) {
		struct td_client *client = td_client_at(it);
		struct td_job *job = client->process->job;
		uint64_t limit = device_bytes(node, job, &node->gpus[client->gpu]);

		client->soft_bytes = UINT64_MAX;
		job->on[client->gpu].soft_left_bytes = limit;
		limited |= limit != UINT64_MAX;
	}
	return limited;
}

void td_soft_gather(struct td_node *node)
{
	struct td_list *it;

	if (!gather_limits(node))
		return;
	td_list_for_each (it, &node->clients)
		td_client_at(it)->soft_bytes = 0;
	/*
	 * Memory that cannot leave the device comes first: the parts of all clients must fit into
	 * the limit together.
	 */
	td_list_for_each (it, &node->clients) {
		struct td_client *client = td_client_at(it);

		take(client, client->spills ? fixed(client) : demanded(client));
	}
	td_list_for_each (it, &node->clients) {
		struct td_client *client = td_client_at(it);

		if (client->spills)
			take_up_to(client, td_max_u64(client->device.used, client->device.told));
	}
	td_list_for_each (it, &node->clients) {
		struct td_client *client = td_client_at(it);
		const struct td_job *job = client->process->job;
		uint64_t limit = device_bytes(node, job, &node->gpus[client->gpu]);

		if (pages_itself(client) && is_too_much(node, job, &node->gpus[client->gpu]))
			limit = td_soft_there(node, job, &node->gpus[client->gpu]);
		else if (!client->spills)
			limit = UINT64_MAX;
		if (limit == UINT64_MAX) {
			client->soft_bytes = UINT64_MAX;
			continue;
		}
		/* The only client of a job gets the whole limit, so that it need not ask. */
		if (job->on[client->gpu].clients == 1)
			client->soft_bytes = limit;
		else
			take_up_to(client, demanded(client));
		client->soft_bytes = td_max_u64(client->soft_bytes, fixed(client));
	}
}

uint64_t td_soft_demand(const struct td_client *client)
{
	return td_min_u64(demanded(client), client->soft_bytes);
}

bool td_soft_spills(const struct td_client *client)
{
	return client->spills && client->soft_bytes < demanded(client);
}

/*
 * Returns whether the bytes asked for must be on the device. Only memory of others that can leave
 * makes room for them.
 */
static bool needs_device(const struct td_client *client)
{
	return client->asked != TD_ASKED_MOVES || !client->spills;
}

/* Returns whether the bytes asked for fit beside the job's memory that cannot leave. */
static bool need_fits(const struct td_client *client, uint64_t there)
{
	const struct td_job *job = client->process->job;
	uint64_t has = client->spills || pages_itself(client) ? job->on[client->gpu].stays_bytes
							      : job->on[client->gpu].demanded_bytes;

	return has + client->need_bytes <= there;
}

/*
 * Returns whether the request fits into `there`. A job that waits to be let in waits for room for
 * all of its memory.
 */
static bool has_room(const struct td_client *client, uint64_t there)
{
	/* Memory that the driver pages need not be on the device. */
	if (td_soft_demand(client) > there && !pages_itself(client))
		return false;
	return !client->process->job->on[client->gpu].is_in || !needs_device(client) ||
	       need_fits(client, there);
}

static bool goes_before(const struct td_client *a, const struct td_client *b)
{
	enum td_class class = a->process->job->settings.class,
		      other = b->process->job->settings.class;

	return class != other ? class < other : a->id < b->id;
}

/*
 * Returns whether the client keeps its memory until it is let in, and is not refused in favour of
 * `asking`.
 */
static bool outwaits(const struct td_client *client, const struct td_client *asking)
{
	const struct td_process *process = client->process;

	if (process->phase != TD_PHASE_CLOSED || process->job->settings.paused || client->failed)
		return false;
	return client->needs ? goes_before(client, asking) : process->wants;
}

/*
 * Returns whether the client is to be refused to break a deadlock. Two programs that wait to be let
 * in may each have memory that cannot leave and that keeps the other out. The one of the lower
 * class is refused; in the same class, the one that came later.
 */
static bool is_deadlocked(const struct td_node *node, const struct td_client *client)
{
	const struct td_job *job = client->process->job;
	uint64_t there = node->gpus[client->gpu].capacity_bytes +
			 td_capacity_doubt(&node->gpus[client->gpu]);
	struct td_list *it;

	if (job->on[client->gpu].is_in || !job->on[client->gpu].stays_bytes ||
		!needs_device(client))
		return false;
	td_list_for_each (it, &node->clients) {
		const struct td_client *other = td_client_at(it);

		if (other->gpu == client->gpu && other->process->job != job &&
			outwaits(other, client))
			there -= td_min_u64(there, td_quota_stays(other));
	}
	return !need_fits(client, there);
}

enum td_soft_place td_soft_place(const struct td_node *node, const struct td_client *client)
{
	const struct td_job *job = client->process->job;
	const struct td_gpu *gpu = &node->gpus[client->gpu];
	uint64_t there = td_soft_there(node, job, gpu),
		 others = gpu->stays_bytes - job->on[client->gpu].stays_bytes,
		 stranded = job->on[client->gpu].is_in
				    ? gpu->stranded_bytes - job->on[client->gpu].stranded_bytes
				    : 0;

	/*
	 * For memory that the driver pages, the driver makes the room itself, or reports an error.
	 */
	if (pages_itself(client) && client->asked != TD_ASKED_STAYS)
		return TD_SOFT_HAS_PLACE;
	if (is_deadlocked(node, client))
		return TD_SOFT_NO_PLACE;
	/*
	 * Memory that the driver pages can be refused at once: it need not wait for another client.
	 */
	if (client->asked == TD_ASKED_UNIFIED && !job->on[client->gpu].is_in &&
		is_kept_out(node, job))
		return TD_SOFT_NO_PLACE;
	/*
	 * Such memory is not granted for the time when the client is let in, since it would not fit
	 * then. td_soft_wait() ends this state.
	 */
	if (!job->on[client->gpu].is_in && needs_device(client) &&
		!need_fits(client, there - td_min_u64(there, others)))
		return TD_SOFT_KEPT_OUT;
	if (has_room(client, there))
		return TD_SOFT_HAS_PLACE;
	return has_room(client, there + stranded) ? TD_SOFT_STRANDED : TD_SOFT_NO_PLACE;
}

void td_soft_plan(const struct td_node *node, struct td_client *client)
{
	struct td_grant *grant = &client->grant;

	if (client->spills && grant->gate != TD_GATE_CLOSED &&
		node->policy->needs & TD_HAS(HOST_MEMORY))
		client->soft_bytes = td_min_u64(
			client->soft_bytes, td_max_u64(grant->limit_bytes, fixed(client)));
	grant->limit_bytes = td_min_u64(grant->limit_bytes, client->soft_bytes);
	/* The client was drained to make room for an allocation; that room is not filled again. */
	if (td_soft_spills(client) && client->process->phase != TD_PHASE_OPEN)
		grant->limit_bytes = td_min_u64(grant->limit_bytes,
			td_max_u64(td_fixed_bytes(client),
				grant->limit_bytes -
					td_min_u64(grant->limit_bytes, fixed_need(client))));
}

/* Returns the bytes over the soft limit that can be moved out, 0 if none. */
static uint64_t too_much(const struct td_client *client)
{
	uint64_t wanted = client->device.used + fixed_need(client);

	return td_soft_spills(client) && client->device.used > td_fixed_bytes(client)
		       ? wanted - td_min_u64(wanted, client->soft_bytes)
		       : 0;
}

/*
 * Returns whether nothing has changed since the client was let in, so that draining it again would
 * be of no use.
 */
static bool was_in_vain(const struct td_client *client)
{
	return too_much(client) == client->settled.too_much_bytes &&
	       client->device.used == client->settled.resident_bytes;
}

/*
 * Returns whether the program has made two steps since it heard of its limit. Steps are a better
 * measure than time on a busy machine. They are not reported one by one, so the first count that
 * arrives afterwards is the base.
 */
static bool had_its_steps(struct td_client *client)
{
	const struct td_steps_told *told = &client->process->steps;

	if (!told->count || told->unit)
		return false; /* the program reports no steps */
	if (client->asked_stage == TD_ASKED && td_holding_is_heard(&client->device) &&
		client->device.told < client->device.used) {
		client->asked_stage = TD_ASKED_HEARD;
		client->asked_steps = told->count;
	} else if (client->asked_stage == TD_ASKED_HEARD && told->count != client->asked_steps) {
		client->asked_stage = TD_ASKED_COUNTED;
		client->asked_steps = told->count;
	}
	return client->asked_stage == TD_ASKED_COUNTED &&
	       told->count - client->asked_steps >= ASK_STEPS;
}

/* Returns false while the client still has time to drop its caches by itself. */
static bool must_be_moved(struct td_client *client, uint64_t now_ns, uint64_t *wakeup)
{
	uint64_t until_ns;

	if (!client->cached_bytes)
		return true;
	if (!client->asked_ns) {
		client->asked_ns = now_ns;
		client->asked_stage = TD_ASKED;
	}
	until_ns = client->asked_ns + (had_its_steps(client) ? ASK_LEAST_NS : TD_SOFT_ASK_NS);
	if (now_ns >= until_ns)
		return true;
	*wakeup = td_min_u64(*wakeup, until_ns);
	return false;
}

/* Returns whether the device has enough room for memory that lies on the host. */
static bool may_come(const struct td_node *node, const struct td_client *client)
{
	uint64_t room =
		td_min_u64(client->device.told, client->device.used + client->spilled_bytes);

	return room > client->device.used &&
	       room - client->device.used >= node->gpus[client->gpu].capacity_bytes / WORTH_PART;
}

static bool is_as_settled(const struct td_client *client)
{
	return client->device.told == client->settled.limit_bytes &&
	       client->device.used == client->settled.resident_bytes &&
	       client->spilled_bytes == client->settled.spilled_bytes;
}

/*
 * Returns when to drain the client so that its memory on the host can come back. If there was room
 * when its gate opened last, too, the device had less than the account says. Then the wait doubles
 * each time.
 */
static uint64_t comes_at_ns(const struct td_client *client)
{
	return client->settled.at_ns +
	       (is_as_settled(client) ? TD_SOFT_EVERY_NS << (1 + client->settled.vain)
				      : TD_SOFT_EVERY_NS);
}

uint64_t td_soft_step(struct td_node *node, uint64_t now_ns)
{
	uint64_t wakeup = TD_NEVER, at;
	struct td_list *it;

	if (node->had.exchanges)
		td_list_for_each (it, &node->jobs)
			td_container_of(it, struct td_job, of_node)->exchanges = false;
	node->had.exchanges = false;
	td_list_for_each (it, &node->clients) {
		struct td_client *client = td_client_at(it);
		const struct td_process *process = client->process;

		if (!client->spills || client->grant.gate == TD_GATE_CLOSED || process->failed ||
			(process->phase != TD_PHASE_OPEN && process->phase != TD_PHASE_DRAINING))
			continue;
		at = too_much(client) ? client->settled.at_ns + TD_SOFT_EVERY_NS
				      : comes_at_ns(client);
		if (!too_much(client))
			client->asked_ns = 0;
		if (too_much(client) && !(was_in_vain(client) && at > now_ns))
			process->job->exchanges |= must_be_moved(client, now_ns, &wakeup);
		else if (!too_much(client) && !may_come(node, client))
			continue;
		else if (at <= now_ns)
			process->job->exchanges = true;
		else
			wakeup = td_min_u64(wakeup, at);
		node->had.exchanges |= process->job->exchanges;
	}
	if (!node->had.exchanges)
		return wakeup;
	/*
	 * A job is drained as a whole or not at all. If the drain of one process was given up
	 * lately, the job is left alone for now.
	 */
	td_list_for_each (it, &node->processes) {
		const struct td_process *process = td_process_at(it);

		if (process->retry_ns > now_ns)
			process->job->exchanges = false;
	}
	return wakeup;
}

void td_soft_settled(struct td_client *client, uint64_t now_ns)
{
	if (!is_as_settled(client))
		client->settled.vain = 0;
	else if (client->settled.vain < VAIN_MAX)
		client->settled.vain++;
	client->settled.limit_bytes = client->device.told;
	client->settled.resident_bytes = client->device.used;
	client->settled.spilled_bytes = client->spilled_bytes;
	client->settled.too_much_bytes = too_much(client);
	client->settled.at_ns = now_ns;
}
