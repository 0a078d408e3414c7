/*
 * The engine; see cluster.h. Arrivals are merged from the sorted jobs. The future holds the ends of
 * running jobs, ticks and samples. An end that was moved stays in it, and its order shows that it
 * is stale.
 */
#include "sim/engine/cluster.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/time.h"
#include "sim/engine/sched.h"

enum { END, TICK, SAMPLE, OTHER };

/*
 * In an event of kind OTHER this index means that the services' rates have changed. A smaller index
 * names the GPU whose monitor shows a new value.
 */
#define RATES (JOBS_MAX - 1)

/*
 * A monitor shows the utilisation of the last ten seconds, so it shows the effect of a change this
 * much later.
 */
#define MONITOR_NS (10 * TD_NS_PER_S)

#define KIND_SHIFT 30
#define JOBS_MAX   (1u << KIND_SHIFT)
#define STOP_MASK  1023u /* a stop is looked for once per so many events */

#define STUCK_ROUNDS 10000u

static uint32_t *places_of(struct td_cluster *cluster, const struct td_sim_job *job)
{
	return cluster->places + job->place;
}

static int add_event(struct td_cluster *cluster, uint64_t at_ns, uint32_t kind, uint32_t index)
{
	uint32_t room = cluster->future.room;

	/* An end that never comes is put at the end of the clock. */
	if (at_ns < cluster->now_ns)
		at_ns = TD_NEVER;
	/*
	 * There is room for all events from the start. Only jobs' ends that were moved may need
	 * more.
	 */
	if (cluster->future.count + 1 >= room && td_future_reserve(&cluster->future, 2 * room))
		return -1;
	return (int)(td_future_push(&cluster->future, at_ns, kind << KIND_SHIFT | index) &
		     INT32_MAX);
}

/* Adds up to now what is counted over time. */
static void count(struct td_cluster *cluster)
{
	double seconds = (double)(cluster->now_ns - cluster->counted_ns) * 1e-9;

	cluster->counts.busy_gpu_s += seconds * cluster->busy_gpus;
	cluster->counts.shared_gpu_s += seconds * cluster->shared_gpus;
	cluster->counted_ns = cluster->now_ns;
}

static void settle(struct td_cluster *cluster, struct td_sim_job *job)
{
	double done = (double)(cluster->now_ns - job->since_ns) * 1e-9 * job->speed;

	cluster->counts.work_gpu_s += done * job->gpus;
	job->left_s = fmax(0, job->left_s - done);
	job->since_ns = cluster->now_ns;
}

static void mark(struct td_cluster *cluster, uint32_t gpu)
{
	if (cluster->gpus[gpu].dirty)
		return;
	cluster->gpus[gpu].dirty = true;
	cluster->dirty_gpus[cluster->dirty_count++] = gpu;
}

static void note_occupancy(struct td_cluster *cluster, uint32_t before, uint32_t after)
{
	cluster->busy_gpus += (after > 0) - (before > 0);
	cluster->shared_gpus += (after > 1) - (before > 1);
}

static void put(struct td_cluster *cluster, uint32_t index, const uint32_t *gpus)
{
	struct td_sim_job *job = &cluster->jobs[index];

	count(cluster);
	for (uint32_t k = 0; k < job->gpus; k++) {
		struct td_sim_gpu *gpu = &cluster->gpus[gpus[k]];

		places_of(cluster, job)[k] = gpus[k];
		gpu->jobs[gpu->count++] = index;
		note_occupancy(cluster, gpu->count - 1, gpu->count);
		mark(cluster, gpus[k]);
	}
	job->since_ns = cluster->now_ns;
	job->speed = 0;
}

void td_cluster_start(struct td_cluster *cluster, uint32_t index, const uint32_t *gpus, bool guest)
{
	struct td_sim_job *job = &cluster->jobs[index];
	bool beside = false;

	for (uint32_t k = 0; k < job->gpus; k++)
		beside |= cluster->gpus[gpus[k]].count > 0;
	put(cluster, index, gpus);
	if (job->start_ns == TD_NEVER)
		job->start_ns = cluster->now_ns;
	if (job->evictions || job->suspensions) {
		job->left_s += cluster->options.costs.restart_s;
		cluster->counts.restart_s += cluster->options.costs.restart_s * job->gpus;
	}
	job->guest = guest;
	job->status = TD_SIM_RUNNING;
	cluster->queued--;
	cluster->counts.starts++;
	cluster->counts.beside_starts += beside;
}

void td_cluster_upgrade(struct td_cluster *cluster, uint32_t index)
{
	struct td_sim_job *job = &cluster->jobs[index];

	job->guest = false;
	cluster->counts.upgrades++;
	for (uint32_t k = 0; k < job->gpus; k++)
		mark(cluster, places_of(cluster, job)[k]);
}

static void leave(struct td_cluster *cluster, uint32_t index)
{
	struct td_sim_job *job = &cluster->jobs[index];

	count(cluster);
	settle(cluster, job);
	for (uint32_t k = 0; k < job->gpus; k++) {
		struct td_sim_gpu *gpu = &cluster->gpus[places_of(cluster, job)[k]];
		uint32_t at = 0;

		while (gpu->jobs[at] != index)
			at++;
		for (; at + 1 < gpu->count; at++) {
			gpu->jobs[at] = gpu->jobs[at + 1];
			gpu->speeds[at] = gpu->speeds[at + 1];
		}
		gpu->count--;
		note_occupancy(cluster, gpu->count + 1, gpu->count);
		mark(cluster, places_of(cluster, job)[k]);
	}
}

void td_cluster_evict(struct td_cluster *cluster, uint32_t index)
{
	struct td_sim_job *job = &cluster->jobs[index];
	double done, lost;

	leave(cluster, index);
	done = fmax(0, job->work_s - job->left_s);
	lost = cluster->options.costs.checkpoint_s > 0
		       ? fmod(done, cluster->options.costs.checkpoint_s)
		       : done;
	job->left_s += lost;
	job->status = TD_SIM_WAITING;
	job->evictions++;
	cluster->queued++;
	cluster->counts.evictions++;
	cluster->counts.lost_s += lost * job->gpus;
}

void td_cluster_suspend(struct td_cluster *cluster, uint32_t index)
{
	struct td_sim_job *job = &cluster->jobs[index];

	cluster->counts.suspensions++;
	job->suspensions++;
	if (cluster->options.costs.kills) {
		td_cluster_evict(cluster, index);
		return;
	}
	leave(cluster, index);
	job->status = TD_SIM_WAITING;
	cluster->queued++;
}

void td_cluster_move(struct td_cluster *cluster, uint32_t index, const uint32_t *gpus, double cost)
{
	struct td_sim_job *job = &cluster->jobs[index];

	leave(cluster, index);
	put(cluster, index, gpus);
	job->left_s += cost;
	job->moves++;
	cluster->counts.moves++;
	cluster->counts.move_s += cost * job->gpus;
}

void td_cluster_fail(struct td_cluster *cluster, uint32_t index)
{
	struct td_sim_job *job = &cluster->jobs[index];

	if (job->status == TD_SIM_RUNNING)
		leave(cluster, index);
	else
		cluster->queued--;
	job->status = TD_SIM_FAILED;
	job->end_ns = cluster->now_ns;
	cluster->ended++;
}

static void finish_job(struct td_cluster *cluster, uint32_t index)
{
	struct td_sim_job *job = &cluster->jobs[index];

	leave(cluster, index);
	job->status = TD_SIM_DONE;
	job->end_ns = cluster->now_ns;
	cluster->ended++;
	cluster->sched->finish(cluster, index);
}

/* Computes the job's speed beside the present jobs, and adds its new end to the events. */
static void refresh_job(struct td_cluster *cluster, uint32_t index)
{
	struct td_sim_job *job = &cluster->jobs[index];
	double speed = INFINITY, after;

	for (uint32_t k = 0; k < job->gpus; k++) {
		const struct td_sim_gpu *gpu = &cluster->gpus[places_of(cluster, job)[k]];

		for (uint32_t i = 0; i < gpu->count; i++)
			if (gpu->jobs[i] == index)
				speed = fmin(speed, gpu->speeds[i]);
	}
	if (job->speed > 0 && !job->stale && !(speed < job->speed || speed > job->speed))
		return;
	job->stale = false;
	settle(cluster, job);
	job->speed = speed;
	/*
	 * Times are added as integers: beyond 104 days a double has no nanoseconds, and an end
	 * before now would run time backwards.
	 */
	after = speed > 0 ? ceil(job->left_s / speed * 1e9) : INFINITY;
	job->order = (uint32_t)add_event(
		cluster, after < 1e18 ? cluster->now_ns + (uint64_t)after : TD_NEVER, END, index);
}

static void refresh(struct td_cluster *cluster)
{
	for (uint32_t d = 0; d < cluster->dirty_count; d++)
		td_cluster_speeds(cluster, &cluster->gpus[cluster->dirty_gpus[d]]);
	for (uint32_t d = 0; d < cluster->dirty_count; d++) {
		struct td_sim_gpu *gpu = &cluster->gpus[cluster->dirty_gpus[d]];

		gpu->dirty = false;
		for (uint32_t i = 0; i < gpu->count; i++)
			refresh_job(cluster, gpu->jobs[i]);
		if (cluster->sched->load && !gpu->measured) {
			gpu->measured = true;
			(void)add_event(cluster, cluster->now_ns + MONITOR_NS, OTHER,
				cluster->dirty_gpus[d]);
		}
	}
	cluster->dirty_count = 0;
}

/*
 * Takes a sample. When the array is full, every second sample is dropped, and the interval doubles.
 */
static void sample(struct td_cluster *cluster)
{
	if (cluster->sample_count == TD_SIM_SAMPLES) {
		for (uint32_t i = 0; i < TD_SIM_SAMPLES / 2; i++)
			cluster->samples[i] = cluster->samples[2 * i];
		cluster->sample_count /= 2;
		if (cluster->sample_every_ns < TD_NEVER / 2)
			cluster->sample_every_ns *= 2;
	}
	cluster->samples[cluster->sample_count++] =
		(struct td_sim_sample){.at_s = (double)(cluster->now_ns - cluster->first_ns) * 1e-9,
			.busy_gpus = cluster->busy_gpus,
			.queued = cluster->queued,
			.running = cluster->arrived - cluster->ended - cluster->queued};
	(void)add_event(cluster, cluster->now_ns + cluster->sample_every_ns, SAMPLE, 0);
}

/*
 * Handles one event. Returns false if schedulers must not see it. One such event is sampling: its
 * times depend on the last arrival, which a scheduler cannot know in advance.
 */
static bool take(struct td_cluster *cluster, const struct td_event *event)
{
	uint32_t index = event->what & (JOBS_MAX - 1);

	cluster->counts.events++;
	switch (event->what >> KIND_SHIFT) {
	case END:
		if (cluster->jobs[index].status == TD_SIM_RUNNING &&
			cluster->jobs[index].order == (event->order & INT32_MAX))
			finish_job(cluster, index);
		break;
	case TICK:
		(void)add_event(cluster, cluster->now_ns + cluster->sched->tick_ns, TICK, 0);
		break;
	case OTHER:
		if (index == RATES) {
			td_services_rate(cluster, mark);
			(void)add_event(cluster, cluster->now_ns + cluster->services->interval_ns,
				OTHER, RATES);
			break;
		}
		cluster->gpus[index].measured = false;
		cluster->sched->load(cluster, index);
		break;
	default: sample(cluster); return false;
	}
	return true;
}

static bool is_over(const struct td_cluster *cluster)
{
	if (cluster->ended == cluster->job_count)
		return true;
	if (cluster->options.until_s > 0 &&
		(double)(cluster->now_ns - cluster->first_ns) * 1e-9 >= cluster->options.until_s)
		return true;
	return cluster->options.stop && *cluster->options.stop;
}

/*
 * Handles the events that are due. Returns whether there was one. Later events stay in the queue,
 * because handling one may insert others before them.
 */
static bool advance(struct td_cluster *cluster)
{
	const struct td_sim_job *next = &cluster->jobs[cluster->arrived];
	const struct td_event *head = td_future_peek(&cluster->future);
	bool arrival =
		cluster->arrived < cluster->job_count && (!head || next->submit_ns <= head->at_ns);
	struct td_event event;

	if (!arrival && !head)
		return false;
	assert((arrival ? next->submit_ns : head->at_ns) >= cluster->now_ns);
	cluster->now_ns = arrival ? next->submit_ns : head->at_ns;
	if (cluster->options.until_s > 0 && is_over(cluster))
		return false;
	if (arrival) {
		count(cluster);
		cluster->counts.arriving_busy_gpu_s = cluster->counts.busy_gpu_s;
		cluster->counts.arriving_s = (double)(cluster->now_ns - cluster->first_ns) * 1e-9;
		cluster->counts.events++;
		cluster->queued++;
		cluster->sched->arrive(cluster, cluster->arrived++);
	} else {
		if (!td_future_pop(&cluster->future, &event))
			return false;
		if (!take(cluster, &event))
			return true;
	}
	cluster->sched->decide(cluster);
	refresh(cluster);
	return true;
}

/*
 * Tells whether nothing runs and nothing will arrive, although the scheduler was asked often
 * enough.
 */
static bool is_stuck(const struct td_cluster *cluster, uint32_t *rounds)
{
	if (cluster->arrived < cluster->job_count || cluster->busy_gpus)
		*rounds = 0;
	else
		(*rounds)++;
	return *rounds > STUCK_ROUNDS;
}

void td_cluster_run(struct td_cluster *cluster)
{
	uint32_t rounds = 0, stuck = 0;

	while (cluster->ended < cluster->job_count && !is_stuck(cluster, &stuck)) {
		if (!(rounds++ & STOP_MASK)) {
			if (is_over(cluster))
				break;
			if (cluster->options.progress)
				cluster->options.progress(
					(double)cluster->ended / cluster->job_count,
					cluster->options.progress_arg);
		}
		if (!advance(cluster))
			break;
	}
	count(cluster);
	for (uint32_t i = 0; i < cluster->job_count; i++)
		if (cluster->jobs[i].status == TD_SIM_RUNNING)
			settle(cluster, &cluster->jobs[i]);
	for (uint32_t s = 0; cluster->services && s < cluster->services->count; s++)
		td_services_settle(cluster, s);
	cluster->counts.stopped = cluster->options.stop && *cluster->options.stop;
}

double td_cluster_late(const struct td_cluster *cluster, uint32_t kind)
{
	double late = 0, total = 0;

	for (uint32_t s = 0; cluster->services && s < cluster->services->count; s++) {
		const struct td_service *service = &cluster->services->list[s];

		if (kind != TD_SERVICE_NONE && service->kind != kind)
			continue;
		late += service->late_s;
		total += service->total_s;
	}
	return total > 0 ? late / total : 0;
}

const char *td_cluster_misfit(
	const struct td_sim_job *job, uint32_t gpus, uint64_t gpu_memory_bytes)
{
	if (!job->gpus)
		return "no GPU";
	if (job->gpus > gpus)
		return "more GPUs than the cluster has";
	if (gpu_memory_bytes && job->memory_bytes > gpu_memory_bytes)
		return "more memory than a GPU of the cluster has";
	return NULL;
}

static int prepare_jobs(struct td_cluster *cluster, uint64_t gpu_memory_bytes)
{
	uint64_t places = 0;

	for (uint32_t i = 0; i < cluster->job_count; i++) {
		struct td_sim_job *job = &cluster->jobs[i];

		if (td_cluster_misfit(job, cluster->gpu_count, gpu_memory_bytes) ||
			job->profile >= cluster->profiles->count || !(job->work_s >= 0))
			return -EINVAL;
		job->place = (uint32_t)places;
		places += job->gpus;
		job->status = TD_SIM_WAITING;
		job->guest = false;
		job->evictions = job->moves = job->suspensions = 0;
		job->left_s = job->work_s;
		job->speed = 0;
		job->start_ns = job->end_ns = TD_NEVER;
	}
	if (places >= UINT32_MAX)
		return -EINVAL;
	cluster->places = calloc(places + 1, sizeof(*cluster->places));
	return cluster->places ? 0 : -ENOMEM;
}

static int prepare_services(struct td_cluster *cluster)
{
	const struct td_services *all = cluster->services;

	if (!all->interval_ns || !all->intervals || all->kind_count > TD_SERVICE_KINDS_MAX)
		return -EINVAL;
	for (uint32_t s = 0; s < all->count; s++) {
		struct td_service *service = &all->list[s];

		if (service->gpu >= cluster->gpu_count || service->kind >= all->kind_count ||
			cluster->gpus[service->gpu].service != TD_SERVICE_NONE)
			return -EINVAL;
		*service = (struct td_service){.gpu = service->gpu, .kind = service->kind};
		cluster->gpus[service->gpu].service = s;
	}
	cluster->table = cluster->options.table;
	if (!cluster->table)
		cluster->table = cluster->own_table = calloc(1, sizeof(*cluster->own_table));
	return cluster->table ? 0 : -ENOMEM;
}

static int allocate(struct td_cluster *cluster, const uint32_t *node_gpus, uint64_t memory_bytes)
{
	cluster->node_gpus = calloc(cluster->node_count, sizeof(*cluster->node_gpus));
	cluster->gpus = calloc(cluster->gpu_count, sizeof(*cluster->gpus));
	cluster->dirty_gpus = calloc(cluster->gpu_count, sizeof(*cluster->dirty_gpus));
	cluster->settled = calloc((size_t)1 << TD_SETTLED_BITS, sizeof(*cluster->settled));
	if (!cluster->node_gpus || !cluster->gpus || !cluster->dirty_gpus || !cluster->settled ||
		td_future_reserve(&cluster->future, 4 * cluster->gpu_count + 64))
		return -ENOMEM;
	memcpy(cluster->node_gpus, node_gpus, cluster->node_count * sizeof(*node_gpus));
	for (uint32_t g = 0; g < cluster->gpu_count; g++) {
		cluster->gpus[g].memory_bytes = memory_bytes;
		cluster->gpus[g].service = TD_SERVICE_NONE;
	}
	return cluster->services ? prepare_services(cluster) : 0;
}

int td_cluster_init(struct td_cluster *cluster, const struct td_cluster_options *options,
	const struct td_profiles *profiles, const uint32_t *node_gpus, uint32_t nodes,
	uint64_t gpu_memory_bytes, struct td_sim_job *jobs, uint32_t count,
	const struct td_sched *sched)
{
	uint64_t span_ns = 0;
	int r = -EINVAL;

	*cluster = (struct td_cluster){.profiles = profiles,
		.options = *options,
		.sched = sched,
		.services = options->services,
		.jobs = jobs,
		.job_count = count,
		.node_count = nodes};
	for (uint32_t n = 0; n < nodes; n++)
		cluster->gpu_count += node_gpus[n];
	if (count && count < JOBS_MAX && cluster->gpu_count)
		r = prepare_jobs(cluster, gpu_memory_bytes);
	r = r ? r : allocate(cluster, node_gpus, gpu_memory_bytes);
	r = r ? r : sched->init(cluster);
	if (r) {
		td_cluster_deinit(cluster);
		return r;
	}
	cluster->now_ns = cluster->counted_ns = cluster->first_ns = jobs[0].submit_ns;
	span_ns = jobs[count - 1].submit_ns - jobs[0].submit_ns;
	cluster->sample_every_ns = span_ns / (TD_SIM_SAMPLES / 4) + TD_NS_PER_S;
	(void)add_event(cluster, cluster->now_ns, SAMPLE, 0);
	for (uint32_t i = 0; cluster->services && i < cluster->services->count; i++)
		cluster->services->list[i].since_ns = cluster->now_ns;
	if (cluster->services) {
		td_services_rate(cluster, mark);
		(void)add_event(
			cluster, cluster->now_ns + cluster->services->interval_ns, OTHER, RATES);
	}
	if (sched->tick_ns)
		(void)add_event(cluster, cluster->now_ns + sched->tick_ns, TICK, 0);
	return 0;
}

void td_cluster_deinit(struct td_cluster *cluster)
{
	if (cluster->sched_state)
		cluster->sched->deinit(cluster);
	free(cluster->places);
	free(cluster->node_gpus);
	free(cluster->gpus);
	free(cluster->dirty_gpus);
	free(cluster->settled);
	free(cluster->own_table);
	td_future_deinit(&cluster->future);
	*cluster = (struct td_cluster){0};
}
