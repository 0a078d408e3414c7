/*
 * Predicts how fast a guest of tandem's cluster would be on each GPU, and places it; see
 * tandem_cluster.h.
 */
#include "policy/cluster/tandem_places.h"

#include <math.h>

#define NONE        UINT32_MAX
#define LOOK_ALL    256u /* all GPUs are considered in a cluster of up to this many */
#define FEW         8u
#define NODES_TRIED 16u /* nodes considered for a job that needs one node */
#define GANG_USUAL  16u /* candidates are searched at once for all jobs of up to this many GPUs */

/* --- prediction --- */

/*
 * The jobs beside a guest. cost: sum of the costs of pairs that were observed. asked: the GPU use
 * of the other jobs and of the guest itself, where 1 is a GPU.
 */
struct crowd {
	double cost, asked;
};

static void count_in(
	const struct td_tandem_cluster *c, uint32_t kind, uint32_t other, struct crowd *crowd)
{
	float seen = c->beside[(size_t)kind * c->kinds + other];

	if (seen > 0)
		crowd->cost += 1 / (double)seen - 1;
	else
		crowd->asked += c->demands[other];
}

/*
 * Returns the speed of a kind as the only guest of a holder: what the holder leaves, or as
 * observed.
 */
static double held_speed(const struct td_tandem_cluster *c, uint32_t kind, uint32_t holder)
{
	float seen = c->guarded[(size_t)kind * c->kinds + holder];

	if (seen > 0)
		return (double)seen;
	return fmin(1, fmax(0.02, (1 - c->demands[holder]) / c->demands[kind]));
}

/* Returns the mean room over the window, weighted by age. */
double td_tandem_mean_room(const struct td_tandem_cluster *c, uint32_t gpu)
{
	const struct td_tandem_room *room = &c->rooms[gpu];
	double passed = (double)(c->now_ns - room->since_ns);

	if (room->since_ns == TD_TANDEM_NEVER)
		return room->now;
	return room->now + (room->mean - room->now) * exp(-passed / (double)c->params.window_ns);
}

/* Returns the integral of a GPU's room over time, up to now. */
double td_tandem_room_sum(const struct td_tandem_cluster *c, uint32_t gpu)
{
	const struct td_tandem_room *room = &c->rooms[gpu];

	if (room->since_ns == TD_TANDEM_NEVER)
		return 0;
	return room->sum + room->now * (double)(c->now_ns - room->since_ns);
}

/* Returns the jobs on a GPU except one. */
struct td_tandem_company td_tandem_company(
	const struct td_tandem_cluster *c, uint32_t gpu, uint32_t but, enum td_tandem_judge judge)
{
	const struct td_inventory *v = &c->gpus;
	struct td_tandem_company here = {.holder = NONE, .room = 1};

	if (v->holder[gpu] == TD_CLUSTER_SERVICE) {
		here.holder = c->service_kind[gpu];
		here.bytes = c->service_bytes[gpu];
		here.room = judge == TD_BY_MEAN ? td_tandem_mean_room(c, gpu) : c->rooms[gpu].now;
	} else if (v->holder[gpu] != TD_NO_JOB && v->holder[gpu] != but &&
		   v->holder[gpu] != TD_CLUSTER_ABSENT) {
		here.holder = c->jobs[v->holder[gpu]].kind;
		here.bytes = c->jobs[v->holder[gpu]].bytes;
	}
	for (uint32_t k = 0; k < v->guest_count[gpu]; k++) {
		uint32_t job = v->guest[(size_t)gpu * TD_GUESTS + k];

		if (job == but)
			continue;
		here.kinds[here.count++] = c->jobs[job].kind;
		here.bytes += c->jobs[job].bytes;
	}
	return here;
}

/*
 * Returns the speed of a guest of this kind beside `here` and one job of kind `more`, unless that
 * is NONE. `self` is the guest's index in `here`, or NONE if it is not among them.
 */
double td_tandem_speed(const struct td_tandem_cluster *c, const struct td_tandem_company *here,
	uint32_t kind, uint32_t self, uint32_t more)
{
	uint32_t guests = here->count + (self == NONE) + (more != NONE);
	struct crowd crowd = {0, c->demands[kind]};

	if (here->holder != NONE)
		return fmin(1, here->room * held_speed(c, kind, here->holder)) / guests;
	for (uint32_t k = 0; k < here->count; k++)
		if (k != self)
			count_in(c, kind, here->kinds[k], &crowd);
	if (more != NONE)
		count_in(c, kind, more, &crowd);
	return 1 / (fmax(1, crowd.asked) + crowd.cost);
}

/*
 * Writes the speed of a guest that joins this GPU, and the gain of all jobs by it. Returns false if
 * it may not run there, or the memory does not suffice.
 */
bool td_tandem_weigh(const struct td_tandem_cluster *c, uint32_t gpu, uint32_t id, uint32_t but,
	enum td_tandem_judge judge, struct td_tandem_choice *ret)
{
	const struct td_tandem_job *job = &c->jobs[id];
	struct td_tandem_company here = td_tandem_company(c, gpu, but, judge);
	double own, loss = 0;

	if (here.count >= c->params.together || c->gpus.holder[gpu] == TD_CLUSTER_ABSENT ||
		c->gpus.barred[gpu] != TD_BAR_NOTHING ||
		!td_inventory_is_in(&c->gpus, gpu, job->pool))
		return false;
	if (c->gpu_bytes && here.bytes + job->bytes > c->gpu_bytes &&
		(here.count || here.holder != NONE))
		return false;
	own = td_tandem_speed(c, &here, job->kind, NONE, NONE);
	if (here.holder != NONE && own < c->params.held_min)
		return false;
	for (uint32_t k = 0; k < here.count; k++)
		loss += td_tandem_speed(c, &here, here.kinds[k], k, NONE) -
			td_tandem_speed(c, &here, here.kinds[k], k, job->kind);
	if (here.holder == NONE && here.count && own - loss < c->params.share_min)
		return false;
	*ret = (struct td_tandem_choice){.score = own - loss, .own = own, .gpu = gpu};
	return true;
}

static bool is_idle(const struct td_inventory *v, uint32_t gpu)
{
	return v->holder[gpu] == TD_NO_JOB && !v->guest_count[gpu];
}

/*
 * Returns a small penalty that decides among equals. It avoids reserved GPUs, and prefers nodes
 * with few free GPUs so that gangs find whole nodes.
 */
static double tie_break(const struct td_inventory *v, uint32_t gpu)
{
	return 0.001 * v->free_count[v->node[gpu]] + (v->reserved[gpu] != TD_NO_JOB ? 0.05 : 0);
}

/* --- places --- */

void td_tandem_note_load(struct td_tandem_cluster *c, uint32_t gpu)
{
	struct td_tandem_company here = td_tandem_company(c, gpu, NONE, TD_BY_NOW);
	double load = here.holder == NONE ? 0 : c->demands[here.holder] + 1 - here.room;

	for (uint32_t k = 0; k < here.count; k++)
		load += c->demands[here.kinds[k]];
	td_inventory_set_load(&c->gpus, gpu, (uint32_t)(fmin(load, 10) * 1e6));
}

/*
 * Finds the least loaded GPUs, TD_TANDEM_CANDIDATES and `wanted` more, or as many as there are.
 * Searches again only after some load has changed.
 */
static uint32_t find_candidates(struct td_tandem_cluster *c, uint32_t wanted, uint32_t pool)
{
	struct td_inventory *v = &c->gpus;
	uint32_t count = TD_TANDEM_CANDIDATES + wanted;

	if (c->found.changes != v->changes || c->found.asked < count || c->found.pool != pool) {
		c->found.asked = wanted < GANG_USUAL ? TD_TANDEM_CANDIDATES + GANG_USUAL : count;
		c->found.pool = pool;
		c->found.count = td_inventory_find_least_loaded_in(
			v, c->found.asked, 10000000u, pool, c->found.gpus);
		c->found.changes = v->changes;
	}
	return count < c->found.count ? count : c->found.count;
}

/* Parameters of one choice of GPUs. */
struct wish {
	uint32_t id;
	bool idle_too;
	enum td_tandem_judge judge;
	double floor;
};

/*
 * Puts the best of `count` GPUs into c->choices. gpus NULL: considers GPUs 0 to count - 1. Returns
 * how many were found.
 */
static uint32_t choose_among(
	struct td_tandem_cluster *c, const struct wish *wish, const uint32_t *gpus, uint32_t count)
{
	const struct td_inventory *v = &c->gpus;
	uint32_t wanted = c->jobs[wish->id].gpus, n = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t gpu = gpus ? gpus[i] : i, at;
		struct td_tandem_choice choice;

		if ((!wish->idle_too && is_idle(v, gpu)) ||
			!td_tandem_weigh(c, gpu, wish->id, wish->id, wish->judge, &choice) ||
			choice.score < wish->floor)
			continue;
		choice.score -= tie_break(v, gpu);
		if (n == wanted && !(choice.score > c->choices[n - 1].score))
			continue;
		for (at = n < wanted ? n++ : n - 1; at && choice.score > c->choices[at - 1].score;
			at--)
			c->choices[at] = c->choices[at - 1];
		c->choices[at] = choice;
	}
	return n;
}

/* Chooses like choose_among(), on the one node where the sum of the scores is best. */
static uint32_t choose_node(struct td_tandem_cluster *c, const struct wish *wish)
{
	const struct td_inventory *v = &c->gpus;
	uint32_t wanted = c->jobs[wish->id].gpus, gpus[TD_NODE_GPUS_MAX];
	uint32_t nodes[NODES_TRIED], count = 0, best = NONE, candidates;
	double best_sum = 0;

	candidates = find_candidates(c, wanted, c->jobs[wish->id].pool);
	for (uint32_t i = 0; i < candidates && count < NODES_TRIED; i++) {
		uint32_t node = v->node[c->found.gpus[i]], k = 0;

		while (k < count && nodes[k] != node)
			k++;
		if (k == count)
			nodes[count++] = node;
	}
	for (uint32_t i = 0; i <= count; i++) {
		uint32_t node = i < count ? nodes[i] : best, n = 0;
		double sum = 0;

		if (node == NONE)
			return 0;
		for (uint32_t g = v->first_gpu[node]; g < v->first_gpu[node + 1]; g++)
			gpus[n++] = g;
		n = choose_among(c, wish, gpus, n);
		for (uint32_t k = 0; k < n; k++)
			sum += c->choices[k].score;
		if (i == count)
			return n;
		if (n == wanted && (best == NONE || sum > best_sum)) {
			best = node;
			best_sum = sum;
		}
	}
	return 0;
}

uint32_t td_tandem_choose(struct td_tandem_cluster *c, uint32_t id, bool idle_too,
	enum td_tandem_judge judge, double floor)
{
	struct td_inventory *v = &c->gpus;
	const struct wish wish = {id, idle_too, judge, floor};
	uint32_t wanted = c->jobs[id].gpus, count;

	if (c->jobs[id].same_node)
		return choose_node(c, &wish);
	if (v->gpu_count <= LOOK_ALL)
		return choose_among(c, &wish, NULL, v->gpu_count);
	/*
	 * Idle GPUs are the least loaded, and only the tie-break by node makes one better than
	 * another.
	 */
	if (idle_too && v->idle >= wanted + FEW) {
		uint32_t few[TD_GANG_MAX + FEW];

		count = td_inventory_find_least_loaded_in(
			v, wanted + FEW, 10000000u, c->jobs[id].pool, few);
		if (choose_among(c, &wish, few, count) == wanted)
			return wanted;
	}
	count = find_candidates(c, wanted, c->jobs[id].pool);
	return choose_among(c, &wish, c->found.gpus, count);
}

void td_tandem_settle(struct td_tandem_cluster *c, uint32_t id, uint64_t now_ns)
{
	struct td_tandem_job *job = &c->jobs[id];

	job->place = NONE;
	for (uint32_t k = job->gpus; k--;) {
		uint32_t p = c->free_place, gpu = c->choices[k].gpu;

		c->free_place = c->places[p].next;
		c->places[p] = (struct td_antman_place){gpu, job->place};
		job->place = p;
		if (job->guest)
			td_inventory_add_guest(&c->gpus, gpu, id);
		else
			td_inventory_hold(&c->gpus, gpu, id);
		td_tandem_note_load(c, gpu);
	}
	job->since_ns = now_ns;
}

void td_tandem_vacate(struct td_tandem_cluster *c, uint32_t id)
{
	struct td_tandem_job *job = &c->jobs[id];

	for (uint32_t p = job->place, next; p != NONE; p = next) {
		uint32_t gpu = c->places[p].gpu;

		next = c->places[p].next;
		if (job->guest)
			td_inventory_remove_guest(&c->gpus, gpu, id);
		else
			td_inventory_hold(&c->gpus, gpu, TD_NO_JOB);
		td_tandem_note_load(c, gpu);
		c->places[p].next = c->free_place;
		c->free_place = p;
	}
	job->place = NONE;
	c->freed++;
}
