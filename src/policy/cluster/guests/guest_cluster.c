/* The queues, the holders and the places of guest_cluster.h. The rules are in guest_rules.c. */
#include "policy/cluster/guests/guest_cluster.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define NONE   UINT32_MAX
#define PLACES (1 + TD_GUESTS) /* jobs on a GPU */

static size_t aligned(size_t bytes)
{
	return (bytes + 63) & ~(size_t)63;
}

static uint32_t rows_of(uint32_t gpus, uint32_t kinds)
{
	uint32_t rows = TD_GUEST_PAIRS(kinds);

	return rows < gpus ? rows : gpus;
}

static uint32_t units_of(uint32_t gpus, uint32_t jobs_max)
{
	return gpus > jobs_max ? gpus : jobs_max;
}

/* Takes the memory of one array, which is zeroed. memory NULL: counts the bytes alone. */
static void *carve(char *memory, size_t *used, size_t count, size_t size)
{
	char *here = memory ? memory + *used : NULL;

	*used += aligned(count * size);
	if (here)
		memset(here, 0, count * size);
	return here;
}

static void carve_matching(struct td_guest_cluster *c, char *memory, size_t *used, uint32_t gpus)
{
	uint32_t rows = rows_of(gpus, c->kinds), units = units_of(gpus, c->jobs_max);

	c->row_of = carve(memory, used, gpus, sizeof(*c->row_of));
	c->row_counts = carve(memory, used, rows, sizeof(*c->row_counts));
	c->row_pair = carve(memory, used, rows, sizeof(*c->row_pair));
	c->columns = carve(memory, used, c->kinds, sizeof(*c->columns));
	c->column_counts = carve(memory, used, c->kinds, sizeof(*c->column_counts));
	c->matched = carve(memory, used, units, sizeof(*c->matched));
	c->weights = carve(memory, used, (size_t)rows * c->kinds, sizeof(*c->weights));
	c->exchange = carve(memory, used, 1, sizeof(*c->exchange));
	c->match_bytes = aligned(td_match_bytes(rows, c->kinds, units));
	c->match_memory = carve(memory, used, 1, c->match_bytes);
}

/* Sets the arrays. Returns the bytes of all. */
static size_t carve_all(struct td_guest_cluster *c, char *memory, uint32_t nodes, uint32_t gpus)
{
	size_t used = aligned(td_inventory_bytes(nodes, gpus));

	c->jobs = carve(memory, &used, c->jobs_max, sizeof(*c->jobs));
	c->started = carve(memory, &used, c->jobs_max, sizeof(*c->started));
	c->places = carve(memory, &used, (size_t)gpus * PLACES, sizeof(*c->places));
	c->demands = carve(memory, &used, c->kinds, sizeof(*c->demands));
	c->failed = carve(memory, &used, c->kinds, sizeof(*c->failed));
	c->known = carve(memory, &used, (size_t)TD_GUEST_GPU_KINDS * c->kinds, sizeof(*c->known));
	c->gpu_kind = carve(memory, &used, gpus, sizeof(*c->gpu_kind));
	c->open = carve(memory, &used, gpus, sizeof(*c->open));
	c->open_on = carve(memory, &used, nodes, sizeof(*c->open_on));
	c->bytes = carve(memory, &used, gpus, sizeof(*c->bytes));
	c->is_open = carve(memory, &used, gpus, sizeof(*c->is_open));
	switch (c->params.rule) {
	case TD_GUEST_DCUDA:
		c->core = carve(memory, &used, gpus, sizeof(*c->core));
		c->memory = carve(memory, &used, gpus, sizeof(*c->memory));
		c->listed_core = carve(memory, &used, gpus, sizeof(*c->listed_core));
		c->listed_memory = carve(memory, &used, gpus, sizeof(*c->listed_memory));
		break;
	case TD_GUEST_MUXFLOW: carve_matching(c, memory, &used, gpus); break;
	case TD_GUEST_MUDI:
		c->devices = carve(memory, &used, gpus, sizeof(*c->devices));
		c->open_of = carve(memory, &used, TD_GUEST_PAIRS(c->kinds), sizeof(*c->open_of));
		c->listed_devices = carve(memory, &used, gpus, sizeof(*c->listed_devices));
		c->scores = carve(memory, &used, (size_t)c->kinds * TD_GUEST_PAIRS(c->kinds),
			sizeof(*c->scores));
		break;
	}
	return used;
}

size_t td_guest_cluster_bytes(
	uint32_t nodes, uint32_t gpus, uint32_t jobs_max, uint32_t kinds, enum td_guest_rule rule)
{
	struct td_guest_cluster c = {
		.params = {.rule = rule}, .jobs_max = jobs_max, .kinds = kinds};

	return carve_all(&c, NULL, nodes, gpus);
}

int td_guest_cluster_init(struct td_guest_cluster *c, void *memory, size_t bytes,
	const struct td_guest_params *params, const uint32_t *node_gpus, uint32_t nodes,
	uint64_t gpu_bytes, const uint32_t *quotas, uint32_t tenants, uint32_t jobs_max,
	uint32_t kinds)
{
	uint32_t gpus = 0;
	int r;

	for (uint32_t n = 0; n < nodes; n++)
		gpus += node_gpus[n];
	if (!kinds || !tenants || tenants > TD_TENANTS_MAX || !params->seed ||
		(params->rule == TD_GUEST_MUXFLOW && !params->match_ns))
		return -EINVAL;
	if (bytes < td_guest_cluster_bytes(nodes, gpus, jobs_max, kinds, params->rule))
		return -ENOMEM;
	*c = (struct td_guest_cluster){.params = *params,
		.kinds = kinds,
		.jobs_max = jobs_max,
		.gpu_bytes = gpu_bytes,
		.tenant_count = tenants,
		.holders = {NONE, NONE},
		.guests = {NONE, NONE},
		.random = params->seed};
	r = td_inventory_init(&c->gpus, memory, node_gpus, nodes, 0);
	if (r)
		return r;
	(void)carve_all(c, memory, nodes, gpus);
	memcpy(c->quota, quotas, tenants * sizeof(*quotas));
	for (uint32_t k = 0; k < kinds; k++)
		c->demands[k] = 1;
	for (uint32_t p = 0; p < gpus * PLACES; p++)
		c->places[p].next = p + 1 < gpus * PLACES ? p + 1 : NONE;
	for (size_t k = 0; c->scores && k < (size_t)kinds * TD_GUEST_PAIRS(kinds); k++)
		c->scores[k] = NAN;
	for (uint32_t g = 0; g < gpus; g++)
		td_guest_touch(c, g);
	return 0;
}

/* --- jobs --- */

static struct td_guest_queue *queue_of(struct td_guest_cluster *c, const struct td_guest_job *job)
{
	return job->is.holds ? &c->holders : &c->guests;
}

static void enqueue(struct td_guest_cluster *c, uint32_t id)
{
	struct td_guest_job *job = &c->jobs[id];
	struct td_guest_queue *queue = queue_of(c, job);

	job->runs = false;
	job->next = NONE;
	job->previous = queue->last;
	*(queue->last == NONE ? &queue->first : &c->jobs[queue->last].next) = id;
	queue->last = id;
	c->changed = true;
}

static void dequeue(struct td_guest_cluster *c, uint32_t id)
{
	const struct td_guest_job *job = &c->jobs[id];
	struct td_guest_queue *queue = queue_of(c, job);

	*(job->previous == NONE ? &queue->first : &c->jobs[job->previous].next) = job->next;
	*(job->next == NONE ? &queue->last : &c->jobs[job->next].previous) = job->previous;
}

int td_guest_cluster_submit(
	struct td_guest_cluster *c, uint32_t id, const struct td_guest_request *request)
{
	if (id >= c->jobs_max || c->jobs[id].is.gpus || request->kind >= c->kinds ||
		!request->gpus || request->gpus > TD_GANG_MAX ||
		request->gpus > c->gpus.gpu_count ||
		(request->holds && request->tenant >= c->tenant_count))
		return -EINVAL;
	if (request->holds && request->gpus > c->quota[request->tenant])
		return -EDQUOT;
	c->jobs[id] = (struct td_guest_job){.is = *request, .place = NONE};
	c->jobs[id].is.same_node = request->same_node && request->gpus > 1;
	if (request->pool >= TD_POOLS)
		c->jobs[id].is.pool = TD_ANYWHERE;
	enqueue(c, id);
	return 0;
}

uint32_t td_guest_cluster_gpus(const struct td_guest_cluster *c, uint32_t id, uint32_t *ret_gpus)
{
	uint32_t n = 0;

	if (id >= c->jobs_max || !c->jobs[id].is.gpus || !c->jobs[id].runs)
		return 0;
	for (uint32_t p = c->jobs[id].place; p != NONE; p = c->places[p].next)
		ret_gpus[n++] = c->places[p].gpu;
	return n;
}

static void start(struct td_guest_cluster *c, uint32_t id)
{
	struct td_guest_job *job = &c->jobs[id];

	dequeue(c, id);
	job->runs = true;
	job->place = NONE;
	for (uint32_t k = job->is.gpus; k--;) {
		uint32_t p = c->free_place;

		c->free_place = c->places[p].next;
		c->places[p] = (struct td_antman_place){c->found[k], job->place};
		job->place = p;
		if (job->is.holds)
			td_inventory_hold(&c->gpus, c->found[k], id);
		else
			td_inventory_add_guest(&c->gpus, c->found[k], id);
		td_guest_touch(c, c->found[k]);
	}
	if (job->is.holds)
		c->used[job->is.tenant] += job->is.gpus;
}

void td_guest_start(struct td_guest_cluster *c, uint32_t id)
{
	start(c, id);
	c->started[c->started_count++] = (struct td_guest_started){.job = id};
}

/* Takes a running job off its GPUs. */
static void vacate(struct td_guest_cluster *c, uint32_t id)
{
	struct td_guest_job *job = &c->jobs[id];

	while (job->place != NONE) {
		uint32_t p = job->place;

		if (job->is.holds)
			td_inventory_hold(&c->gpus, c->places[p].gpu, TD_NO_JOB);
		else
			td_inventory_remove_guest(&c->gpus, c->places[p].gpu, id);
		td_guest_touch(c, c->places[p].gpu);
		job->place = c->places[p].next;
		c->places[p].next = c->free_place;
		c->free_place = p;
	}
	if (job->is.holds)
		c->used[job->is.tenant] -= job->is.gpus;
	c->changed = true;
}

void td_guest_cluster_finish(struct td_guest_cluster *c, uint32_t id)
{
	if (id >= c->jobs_max || !c->jobs[id].is.gpus)
		return;
	if (c->jobs[id].runs)
		vacate(c, id);
	else
		dequeue(c, id);
	c->changed = true;
	c->jobs[id].is.gpus = 0;
}

void td_guest_cluster_requeue(struct td_guest_cluster *c, uint32_t id)
{
	if (id >= c->jobs_max || !c->jobs[id].is.gpus || !c->jobs[id].runs)
		return;
	vacate(c, id);
	enqueue(c, id);
}

static bool may_have(const struct td_guest_cluster *c, const struct td_guest_request *request,
	const uint32_t *gpus)
{
	const struct td_inventory *v = &c->gpus;

	for (uint32_t k = 0; k < request->gpus; k++) {
		uint32_t g = gpus[k];

		if (g >= v->gpu_count || v->holder[g] == TD_CLUSTER_ABSENT)
			return false;
		for (uint32_t other = 0; other < k; other++)
			if (gpus[other] == g)
				return false;
		if (request->holds ? v->holder[g] != TD_NO_JOB : v->guest_count[g] >= TD_GUESTS)
			return false;
	}
	return true;
}

int td_guest_cluster_adopt(struct td_guest_cluster *c, uint32_t id,
	const struct td_guest_request *request, const uint32_t *gpus)
{
	int r = td_guest_cluster_submit(c, id, request);

	if (r)
		return r;
	if (!may_have(c, request, gpus)) {
		td_guest_cluster_finish(c, id);
		return -EBUSY;
	}
	memcpy(c->found, gpus, request->gpus * sizeof(*gpus));
	start(c, id);
	return 0;
}

/* --- GPUs and knowledge --- */

int td_guest_cluster_gpu_down(struct td_guest_cluster *c, uint32_t gpu)
{
	struct td_inventory *v = &c->gpus;

	if (gpu >= v->gpu_count)
		return -EINVAL;
	if (v->holder[gpu] == TD_CLUSTER_ABSENT)
		return 0;
	if (v->holder[gpu] != TD_NO_JOB || v->guest_count[gpu])
		return -EBUSY;
	td_inventory_hold(v, gpu, TD_CLUSTER_ABSENT);
	td_guest_touch(c, gpu);
	return 0;
}

int td_guest_cluster_gpu_up(struct td_guest_cluster *c, uint32_t gpu)
{
	struct td_inventory *v = &c->gpus;

	if (gpu >= v->gpu_count)
		return -EINVAL;
	if (v->holder[gpu] == TD_CLUSTER_ABSENT)
		td_inventory_hold(v, gpu, TD_NO_JOB);
	td_guest_touch(c, gpu);
	c->changed = true;
	return 0;
}

void td_guest_cluster_bar(struct td_guest_cluster *c, uint32_t gpu, enum td_inventory_bar bar)
{
	if (gpu >= c->gpus.gpu_count)
		return;
	td_inventory_bar(&c->gpus, gpu, bar);
	td_guest_touch(c, gpu);
	c->changed = true;
}

void td_guest_cluster_demand(struct td_guest_cluster *c, uint32_t kind, double demand)
{
	if (kind >= c->kinds || !(demand > 0))
		return;
	c->demands[kind] = demand;
	for (uint32_t g = 0; c->core && g < c->gpus.gpu_count; g++)
		td_guest_touch(c, g);
}

void td_guest_cluster_gpu_kind(struct td_guest_cluster *c, uint32_t gpu, uint32_t gpu_kind)
{
	if (gpu >= c->gpus.gpu_count || gpu_kind >= TD_GUEST_GPU_KINDS ||
		c->gpu_kind[gpu] == gpu_kind)
		return;
	c->gpu_kind[gpu] = (uint8_t)gpu_kind;
	td_guest_touch(c, gpu);
	c->changed = true;
}

void td_guest_cluster_know(struct td_guest_cluster *c, uint32_t gpu_kind, uint32_t kind,
	const struct td_guest_known *known)
{
	if (gpu_kind >= TD_GUEST_GPU_KINDS || kind >= c->kinds)
		return;
	c->known[(size_t)gpu_kind * c->kinds + kind] = *known;
	for (uint32_t k = 0; c->scores && k < c->kinds; k++) {
		double *scores = c->scores + gpu_kind * (c->kinds + 1);

		scores[(size_t)k * TD_GUEST_PAIRS(c->kinds) + kind] = NAN; /* as a holder */
		scores[(size_t)kind * TD_GUEST_PAIRS(c->kinds) + k] = NAN; /* as a guest */
	}
	c->changed = true;
}

void td_guest_cluster_look_again(struct td_guest_cluster *c)
{
	c->changed = true;
}

/* --- decisions --- */

/* Finds free GPUs with room for a holder beside the guests there. */
static bool find_roomy(struct td_guest_cluster *c, const struct td_guest_job *job)
{
	const struct td_inventory *v = &c->gpus;
	uint32_t n = 0;

	for (uint32_t g = 0; g < v->gpu_count && n < job->is.gpus; g++) {
		if (job->is.same_node && n && v->node[g] != v->node[c->found[0]])
			n = 0;
		if (v->holder[g] == TD_NO_JOB && v->barred[g] != TD_BAR_ALL &&
			td_guest_may_use(c, job, g))
			c->found[n++] = g;
	}
	return n == job->is.gpus;
}

/* Finds free GPUs for a holder. Returns false if it has to wait. */
static bool find_free(struct td_guest_cluster *c, uint32_t id)
{
	const struct td_guest_request *is = &c->jobs[id].is;
	/* After an adoption a tenant may hold more than its quota. */
	bool may = c->used[is->tenant] + is->gpus <= c->quota[is->tenant];
	bool found = may && td_inventory_find_free_in(&c->gpus, id, is->gpus, is->same_node,
				    is->pool, c->found) == is->gpus;

	for (uint32_t k = 0; found && k < is->gpus; k++)
		found = td_guest_may_use(c, &c->jobs[id], c->found[k]);
	return found || (may && find_roomy(c, &c->jobs[id]));
}

static void start_holders(struct td_guest_cluster *c)
{
	bool waits[TD_TENANTS_MAX] = {false};

	for (uint32_t id = c->holders.first, next; id != NONE; id = next) {
		uint32_t tenant = c->jobs[id].is.tenant;

		next = c->jobs[id].next;
		if (waits[tenant])
			continue;
		if (find_free(c, id))
			td_guest_start(c, id);
		else
			waits[tenant] |= td_guest_could_start(c, &c->jobs[id]);
	}
}

uint32_t td_guest_cluster_step(struct td_guest_cluster *c, uint64_t now_ns,
	struct td_guest_started *ret_jobs, uint32_t room)
{
	uint32_t n = 0;

	if (c->started_next == c->started_count) {
		c->started_next = c->started_count = 0;
		if (c->changed)
			start_holders(c);
		td_guest_start_guests(c, now_ns);
		c->changed = false;
	}
	while (n < room && c->started_next < c->started_count)
		ret_jobs[n++] = c->started[c->started_next++];
	return n;
}

enum td_guest_wait td_guest_cluster_waits(const struct td_guest_cluster *c, uint32_t id)
{
	const struct td_guest_request *is = &c->jobs[id].is;

	if (is->holds || c->params.rule == TD_GUEST_DCUDA)
		return TD_GUEST_WAITS_FOR_PLACE;
	if (!(c->params.rule == TD_GUEST_MUXFLOW && is->gpus > 1) &&
		!td_guest_is_known(c, is->kind))
		return TD_GUEST_WAITS_FOR_PROFILE;
	return c->params.rule == TD_GUEST_MUXFLOW ? TD_GUEST_WAITS_FOR_MATCHING
						  : TD_GUEST_WAITS_FOR_PLACE;
}
