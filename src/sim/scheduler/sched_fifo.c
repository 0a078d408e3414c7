/*
 * The capacity scheduler with which AntMan is compared. It gives whole GPUs, strictly first come
 * first served, gangs (baselines.h). With preemption a guaranteed job takes GPUs from jobs that run
 * without a guarantee, the latest started first, and is served before them.
 */
#include <errno.h>
#include <stdlib.h>

#include "policy/cluster/baselines.h"
#include "sim/scheduler/schedulers.h"

struct fifo {
	struct td_inventory inventory;
	void *memory;
	uint32_t *queue[2]; /* rings of jobs: guaranteed, and all others */
	uint32_t head[2], tail[2];
	uint32_t *found;
	uint32_t *running, running_count; /* preemptible jobs, oldest first */
	struct td_fifo_running *candidates;
	uint32_t *victims;
	bool preempts;
};

static int init_with(struct td_cluster *cluster, bool preempts)
{
	struct fifo *fifo = calloc(1, sizeof(*fifo));
	size_t jobs = cluster->job_count + 1;
	int r;

	cluster->sched_state = fifo;
	if (!fifo)
		return -ENOMEM;
	fifo->preempts = preempts;
	fifo->memory = aligned_alloc(
		64, (td_inventory_bytes(cluster->node_count, cluster->gpu_count) + 63) & ~63ull);
	fifo->queue[0] = calloc(jobs, sizeof(uint32_t));
	fifo->queue[1] = calloc(jobs, sizeof(uint32_t));
	fifo->found = calloc(cluster->gpu_count, sizeof(uint32_t));
	fifo->running = calloc(cluster->gpu_count, sizeof(uint32_t));
	fifo->candidates = calloc(cluster->gpu_count, sizeof(*fifo->candidates));
	fifo->victims = calloc(cluster->gpu_count, sizeof(uint32_t));
	if (!fifo->memory || !fifo->queue[0] || !fifo->queue[1] || !fifo->found || !fifo->running ||
		!fifo->candidates || !fifo->victims)
		return -ENOMEM;
	r = td_inventory_init(
		&fifo->inventory, fifo->memory, cluster->node_gpus, cluster->node_count, 0);
	for (uint32_t s = 0; !r && cluster->services && s < cluster->services->count; s++)
		td_inventory_hold(
			&fifo->inventory, cluster->services->list[s].gpu, cluster->job_count);
	return r;
}

static int init(struct td_cluster *cluster)
{
	return init_with(cluster, false);
}

static int init_preempting(struct td_cluster *cluster)
{
	return init_with(cluster, true);
}

static void deinit(struct td_cluster *cluster)
{
	struct fifo *fifo = cluster->sched_state;

	free(fifo->memory);
	free(fifo->queue[0]);
	free(fifo->queue[1]);
	free(fifo->found);
	free(fifo->running);
	free(fifo->candidates);
	free(fifo->victims);
	free(fifo);
}

static int lane_of(const struct fifo *fifo, const struct td_sim_job *job)
{
	return fifo->preempts && job->class != TD_CLASS_GUARANTEED;
}

static void arrive(struct td_cluster *cluster, uint32_t job)
{
	struct fifo *fifo = cluster->sched_state;
	int lane = lane_of(fifo, &cluster->jobs[job]);

	fifo->queue[lane][fifo->tail[lane]] = job;
	fifo->tail[lane] = (fifo->tail[lane] + 1) % (cluster->job_count + 1);
}

static void release(struct td_cluster *cluster, uint32_t job)
{
	struct fifo *fifo = cluster->sched_state;

	for (uint32_t k = 0; k < cluster->jobs[job].gpus; k++)
		td_inventory_hold(
			&fifo->inventory, cluster->places[cluster->jobs[job].place + k], TD_NO_JOB);
	for (uint32_t i = 0; i < fifo->running_count; i++) {
		if (fifo->running[i] != job)
			continue;
		fifo->running_count--;
		for (; i < fifo->running_count; i++)
			fifo->running[i] = fifo->running[i + 1];
	}
}

/*
 * Evicts jobs so that a guaranteed job gets the GPUs that it lacks. Evicted jobs wait in front of
 * jobs that have not run yet. Returns false if even evicting all of them frees too few GPUs.
 */
static bool make_room(struct td_cluster *cluster, struct fifo *fifo, uint32_t lacking)
{
	uint32_t count;

	for (uint32_t i = 0; i < fifo->running_count; i++)
		fifo->candidates[i] =
			(struct td_fifo_running){.gpus = cluster->jobs[fifo->running[i]].gpus,
				.preemptible = true,
				.started_ns = cluster->jobs[fifo->running[i]].since_ns};
	count = td_fifo_preempt(fifo->candidates, fifo->running_count, lacking, fifo->victims);
	for (uint32_t v = 0; v < count; v++)
		fifo->victims[v] = fifo->running[fifo->victims[v]];
	for (uint32_t v = 0; v < count; v++) {
		release(cluster, fifo->victims[v]);
		td_cluster_evict(cluster, fifo->victims[v]);
		fifo->head[1] = (fifo->head[1] + cluster->job_count) % (cluster->job_count + 1);
		fifo->queue[1][fifo->head[1]] = fifo->victims[v];
	}
	return count > 0;
}

static bool start_head(struct td_cluster *cluster, struct fifo *fifo, int lane)
{
	uint32_t index = fifo->queue[lane][fifo->head[lane]], free_gpus;
	const struct td_sim_job *job = &cluster->jobs[index];

	if (!td_fifo_gang(&fifo->inventory, job->gpus, false, fifo->found)) {
		free_gpus = td_inventory_find_free(
			&fifo->inventory, TD_NO_JOB, job->gpus, false, fifo->found);
		if (!fifo->preempts || lane || !make_room(cluster, fifo, job->gpus - free_gpus) ||
			!td_fifo_gang(&fifo->inventory, job->gpus, false, fifo->found))
			return false;
	}
	fifo->head[lane] = (fifo->head[lane] + 1) % (cluster->job_count + 1);
	for (uint32_t k = 0; k < job->gpus; k++)
		td_inventory_hold(&fifo->inventory, fifo->found[k], index);
	if (lane)
		fifo->running[fifo->running_count++] = index;
	td_cluster_start(cluster, index, fifo->found, false);
	return true;
}

static void fifo_decide(struct td_cluster *cluster)
{
	struct fifo *fifo = cluster->sched_state;

	for (int lane = 0; lane < 2; lane++)
		while (fifo->head[lane] != fifo->tail[lane])
			if (!start_head(cluster, fifo, lane))
				return;
}

const struct td_sched td_sched_fifo = {
	.name = "fifo",
	.summary = "whole GPUs, first come first served, gangs: a capacity scheduler",
	.init = init,
	.deinit = deinit,
	.arrive = arrive,
	.finish = release,
	.decide = fifo_decide,
};

const struct td_sched td_sched_preempt = {
	.name = "preempt",
	.summary = "fifo, and guaranteed jobs evict others, which go back to their last checkpoint",
	.init = init_preempting,
	.deinit = deinit,
	.arrive = arrive,
	.finish = release,
	.decide = fifo_decide,
};
