/* AntMan's Algorithm 1 with queues, reservations and upgrades; see antman_cluster.h. */
#include "policy/cluster/antman_cluster.h"

#include <errno.h>
#include <string.h>

#define NONE            UINT32_MAX
#define FREED_WINDOW_NS 3600e9 /* time constant of the weighted rate of freed GPUs */

const struct td_antman_params td_antman_default = {
	.load_limit_ppm = 800000,
	.patience_ns = 600000000000ull,
	.assumed_ppm = 1000000,
};

static size_t aligned(size_t bytes)
{
	return (bytes + 63) & ~(size_t)63;
}

static size_t places_of(uint32_t gpus)
{
	return (size_t)gpus * (1 + TD_GUESTS);
}

size_t td_antman_bytes(uint32_t nodes, uint32_t gpus, uint32_t jobs_max)
{
	return aligned(td_inventory_bytes(nodes, gpus)) +
	       aligned(jobs_max * sizeof(struct td_antman_job)) +
	       aligned(places_of(gpus) * sizeof(struct td_antman_place));
}

int td_antman_init(struct td_antman_cluster *c, void *memory, size_t bytes,
	const struct td_antman_params *params, const uint32_t *node_gpus, uint32_t nodes,
	const uint32_t *quotas, uint32_t tenants, uint32_t jobs_max)
{
	uint64_t gpus = 0;
	char *at = memory;
	int r;

	for (uint32_t n = 0; n < nodes; n++)
		gpus += node_gpus[n];
	if (!nodes || !tenants || tenants > TD_TENANTS_MAX || gpus > UINT32_MAX / 16)
		return -EINVAL;
	if (bytes < td_antman_bytes(nodes, (uint32_t)gpus, jobs_max))
		return -ENOMEM;
	*c = (struct td_antman_cluster){
		.params = *params, .tenant_count = tenants, .jobs_max = jobs_max};
	r = td_inventory_init(&c->gpus, at, node_gpus, nodes, params->assumed_ppm);
	if (r < 0)
		return r;
	at += aligned(td_inventory_bytes(nodes, (uint32_t)gpus));
	c->places = (struct td_antman_place *)at;
	at += aligned(places_of((uint32_t)gpus) * sizeof(struct td_antman_place));
	c->jobs = (struct td_antman_job *)at;
	memset(c->jobs, 0, c->jobs_max * sizeof(*c->jobs));
	for (size_t k = places_of((uint32_t)gpus); k--;)
		c->places[k].next = k + 1 < places_of((uint32_t)gpus) ? (uint32_t)k + 1 : NONE;
	for (uint32_t t = 0; t < tenants; t++) {
		c->tenants[t] = (struct td_antman_tenant){.quota = quotas[t],
			.head = NONE,
			.tail = NONE,
			.first_claim = NONE,
			.reserving = TD_NO_JOB};
		memset(c->tenants[t].first_small, 0xff, sizeof(c->tenants[t].first_small));
	}
	td_inventory_watch(&c->gpus, params->load_limit_ppm);
	return 0;
}

static bool is_running(const struct td_antman_job *job)
{
	return job->state == TD_JOB_RUNNING || job->state == TD_JOB_OPPORTUNISTIC_RUNNING;
}

uint32_t td_antman_gpus(const struct td_antman_cluster *c, uint32_t job, uint32_t *ret_gpus)
{
	uint32_t n = 0;

	if (job >= c->jobs_max || !is_running(&c->jobs[job]))
		return 0;
	for (uint32_t p = c->jobs[job].place; p != NONE; p = c->places[p].next)
		ret_gpus[n++] = c->places[p].gpu;
	return n;
}

/* Starts the job on the first `gpus` entries of c->found. */
static void settle(struct td_antman_cluster *c, uint32_t id)
{
	struct td_antman_job *job = &c->jobs[id];

	job->place = NONE;
	for (uint32_t k = job->gpus; k--;) {
		uint32_t p = c->free_place;

		c->free_place = c->places[p].next;
		c->places[p] = (struct td_antman_place){c->found[k], job->place};
		job->place = p;
	}
}

static void enqueue(struct td_antman_cluster *c, uint32_t id)
{
	struct td_antman_job *job = &c->jobs[id];
	struct td_antman_tenant *tenant = &c->tenants[job->tenant];

	job->next = NONE;
	job->previous = tenant->tail;
	job->queued = true;
	*(tenant->tail == NONE ? &tenant->head : &c->jobs[tenant->tail].next) = id;
	tenant->tail = id;
	job->order = c->joined++;
	for (uint32_t k = 0; k < TD_ANTMAN_SMALL; k++)
		if (tenant->first_small[k] == NONE)
			tenant->first_small[k] = id;
	if (tenant->first_claim == NONE)
		tenant->first_claim = id;
}

static void dequeue(struct td_antman_cluster *c, uint32_t id)
{
	struct td_antman_job *job = &c->jobs[id];
	struct td_antman_tenant *tenant = &c->tenants[job->tenant];

	*(job->previous == NONE ? &tenant->head : &c->jobs[job->previous].next) = job->next;
	*(job->next == NONE ? &tenant->tail : &c->jobs[job->next].previous) = job->previous;
	for (uint32_t k = 0; k < TD_ANTMAN_SMALL; k++)
		if (tenant->first_small[k] == id)
			tenant->first_small[k] = job->next;
	if (tenant->first_claim == id)
		tenant->first_claim = job->next;
	job->queued = false;
}

static void unreserve(struct td_antman_cluster *c, struct td_antman_tenant *tenant)
{
	for (uint32_t k = 0; k < tenant->reserved_count; k++)
		td_inventory_reserve(&c->gpus, tenant->reserved[k], TD_NO_JOB);
	tenant->reserved_count = 0;
	tenant->reserving = TD_NO_JOB;
}

/*
 * Reserves the GPUs in c->found for the tenant's first waiting job. The old reservation is dropped.
 */
static void reserve(
	struct td_antman_cluster *c, struct td_antman_tenant *tenant, uint32_t id, uint32_t count)
{
	unreserve(c, tenant);
	tenant->reserving = id;
	for (uint32_t k = 0; k < count; k++) {
		td_inventory_reserve(&c->gpus, c->found[k], id);
		tenant->reserved[tenant->reserved_count++] = c->found[k];
	}
}

/*
 * Looks for free GPUs for the job and gives up its own reservation, whose GPUs it may find again.
 */
static uint32_t find_for(
	struct td_antman_cluster *c, struct td_antman_tenant *tenant, uint32_t id, uint32_t count)
{
	if (tenant->reserving == id)
		unreserve(c, tenant);
	return td_inventory_find_free_in(
		&c->gpus, id, count, c->jobs[id].same_node, c->jobs[id].pool, c->found);
}

static bool came_before(const struct td_antman_cluster *c, uint32_t a, uint32_t b)
{
	return c->jobs[a].submit_ns != c->jobs[b].submit_ns
		       ? c->jobs[a].submit_ns < c->jobs[b].submit_ns
		       : a < b;
}

/*
 * Takes over the reservations of jobs that came later. Where the quotas together exceed the
 * cluster, two gangs that each hold part of the free GPUs would wait for each other. Returns true
 * if there was a reservation to take.
 */
static bool take_over(struct td_antman_cluster *c, uint32_t id)
{
	bool some = false;

	for (uint32_t t = 0; t < c->tenant_count; t++) {
		struct td_antman_tenant *other = &c->tenants[t];

		if (!other->reserved_count || other->reserving == id ||
			!came_before(c, id, other->reserving))
			continue;
		unreserve(c, other);
		some = true;
	}
	return some;
}

/*
 * Counts a job's GPUs in the tenant's quota and shrinks the tenant's reservation to what is left.
 */
static void use_quota(struct td_antman_cluster *c, struct td_antman_tenant *tenant, uint32_t gpus)
{
	tenant->used += gpus;
	while (tenant->reserved_count && tenant->used + tenant->reserved_count > tenant->quota)
		td_inventory_reserve(
			&c->gpus, tenant->reserved[--tenant->reserved_count], TD_NO_JOB);
}

static void start(struct td_antman_cluster *c, struct td_antman_tenant *tenant, uint32_t id)
{
	struct td_antman_job *job = &c->jobs[id];

	for (uint32_t k = 0; k < job->gpus; k++)
		td_inventory_hold(&c->gpus, c->found[k], id);
	settle(c, id);
	dequeue(c, id);
	use_quota(c, tenant, job->gpus);
	job->state = TD_JOB_RUNNING;
}

/* Tells whether every GPU of the job may become its own; an upgrade of some would not help. */
static bool may_upgrade(const struct td_antman_cluster *c, uint32_t id)
{
	for (uint32_t p = c->jobs[id].place; p != NONE; p = c->places[p].next) {
		uint32_t gpu = c->places[p].gpu;

		if (c->gpus.holder[gpu] != TD_NO_JOB || c->gpus.reserved[gpu] != TD_NO_JOB)
			return false;
	}
	return true;
}

static void upgrade(struct td_antman_cluster *c, struct td_antman_tenant *tenant, uint32_t id)
{
	struct td_antman_job *job = &c->jobs[id];

	for (uint32_t p = job->place; p != NONE; p = c->places[p].next)
		td_inventory_promote(&c->gpus, c->places[p].gpu, id);
	dequeue(c, id);
	use_quota(c, tenant, job->gpus);
	job->state = TD_JOB_RUNNING;
}

uint64_t td_antman_estimate_ns(const struct td_antman_cluster *c, uint32_t id)
{
	const struct td_antman_job *job = &c->jobs[id];
	const struct td_antman_tenant *tenant = &c->tenants[job->tenant];
	uint64_t ahead = job->gpus;
	double needed, seconds;

	for (uint32_t j = tenant->head; j != NONE && j != id; j = c->jobs[j].next)
		if (c->jobs[j].kind != TD_JOB_OPPORTUNISTIC && c->jobs[j].gpus <= tenant->quota)
			ahead += c->jobs[j].gpus;
	needed = (double)ahead - ((double)tenant->quota - tenant->used);
	if (needed <= 0)
		return 0;
	if (!(tenant->freed_per_s > 0) || job->gpus > tenant->quota)
		return UINT64_MAX;
	seconds = needed / tenant->freed_per_s;
	return seconds < 1e9 ? (uint64_t)(seconds * 1e9) : UINT64_MAX;
}

/* Starts the job on the GPUs in c->found as their guest. */
static void settle_guest(struct td_antman_cluster *c, uint32_t id)
{
	struct td_antman_job *job = &c->jobs[id];

	for (uint32_t k = 0; k < job->gpus; k++)
		td_inventory_add_guest(&c->gpus, c->found[k], id);
	settle(c, id);
	job->state = TD_JOB_OPPORTUNISTIC_RUNNING;
	if (job->kind == TD_JOB_OPPORTUNISTIC)
		dequeue(c, id);
}

/*
 * Starts the job on the least loaded GPUs below M, nodes2 of Algorithm 1, or on those of one node
 * if it has to be on one. Returns false if too few.
 */
static bool start_opportunistically(struct td_antman_cluster *c, uint32_t id)
{
	struct td_antman_job *job = &c->jobs[id];
	uint32_t limit = c->params.load_limit_ppm, found;

	found = job->same_node && job->gpus > 1 ? td_inventory_find_least_loaded_on_one(&c->gpus,
							  job->gpus, limit, job->pool, c->found)
						: td_inventory_find_least_loaded_in(&c->gpus,
							  job->gpus, limit, job->pool, c->found);
	if (found < job->gpus)
		return false;
	settle_guest(c, id);
	return true;
}

/*
 * Tries to give guaranteed resources to the job that is next in its tenant's queue. Returns true if
 * the jobs behind it must wait.
 */
static bool try_guaranteed(struct td_antman_cluster *c, struct td_antman_tenant *tenant,
	uint32_t id, struct td_antman_action *action, bool *ret_done)
{
	struct td_antman_job *job = &c->jobs[id];
	uint32_t left = tenant->quota > tenant->used ? tenant->quota - tenant->used : 0;
	uint32_t wanted = job->gpus < left ? job->gpus : left, found;

	if (job->state == TD_JOB_OPPORTUNISTIC_RUNNING) {
		if (job->gpus > left || !may_upgrade(c, id))
			return false; /* it runs already, so jobs behind it need not wait */
		upgrade(c, tenant, id);
		*action = (struct td_antman_action){TD_ANTMAN_UPGRADE, id};
		*ret_done = true;
		return false;
	}
	if (job->gpus > tenant->quota)
		/* It never gets them: it runs opportunistically, and nobody waits for it. */
		return false;
	if (!wanted) {
		if (tenant->reserving == id)
			unreserve(c, tenant);
		return true;
	}
	found = find_for(c, tenant, id, wanted);
	if (found < wanted && take_over(c, id))
		found = find_for(c, tenant, id, wanted);
	if (found == job->gpus) {
		start(c, tenant, id);
		*action = (struct td_antman_action){TD_ANTMAN_START, id};
		*ret_done = true;
		return false;
	}
	if (job->pool != TD_ANYWHERE)
		return false; /* those behind it may find GPUs elsewhere */
	reserve(c, tenant, id, found);
	return true;
}

static bool wants_place(const struct td_antman_job *job)
{
	return job->state == TD_JOB_QUEUED && job->kind != TD_JOB_GUARANTEED;
}

/* Tells whether enough GPUs are below M, and the job does not wait for guaranteed resources. */
static bool may_start_opportunistically(const struct td_antman_cluster *c, uint32_t id)
{
	return wants_place(&c->jobs[id]) && c->gpus.below >= c->jobs[id].gpus &&
	       (c->jobs[id].kind == TD_JOB_OPPORTUNISTIC ||
		       td_antman_estimate_ns(c, id) > c->params.patience_ns);
}

/* Returns the first job of the queue that wants guaranteed resources. */
static uint32_t first_claim(const struct td_antman_cluster *c, struct td_antman_tenant *tenant)
{
	uint32_t *first = &tenant->first_claim;

	while (*first != NONE && c->jobs[*first].kind == TD_JOB_OPPORTUNISTIC)
		*first = c->jobs[*first].next;
	return *first;
}

/*
 * Returns the first job that waits to start beside others and wants no more than `gpus` GPUs, which
 * is TD_ANTMAN_SMALL at most.
 */
static uint32_t first_small(
	const struct td_antman_cluster *c, struct td_antman_tenant *tenant, uint32_t gpus)
{
	uint32_t *first = &tenant->first_small[gpus - 1];

	while (*first != NONE && !(wants_place(&c->jobs[*first]) && c->jobs[*first].gpus <= gpus))
		*first = c->jobs[*first].next;
	return *first;
}

/*
 * Returns the first job from `id` on that could get anything: guaranteed resources, unless another
 * job waits for them, or GPUs below M, of which there are c->gpus.below. Starts only lower this
 * number, and only a job with a turn is upgraded, which may raise it. first_small() knows only the
 * first job of the whole queue, so behind it each job is checked.
 */
static uint32_t skip(
	struct td_antman_cluster *c, struct td_antman_tenant *tenant, uint32_t id, bool waits)
{
	uint32_t gpus = c->gpus.below;
	uint32_t claim = waits ? NONE : first_claim(c, tenant), small = NONE;

	if (gpus > TD_ANTMAN_SMALL)
		return id;
	if (gpus)
		small = first_small(c, tenant, gpus);
	if ((claim != NONE && c->jobs[claim].order < c->jobs[id].order) ||
		(small != NONE && c->jobs[small].order < c->jobs[id].order))
		return id;
	if (claim == NONE || small == NONE)
		return claim == NONE ? small : claim;
	return c->jobs[claim].order < c->jobs[small].order ? claim : small;
}

static uint32_t step_tenant(struct td_antman_cluster *c, struct td_antman_tenant *tenant,
	struct td_antman_action *actions, uint32_t room)
{
	bool waits = false;
	uint32_t done_count = 0, next;

	for (uint32_t id = tenant->head; id != NONE && done_count < room; id = next) {
		struct td_antman_job *job;
		bool done = false;

		id = skip(c, tenant, id, waits);
		if (id == NONE)
			break;
		job = &c->jobs[id];
		next = job->next;
		if (job->kind != TD_JOB_OPPORTUNISTIC && !waits)
			waits = try_guaranteed(c, tenant, id, &actions[done_count], &done);
		if (!done && may_start_opportunistically(c, id) && start_opportunistically(c, id)) {
			if (tenant->reserving == id) {
				unreserve(c, tenant);
				waits = false;
			}
			actions[done_count] =
				(struct td_antman_action){TD_ANTMAN_START_OPPORTUNISTIC, id};
			done = true;
		}
		done_count += done;
	}
	return done_count;
}

uint32_t td_antman_step(struct td_antman_cluster *c, uint64_t now_ns,
	struct td_antman_action *ret_actions, uint32_t room)
{
	uint64_t served = 0; /* one bit per tenant */
	uint32_t count = 0;

	(void)now_ns;
	for (uint32_t turn = 0; turn < c->tenant_count && count < room; turn++) {
		uint32_t first = NONE;

		for (uint32_t t = 0; t < c->tenant_count; t++) {
			if (served >> t & 1 || c->tenants[t].head == NONE)
				continue;
			if (first == NONE || c->jobs[c->tenants[t].head].submit_ns <
						     c->jobs[c->tenants[first].head].submit_ns)
				first = t;
		}
		if (first == NONE)
			break;
		served |= 1ull << first;
		count += step_tenant(c, &c->tenants[first], ret_actions + count, room - count);
	}
	return count;
}

int td_antman_submit(struct td_antman_cluster *c, uint32_t id,
	const struct td_antman_request *request, uint64_t now_ns)
{
	if (id >= c->jobs_max || c->jobs[id].state != TD_JOB_ABSENT ||
		request->tenant >= c->tenant_count || !request->gpus ||
		request->gpus > TD_GANG_MAX || request->gpus > c->gpus.gpu_count)
		return -EINVAL;
	if (request->kind == TD_JOB_GUARANTEED && request->gpus > c->tenants[request->tenant].quota)
		return -EDQUOT;
	c->jobs[id] = (struct td_antman_job){
		.kind = request->kind,
		.state = TD_JOB_QUEUED,
		.tenant = request->tenant,
		.gpus = request->gpus,
		.same_node = request->same_node,
		.pool = request->pool < TD_POOLS ? request->pool : TD_ANYWHERE,
		.submit_ns = now_ns,
		.place = NONE,
	};
	enqueue(c, id);
	if (!c->tenants[request->tenant].has_come) {
		c->tenants[request->tenant].has_come = true;
		c->tenants[request->tenant].freed_ns = now_ns;
	}
	return 0;
}

/* Updates the tenant's exponentially weighted rate of freed GPUs. */
static void note_freed(struct td_antman_tenant *tenant, uint32_t gpus, uint64_t now_ns)
{
	double passed = (double)(now_ns - tenant->freed_ns) + 1;
	double weight = passed / (passed + FREED_WINDOW_NS), rate = gpus / (passed / 1e9);

	if (!(tenant->freed_per_s > 0))
		weight = 1;
	tenant->freed_per_s += weight * (rate - tenant->freed_per_s);
	tenant->freed_ns = now_ns;
}

static void leave_gpus(struct td_antman_cluster *c, uint32_t id)
{
	struct td_antman_job *job = &c->jobs[id];

	for (uint32_t p = job->place, next; p != NONE; p = next) {
		uint32_t gpu = c->places[p].gpu;

		next = c->places[p].next;
		if (job->state == TD_JOB_RUNNING)
			td_inventory_hold(&c->gpus, gpu, TD_NO_JOB);
		else
			td_inventory_remove_guest(&c->gpus, gpu, id);
		c->places[p].next = c->free_place;
		c->free_place = p;
	}
}

void td_antman_finish(struct td_antman_cluster *c, uint32_t id, uint64_t now_ns)
{
	struct td_antman_tenant *tenant;

	if (id >= c->jobs_max || c->jobs[id].state == TD_JOB_ABSENT)
		return;
	tenant = &c->tenants[c->jobs[id].tenant];
	if (tenant->reserving == id)
		unreserve(c, tenant);
	if (c->jobs[id].queued)
		dequeue(c, id);
	if (is_running(&c->jobs[id]))
		leave_gpus(c, id);
	if (c->jobs[id].state == TD_JOB_RUNNING) {
		tenant->used -= c->jobs[id].gpus;
		note_freed(tenant, c->jobs[id].gpus, now_ns);
	}
	c->jobs[id].state = TD_JOB_ABSENT;
}

void td_antman_set_load(struct td_antman_cluster *c, uint32_t gpu, uint32_t load_ppm)
{
	td_inventory_set_load(&c->gpus, gpu, load_ppm);
}

int td_antman_gpu_down(struct td_antman_cluster *c, uint32_t gpu)
{
	if (gpu >= c->gpus.gpu_count)
		return -EINVAL;
	if (c->gpus.holder[gpu] == TD_CLUSTER_ABSENT)
		return 0;
	if (c->gpus.holder[gpu] != TD_NO_JOB || c->gpus.guest_count[gpu])
		return -EBUSY;
	td_inventory_hold(&c->gpus, gpu, TD_CLUSTER_ABSENT);
	td_inventory_set_load(&c->gpus, gpu, TD_TANDEM_FULL_PPM);
	return 0;
}

int td_antman_gpu_up(struct td_antman_cluster *c, uint32_t gpu)
{
	if (gpu >= c->gpus.gpu_count)
		return -EINVAL;
	if (c->gpus.holder[gpu] != TD_CLUSTER_ABSENT)
		return 0;
	td_inventory_hold(&c->gpus, gpu, TD_NO_JOB);
	td_inventory_set_load(&c->gpus, gpu, 0);
	return 0;
}

static bool may_have(
	const struct td_antman_cluster *c, const uint32_t *gpus, uint32_t count, bool guest)
{
	for (uint32_t k = 0; k < count; k++) {
		if (gpus[k] >= c->gpus.gpu_count || c->gpus.holder[gpus[k]] == TD_CLUSTER_ABSENT)
			return false;
		if (guest ? c->gpus.guest_count[gpus[k]] == TD_GUESTS
			  : c->gpus.holder[gpus[k]] != TD_NO_JOB)
			return false;
		for (uint32_t other = 0; other < k; other++)
			if (gpus[other] == gpus[k])
				return false;
	}
	return true;
}

int td_antman_adopt(struct td_antman_cluster *c, uint32_t id,
	const struct td_antman_request *request, const uint32_t *gpus, bool guest, uint64_t now_ns)
{
	int r = td_antman_submit(c, id, request, now_ns);

	if (r)
		return r;
	if (!may_have(c, gpus, request->gpus, guest)) {
		td_antman_finish(c, id, now_ns);
		return -EBUSY;
	}
	memcpy(c->found, gpus, request->gpus * sizeof(*gpus));
	if (!guest) {
		start(c, &c->tenants[request->tenant], id);
		return 0;
	}
	settle_guest(c, id);
	return 0;
}
