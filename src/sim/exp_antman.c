/*
 * antman-table2 and antman-trace.
 *
 * antman-table2: two jobs on one GPU of 32 GB. Only order and mechanism are tested: what host memory costs Job-B is fitted to UMem's cell.
 *
 * antman-trace: neither jobs nor profiles are public. Philly's days 20-99, at most 8 GPUs, at least 60 s, at most 6 h, 800 in order for each seed, on 64 GPUs, arrivals stretched to offered loads; half of the jobs
 * guaranteed, half without quota, at random as in the paper. Kinds: the nearest of Gavel's jobs, mixed as in Table 3. Host memory costs half of the jobs 0.37 and half 15
 * per unit on the host, the two ends of the paper's Fig. 10.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "sim/experiment.h"
#include "sim/metrics.h"
#include "sim/random.h"
#include "sim/sched.h"
#include "sim/sim.h"
#include "sim/workers.h"

#define JOBS      800u
#define GPUS      64u
#define SEEDS_MAX 50u
#define GIB       0x1p30

/* --- Table 2 --- */

#define A_S 2580. /* 43.0 min */
#define B_S 5466. /* 91.1 min */

static void put_minutes(struct td_experiment_run *run, const char *metric, const char *paper,
	bool held, double seconds, const char *note)
{
	td_row_put(run, held ? TD_REPRODUCED : TD_NOT_REPRODUCED, metric, paper, "", note,
		"%.1f min", seconds / 60);
}

static int run_two(const struct td_profiles *profiles, const struct td_sched *sched,
	const char *const names[2], struct td_sim_job *jobs, struct td_err *err)
{
	static struct td_cluster cluster;
	struct td_cluster_options options = {.contention = {.capped_pressure = 1}};
	uint32_t nodes[] = {1};
	int r;

	for (int i = 0; i < 2; i++) {
		int kind = td_profiles_find(profiles, names[i]);

		if (kind < 0)
			return td_err_set(err, -ENOENT, "there is no profile of %s", names[i]);
		jobs[i] = (struct td_sim_job){.submit_ns = i ? 1560000000000ull : 0,
			.work_s = i ? B_S : A_S,
			.gpus = 1,
			.tenant = (uint32_t)i,
			.profile = (uint32_t)kind,
			.class = i ? TD_CLASS_GUARANTEED : TD_CLASS_BESTEFFORT,
			.memory_bytes = (uint64_t)((i ? 30. : 3.5) * GIB),
			.host_cost = 0.37};
	}
	r = td_cluster_init(&cluster, &options, profiles, nodes, 1, 32ull << 30, jobs, 2, sched);
	if (r)
		return td_err_set(err, r, "%s cannot run two jobs", sched->name);
	td_cluster_run(&cluster);
	td_cluster_deinit(&cluster);
	return 0;
}

static double took_s(const struct td_sim_job *job)
{
	return (double)(job->end_ns - job->submit_ns) * 1e-9;
}

/* Of all measured jobs in the place of Job-A, the one that has ended first under AntMan. */
struct lightest {
	const char *name;
	double a_s, b_s;
};

static int find_lightest(const struct td_profiles *profiles, const char *job_b,
	struct lightest *ret, struct td_err *err)
{
	*ret = (struct lightest){"", INFINITY, INFINITY};
	for (uint32_t k = 0; k < profiles->count; k++) {
		const char *const names[] = {profiles->profiles[k].name, job_b};
		struct td_sim_job jobs[2];
		int r = run_two(profiles, &td_sched_antman, names, jobs, err);

		if (r)
			return r;
		if (took_s(&jobs[0]) < ret->a_s)
			*ret = (struct lightest){names[0], took_s(&jobs[0]), took_s(&jobs[1])};
	}
	return 0;
}

static void put_antman(
	struct td_experiment_run *run, double a_s, double b_s, const struct lightest *lightest)
{
	char note[200];

	snprintf(note, sizeof(note),
		"as A3C; bound, of all measured jobs the soonest is %s: %.1f min, Job-B then %.1f",
		lightest->name, lightest->a_s / 60, lightest->b_s / 60);
	td_row_put(run,
		a_s <= 1.05 * A_S            ? TD_REPRODUCED
		: lightest->a_s > 1.05 * A_S ? TD_BOUNDED
					     : TD_NOT_REPRODUCED,
		"AntMan: Job-A, at most 1.05 of alone", "43.9 min", "", note, "%.1f min", a_s / 60);
	put_minutes(run, "AntMan: Job-B, at most 1.02 of Preempt", "91.8 min", b_s <= 1.02 * B_S,
		b_s, "the coordinator acts on more than 5 %");
}

int td_exp_antman_table2(struct td_experiment_run *run, struct td_err *err)
{
	/* GCN is small and irregular, as A3C; Job-B is ResNet-50 with a large batch. */
	static const char *const names[] = {"A3C", "ResNet-50 (batch size 128)"};
	struct td_profiles *profiles = calloc(1, sizeof(*profiles));
	struct td_sim_job jobs[2];
	struct lightest lightest;
	double host_cost = (541.6 / 91.1 - 1) / (1.5 / 30);
	int r = profiles ? td_profiles_fit(run->data, "p100", profiles, err) : -ENOMEM;

	r = r ? r : run_two(profiles, &td_sched_preempt, names, jobs, err);
	if (!r) {
		put_minutes(run, "Preempt: Job-B", "91.1 min", fabs(took_s(&jobs[1]) - B_S) < 1,
			took_s(&jobs[1]), "Job-A is stopped when B arrives");
		td_row_put(run, jobs[0].evictions ? TD_REPRODUCED : TD_NOT_REPRODUCED,
			"Preempt: Job-A", "failed", "", "here it is queued again, there it failed",
			"%s", jobs[0].evictions ? "stopped" : "undisturbed");
		r = run_two(profiles, &td_sched_fifo, names, jobs, err);
	}
	if (!r) {
		put_minutes(run, "FIFO: Job-A", "43.0 min", fabs(took_s(&jobs[0]) - A_S) < 1,
			took_s(&jobs[0]), "");
		put_minutes(run, "FIFO: Job-B", "108.2 min",
			fabs(took_s(&jobs[1]) - 108.2 * 60) < 60, took_s(&jobs[1]),
			"it waits for A");
		r = run_two(profiles, &td_sched_antman, names, jobs, err);
	}
	if (!r) {
		double a_s = took_s(&jobs[0]), b_s = took_s(&jobs[1]);

		r = find_lightest(profiles, names[1], &lightest, err);
		if (!r)
			put_antman(run, a_s, b_s, &lightest);
	}
	td_row_put(run, TD_SHOWN, "Pack: Job-B", "failed", "",
		"arithmetic: 28.5 GB are left of the 30 GB that it needs", "out of memory");
	td_row_put(run, TD_CALIBRATED, "UMem: Job-B", "541.6 min (table), 514.6 (text)", "",
		"fitted to this cell", "%.1f min",
		B_S / 60 /
			td_spilled_speed((uint64_t)(30 * GIB), (uint64_t)(28.5 * GIB), host_cost));
	free(profiles);
	return r == -ENOMEM ? td_err_set(err, r, "out of memory") : r;
}

/* --- the trace --- */

enum { FIFO, PREEMPT, GANDIVA, ANTMAN, TANDEM, SCHEDS };

static const struct td_sched *const scheds[SCHEDS] = {
	&td_sched_fifo, &td_sched_preempt, &td_sched_gandiva, &td_sched_antman, &td_sched_tandem};

/* Table 3, 20 % for each category. */
static const char *const mix[5][3] = {
	{"ResNet-50 (batch size 64)", "ResNet-18 (batch size 128)", "CycleGAN"},
	{"Transformer (batch size 64)", NULL, NULL},
	{"LM (batch size 20)", NULL, NULL},
	{"Recommendation (batch size 2048)", "A3C", NULL},
	{"Recommendation (batch size 512)", "Recommendation (batch size 8192)", NULL},
};

struct setting {
	double load;
	bool memory, proportional;
};

struct outcome {
	double metrics[SCHEDS][TD_METRIC_N];
	double free[TD_METRIC_N]; /* AntMan's, if jobs side by side did not slow each other down */
	double unguarded
		[TD_METRIC_N]; /* AntMan's, if guests ran as they can beside guaranteed jobs */
	double least_span_s;   /* no makespan is shorter, two jobs on a GPU */
};

static bool is_used(const struct td_trace_job *job)
{
	return job->submit_s >= 20 * 86400. && job->submit_s < 100 * 86400. && job->gpus <= 8 &&
	       job->duration_s >= 60;
}

static uint32_t draw_kind(const struct td_profiles *profiles, uint64_t *state)
{
	const char *const *names = mix[td_random_below(state, 5)];
	uint32_t n = 0;
	int kind;

	while (n < 3 && names[n])
		n++;
	kind = td_profiles_find(profiles, names[td_random_below(state, n)]);
	return kind < 0 ? 0 : (uint32_t)kind;
}

/* Jobs of a seed, their arrivals stretched so that they ask for `load` times the cluster. */
static int make_jobs(const struct td_trace *trace, const struct td_profiles *profiles,
	uint32_t seed, const struct setting *setting, struct td_sim_job *jobs, struct td_err *err)
{
	uint64_t state = seed * 1000 + 17;
	uint32_t skip = (seed - 1) * JOBS, count = 0;
	double work = 0, first = -1, last = 0, stretch;

	for (uint32_t i = 0; i < trace->count && count < JOBS; i++) {
		const struct td_trace_job *from = &trace->jobs[i];
		struct td_sim_job *job = &jobs[count];

		if (!is_used(from) || skip) {
			skip -= is_used(from);
			continue;
		}
		*job = (struct td_sim_job){.work_s = fmin(from->duration_s, 6 * 3600),
			.gpus = from->gpus,
			.profile = draw_kind(profiles, &state)};
		job->class = td_random_below(&state, 2) ? TD_CLASS_GUARANTEED : TD_CLASS_BESTEFFORT;
		job->tenant = job->class != TD_CLASS_GUARANTEED;
		job->host_cost = td_random_below(&state, 2) ? 0.37 : 15;
		job->memory_bytes = (uint64_t)((6 + 25 * td_random_unit(&state)) * GIB);
		if (!setting->memory)
			job->memory_bytes = 0;
		first = first < 0 ? from->submit_s : first;
		last = from->submit_s;
		jobs[count].submit_ns = (uint64_t)((from->submit_s - first) * 1e9);
		work += job->work_s * job->gpus;
		count++;
	}
	if (count < JOBS || !(last > first))
		return td_err_set(err, -EINVAL, "the trace has too few jobs for seed %u", seed);
	stretch = work / (setting->load * GPUS) / (last - first);
	for (uint32_t i = 0; i < JOBS; i++)
		jobs[i].submit_ns = (uint64_t)((double)jobs[i].submit_ns * stretch);
	return 0;
}

static int run_sched(const struct td_profiles *profiles, const struct td_sched *sched,
	const struct setting *setting, struct td_sim_job *jobs, double *ret_metrics,
	struct td_err *err)
{
	static struct td_cluster cluster;
	static const uint32_t nodes[] = {8, 8, 8, 8, 8, 8, 8, 8};
	struct td_cluster_options options = {
		.contention = {.proportional = setting->proportional, .capped_pressure = 1},
		.costs = {.restart_s = 60, .checkpoint_s = 1800},
		.stop = &td_sim_stop};
	int r = td_cluster_init(
		&cluster, &options, profiles, nodes, 8, 32ull << 30, jobs, JOBS, sched);

	if (r)
		return td_err_set(err, r, "%s cannot run the trace", sched->name);
	td_cluster_run(&cluster);
	if (td_metrics_of(&cluster, ret_metrics, NULL))
		r = td_err_set(err, -ENOMEM, "out of memory");
	td_cluster_deinit(&cluster);
	return r;
}

/* The last job cannot end before it has come and worked; all of the work takes as long as two jobs on every GPU take. */
static double least_span(const struct td_sim_job *jobs, double pair_sum)
{
	double sum = 0, last = 0;

	for (uint32_t i = 0; i < JOBS; i++) {
		sum += jobs[i].work_s * jobs[i].gpus;
		last = fmax(last,
			(double)(jobs[i].submit_ns - jobs[0].submit_ns) * 1e-9 + jobs[i].work_s);
	}
	return fmax(last, sum / (GPUS * pair_sum));
}

/* What the bounds are made of. */
struct bounds {
	struct td_profiles free; /* the kinds of jobs, if they did not slow each other down */
	double pair_sum, guest_speed;
};

static int run_seed(const struct td_trace *trace, const struct td_profiles *profiles,
	const struct bounds *bounds, uint32_t seed, const struct setting *setting,
	struct outcome *ret, struct td_err *err)
{
	static struct td_sim_job jobs[JOBS];
	struct td_sched unguarded = td_sched_antman;
	const struct setting fitted = {setting->load, setting->memory, false};
	int r = make_jobs(trace, profiles, seed, setting, jobs, err);

	for (int s = 0; !r && s < SCHEDS; s++)
		r = run_sched(profiles, scheds[s], setting, jobs, ret->metrics[s], err);
	ret->least_span_s = r ? 0 : least_span(jobs, bounds->pair_sum);
	unguarded.guards = false;
	r = r ? r : run_sched(profiles, &unguarded, setting, jobs, ret->unguarded, err);
	return r ? r : run_sched(&bounds->free, &td_sched_antman, &fitted, jobs, ret->free, err);
}

struct ratios {
	double jct_fifo[SEEDS_MAX], jct_gandiva[SEEDS_MAX], span_fifo[SEEDS_MAX],
		span_gandiva[SEEDS_MAX], guaranteed[SEEDS_MAX], preempted[SEEDS_MAX],
		evicted[SEEDS_MAX], tandem[SEEDS_MAX], tandem_guaranteed[SEEDS_MAX],
		moves[SEEDS_MAX];
	/* parts: FIFO's over AntMan's without its guard, and over tandem's, whose guests move; and what the guaranteed jobs have of the first */
	double jct_unguarded[SEEDS_MAX], jct_moved[SEEDS_MAX], slow_unguarded[SEEDS_MAX];
	/* bounds: without contention; of makespans by the pair sum, too */
	double jct_fifo_free[SEEDS_MAX], jct_gandiva_free[SEEDS_MAX], span_fifo_free[SEEDS_MAX],
		span_gandiva_free[SEEDS_MAX], span_fifo_least[SEEDS_MAX],
		span_gandiva_least[SEEDS_MAX];
};

static double ratio(const struct outcome *outcome, int over, int under, int metric)
{
	return outcome->metrics[over][metric] / outcome->metrics[under][metric];
}

static double over_free(const struct outcome *outcome, int over, int metric)
{
	return outcome->metrics[over][metric] / outcome->free[metric];
}

static void collect(const struct outcome *outcomes, uint32_t seeds, struct ratios *ret)
{
	for (uint32_t s = 0; s < seeds; s++) {
		const struct outcome *outcome = &outcomes[s];

		ret->jct_fifo[s] = ratio(outcome, FIFO, ANTMAN, TD_METRIC_JCT_MEAN_S);
		ret->jct_gandiva[s] = ratio(outcome, GANDIVA, ANTMAN, TD_METRIC_JCT_MEAN_S);
		ret->span_fifo[s] = ratio(outcome, FIFO, ANTMAN, TD_METRIC_MAKESPAN_S);
		ret->span_gandiva[s] = ratio(outcome, GANDIVA, ANTMAN, TD_METRIC_MAKESPAN_S);
		ret->guaranteed[s] =
			ratio(outcome, ANTMAN, PREEMPT, TD_METRIC_GUARANTEED_JCT_MEAN_S);
		ret->preempted[s] = outcome->metrics[PREEMPT][TD_METRIC_EVICTED_PERCENT];
		ret->tandem[s] = ratio(outcome, ANTMAN, TANDEM, TD_METRIC_JCT_MEAN_S);
		ret->tandem_guaranteed[s] =
			ratio(outcome, TANDEM, PREEMPT, TD_METRIC_GUARANTEED_JCT_MEAN_S);
		ret->moves[s] = outcome->metrics[TANDEM][TD_METRIC_MOVES];
		ret->evicted[s] = outcome->metrics[ANTMAN][TD_METRIC_EVICTIONS];
		ret->jct_unguarded[s] = outcome->metrics[FIFO][TD_METRIC_JCT_MEAN_S] /
					outcome->unguarded[TD_METRIC_JCT_MEAN_S];
		ret->slow_unguarded[s] = outcome->unguarded[TD_METRIC_GUARANTEED_JCT_MEAN_S] /
					 outcome->metrics[PREEMPT][TD_METRIC_GUARANTEED_JCT_MEAN_S];
		ret->jct_moved[s] = ratio(outcome, FIFO, TANDEM, TD_METRIC_JCT_MEAN_S);
		ret->jct_fifo_free[s] = over_free(outcome, FIFO, TD_METRIC_JCT_MEAN_S);
		ret->jct_gandiva_free[s] = over_free(outcome, GANDIVA, TD_METRIC_JCT_MEAN_S);
		ret->span_fifo_free[s] = over_free(outcome, FIFO, TD_METRIC_MAKESPAN_S);
		ret->span_gandiva_free[s] = over_free(outcome, GANDIVA, TD_METRIC_MAKESPAN_S);
		ret->span_fifo_least[s] =
			outcome->metrics[FIFO][TD_METRIC_MAKESPAN_S] / outcome->least_span_s;
		ret->span_gandiva_least[s] =
			outcome->metrics[GANDIVA][TD_METRIC_MAKESPAN_S] / outcome->least_span_s;
	}
}

static double least(const double *values, uint32_t n)
{
	double value = values[0];

	for (uint32_t i = 1; i < n; i++)
		value = fmin(value, values[i]);
	return value;
}

static double most(const double *values, uint32_t n)
{
	double value = values[0];

	for (uint32_t i = 1; i < n; i++)
		value = fmax(value, values[i]);
	return value;
}

static void name_metric(const struct setting *setting, const char *what, char ret[96])
{
	snprintf(ret, 96, "%s, load %g%s%s", what, setting->load,
		setting->memory ? ", 6-31 GB" : ", no memory limits",
		setting->proportional ? ", proportional" : "");
}

/*
 * A gain that has to be more than 1 in every seed. free: AntMan's, if nobody slowed anybody down; most: what the pair sum allows anybody, or NULL. Bounded: in a seed one of these is no gain either.
 */
static void put_ratio(struct td_experiment_run *run, const struct setting *setting,
	const char *what, const char *paper, bool counts, double *values, double *without,
	double *most_possible)
{
	uint32_t n = run->seeds;
	bool bounded =
		least(without, n) <= 1 || (most_possible && least(most_possible, n) <= 1 + 1e-6);
	char metric[96], spread[64], free_spread[64], note[256];

	name_metric(setting, what, metric);
	td_spread(values, n, spread);
	td_spread(without, n, free_spread);
	snprintf(note, sizeof(note), "without any contention %.2fx (%s)", td_median(without, n),
		free_spread);
	if (most_possible) {
		td_spread(most_possible, n, free_spread);
		snprintf(note + strlen(note), sizeof(note) - strlen(note),
			"; by the pair sum at most %.2fx (%s)", td_median(most_possible, n),
			free_spread);
	}
	td_row_put(run,
		!counts                ? TD_SHOWN
		: least(values, n) > 1 ? TD_REPRODUCED
		: bounded              ? TD_BOUNDED
				       : TD_NOT_REPRODUCED,
		metric, paper, spread, note, "%.2fx", td_median(values, n));
}

static void put_preempted(
	struct td_experiment_run *run, const struct setting *setting, double *values)
{
	char metric[96], spread[64];

	snprintf(metric, sizeof(metric), "jobs that preemption preempts, load %g%s", setting->load,
		setting->memory ? ", 6-31 GB" : ", no memory limits");
	td_spread(values, run->seeds, spread);
	if (!setting->proportional && !setting->memory)
		td_row_put(run, TD_SHOWN, metric, "46 %", spread, "none under AntMan", "%.0f %%",
			td_median(values, run->seeds));
}

/* The main measure, mean JCT, and its guard: guaranteed jobs within 5 %. */
static void put_tandem(
	struct td_experiment_run *run, const struct setting *setting, struct ratios *ratios)
{
	double guard = td_median(ratios->tandem_guaranteed, run->seeds);
	double gain = td_median(ratios->tandem, run->seeds);
	char metric[96], spread[64], note[128];

	name_metric(setting, "tandem: mean JCT, AntMan / tandem", metric);
	td_spread(ratios->tandem, run->seeds, spread);
	snprintf(note, sizeof(note), "guaranteed JCT, tandem / preemption: %.2fx%s; %.0f moves",
		guard, guard <= 1.05 ? "" : ": the guard does not hold",
		td_median(ratios->moves, run->seeds));
	td_row_put(run, gain >= 1 && guard <= 1.05 ? TD_AT_LEAST : TD_LOSS, metric, "", spread,
		note, "%.2fx", gain);
}

static void put_guaranteed(struct td_experiment_run *run, const struct setting *setting,
	struct ratios *ratios, bool held)
{
	char metric[96], spread[64];

	name_metric(setting, "guaranteed JCT, AntMan / preemption", metric);
	td_spread(ratios->guaranteed, run->seeds, spread);
	td_row_put(run, held ? TD_REPRODUCED : TD_NOT_REPRODUCED, metric, "1x, none preempted",
		spread, held ? "" : "5 % on the GPU, and what of that waits in the queue", "%.2fx",
		td_median(ratios->guaranteed, run->seeds));
}

/* Which part of AntMan loses: its guard, or that guests stay where they are. */
static void put_parts(
	struct td_experiment_run *run, const struct setting *setting, struct ratios *ratios)
{
	char metric[96], spread[64], moved[64], note[200];
	uint32_t n = run->seeds;

	name_metric(setting, "mean JCT, FIFO / AntMan without its guard", metric);
	td_spread(ratios->jct_unguarded, n, spread);
	td_spread(ratios->jct_moved, n, moved);
	snprintf(note, sizeof(note),
		"guaranteed jobs then take %.2fx as long; with the guard and guests that move "
		"(tandem): %.2fx (%s)",
		td_median(ratios->slow_unguarded, n), td_median(ratios->jct_moved, n), moved);
	td_row_put(run, TD_SHOWN, metric, "", spread, note, "%.2fx",
		td_median(ratios->jct_unguarded, n));
}

static void put_setting(
	struct td_experiment_run *run, const struct setting *setting, struct ratios *ratios)
{
	uint32_t n = run->seeds;
	bool counts = setting->load > 0.85;
	double slow = most(ratios->guaranteed, n), evicted = most(ratios->evicted, n);

	put_ratio(run, setting, "mean JCT, FIFO / AntMan", "2.05x", counts, ratios->jct_fifo,
		ratios->jct_fifo_free, NULL);
	put_ratio(run, setting, "mean JCT, Gandiva / AntMan", "1.84x", counts, ratios->jct_gandiva,
		ratios->jct_gandiva_free, NULL);
	counts = setting->load > 1.15;
	put_ratio(run, setting, "makespan, FIFO / AntMan", "1.76x", counts, ratios->span_fifo,
		ratios->span_fifo_free, ratios->span_fifo_least);
	put_ratio(run, setting, "makespan, Gandiva / AntMan", "1.67x", counts, ratios->span_gandiva,
		ratios->span_gandiva_free, ratios->span_gandiva_least);
	put_guaranteed(run, setting, ratios, slow <= 1.05 && evicted < 0.5);
	put_preempted(run, setting, ratios->preempted);
	if (counts)
		put_parts(run, setting, ratios);
	put_tandem(run, setting, ratios);
}

/*
 * What two kinds of the mix do together, of 1 = one GPU; and how fast a guest is beside a guaranteed job that it slows down by no more than 5 %, as the duty settles. Means of the mix.
 */
static void find_bounds(const struct td_profiles *profiles, uint32_t samples, struct bounds *ret)
{
	const struct td_contention contention = {.capped_pressure = 1};
	static const bool guest[2] = {false, true};
	uint64_t state = 99;

	*ret = (struct bounds){.free = *profiles};
	for (uint32_t k = 0; k < ret->free.count; k++) {
		struct td_contender *kind = &ret->free.profiles[k].contender;

		kind->sensitivity = kind->pressure = kind->host = 0;
	}
	for (uint32_t i = 0; i < samples; i++) {
		struct td_contender pair[2] = {
			profiles->profiles[draw_kind(profiles, &state)].contender,
			profiles->profiles[draw_kind(profiles, &state)].contender};
		double speeds[2];

		td_contention_speeds(&contention, pair, 2, speeds);
		ret->pair_sum += (speeds[0] + speeds[1]) / samples;
		if (i % 16)
			continue;
		td_duty_settle(&contention, pair, guest, 2, 12000, speeds);
		ret->guest_speed += speeds[1] / ((samples + 15) / 16);
	}
}

#define LOADS 5u

/* A task for each setting and seed. */
struct batch {
	const struct td_trace *trace;
	const struct td_profiles *profiles;
	const struct bounds *bounds;
	uint32_t seeds;
};

static struct setting setting_of(uint32_t index)
{
	static const double loads[LOADS] = {0.6, 0.9, 1.2, 2.0, 5.0};

	return (struct setting){loads[index % LOADS], index / LOADS & 1, index / LOADS & 2};
}

static int run_task(void *arg, uint32_t index, void *ret, struct td_err *err)
{
	const struct batch *batch = arg;
	struct setting setting = setting_of(index / batch->seeds);

	return run_seed(batch->trace, batch->profiles, batch->bounds, index % batch->seeds + 1,
		&setting, ret, err);
}

static int run_all(struct td_experiment_run *run, const struct td_trace *trace,
	const struct td_profiles *profiles, struct td_err *err)
{
	const uint32_t settings = run->quick ? 2 * LOADS : 4 * LOADS;
	td_auto_free struct bounds *bounds = calloc(1, sizeof(*bounds));
	struct batch batch = {trace, profiles, bounds, run->seeds};
	td_auto_free struct outcome *outcomes =
		calloc((size_t)settings * run->seeds, sizeof(*outcomes));
	double within = NAN;
	int r;

	if (!outcomes || !bounds)
		return td_err_set(err, -ENOMEM, "out of memory");
	find_bounds(profiles, 4000, bounds);
	r = td_workers_run(run->jobs, settings * run->seeds, run_task, &batch, outcomes,
		sizeof(*outcomes), err);
	if (r)
		return r;
	for (uint32_t k = 0; k < settings; k++) {
		struct setting setting = setting_of(k);
		struct ratios ratios;
		double median;

		collect(outcomes + (size_t)k * run->seeds, run->seeds, &ratios);
		put_setting(run, &setting, &ratios);
		median = td_median(ratios.jct_fifo, run->seeds);
		if (!setting.proportional && median >= 1.6 && median <= 2.5)
			within = setting.load;
	}
	td_row_put(run, within > 0 ? TD_REPRODUCED : TD_NOT_REPRODUCED,
		"a load at which FIFO / AntMan is 1.6 to 2.5", "2.05x", "",
		"of the median; not of every seed", "load %g", within);
	td_row_put(run, TD_SHOWN, "pair sum of the mix, the bound of makespan gains", "1.76x", "",
		"two jobs on every GPU do no more than this", "%.2f", bounds->pair_sum);
	td_row_put(run, TD_SHOWN,
		"speed of a guest beside a guaranteed job that is 5 % slower at most", "", "",
		"mean of the mix; the rest of the guest's speed is what it waits for", "%.2f",
		bounds->guest_speed);
	return 0;
}

int td_exp_antman_trace(struct td_experiment_run *run, struct td_err *err)
{
	td_auto_free struct td_profiles *profiles = calloc(1, sizeof(*profiles));
	struct td_trace trace;
	char path[PATH_MAX];
	int r;

	if (!profiles)
		return td_err_set(err, -ENOMEM, "out of memory");
	r = td_profiles_fit(run->data, "p100", profiles, err);
	if (r)
		return r;
	snprintf(path, sizeof(path), "%s/jobs_philly.csv.gz", run->data);
	r = td_trace_read(path, false, &trace, err);
	if (r)
		return r;
	r = run_all(run, &trace, profiles, err);
	td_trace_deinit(&trace);
	fputs("Bounds: AntMan on the same jobs, if those on one GPU did not slow each other down; "
	      "and, of makespans, what the last job and the pair sum leave. In one seed hardly "
	      "anybody waits below a load of 1.2, so that there is nothing to gain.\n\n"
	      "Where AntMan loses: two jobs of the mix do 1.2 times the work of one together, so "
	      "sharing "
	      "has little to give; a guest beside a guaranteed job of this mix gets some 5 % of a "
	      "GPU until that job is 5 % slower; and a guest stays where it started when GPUs come "
	      "free elsewhere, "
	      "which is what lengthens makespans. tandem moves it, which is most of its gain. "
	      "Without "
	      "the guard guests are as fast as the pair lets them, and AntMan as fast as FIFO "
	      "or faster at loads of 2 and more with the fitted model and no memory limits; "
	      "guaranteed jobs pay for "
	      "it. In one seed not even guests that move make it faster than FIFO.\n\n"
	      "Contention variants: AntMan caps no SMs, it holds guests to a duty, so doubled and "
	      "halved pressure under caps are the same run; fitted and proportional are both "
	      "shown. Gandiva packs two jobs with their true memory and use, as its paper gives "
	      "it; FIFO and AntMan see neither. Kinds are the nearest of Gavel's, P100 fit.\n",
		run->report);
	return r;
}
