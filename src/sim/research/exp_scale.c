/*
 * The experiment scale runs ten days of pooled Philly (four when quick), in 32 jittered copies, on
 * 20,000 GPUs. The experiment alibaba places 8,152 pods on 1,523 nodes.
 *
 * The papers have no such figure, so rows are only shown. Only here does tandem-sim report wall
 * times, which are of the machine that it runs on and differ from run to run.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/time.h"
#include "sim/base/random.h"
#include "sim/base/sim.h"
#include "sim/base/workers.h"
#include "sim/engine/metrics.h"
#include "sim/report/experiment.h"
#include "sim/scheduler/schedulers.h"

#define COPIES   32u
#define BIG_GPUS 20000u

static int by_submit(const void *a, const void *b)
{
	const struct td_sim_job *x = a, *y = b;

	if (x->submit_ns != y->submit_ns)
		return x->submit_ns < y->submit_ns ? -1 : 1;
	return (x->trace_index > y->trace_index) - (x->trace_index < y->trace_index);
}

static struct td_sim_job *make_copies(
	const struct td_trace *trace, double from_day, double to_day, uint32_t kinds, uint32_t *ret)
{
	struct td_sim_job *jobs = calloc((size_t)trace->count * COPIES + 1, sizeof(*jobs));
	uint64_t state = 32;
	uint32_t count = 0;

	for (uint32_t c = 0; jobs && c < COPIES; c++) {
		for (uint32_t i = 0; i < trace->count; i++) {
			const struct td_trace_job *from = &trace->jobs[i];
			double at = from->submit_s + 3600 * td_random_unit(&state);

			if (from->submit_s < from_day * 86400 || from->submit_s >= to_day * 86400)
				continue;
			jobs[count] = (struct td_sim_job){.submit_ns = (uint64_t)(at * 1e9),
				.work_s = fmax(
					1, from->duration_s * (0.9 + 0.2 * td_random_unit(&state))),
				.gpus = from->gpus,
				.trace_index = count,
				.tenant = from->tenant == TD_TRACE_NONE ? 0 : from->tenant,
				.class = td_random_below(&state, 2) ? TD_CLASS_GUARANTEED
								    : TD_CLASS_BESTEFFORT,
				.profile = td_random_below(&state, kinds),
				.host_cost = 1};
			count++;
		}
	}
	if (jobs)
		qsort(jobs, count, sizeof(*jobs), by_submit);
	*ret = count;
	return jobs;
}

/*
 * The longest run is first. AntMan without its guard and with moves explain the result of AntMan.
 */
enum { TANDEM, ANTMAN, MOVING, UNGUARDED, FIFO, BIG_SCHEDS };
static const struct {
	const struct td_sched *sched;
	const char *name;
} big_scheds[BIG_SCHEDS] = {
	[TANDEM] = {&td_sched_tandem, "tandem"},
	[ANTMAN] = {&td_sched_antman, "antman"},
	[MOVING] = {&td_sched_antman_moving, "antman, if its guests moved"},
	[UNGUARDED] = {&td_sched_antman, "antman, without its guard"},
	[FIFO] = {&td_sched_fifo, "fifo"},
};

struct big {
	const struct td_profiles *profiles;
	struct td_sim_job *jobs;
	uint32_t count;
};

struct big_result {
	double metrics[TD_METRIC_N], took_s;
	double arriving_gpus; /* mean of busy GPUs until the last job has come */
};

static int run_big(void *arg, uint32_t index, void *ret, struct td_err *err)
{
	static struct td_cluster cluster;
	static uint32_t nodes[BIG_GPUS / 8];
	struct td_sched sched = *big_scheds[index].sched;
	struct big *big = arg;
	struct big_result *result = ret;
	struct td_progress progress;
	struct td_cluster_options options = {.contention = {.capped_pressure = 1},
		.costs = {.restart_s = 60, .checkpoint_s = 1800},
		.stop = &td_sim_stop};
	uint64_t began_ns = td_time_now_ns();
	int r;

	sched.guards &= index != UNGUARDED;
	if (!index) { /* this run is the last to end of those at the same time */
		options.progress = td_progress_put;
		options.progress_arg = &progress;
	}
	for (uint32_t n = 0; n < BIG_GPUS / 8; n++)
		nodes[n] = 8;
	r = td_cluster_init(&cluster, &options, big->profiles, nodes, BIG_GPUS / 8, 0, big->jobs,
		big->count, &sched);
	if (r)
		return td_err_set(err, r, "the scheduler %s cannot run the trace: %s", sched.name,
			strerror(-r));
	td_progress_begin(&progress, sched.name);
	td_cluster_run(&cluster);
	td_progress_end(&progress);
	result->took_s = (double)(td_time_now_ns() - began_ns) * 1e-9;
	result->arriving_gpus =
		cluster.counts.arriving_busy_gpu_s / fmax(1, cluster.counts.arriving_s);
	r = td_metrics_of(&cluster, result->metrics, NULL);
	td_cluster_deinit(&cluster);
	return r ? td_err_set(err, r, "out of memory") : 0;
}

static void put_big(struct td_experiment_run *run, const char *name, uint32_t count, uint32_t days,
	const struct big_result *result)
{
	const double *metrics = result->metrics;
	char metric[96], note[160];

	snprintf(metric, sizeof(metric), "%s: mean JCT, busy GPUs while jobs come, moves", name);
	snprintf(note, sizeof(note),
		"one seed; %u days of the trace, %u times; over all of the run, to its last end "
		"after %.0f days, %.0f are busy; %.0f evictions",
		days, COPIES, metrics[TD_METRIC_SIMULATED_S] / 86400,
		metrics[TD_METRIC_BUSY_PERCENT] * BIG_GPUS / 100, metrics[TD_METRIC_EVICTIONS]);
	td_row_put(run, TD_SHOWN, metric, "", "", note, "%.0f s, %.0f of 20,000, %.0f",
		metrics[TD_METRIC_JCT_MEAN_S], result->arriving_gpus, metrics[TD_METRIC_MOVES]);
	snprintf(metric, sizeof(metric), "%s: %u jobs, wall time", name, count);
	td_row_put(run, TD_SHOWN, metric, "", "", "this machine; changes from run to run",
		"%.1f s, %.2f M events/s", result->took_s,
		metrics[TD_METRIC_EVENTS] / result->took_s * 1e-6);
}

static double percent_over(const struct big_result *result, const struct big_result *other)
{
	return 100 *
	       (result->metrics[TD_METRIC_JCT_MEAN_S] / other->metrics[TD_METRIC_JCT_MEAN_S] - 1);
}

/*
 * Explains AntMan's result beside FIFO's: which jobs' completion times differ, and how they are
 * without its guard or if its guests moved.
 */
static void put_why(struct td_experiment_run *run, const struct big_result *results)
{
	const double *antman = results[ANTMAN].metrics, *fifo = results[FIFO].metrics;

	fprintf(run->report,
		"Mean completion times against FIFO's: AntMan %+.1f %%; its guaranteed jobs "
		"%+.1f %%, all others %+.1f %%. %.1f %% of its jobs start beside others. "
		"Without its guard, which gives a guest beside a guaranteed job a few per cent "
		"of a GPU, AntMan would have %+.1f %%. With its guard, and with guests that "
		"move to GPUs without jobs, it would have %+.1f %% by %.0f moves. tandem has "
		"%+.1f %%.\n\n",
		percent_over(&results[ANTMAN], &results[FIFO]),
		100 * (antman[TD_METRIC_GUARANTEED_JCT_MEAN_S] /
				      fifo[TD_METRIC_GUARANTEED_JCT_MEAN_S] -
			      1),
		100 * (antman[TD_METRIC_OTHER_JCT_MEAN_S] / fifo[TD_METRIC_OTHER_JCT_MEAN_S] - 1),
		100 * antman[TD_METRIC_GUEST_STARTS] / antman[TD_METRIC_JOBS],
		percent_over(&results[UNGUARDED], &results[FIFO]),
		percent_over(&results[MOVING], &results[FIFO]),
		results[MOVING].metrics[TD_METRIC_MOVES],
		percent_over(&results[TANDEM], &results[FIFO]));
}

int td_exp_scale(struct td_experiment_run *run, struct td_err *err)
{
	struct big_result results[BIG_SCHEDS];
	struct big big;
	td_auto_free struct td_profiles *profiles = calloc(1, sizeof(*profiles));
	td_auto_free struct td_sim_job *jobs = NULL;
	struct td_trace trace;
	char path[PATH_MAX];
	uint32_t count, days = run->quick ? 4 : 10;
	int r;

	if (!profiles)
		return td_err_set(err, -ENOMEM, "out of memory");
	r = td_profiles_fit(run->data, "p100", profiles, err);
	snprintf(path, sizeof(path), "%s/jobs_philly.csv.gz", run->data);
	r = r ? r : td_trace_read(path, false, &trace, err);
	if (r)
		return r;
	jobs = make_copies(&trace, 20, 20 + days, profiles->count, &count);
	td_trace_deinit(&trace);
	if (!jobs)
		return td_err_set(err, -ENOMEM, "out of memory");
	big = (struct big){profiles, jobs, count};
	r = td_workers_run(run->jobs, BIG_SCHEDS, run_big, &big, results, sizeof(results[0]), err);
	for (uint32_t s = BIG_SCHEDS; !r && s--;)
		put_big(run, big_scheds[s].name, count, days, &results[s]);
	if (!r)
		put_why(run, results);
	fprintf(run->report,
		"No paper has this run, so there is nothing to compare it with. The jobs are "
		"those that came to Philly in %u days, from day 20 to day %u of the trace, %u "
		"times. A copy does not have other days: its jobs come up to an hour later and "
		"take up to 10 %% longer or shorter, so the whole cluster has the peaks of the "
		"same days at once. Half of the jobs are guaranteed, and their kinds are "
		"Gavel's at random. There is one seed.\n",
		days, 20 + days, COPIES);
	return r;
}

/* --- alibaba --- */

struct host {
	uint32_t cpu_milli, memory_mib, gpus;
	uint32_t free_milli[16];
};

enum fit { FIRST_FIT, BEST_FIT };

static bool has_room(const struct host *host, const struct td_trace_job *pod, uint32_t *ret_free)
{
	uint32_t whole = 0, sum = 0;
	bool part = false;

	if (host->cpu_milli < pod->cpu_milli || host->memory_mib < pod->memory_mib)
		return false;
	for (uint32_t g = 0; g < host->gpus; g++) {
		whole += host->free_milli[g] == 1000;
		part |= host->free_milli[g] >= pod->gpu_milli;
		sum += host->free_milli[g];
	}
	*ret_free = sum;
	return pod->gpu_milli < 1000 ? part : whole >= pod->gpus;
}

static void put_on(struct host *host, const struct td_trace_job *pod)
{
	uint32_t left = pod->gpus, best = UINT32_MAX;

	host->cpu_milli -= pod->cpu_milli;
	host->memory_mib -= pod->memory_mib;
	for (uint32_t g = 0; g < host->gpus; g++) {
		if (pod->gpu_milli < 1000) {
			/* Chooses the GPU with the least room that suffices. */
			if (host->free_milli[g] >= pod->gpu_milli &&
				(best == UINT32_MAX ||
					host->free_milli[g] < host->free_milli[best]))
				best = g;
		} else if (left && host->free_milli[g] == 1000) {
			host->free_milli[g] = 0;
			left--;
		}
	}
	if (best != UINT32_MAX)
		host->free_milli[best] -= pod->gpu_milli;
}

static uint32_t place(
	struct host *hosts, uint32_t count, const struct td_trace_job *pod, enum fit fit)
{
	uint32_t best = UINT32_MAX, least = UINT32_MAX;

	for (uint32_t h = 0; h < count; h++) {
		uint32_t left;

		if (!has_room(&hosts[h], pod, &left) || left >= least)
			continue;
		best = h;
		least = left;
		if (fit == FIRST_FIT)
			break;
	}
	if (best != UINT32_MAX)
		put_on(&hosts[best], pod);
	return best;
}

static void run_fit(struct td_experiment_run *run, const struct td_trace *pods,
	const struct td_nodes *nodes, struct host *hosts, enum fit fit)
{
	uint32_t placed = 0;
	uint64_t began_ns, free_milli = 0;
	const char *name = fit == FIRST_FIT ? "first fit" : "best fit";
	char metric[96];
	double took;

	for (uint32_t n = 0; n < nodes->count; n++) {
		const struct td_node *node = &nodes->nodes[n];

		hosts[n] = (struct host){
			node->cpu_milli, node->memory_mib, node->gpus > 16 ? 16 : node->gpus, {0}};
		for (uint32_t g = 0; g < hosts[n].gpus; g++)
			hosts[n].free_milli[g] = 1000;
	}
	began_ns = td_time_now_ns();
	for (uint32_t i = 0; i < pods->count; i++)
		placed += place(hosts, nodes->count, &pods->jobs[i], fit) != UINT32_MAX;
	took = (double)(td_time_now_ns() - began_ns) * 1e-9;
	for (uint32_t n = 0; n < nodes->count; n++)
		for (uint32_t g = 0; g < hosts[n].gpus; g++)
			free_milli += hosts[n].free_milli[g];
	snprintf(metric, sizeof(metric), "%s: pods placed, GPUs left unallocated", name);
	td_row_put(run, TD_SHOWN, metric, "", "", "in order of arrival, none leaves",
		"%u of %u, %.1f of %u", placed, pods->count, (double)free_milli / 1000,
		nodes->gpus);
	snprintf(metric, sizeof(metric), "%s: placements per second", name);
	td_row_put(run, TD_SHOWN, metric, "14/s (their simulator)", "",
		"this machine; changes from run to run", "%.0f/s, %.3f s in all",
		pods->count / took, took);
}

int td_exp_alibaba(struct td_experiment_run *run, struct td_err *err)
{
	td_auto_free struct host *hosts = NULL;
	struct td_trace pods = {0};
	struct td_nodes nodes = {0};
	char path[PATH_MAX];
	int r;

	snprintf(path, sizeof(path), "%s/jobs_alibaba_gpu2023.csv.gz", run->data);
	r = td_trace_read(path, false, &pods, err);
	snprintf(path, sizeof(path), "%s/nodes_alibaba_gpu2023.csv", run->data);
	r = r ? r : td_nodes_read(path, false, &nodes, err);
	hosts = r ? NULL : calloc(nodes.count + 1, sizeof(*hosts));
	if (!r && !hosts)
		r = td_err_set(err, -ENOMEM, "out of memory");
	if (!r) {
		run_fit(run, &pods, &nodes, hosts, FIRST_FIT);
		run_fit(run, &pods, &nodes, hosts, BEST_FIT);
		fprintf(run->report,
			"%u pods ask for a GPU; %u ask for none and are left out. The GPU model "
			"that a "
			"pod asks for (gpu_spec) is ignored. No policy of src/policy places parts "
			"of "
			"GPUs across nodes, so first fit and best fit are plain rules of the "
			"simulator.\n",
			pods.count, pods.gpuless);
	}
	td_trace_deinit(&pods);
	td_nodes_deinit(&nodes);
	return r;
}
