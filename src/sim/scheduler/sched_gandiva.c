/*
 * Gandiva's packing, as AntMan describes it: "greedily schedules jobs to the GPUs with lowest GPU
 * utilization and sufficient GPU memory", by profiles (baselines.h). First come first served; up to
 * two jobs on a GPU, as in Gandiva; no job is protected.
 */
#include <errno.h>
#include <stdlib.h>

#include "policy/cluster/baselines.h"
#include "sim/scheduler/schedulers.h"

#define TOGETHER 2u

struct gandiva {
	struct td_pack_gpu *gpus;
	uint32_t *found, *queue, head, tail;
};

static int init(struct td_cluster *cluster)
{
	struct gandiva *state = calloc(1, sizeof(*state));

	cluster->sched_state = state;
	if (!state)
		return -ENOMEM;
	state->gpus = calloc(cluster->gpu_count, sizeof(*state->gpus));
	state->found = calloc(cluster->gpu_count, sizeof(uint32_t));
	state->queue = calloc(cluster->job_count, sizeof(uint32_t));
	return state->gpus && state->found && state->queue ? 0 : -ENOMEM;
}

static void deinit(struct td_cluster *cluster)
{
	struct gandiva *state = cluster->sched_state;

	free(state->gpus);
	free(state->found);
	free(state->queue);
	free(state);
}

static void arrive(struct td_cluster *cluster, uint32_t job)
{
	struct gandiva *state = cluster->sched_state;

	state->queue[state->tail++] = job;
}

static void gandiva_finish(struct td_cluster *cluster, uint32_t job)
{
	(void)cluster;
	(void)job;
}

/* Lists the GPUs. A full GPU is listed with no free memory, so that no job fits. */
static void list_gpus(const struct td_cluster *cluster, struct gandiva *state)
{
	for (uint32_t g = 0; g < cluster->gpu_count; g++) {
		const struct td_sim_gpu *gpu = &cluster->gpus[g];
		uint64_t used = 0;
		double utilisation = 0;

		for (uint32_t i = 0; i < gpu->count; i++) {
			const struct td_sim_job *job = &cluster->jobs[gpu->jobs[i]];

			used += job->memory_bytes;
			utilisation += cluster->profiles->profiles[job->profile].told_demand;
		}
		state->gpus[g].utilisation = utilisation;
		state->gpus[g].free_bytes = used < gpu->memory_bytes ? gpu->memory_bytes - used : 0;
		if (gpu->count >= TOGETHER || gpu->service != TD_SERVICE_NONE)
			state->gpus[g].free_bytes = 0;
		else if (!gpu->memory_bytes)
			state->gpus[g].free_bytes = UINT64_MAX;
	}
}

static void gandiva_decide(struct td_cluster *cluster)
{
	struct gandiva *state = cluster->sched_state;

	while (state->head < state->tail) {
		uint32_t index = state->queue[state->head];
		const struct td_sim_job *job = &cluster->jobs[index];

		list_gpus(cluster, state);
		if (!td_gandiva_pack(state->gpus, cluster->gpu_count, job->gpus,
			    job->memory_bytes ? job->memory_bytes : 1, state->found))
			return;
		state->head++;
		td_cluster_start(cluster, index, state->found, false);
	}
}

const struct td_sched td_sched_gandiva = {
	.name = "gandiva",
	.summary = "packs two jobs on the least used GPUs that have the memory, unprotected",
	.init = init,
	.deinit = deinit,
	.arrive = arrive,
	.finish = gandiva_finish,
	.decide = gandiva_decide,
};
