/*
 * The experiment queues runs public traces that ask for more GPUs than there are, under every
 * scheduler of jobs without services.
 *
 * Jobs of Philly (days 20 to 99), Helios (two virtual clusters of Venus) and Alibaba (pods of 2023,
 * whole GPUs), 800 for each seed in the order of the trace, at least 60 s and at most 6 h long, at
 * most 8 GPUs (Helios: 32), on 64 GPUs, with arrivals stretched to offered loads. Half of the jobs
 * are guaranteed. Kinds are Gavel's at random. Helios has 898 such jobs and Alibaba 5,685, so their
 * seeds overlap and differ in kinds and classes more than in jobs.
 *
 * Worlds: kind (proportional: nobody is slowed until demands exceed a GPU), fitted, and harsh
 * (fitted, with twice the pressure of everybody).
 *
 * The wait of a job is its completion time less its time alone: waiting at first, waiting after it
 * was stopped, and being slowed down, all together.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "sim/base/bootstrap.h"
#include "sim/base/random.h"
#include "sim/base/sim.h"
#include "sim/base/workers.h"
#include "sim/engine/metrics.h"
#include "sim/report/experiment.h"
#include "sim/scheduler/schedulers.h"

#define JOBS      800u
#define GPUS      64u
#define SEEDS_MAX 50u

static const struct td_sched *const scheds[] = {&td_sched_tandem, &td_sched_fifo, &td_sched_preempt,
	&td_sched_gandiva, &td_sched_antman, &td_sched_round_robin, &td_sched_nvshare,
	&td_sched_dcuda};
#define SCHEDS (sizeof(scheds) / sizeof(scheds[0]))

static const double loads[] = {0.6, 1.2, 2, 3};
#define LOADS (sizeof(loads) / sizeof(loads[0]))

enum world { KIND, FITTED, HARSH, WORLDS };
static const char *const world_names[WORLDS] = {"kind", "fitted", "harsh"};

static const struct source {
	const char *name, *file;
	double from_s, to_s;
	uint32_t gpus_max; /* maximum number of GPUs of a job */
} sources[] = {
	{"Philly", "jobs_philly.csv.gz", 20 * 86400., 100 * 86400., 8},
	{"Helios", "jobs_helios_venus_2vc.csv.gz", 0, INFINITY, 32},
	{"Alibaba", "jobs_alibaba_gpu2023.csv.gz", 0, INFINITY, 8},
};
#define SOURCES (sizeof(sources) / sizeof(sources[0]))

struct batch {
	struct td_trace traces[SOURCES];
	uint32_t *used[SOURCES], used_count[SOURCES]; /* indices of the jobs that are used */
	struct td_profiles profiles[WORLDS];
	uint32_t seeds;
};

struct outcome {
	double jct[SCHEDS], guaranteed[SCHEDS], wait_p99[SCHEDS], stops, moves;
};

static int read_source(struct batch *batch, const char *data, uint32_t at, struct td_err *err)
{
	struct td_trace *trace = &batch->traces[at];
	const struct source *source = &sources[at];
	char path[PATH_MAX];
	int r;

	snprintf(path, sizeof(path), "%s/%s", data, source->file);
	r = td_trace_read(path, false, trace, err);
	if (r)
		return r;
	batch->used[at] = calloc(trace->count + 1, sizeof(uint32_t));
	if (!batch->used[at])
		return td_err_set(err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < trace->count; i++) {
		const struct td_trace_job *job = &trace->jobs[i];

		if (job->submit_s >= source->from_s && job->submit_s < source->to_s &&
			job->gpus <= source->gpus_max && job->duration_s >= 60)
			batch->used[at][batch->used_count[at]++] = i;
	}
	if (batch->used_count[at] < JOBS)
		return td_err_set(err, -EINVAL, "%s: the trace has too few jobs", path);
	return 0;
}

/*
 * Returns the index of a seed's first job. Seeds follow each other, or are evenly spread and
 * overlap if there are too few jobs.
 */
static uint32_t first_of(uint32_t used, uint32_t seed, uint32_t seeds)
{
	if (used >= seeds * JOBS)
		return seed * JOBS;
	return seeds > 1 ? (uint32_t)((uint64_t)(used - JOBS) * seed / (seeds - 1)) : 0;
}

static void make_jobs(const struct batch *batch, uint32_t source, uint32_t seed, double load,
	struct td_sim_job *jobs)
{
	const struct td_trace *trace = &batch->traces[source];
	const uint32_t *used =
		batch->used[source] + first_of(batch->used_count[source], seed, batch->seeds);
	uint64_t state = (seed + 1) * 1000 + 17;
	double work = 0, first = trace->jobs[used[0]].submit_s, last = first, stretch;

	for (uint32_t i = 0; i < JOBS; i++) {
		const struct td_trace_job *from = &trace->jobs[used[i]];

		jobs[i] = (struct td_sim_job){.work_s = fmin(from->duration_s, 6 * 3600),
			.gpus = from->gpus,
			.profile = td_random_below(&state, batch->profiles[0].count)};
		jobs[i].class =
			td_random_below(&state, 2) ? TD_CLASS_GUARANTEED : TD_CLASS_BESTEFFORT;
		jobs[i].tenant = jobs[i].class != TD_CLASS_GUARANTEED;
		work += jobs[i].work_s * jobs[i].gpus;
		last = from->submit_s;
	}
	stretch = work / (load * GPUS) / fmax(1, last - first);
	for (uint32_t i = 0; i < JOBS; i++)
		jobs[i].submit_ns =
			(uint64_t)((trace->jobs[used[i]].submit_s - first) * stretch * 1e9);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double wait_p99(const struct td_sim_job *jobs)
{
	static double waits[JOBS];

	for (uint32_t i = 0; i < JOBS; i++)
		waits[i] = (double)(jobs[i].end_ns - jobs[i].submit_ns) * 1e-9 - jobs[i].work_s;
	qsort(waits, JOBS, sizeof(*waits), compare);
	return waits[(uint32_t)(0.99 * (JOBS - 1) + 0.5)];
}

static int run_task(void *arg, uint32_t index, void *ret, struct td_err *err)
{
	static struct td_sim_job jobs[JOBS];
	static struct td_cluster cluster;
	static const uint32_t nodes[] = {8, 8, 8, 8, 8, 8, 8, 8};
	const struct batch *batch = arg;
	struct outcome *outcome = ret;
	uint32_t seed = index % batch->seeds, at = index / batch->seeds;
	uint32_t load = at % LOADS, world = at / LOADS % WORLDS, source = at / LOADS / WORLDS;
	struct td_cluster_options options = {
		.contention = {.proportional = world == KIND, .capped_pressure = 1},
		.costs = {.restart_s = 60, .checkpoint_s = 1800},
		.stop = &td_sim_stop};
	double metrics[TD_METRIC_N];

	make_jobs(batch, source, seed, loads[load], jobs);
	for (uint32_t s = 0; s < SCHEDS; s++) {
		if (td_cluster_init(&cluster, &options, &batch->profiles[world], nodes, 8, 0, jobs,
			    JOBS, scheds[s]))
			return td_err_set(err, -EINVAL, "the scheduler %s cannot run the jobs",
				scheds[s]->name);
		td_cluster_run(&cluster);
		if (td_metrics_of(&cluster, metrics, NULL))
			return td_err_set(err, -ENOMEM, "out of memory");
		if (metrics[TD_METRIC_DONE] < JOBS)
			return td_err_set(err, -EIO, "the scheduler %s did not finish %.0f jobs",
				scheds[s]->name, JOBS - metrics[TD_METRIC_DONE]);
		outcome->jct[s] = metrics[TD_METRIC_JCT_MEAN_S];
		outcome->guaranteed[s] = metrics[TD_METRIC_GUARANTEED_JCT_MEAN_S];
		outcome->wait_p99[s] = wait_p99(jobs);
		if (!s) {
			outcome->stops = (double)cluster.counts.suspensions;
			outcome->moves = metrics[TD_METRIC_MOVES];
		}
		td_cluster_deinit(&cluster);
	}
	return 0;
}

/* Returns the other scheduler that has the best median of a figure. */
static uint32_t best_of(const struct outcome *outcomes, uint32_t seeds, size_t offset)
{
	double values[SEEDS_MAX], least = INFINITY;
	uint32_t best = 1;

	for (uint32_t s = 1; s < SCHEDS; s++) {
		double median;

		for (uint32_t k = 0; k < seeds; k++)
			values[k] = ((const double *)(const void *)((const char *)&outcomes[k] +
								    offset))[s];
		median = td_median(values, seeds);
		if (median < least) {
			least = median;
			best = s;
		}
	}
	return best;
}

static void put_setting(struct td_experiment_run *run, uint32_t at, const struct outcome *outcomes)
{
	uint32_t jct = best_of(outcomes, run->seeds, offsetof(struct outcome, jct));
	uint32_t wait = best_of(outcomes, run->seeds, offsetof(struct outcome, wait_p99));
	double ratios[SEEDS_MAX], sorted[SEEDS_MAX], waits[SEEDS_MAX], held[SEEDS_MAX], stops = 0;
	char metric[96], note[256], spread[64];

	for (uint32_t k = 0; k < run->seeds; k++) {
		const struct outcome *o = &outcomes[k];

		sorted[k] = ratios[k] = o->jct[jct] / o->jct[0];
		waits[k] = o->wait_p99[0] / o->wait_p99[wait];
		held[k] = o->guaranteed[0] / o->guaranteed[2];
		stops += o->stops / run->seeds;
	}
	td_spread(sorted, run->seeds, spread);
	snprintf(metric, sizeof(metric),
		"%s, load %.1f, %s: mean JCT of the best other over tandem's",
		sources[at / LOADS / WORLDS].name, loads[at % LOADS],
		world_names[at / LOADS % WORLDS]);
	snprintf(note, sizeof(note),
		"best other: %s; P99 wait %.2fx that of %s; guaranteed jobs' JCT %.2fx that under "
		"preempt; %.0f stops",
		scheds[jct]->name, td_median(waits, run->seeds), scheds[wait]->name,
		td_median(held, run->seeds), stops);
	td_row_put(run, TD_SHOWN, metric, "", spread, note, "%.2fx", td_median(sorted, run->seeds));
	td_row_beside(run, ratios, run->seeds, 1, true);
}

static int run_all(struct td_experiment_run *run, struct batch *batch, struct td_err *err)
{
	uint32_t settings = SOURCES * WORLDS * LOADS;
	td_auto_free struct outcome *outcomes =
		calloc((size_t)settings * run->seeds, sizeof(*outcomes));
	int r;

	if (!outcomes)
		return td_err_set(err, -ENOMEM, "out of memory");
	r = td_workers_run(run->jobs, settings * run->seeds, run_task, batch, outcomes,
		sizeof(*outcomes), err);
	for (uint32_t s = 0; !r && s < settings; s++)
		put_setting(run, s, outcomes + (size_t)s * run->seeds);
	return r;
}

int td_exp_queues(struct td_experiment_run *run, struct td_err *err)
{
	td_auto_free struct batch *batch = calloc(1, sizeof(*batch));
	int r;

	if (!batch)
		return td_err_set(err, -ENOMEM, "out of memory");
	batch->seeds = run->seeds;
	r = td_profiles_fit(run->data, "p100", &batch->profiles[FITTED], err);
	batch->profiles[KIND] = batch->profiles[HARSH] = batch->profiles[FITTED];
	for (uint32_t k = 0; k < batch->profiles[HARSH].count; k++)
		batch->profiles[HARSH].profiles[k].contender.pressure *= 2;
	for (uint32_t s = 0; !r && s < SOURCES; s++)
		r = read_source(batch, run->data, s, err);
	r = r ? r : run_all(run, batch, err);
	for (uint32_t s = 0; s < SOURCES; s++) {
		td_trace_deinit(&batch->traces[s]);
		free(batch->used[s]);
	}
	return r;
}
