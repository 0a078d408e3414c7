/*
 * tandem: the cluster's part of the default policy (tandem_cluster.h), guests under the same duty as AntMan's. What it is told of a job is what its user or a dry run alone says: class, GPUs, memory,
 * kind, and what the kind uses of a GPU alone. Speeds of those that share a GPU reach it ten seconds after a change, as a monitor shows them.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/time.h"
#include "policy/tandem_cluster.h"
#include "sim/sched.h"

#define ACTIONS 64u

struct tandem {
	struct td_tandem_cluster cluster;
	void *memory;
	bool changed;
	uint64_t decided_ns;
};

static int start_policy(struct td_cluster *cluster, struct tandem *state)
{
	uint32_t quotas[TD_TENANTS_MAX], kinds = cluster->profiles->count;
	size_t bytes = td_tandem_cluster_bytes(
		cluster->node_count, cluster->gpu_count, cluster->job_count, kinds);
	double demands[TD_PROFILES_MAX];

	for (uint32_t t = 0; t < TD_TENANTS_MAX; t++)
		quotas[t] = cluster->gpu_count;
	for (uint32_t k = 0; k < kinds; k++)
		demands[k] = cluster->profiles->profiles[k].contender.demand;
	state->memory = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
	if (!state->memory)
		return -ENOMEM;
	return td_tandem_cluster_init(&state->cluster, state->memory, bytes,
		&td_tandem_cluster_default, cluster->node_gpus, cluster->node_count,
		cluster->gpus[0].memory_bytes, quotas, TD_TENANTS_MAX, cluster->job_count, demands,
		kinds);
}

static int init(struct td_cluster *cluster)
{
	struct tandem *state = calloc(1, sizeof(*state));

	cluster->sched_state = state;
	return state ? start_policy(cluster, state) : -ENOMEM;
}

static void deinit(struct td_cluster *cluster)
{
	struct tandem *state = cluster->sched_state;

	free(state->memory);
	free(state);
}

static void arrive(struct td_cluster *cluster, uint32_t index)
{
	struct tandem *state = cluster->sched_state;
	const struct td_sim_job *job = &cluster->jobs[index];
	const struct td_tandem_request request = {.tenant = job->tenant % TD_TENANTS_MAX,
		.gpus = job->gpus,
		.kind = job->profile,
		.guaranteed = job->class == TD_CLASS_GUARANTEED,
		.bytes = job->memory_bytes};

	if (td_tandem_cluster_submit(&state->cluster, index, &request, cluster->now_ns))
		td_cluster_fail(cluster, index);
	state->changed = true;
}

static void finish(struct td_cluster *cluster, uint32_t job)
{
	struct tandem *state = cluster->sched_state;

	td_tandem_cluster_finish(&state->cluster, job, cluster->now_ns);
	state->changed = true;
}

/* Guests of one company take turns in what the holder leaves: each is told as if it were the only one. */
static void load(struct td_cluster *cluster, uint32_t at)
{
	struct tandem *state = cluster->sched_state;
	const struct td_sim_gpu *gpu = &cluster->gpus[at];
	uint32_t holder = TD_NO_JOB;

	for (uint32_t i = 0; i < gpu->count; i++)
		if (!cluster->jobs[gpu->jobs[i]].guest)
			holder = i;
	for (uint32_t i = 0; i < gpu->count; i++) {
		const struct td_sim_job *job = &cluster->jobs[gpu->jobs[i]];

		if (!job->guest || (holder == TD_NO_JOB && gpu->count != 2))
			continue;
		if (holder != TD_NO_JOB)
			td_tandem_cluster_observe(&state->cluster, job->profile,
				cluster->jobs[gpu->jobs[holder]].profile, true,
				fmin(1, gpu->speeds[i] * (gpu->count - 1)));
		else
			td_tandem_cluster_observe(&state->cluster, job->profile,
				cluster->jobs[gpu->jobs[!i]].profile, false, gpu->speeds[i]);
	}
	state->changed = true;
}

static void decide(struct td_cluster *cluster)
{
	struct tandem *state = cluster->sched_state;
	struct td_tandem_action actions[ACTIONS];
	uint32_t gpus[TD_GANG_MAX], count;

	if (!state->changed && cluster->now_ns - state->decided_ns < cluster->sched->tick_ns)
		return;
	state->changed = false;
	state->decided_ns = cluster->now_ns;
	do {
		count = td_tandem_cluster_step(&state->cluster, cluster->now_ns, actions, ACTIONS);
		for (uint32_t a = 0; a < count; a++) {
			(void)td_tandem_cluster_gpus(&state->cluster, actions[a].job, gpus);
			if (actions[a].verb == TD_TANDEM_MOVE)
				td_cluster_move(cluster, actions[a].job, gpus);
			else
				td_cluster_start(cluster, actions[a].job, gpus,
					actions[a].verb == TD_TANDEM_START_GUEST);
		}
	} while (count == ACTIONS);
}

const struct td_sched td_sched_tandem = {
	.name = "tandem",
	.summary =
		"guaranteed jobs by quota, all others where it gains, moved when that gains more",
	.guards = true,
	.tick_ns = 30 * TD_NS_PER_S,
	.init = init,
	.deinit = deinit,
	.arrive = arrive,
	.finish = finish,
	.load = load,
	.decide = decide,
};
