/*
 * Finds the optimum of small cases. At each arrival and end it tries all ways to put the first
 * waiting jobs on GPUs with room (baselines.h), by the truth: the least sum of the newcomers' loss
 * of speed and the loss of the jobs there. It is a bound for other schedulers on the same few jobs,
 * greedy in time, and no system: no policy knows these speeds.
 *
 * At most 8 GPUs with two jobs each. Jobs of one GPU share, gangs take whole GPUs when there are
 * enough, first come first served.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "policy/cluster/baselines.h"
#include "sim/scheduler/schedulers.h"

#define GPUS_MAX 8u
#define TOGETHER 2u
#define AT_ONCE  5u /* jobs that are placed together */

struct optimum {
	uint32_t *queue, head, tail;
	uint32_t taken[GPUS_MAX];
	bool whole[GPUS_MAX]; /* the GPU belongs to a gang */
};

static int init(struct td_cluster *cluster)
{
	struct optimum *state;

	if (cluster->gpu_count > GPUS_MAX)
		return -E2BIG;
	state = calloc(1, sizeof(*state));
	cluster->sched_state = state;
	if (!state)
		return -ENOMEM;
	state->queue = calloc(cluster->job_count, sizeof(*state->queue));
	return state->queue ? 0 : -ENOMEM;
}

static void deinit(struct td_cluster *cluster)
{
	struct optimum *state = cluster->sched_state;

	free(state->queue);
	free(state);
}

static void arrive(struct td_cluster *cluster, uint32_t job)
{
	struct optimum *state = cluster->sched_state;

	state->queue[state->tail++] = job;
}

static void optimum_finish(struct td_cluster *cluster, uint32_t index)
{
	struct optimum *state = cluster->sched_state;
	const struct td_sim_job *job = &cluster->jobs[index];

	for (uint32_t k = 0; k < job->gpus; k++) {
		uint32_t gpu = cluster->places[job->place + k];

		state->taken[gpu]--;
		state->whole[gpu] = false;
	}
}

/*
 * Returns the speed that a job on this GPU and the jobs there lose together; INFINITY: no room, or
 * too little memory.
 */
static double cost_of(const struct td_cluster *cluster, uint32_t index, uint32_t at)
{
	const struct optimum *state = cluster->sched_state;
	const struct td_sim_job *job = &cluster->jobs[index], *other;
	const struct td_sim_gpu *gpu = &cluster->gpus[at];
	struct td_contender pair[2] = {cluster->profiles->profiles[job->profile].contender};
	double speeds[2];

	if (state->taken[at] >= TOGETHER || state->whole[at])
		return INFINITY;
	if (!gpu->count)
		return 0;
	other = &cluster->jobs[gpu->jobs[0]];
	if (gpu->memory_bytes && job->memory_bytes + other->memory_bytes > gpu->memory_bytes)
		return INFINITY;
	pair[1] = cluster->profiles->profiles[other->profile].contender;
	td_contention_speeds(&cluster->options.contention, pair, 2, speeds);
	return 2 - speeds[0] - speeds[1];
}

static bool start_gang(struct td_cluster *cluster, uint32_t index)
{
	struct optimum *state = cluster->sched_state;
	uint32_t gpus[GPUS_MAX], n = 0;

	for (uint32_t g = 0; g < cluster->gpu_count && n < cluster->jobs[index].gpus; g++)
		if (!state->taken[g])
			gpus[n++] = g;
	if (n < cluster->jobs[index].gpus)
		return false;
	for (uint32_t k = 0; k < n; k++) {
		state->taken[gpus[k]] = 1;
		state->whole[gpus[k]] = true;
	}
	td_cluster_start(cluster, index, gpus, true);
	return true;
}

/*
 * Starts the first waiting jobs that need one GPU, as many as find room. At most one of them goes
 * to each GPU at a time: only then the cost of all is the sum of their costs.
 */
static uint32_t start_singles(struct td_cluster *cluster)
{
	struct optimum *state = cluster->sched_state;
	double costs[AT_ONCE * GPUS_MAX];
	uint32_t n = 0, devices[AT_ONCE];

	while (n < AT_ONCE && state->head + n < state->tail &&
		cluster->jobs[state->queue[state->head + n]].gpus == 1)
		n++;
	for (; n; n--) {
		for (uint32_t t = 0; t < n; t++)
			for (uint32_t g = 0; g < cluster->gpu_count; g++)
				costs[t * cluster->gpu_count + g] =
					cost_of(cluster, state->queue[state->head + t], g);
		if (td_optimum(costs, n, cluster->gpu_count, 1, devices) < INFINITY)
			break;
	}
	for (uint32_t t = 0; t < n; t++) {
		state->taken[devices[t]]++;
		td_cluster_start(cluster, state->queue[state->head + t], &devices[t], true);
	}
	return n;
}

static void optimum_decide(struct td_cluster *cluster)
{
	struct optimum *state = cluster->sched_state;

	while (state->head < state->tail) {
		uint32_t index = state->queue[state->head], started = 1;

		if (cluster->jobs[index].gpus > 1) {
			if (!start_gang(cluster, index))
				return;
		} else {
			started = start_singles(cluster);
		}
		if (!started)
			return;
		state->head += started;
	}
}

const struct td_sched td_sched_optimum = {
	.name = "optimum",
	.summary = "all ways tried by the truth, for at most 8 GPUs: a bound, no system",
	.knows_truth = true,
	.init = init,
	.deinit = deinit,
	.arrive = arrive,
	.finish = optimum_finish,
	.decide = optimum_decide,
};
