/*
 * The experiment mixed has services, guaranteed jobs, besteffort jobs and notebooks on one
 * oversubscribed cluster, which no paper has.
 *
 * Everything below was fixed before any policy was run on it; for tandem, all but the duty in
 * slo_split.h (docs/results/experiments.md). There are 64 GPUs of 40 GiB, 8 on a node, three of
 * each node with a service at 30 % of its greatest throughput (zoo.h). In 24 hours come
 * - guaranteed jobs for 0.35 of the cluster, of 1, 2, 4 and 8 GPUs;
 * - besteffort jobs for 0.6, nine in ten of one GPU;
 * - notebooks for 0.4, of one GPU, one to four hours, hardly ever busy.
 *
 * With the services that is 1.7 times the cluster. Kinds are those of Table 3 of Mudi, durations
 * those of Philly's jobs of one GPU from one minute, at most six hours.
 *
 * Main measure: mean completion time of all jobs. Guard: services late in at most 2 % of their
 * time, and guaranteed jobs on their GPUs at most 1.05 times as long as alone, both in the mean.
 * Each system takes the classes that it knows; other jobs count for it as plain jobs.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "sim/base/random.h"
#include "sim/base/sim.h"
#include "sim/base/workers.h"
#include "sim/data/trace.h"
#include "sim/report/experiment.h"
#include "sim/scheduler/schedulers.h"

#ifdef TD_HAVE_LEARN
#include "sim/scheduler/knowledge.h"

#define NODES       8u
#define GPUS        64u
#define SERVED      3u /* GPUs of each node that have a service */
#define JOBS_MAX    4000u
#define DAY_S       86400.
#define HORIZON_S   (20 * DAY_S)
#define SEEDS_MAX   50u
#define GIB         0x1p30
#define LATE_MOST   2.
#define SLOWER_MOST 1.05

enum { GUARANTEED, BESTEFFORT, NOTEBOOK, SORTS };

static const double loads[SORTS] = {0.35, 0.6, 0.4};

enum { FIFO, NVSHARE, ANTMAN, MUXFLOW, MUDI, DCUDA, TANDEM, POLICIES };

static const struct {
	const char *name;
	const struct td_sched *sched;
} policies[POLICIES] = {{"FIFO", &td_sched_fifo}, {"nvshare", &td_sched_nvshare},
	{"AntMan", &td_sched_antman}, {"MuxFlow", &td_sched_muxflow}, {"Mudi", &td_sched_mudi},
	{"DCUDA", &td_sched_dcuda}, {"tandem", &td_sched_tandem}};

static const struct {
	const char *name;
	struct td_contention contention;
} variants[] = {{"fitted", {false, 1}}, {"proportional", {true, 1}}, {"doubled", {false, 2}},
	{"halved", {false, 0.5}}};

struct world {
	struct td_zoo zoo;
	struct td_knowledge knowledge;
	struct td_cluster cluster;
	struct td_batch_table table;
	struct td_service services[NODES * SERVED];
	float rates[NODES * SERVED * TD_ZOO_INTERVALS];
	struct td_sim_job jobs[JOBS_MAX];
	uint32_t count;
	double *durations;
	uint32_t duration_count;
};

struct outcome {
	double jct_s, by_sort_s[SORTS], late, slower, wait_s, moves;
	/* The process that simulates writes these; it may be a forked one. */
	uint32_t jobs, unfinished;
};

static int by_submit(const void *a, const void *b)
{
	const struct td_sim_job *x = a, *y = b;

	return (x->submit_ns > y->submit_ns) - (x->submit_ns < y->submit_ns);
}

static uint32_t draw_gpus(int sort, uint64_t *random)
{
	double at = td_random_unit(random);

	if (sort == NOTEBOOK)
		return 1;
	if (sort == BESTEFFORT)
		return at < 0.9 ? 1 : at < 0.96 ? 2 : 4;
	return at < 0.7 ? 1 : at < 0.85 ? 2 : at < 0.95 ? 4 : 8;
}

static void make_jobs(struct world *w, uint32_t seed)
{
	uint64_t random = seed * 17 + 3;

	w->count = 0;
	for (int sort = 0; sort < SORTS; sort++) {
		double left = loads[sort] * GPUS * DAY_S;

		while (left > 0 && w->count < JOBS_MAX) {
			struct td_sim_job *job = &w->jobs[w->count++];
			bool notebook = sort == NOTEBOOK;
			double span =
				notebook
					? 3600 + 10800 * td_random_unit(&random)
					: w->durations[td_random_below(&random, w->duration_count)];

			*job = (struct td_sim_job){
				.submit_ns = (uint64_t)(DAY_S * td_random_unit(&random) * 1e9),
				.work_s = span,
				.gpus = draw_gpus(sort, &random),
				.profile = notebook ? TD_ZOO_NOTEBOOK
						    : td_zoo_draw_task(&w->zoo, &random),
				.class = sort == GUARANTEED ? TD_CLASS_GUARANTEED
							    : TD_CLASS_BESTEFFORT,
				.tenant = (uint32_t)sort,
				.memory_bytes =
					(uint64_t)((notebook ? 4 + 6 * td_random_unit(&random)
							     : 6 + 14 * td_random_unit(&random)) *
						   GIB),
				.host_cost = 4};
			left -= job->work_s * job->gpus;
		}
	}
	qsort(w->jobs, w->count, sizeof(w->jobs[0]), by_submit);
}

static void make_services(struct world *w, uint32_t seed)
{
	uint64_t random = seed * 53 + 11;

	for (uint32_t s = 0; s < NODES * SERVED; s++) {
		w->services[s] = (struct td_service){
			.gpu = s / SERVED * 8 + s % SERVED, .kind = s % TD_ZOO_SERVICES};
		td_zoo_rates(&w->zoo, s % TD_ZOO_SERVICES, 2, &random,
			w->rates + (size_t)s * TD_ZOO_INTERVALS);
	}
}

static void summarise(const struct world *w, struct outcome *ret)
{
	uint32_t counts[SORTS] = {0};

	*ret = (struct outcome){.late = 100 * td_cluster_late(&w->cluster, TD_SERVICE_NONE),
		.moves = (double)w->cluster.counts.moves,
		.jobs = w->count};
	for (uint32_t i = 0; i < w->count; i++)
		counts[w->jobs[i].tenant]++;
	for (uint32_t i = 0; i < w->count; i++) {
		const struct td_sim_job *job = &w->jobs[i];
		bool done = job->status == TD_SIM_DONE;
		uint64_t end = done ? job->end_ns : w->cluster.now_ns;
		uint64_t start = job->start_ns == TD_NEVER ? end : job->start_ns;
		double jct = (double)(end - job->submit_ns) * 1e-9;

		ret->unfinished += !done;
		ret->jct_s += jct / w->count;
		ret->by_sort_s[job->tenant] += jct / counts[job->tenant];
		ret->wait_s += job->tenant == NOTEBOOK
				       ? (double)(start - job->submit_ns) * 1e-9 / counts[NOTEBOOK]
				       : 0;
		if (job->tenant == GUARANTEED)
			ret->slower +=
				(double)(end - start) * 1e-9 / job->work_s / counts[GUARANTEED];
	}
}

static int simulate(struct world *w, int variant, int policy, uint32_t seed, struct outcome *ret,
	struct td_err *err)
{
	static const uint32_t nodes[NODES] = {8, 8, 8, 8, 8, 8, 8, 8};
	struct td_services services = {.kinds = w->zoo.services,
		.kind_count = TD_ZOO_SERVICES,
		.list = w->services,
		.count = NODES * SERVED,
		.rates = w->rates,
		.intervals = TD_ZOO_INTERVALS,
		.interval_ns = TD_ZOO_INTERVAL_NS};
	const struct td_cluster_options options = {.contention = variants[variant].contention,
		.costs = {.restart_s = 60, .repartition_s = 5, .checkpoint_s = 1800},
		.seed = seed,
		.until_s = HORIZON_S,
		.services = &services,
		.table = &w->table,
		.knowledge = &w->knowledge.view,
		.stop = &td_sim_stop};
	int r = td_cluster_init(&w->cluster, &options, &w->zoo.tasks, nodes, NODES, 40ull << 30,
		w->jobs, w->count, policies[policy].sched);

	if (r)
		return td_err_set(err, r, "the scheduler %s cannot run the jobs: %s",
			policies[policy].name, strerror(-r));
	td_cluster_run(&w->cluster);
	summarise(w, ret);
	td_cluster_deinit(&w->cluster);
	return 0;
}

static double median_of(const struct outcome (*out)[POLICIES], uint32_t seeds, int policy,
	double (*get)(const struct outcome *), double *ret_values)
{
	double values[SEEDS_MAX];

	for (uint32_t s = 0; s < seeds; s++)
		values[s] = get(&out[s][policy]);
	if (ret_values)
		memcpy(ret_values, values, seeds * sizeof(double));
	return td_median(values, seeds);
}

static double get_jct(const struct outcome *out)
{
	return out->jct_s;
}

static double get_late(const struct outcome *out)
{
	return out->late;
}

static double get_slower(const struct outcome *out)
{
	return out->slower;
}

static double get_guaranteed(const struct outcome *out)
{
	return out->by_sort_s[GUARANTEED];
}

static double get_besteffort(const struct outcome *out)
{
	return out->by_sort_s[BESTEFFORT];
}

static double get_notebook(const struct outcome *out)
{
	return out->by_sort_s[NOTEBOOK];
}

static double get_wait(const struct outcome *out)
{
	return out->wait_s;
}

static bool is_guarded(const struct outcome (*out)[POLICIES], uint32_t seeds, int policy)
{
	return median_of(out, seeds, policy, get_late, NULL) <= LATE_MOST &&
	       median_of(out, seeds, policy, get_slower, NULL) <= SLOWER_MOST;
}

static void put_policy(struct td_experiment_run *run, const char *variant,
	const struct outcome (*out)[POLICIES], int policy)
{
	uint32_t n = run->seeds;
	double values[SEEDS_MAX], jct = median_of(out, n, policy, get_jct, values);
	char metric[96], spread[64], note[200];

	td_spread(values, n, spread);
	snprintf(metric, sizeof(metric), "%s: mean completion time, %s", policies[policy].name,
		variant);
	snprintf(note, sizeof(note),
		"late %.2f %%, guaranteed %.2fx as long on GPUs%s; JCT guaranteed %.0f, besteffort "
		"%.0f, notebooks %.0f s, these wait %.0f s",
		median_of(out, n, policy, get_late, NULL),
		median_of(out, n, policy, get_slower, NULL),
		is_guarded(out, n, policy) ? "" : ": guard does not hold",
		median_of(out, n, policy, get_guaranteed, NULL),
		median_of(out, n, policy, get_besteffort, NULL),
		median_of(out, n, policy, get_notebook, NULL),
		median_of(out, n, policy, get_wait, NULL));
	td_row_put(run, TD_SHOWN, metric, "", spread, note, "%.0f s", jct);
}

/*
 * Adds the row of the best system among those whose guard holds. Names faster ones whose guard
 * fails.
 */
static void put_best(
	struct td_experiment_run *run, const char *variant, const struct outcome (*out)[POLICIES])
{
	uint32_t n = run->seeds;
	double own = median_of(out, n, TANDEM, get_jct, NULL), best = INFINITY;
	const char *faster = NULL;
	double ratios[SEEDS_MAX];
	char metric[96], note[200], spread[64];
	int who = FIFO;

	for (int p = 0; p < TANDEM; p++) {
		double jct = median_of(out, n, p, get_jct, NULL);

		if (is_guarded(out, n, p) && jct < best) {
			best = jct;
			who = p;
		}
		if (!is_guarded(out, n, p) && jct < own)
			faster = policies[p].name;
	}
	for (uint32_t s = 0; s < n; s++)
		ratios[s] = out[s][who].jct_s / out[s][TANDEM].jct_s;
	td_spread(ratios, n, spread);
	snprintf(metric, sizeof(metric), "tandem against the best with its guard, %s", variant);
	snprintf(note, sizeof(note), "%s%s%s%s",
		is_guarded(out, n, TANDEM) ? "" : "tandem's guard does not hold; ",
		"best of the others: ", policies[who].name,
		faster ? "; faster at the cost of others: " : "");
	if (faster)
		snprintf(note + strlen(note), sizeof(note) - strlen(note), "%s", faster);
	td_row_put(run, TD_SHOWN, metric, "", spread, note, "%.2fx", td_median(ratios, n));
	td_row_beside(run, ratios, n, 1, is_guarded(out, n, TANDEM));
}

/* The simulations of one variant: a task for each seed and policy. */
struct batch {
	struct world *w;
	int variant;
};

static int run_task(void *arg, uint32_t index, void *ret, struct td_err *err)
{
	struct batch *batch = arg;
	uint32_t seed = index / POLICIES + 1;

	make_jobs(batch->w, seed);
	make_services(batch->w, seed);
	return simulate(batch->w, batch->variant, (int)(index % POLICIES), seed, ret, err);
}

static int run_variant(
	struct td_experiment_run *run, struct world *w, int variant, struct td_err *err)
{
	static struct outcome out[SEEDS_MAX][POLICIES];
	struct batch batch = {w, variant};
	int r = td_knowledge_learn(&w->zoo, &variants[variant].contention, TD_LAYERS_TRUE, 99,
		run->quick, &w->knowledge, err);

	r = r ? r
	      : td_workers_run(run->jobs, run->seeds * POLICIES, run_task, &batch, out,
			sizeof(out[0][0]), err);
	td_knowledge_deinit(&w->knowledge);
	w->knowledge = (struct td_knowledge){.profiling_gpu_s = 0};
	if (r)
		return r;
	for (int p = 0; p < POLICIES; p++)
		put_policy(run, variants[variant].name, (const struct outcome(*)[POLICIES])out, p);
	put_best(run, variants[variant].name, (const struct outcome(*)[POLICIES])out);
	for (int p = 0; p < POLICIES; p++)
		if (out[0][p].unfinished > 0 || out[0][p].moves > 0)
			fprintf(run->report,
				"%s, %s, first seed: %.0f moves; %u of %u jobs were not done after "
				"20 days.\n\n",
				variants[variant].name, policies[p].name, out[0][p].moves,
				out[0][p].unfinished, out[0][p].jobs);
	return 0;
}

static int read_durations(struct world *w, const char *data, struct td_err *err)
{
	struct td_trace trace;
	char path[PATH_MAX];
	int r;

	snprintf(path, sizeof(path), "%s/jobs_philly.csv.gz", data);
	r = td_trace_read(path, false, &trace, err);
	if (r)
		return r;
	w->durations = calloc(trace.count + 1, sizeof(*w->durations));
	for (uint32_t i = 0; w->durations && i < trace.count; i++)
		if (trace.jobs[i].gpus == 1 && trace.jobs[i].duration_s >= 60)
			w->durations[w->duration_count++] = fmin(trace.jobs[i].duration_s, 21600);
	td_trace_deinit(&trace);
	if (!w->durations)
		return td_err_set(err, -ENOMEM, "out of memory");
	return w->duration_count
		       ? 0
		       : td_err_set(err, -ENOENT, "the trace has no job that uses one GPU");
}

int td_exp_mixed(struct td_experiment_run *run, struct td_err *err)
{
	struct world *w = calloc(1, sizeof(*w));
	int r = w ? td_zoo_read(run->data, &w->zoo, err)
		  : td_err_set(err, -ENOMEM, "out of memory");

	r = r ? r : read_durations(w, run->data, err);
	for (uint32_t s = 0; !r && s < TD_ZOO_SERVICES; s++)
		w->zoo.services[s].memory_bytes = (uint64_t)(8 * GIB);
	for (int v = 0; !r && v < (run->quick ? 1 : 4); v++)
		r = run_variant(run, w, v, err);
	fprintf(run->report,
		"The guard: in the median over the seeds services are late for at most %.0f %% "
		"of the time, and guaranteed jobs take at most %.2f times as long on GPUs as "
		"alone. A system that does not hold it is not compared with tandem.\n\n",
		LATE_MOST, SLOWER_MOST);
	fputs("FIFO puts no jobs on GPUs with a service. nvshare puts jobs on all GPUs in "
	      "turn, with turns of 30 s. DCUDA puts them on the least loaded GPU and moves "
	      "them. Both treat services like other jobs. MuxFlow and Mudi run one job on a "
	      "GPU, guaranteed or not. AntMan's guests beside a service run under the duty "
	      "that keeps its batches within 4 %.\n\n"
	      "Contention variants: FIFO, nvshare, AntMan and DCUDA do not cap SMs, so the "
	      "variants with doubled and halved pressure of capped jobs are the same run as "
	      "the fitted one for them. FIFO and nvshare run one job on a GPU at a time, so "
	      "all four variants are the same run for them.\n",
		run->report);
	if (w)
		free(w->durations);
	free(w);
	return r;
}
#else
int td_exp_mixed(struct td_experiment_run *run, struct td_err *err)
{
	return td_err_set(
		err, -ENOSYS, "%s: built without BLAS, so nothing can be trained", run->name);
}
#endif
