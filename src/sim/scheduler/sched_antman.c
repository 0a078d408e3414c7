/*
 * AntMan: Algorithm 1 (antman_cluster.h) places jobs, and the local coordinator's duty (duty.h)
 * guards the guaranteed job on each GPU. Guaranteed jobs consume their tenant's quota, all others
 * are opportunistic. Traces have no quotas, so each tenant's quota is the whole cluster.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/time.h"
#include "policy/cluster/antman_cluster.h"
#include "sim/scheduler/schedulers.h"

#define ACTIONS 64u
#define SERVICE (UINT32_MAX - 1) /* holder of a GPU that has a service */
/*
 * The slack of a guaranteed job's mini-batch. The paper gives no limit for its coordinator. It
 * reports that none of 10,000 jobs was slowed by more than 4 % (Table 5).
 */
#define SLACK_PPM 40000
/*
 * A move costs this much in the experiments, so a moved job has made up for it before the next
 * move.
 */
#define MOVE_EVERY_NS (60 * TD_NS_PER_S)

struct antman {
	struct td_antman_cluster cluster;
	void *memory;
	bool changed;
	uint64_t decided_ns, moved_ns;
	uint32_t *guests,
		/*
		 * the number of guests; they are listed in the order of their starts, for the
		 * variant that moves them
		 */
		guest_count;
};

static int init(struct td_cluster *cluster)
{
	struct antman *state = calloc(1, sizeof(*state));
	uint32_t quotas[TD_TENANTS_MAX];
	size_t bytes = td_antman_bytes(cluster->node_count, cluster->gpu_count, cluster->job_count);
	int r;

	cluster->sched_state = state;
	if (!state)
		return -ENOMEM;
	for (uint32_t t = 0; t < TD_TENANTS_MAX; t++)
		quotas[t] = cluster->gpu_count;
	state->memory = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
	state->guests = calloc(cluster->job_count, sizeof(*state->guests));
	if (!state->memory || !state->guests)
		return -ENOMEM;
	r = td_antman_init(&state->cluster, state->memory, bytes, &td_antman_default,
		cluster->node_gpus, cluster->node_count, quotas, TD_TENANTS_MAX,
		cluster->job_count);
	for (uint32_t s = 0; !r && cluster->services && s < cluster->services->count; s++)
		td_inventory_hold(&state->cluster.gpus, cluster->services->list[s].gpu, SERVICE);
	return r;
}

static void deinit(struct td_cluster *cluster)
{
	struct antman *state = cluster->sched_state;

	free(state->memory);
	free(state->guests);
	free(state);
}

static void arrive(struct td_cluster *cluster, uint32_t index)
{
	struct antman *state = cluster->sched_state;
	const struct td_sim_job *job = &cluster->jobs[index];
	struct td_antman_request request = {.tenant = job->tenant % TD_TENANTS_MAX,
		.gpus = job->gpus,
		.kind = job->class == TD_CLASS_GUARANTEED ? TD_JOB_GUARANTEED
							  : TD_JOB_OPPORTUNISTIC};

	if (td_antman_submit(&state->cluster, index, &request, cluster->now_ns))
		td_cluster_fail(cluster, index);
	state->changed = true;
}

static void antman_finish(struct td_cluster *cluster, uint32_t job)
{
	struct antman *state = cluster->sched_state;

	td_antman_finish(&state->cluster, job, cluster->now_ns);
	state->changed = true;
}

/*
 * A GPU that can take guests again is reported to waiting jobs at once, whether it had been too
 * busy or had a job that was not measured yet. Other changes wait for the next tick.
 */
static void load(struct td_cluster *cluster, uint32_t gpu)
{
	struct antman *state = cluster->sched_state;
	uint32_t before = state->cluster.gpus.below;

	td_antman_set_load(
		&state->cluster, gpu, (uint32_t)(td_cluster_load(cluster, gpu) * TD_PPM));
	state->changed |= state->cluster.gpus.below > before;
}

static void carry_out(struct td_cluster *cluster, const struct td_antman_action *action)
{
	struct antman *state = cluster->sched_state;
	uint32_t gpus[TD_GANG_MAX];

	if (action->verb == TD_ANTMAN_UPGRADE) {
		td_cluster_upgrade(cluster, action->job);
		return;
	}
	if (action->verb == TD_ANTMAN_START_OPPORTUNISTIC)
		state->guests[state->guest_count++] = action->job;
	(void)td_antman_gpus(&state->cluster, action->job, gpus);
	td_cluster_start(cluster, action->job, gpus, action->verb == TD_ANTMAN_START_OPPORTUNISTIC);
}

static void antman_decide(struct td_cluster *cluster)
{
	struct antman *state = cluster->sched_state;
	struct td_antman_action actions[ACTIONS];
	uint32_t count;

	if (!state->changed && cluster->now_ns - state->decided_ns < cluster->sched->tick_ns)
		return;
	state->changed = false;
	state->decided_ns = cluster->now_ns;
	do {
		count = td_antman_step(&state->cluster, cluster->now_ns, actions, ACTIONS);
		for (uint32_t a = 0; a < count; a++)
			carry_out(cluster, &actions[a]);
	} while (count == ACTIONS);
}

/* --- the variant that moves guests, which AntMan does not --- */

static bool has_company(const struct td_antman_cluster *c, uint32_t job)
{
	for (uint32_t p = c->jobs[job].place; p != UINT32_MAX; p = c->places[p].next) {
		uint32_t gpu = c->places[p].gpu;

		if (c->gpus.holder[gpu] != TD_NO_JOB || c->gpus.guest_count[gpu] > 1)
			return true;
	}
	return false;
}

/* Finds GPUs that no job has and none waits for. Returns false if there are too few. */
static bool find_empty(const struct td_antman_cluster *c, uint32_t count, uint32_t *ret_gpus)
{
	if (td_inventory_find_free(&c->gpus, TD_NO_JOB, count, false, ret_gpus) < count)
		return false;
	for (uint32_t k = 0; k < count; k++)
		if (c->gpus.guest_count[ret_gpus[k]])
			return false;
	return true;
}

static void move(struct td_cluster *cluster, uint32_t job, const uint32_t *gpus)
{
	struct antman *state = cluster->sched_state;
	struct td_antman_cluster *c = &state->cluster;
	uint32_t k = 0;

	for (uint32_t p = c->jobs[job].place; p != UINT32_MAX; p = c->places[p].next, k++) {
		td_inventory_remove_guest(&c->gpus, c->places[p].gpu, job);
		c->places[p].gpu = gpus[k];
		td_inventory_add_guest(&c->gpus, gpus[k], job);
	}
	td_cluster_move(cluster, job, gpus, cluster->options.costs.restart_s);
	state->changed = true;
}

/*
 * Moves guests that share a GPU to GPUs that Algorithm 1 leaves empty, each with all of its GPUs,
 * the earliest started first.
 */
static void decide_and_move(struct td_cluster *cluster)
{
	struct antman *state = cluster->sched_state;
	uint32_t gpus[TD_GANG_MAX], kept = 0, too_many = UINT32_MAX;

	antman_decide(cluster);
	if (cluster->now_ns - state->moved_ns < MOVE_EVERY_NS)
		return;
	state->moved_ns = cluster->now_ns;
	for (uint32_t i = 0; i < state->guest_count; i++) {
		uint32_t job = state->guests[i], count = cluster->jobs[job].gpus;

		if (state->cluster.jobs[job].state != TD_JOB_OPPORTUNISTIC_RUNNING)
			continue;
		state->guests[kept++] = job;
		if (count >= too_many || !has_company(&state->cluster, job))
			continue;
		if (find_empty(&state->cluster, count, gpus))
			move(cluster, job, gpus);
		else
			/* GPUs that a move leaves empty are found at the next call. */
			too_many = count;
	}
	state->guest_count = kept;
}

/*
 * Finds the duty at which the service's step is 4 % longer than alone, by bisection. AntMan treats
 * a service as a guaranteed job with a batch as its step, and its coordinator settles there.
 */
static bool tune(struct td_cluster *cluster, uint32_t index, uint32_t round)
{
	struct td_service *service = &cluster->services->list[index];
	double step = ldexp(0.5, -(int)round);

	if (!round) {
		service->split = (struct td_split){
			.batch = td_service_usual_batch(
				&cluster->services->kinds[service->kind], service->seen.rate_per_s),
			.service_share = 1,
			.guest_share = 1,
			.guest_duty = 0.5};
		return cluster->gpus[service->gpu].count > 0;
	}
	service->split.guest_duty +=
		service->seen.slowdown > 1 + SLACK_PPM / 1e6 ? -step / 2 : step / 2;
	service->split.guest_duty = fmax(0.02, service->split.guest_duty);
	return round < 7;
}

const struct td_sched td_sched_antman = {
	.name = "antman",
	.summary = "guaranteed jobs as under quota, the others beside them for a share of the time",
	.guards = true,
	.slack_ppm = SLACK_PPM,
	.tick_ns = 10 * TD_NS_PER_S,
	.init = init,
	.deinit = deinit,
	.arrive = arrive,
	.finish = antman_finish,
	.load = load,
	.decide = antman_decide,
	.tune = tune,
	.round_s = 1,
};

const struct td_sched td_sched_antman_moving = {
	.name = "antman with moves",
	.summary = "antman, whose guests go to GPUs that nobody has",
	.guards = true,
	.slack_ppm = SLACK_PPM,
	.tick_ns = 10 * TD_NS_PER_S,
	.init = init,
	.deinit = deinit,
	.arrive = arrive,
	.finish = antman_finish,
	.load = load,
	.decide = decide_and_move,
};
