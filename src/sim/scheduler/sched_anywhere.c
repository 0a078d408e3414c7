/*
 * Schedulers that never let a job wait as long as a GPU can take one more: round-robin (side by
 * side, unprotected), nvshare (the same GPUs, but turns on each), and DCUDA.
 *
 * DCUDA starts a job on the least loaded GPU with the memory, and every ten seconds moves jobs of
 * one GPU from overloaded GPUs to others (balance.h): live migration, 0.1 s each. It treats
 * services like other applications, but does not move them.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/time.h"
#include "policy/algo/control/balance.h"
#include "policy/cluster/baselines.h"
#include "sim/scheduler/schedulers.h"

#define MIGRATION_S 0.1 /* the paper: "less than 100 ms" */

struct anywhere {
	uint32_t *queue, head, tail, cursor;
	uint32_t *found, *taken; /* taken: number of jobs on each GPU */
	/* Used by DCUDA only. */
	struct td_balance_app *apps;
	uint32_t *who, *order;
	struct td_balance_move *moves;
	uint64_t balanced_ns;
};

static int init(struct td_cluster *cluster)
{
	struct anywhere *state = calloc(1, sizeof(*state));
	/* Room for all jobs that can run, and for the placeholders of choose_least_loaded(). */
	size_t apps = (size_t)cluster->gpu_count * (TD_SIM_OCCUPANTS + 3);

	cluster->sched_state = state;
	if (!state)
		return -ENOMEM;
	state->queue = calloc(cluster->job_count, sizeof(*state->queue));
	state->found = calloc(cluster->gpu_count, sizeof(*state->found));
	state->taken = calloc(cluster->gpu_count, sizeof(*state->taken));
	state->apps = calloc(apps, sizeof(*state->apps));
	state->who = calloc(apps, sizeof(*state->who));
	state->order = calloc(apps, sizeof(*state->order));
	state->moves = calloc(apps, sizeof(*state->moves));
	return state->queue && state->found && state->taken && state->apps && state->who &&
			       state->order && state->moves
		       ? 0
		       : -ENOMEM;
}

static int init_dcuda(struct td_cluster *cluster)
{
	return cluster->gpu_count > TD_BALANCE_GPUS_MAX ? -E2BIG : init(cluster);
}

static void deinit(struct td_cluster *cluster)
{
	struct anywhere *state = cluster->sched_state;

	free(state->queue);
	free(state->found);
	free(state->taken);
	free(state->apps);
	free(state->who);
	free(state->order);
	free(state->moves);
	free(state);
}

static void arrive(struct td_cluster *cluster, uint32_t job)
{
	struct anywhere *state = cluster->sched_state;

	state->queue[state->tail++] = job;
}

static void anywhere_finish(struct td_cluster *cluster, uint32_t index)
{
	struct anywhere *state = cluster->sched_state;
	const struct td_sim_job *job = &cluster->jobs[index];

	for (uint32_t k = 0; k < job->gpus; k++)
		state->taken[cluster->places[job->place + k]]--;
}

/* Finds the next GPUs in turn that can take one more job. Returns false if there are too few. */
static bool choose_in_turn(struct td_cluster *cluster, uint32_t wanted)
{
	struct anywhere *state = cluster->sched_state;
	uint32_t n = 0, kept = state->cursor;

	for (uint32_t i = 0; i < cluster->gpu_count && n < wanted; i++) {
		uint32_t gpu = td_round_robin(&state->cursor, cluster->gpu_count);

		if (state->taken[gpu] < TD_SIM_OCCUPANTS)
			state->found[n++] = gpu;
	}
	if (n < wanted)
		state->cursor = kept;
	return n == wanted;
}

static void start_found(struct td_cluster *cluster, uint32_t index)
{
	struct anywhere *state = cluster->sched_state;

	for (uint32_t k = 0; k < cluster->jobs[index].gpus; k++)
		state->taken[state->found[k]]++;
	state->head++;
	td_cluster_start(cluster, index, state->found, true);
}

static void anywhere_decide(struct td_cluster *cluster)
{
	struct anywhere *state = cluster->sched_state;

	while (state->head < state->tail) {
		uint32_t index = state->queue[state->head];

		if (!choose_in_turn(cluster, cluster->jobs[index].gpus))
			return;
		start_found(cluster, index);
	}
}

/* --- DCUDA --- */

static double part_of(const struct td_sim_gpu *gpu, uint64_t bytes)
{
	return gpu->memory_bytes ? (double)bytes / (double)gpu->memory_bytes : 0;
}

/* Lists all jobs on GPUs as applications; a gang's parts and services do not move. */
static uint32_t view(const struct td_cluster *cluster, const struct anywhere *state)
{
	uint32_t n = 0;

	for (uint32_t g = 0; g < cluster->gpu_count; g++) {
		const struct td_sim_gpu *gpu = &cluster->gpus[g];

		if (gpu->service != TD_SERVICE_NONE) {
			const struct td_service *service = &cluster->services->list[gpu->service];
			uint64_t bytes = cluster->services->kinds[service->kind].memory_bytes;

			state->who[n] = TD_NO_JOB;
			state->apps[n++] = (struct td_balance_app){
				g, service->seen.busy, part_of(gpu, bytes), false};
		}
		for (uint32_t i = 0; i < gpu->count; i++) {
			const struct td_sim_job *job = &cluster->jobs[gpu->jobs[i]];

			state->who[n] = gpu->jobs[i];
			state->apps[n++] = (struct td_balance_app){g,
				cluster->profiles->profiles[job->profile].told_demand,
				part_of(gpu, job->memory_bytes),
				job->gpus == 1 && state->taken[g] < TD_SIM_OCCUPANTS};
		}
	}
	return n;
}

static bool choose_least_loaded(struct td_cluster *cluster, const struct td_sim_job *job)
{
	struct anywhere *state = cluster->sched_state;
	uint32_t n = view(cluster, state), found = 0;

	/*
	 * A full GPU gets a placeholder that makes it look fully loaded. So does a GPU that the job
	 * has already, because a job of several GPUs needs different ones.
	 */
	for (uint32_t g = 0; g < cluster->gpu_count; g++)
		if (state->taken[g] >= TD_SIM_OCCUPANTS)
			state->apps[n++] = (struct td_balance_app){g, 1000, 1000, false};
	for (; found < job->gpus; found++) {
		uint32_t gpu = td_balance_start(&td_balance_default, state->apps, n,
			cluster->gpu_count, part_of(&cluster->gpus[0], job->memory_bytes));
		bool again = state->taken[gpu] >= TD_SIM_OCCUPANTS;

		for (uint32_t k = 0; k < found; k++)
			again |= state->found[k] == gpu;
		if (again)
			return false;
		state->found[found] = gpu;
		state->apps[n++] = (struct td_balance_app){gpu, 1000, 1000, false};
	}
	return true;
}

static void balance(struct td_cluster *cluster)
{
	struct anywhere *state = cluster->sched_state;
	uint32_t n = view(cluster, state);
	uint32_t count = td_balance(&td_balance_default, state->apps, n, cluster->gpu_count,
		state->order, state->moves);

	for (uint32_t m = 0; m < count; m++) {
		uint32_t job = state->who[state->moves[m].app], to = state->moves[m].to;

		if (state->taken[to] >= TD_SIM_OCCUPANTS)
			continue;
		state->taken[state->moves[m].from]--;
		state->taken[to]++;
		td_cluster_move(cluster, job, &to, MIGRATION_S);
	}
}

static void decide_dcuda(struct td_cluster *cluster)
{
	struct anywhere *state = cluster->sched_state;

	while (state->head < state->tail) {
		uint32_t index = state->queue[state->head];

		if (!choose_least_loaded(cluster, &cluster->jobs[index]))
			break;
		start_found(cluster, index);
	}
	if (cluster->now_ns - state->balanced_ns < cluster->sched->tick_ns)
		return;
	state->balanced_ns = cluster->now_ns;
	balance(cluster);
}

const struct td_sched td_sched_round_robin = {
	.name = "round-robin",
	.summary = "one GPU after the other, whoever is there; unprotected",
	.init = init,
	.deinit = deinit,
	.arrive = arrive,
	.finish = anywhere_finish,
	.decide = anywhere_decide,
};

const struct td_sched td_sched_nvshare = {
	.name = "nvshare",
	.summary = "one GPU after the other; turns of 30 s on each, with all of its memory",
	.turns = true,
	.init = init,
	.deinit = deinit,
	.arrive = arrive,
	.finish = anywhere_finish,
	.decide = anywhere_decide,
};

const struct td_sched td_sched_dcuda = {
	.name = "dcuda",
	.summary =
		"the least loaded GPU, moved from overloaded ones every ten seconds; up to 64 GPUs",
	.tick_ns = 10 * TD_NS_PER_S,
	.init = init_dcuda,
	.deinit = deinit,
	.arrive = arrive,
	.finish = anywhere_finish,
	.decide = decide_dcuda,
};
