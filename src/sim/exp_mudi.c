/*
 * mudi-sim: 5,000 training tasks beside 1,000 inference services.
 *
 * Truth, services and tasks are zoo.h's; what the schedulers know is knowledge.h's: five of nine tasks are profiled, four are never seen. Arrivals: 5,000 consecutive ones of pooled Philly; a
 * task's kind by Table 3, its duration that of a Philly job of one GPU in the same class, at most 200 h. Each service's rate walks between 0.67 and 1.33 of 15 % of its greatest throughput.
 *
 * Costs for all alike: a changed share costs the task beside it 5 s (a process with another share has to be started), a move 60 s. How much memory tasks and services need no table says: it is
 * without limit but for Fig. 17 and Table 4, where sizes are declared and training memory is swapped. GSLICE and gpulets give training what is left of the GPU, as Mudi sets them up.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "sim/experiment.h"
#include "sim/random.h"
#include "sim/sched.h"
#include "sim/sim.h"
#include "sim/trace.h"

#ifdef TD_HAVE_LEARN
#include "sim/knowledge.h"
#include "sim/workers.h"

#define GPUS      1000u
#define TASKS     5000u
#define SEEDS_MAX 50u
#define CLASSES   4
#define LONGEST_S (200 * 3600.)
#define HORIZON_S (30 * 86400.) /* what is not done by then counts with that time */

enum {
	GSLICE,
	GPULETS,
	MUXFLOW,
	MUDI,
	BOUND,
	TANDEM,
	TRUTH,
	EXACT,
	POLICIES,
	MORE = POLICIES,
	EVEN,
	ALL
};

static const struct td_sched *const scheds[ALL] = {&td_sched_gslice, &td_sched_gpulets,
	&td_sched_muxflow, &td_sched_mudi, &td_sched_bound, &td_sched_tandem, &td_sched_mudi_truth,
	&td_sched_mudi_exact, &td_sched_mudi_more, &td_sched_even};

static const struct {
	const char *name;
	struct td_contention contention;
} variants[] = {{"fitted", {false, 1}}, {"proportional", {true, 1}}, {"doubled", {false, 2}},
	{"halved", {false, 0.5}}};

#define VARIANTS 4

struct world {
	struct td_zoo zoo;
	struct td_knowledge knowledge;
	struct td_cluster cluster;
	struct td_batch_table table;
	struct td_service services[GPUS];
	float rates[GPUS * TD_ZOO_INTERVALS];
	struct td_sim_job tasks[TASKS];
	uint32_t task_count;
	const struct td_trace *trace;
	uint32_t *pools[CLASSES], pool_counts[CLASSES]; /* jobs of the trace by class */
};

struct setting {
	int variant;
	double load, crowd; /* of the services' rates; of the arrivals */
	bool memory;        /* GPUs have 40 GiB, and everybody needs some of it */
};

struct outcome {
	double ct_s[ALL], late[ALL]; /* mean completion time; part of the services' time */
	double swapped[ALL], swaps_per_h[ALL],
		transfer_ms[ALL]; /* part of the time with tasks; per task and hour; mean of one */
	double makespan_s[ALL],
		by_kind[ALL][TD_ZOO_SERVICES]; /* swapped, of each kind of service */
	double iterations, moves, repartitions, unfinished;
};

static int class_of(double gpu_s)
{
	return gpu_s < 3600 ? 0 : gpu_s < 36000 ? 1 : gpu_s < 360000 ? 2 : 3;
}

static int make_pools(struct world *w, struct td_err *err)
{
	for (int c = 0; c < CLASSES; c++) {
		w->pools[c] = calloc(w->trace->count + 1, sizeof(uint32_t));
		if (!w->pools[c])
			return td_err_set(err, -ENOMEM, "out of memory");
	}
	for (uint32_t i = 0; i < w->trace->count; i++) {
		const struct td_trace_job *job = &w->trace->jobs[i];
		int class = class_of(job->duration_s);

		if (job->gpus == 1 && job->duration_s >= 60)
			w->pools[class][w->pool_counts[class]++] = i;
	}
	for (int c = 0; c < CLASSES; c++)
		if (!w->pool_counts[c])
			return td_err_set(err, -ENOENT, "the trace has no jobs of class %d", c);
	return 0;
}

static uint32_t draw_task(const struct td_zoo *zoo, uint64_t *random)
{
	double at = td_random_unit(random);
	uint32_t t = 0;

	while (t + 1 < TD_ZOO_TASKS && at >= zoo->fractions[t])
		at -= zoo->fractions[t++];
	return t;
}

static void make_tasks(struct world *w, uint32_t seed, double crowd)
{
	uint64_t random = seed * 31 + 5;
	uint32_t first = 0, last = w->trace->count;
	double from_s;

	/* Days 20 to 99; the seeds' stretches lie one after the other. */
	while (first < last && w->trace->jobs[first].submit_s < 20 * 86400.)
		first++;
	first += (seed - 1) * TASKS % (last - first - w->task_count);
	from_s = w->trace->jobs[first].submit_s;
	for (uint32_t i = 0; i < w->task_count; i++) {
		uint32_t task = draw_task(&w->zoo, &random);
		int class = w->zoo.classes[task];
		uint32_t like = w->pools[class][td_random_below(&random, w->pool_counts[class])];

		w->tasks[i] = (struct td_sim_job){
			.submit_ns = (uint64_t)((w->trace->jobs[first + i].submit_s - from_s) /
						crowd * 1e9),
			.work_s = fmin(w->trace->jobs[like].duration_s, LONGEST_S),
			.gpus = 1,
			.profile = task,
			.class = TD_CLASS_BESTEFFORT,
			.trace_index = i};
	}
}

static void make_services(struct world *w, uint32_t seed, double load)
{
	uint64_t random = seed * 131 + 7;

	for (uint32_t g = 0; g < GPUS; g++) {
		w->services[g] = (struct td_service){.gpu = g, .kind = g % TD_ZOO_SERVICES};
		td_zoo_rates(&w->zoo, g % TD_ZOO_SERVICES, load, &random,
			w->rates + (size_t)g * TD_ZOO_INTERVALS);
	}
}

/* No table says what tasks and services need: declared, by what such models take in these frameworks. */
static const double task_gib[TD_ZOO_TASKS] = {9, 7, 26, 4, 12, 14, 27, 32, 16};
static const struct {
	double gib, batch_mib;
} service_needs[TD_ZOO_SERVICES] = {{2.5, 50}, {2.5, 60}, {3, 90}, {3, 120}, {2.5, 80}, {3, 90}};

#define GPU_GIB      40
#define LINK_BYTES_S 20e9 /* of PCIe 4.0 x16, pinned */
#define HOST_COST    1.   /* see td_spilled_speed(): memory that is touched once an iteration */

static void need_memory(struct world *w, bool memory)
{
	for (uint32_t k = 0; k < TD_ZOO_SERVICES; k++) {
		w->zoo.services[k].memory_bytes =
			memory ? (uint64_t)(service_needs[k].gib * 0x1p30) : 0;
		w->zoo.services[k].batch_bytes =
			memory ? (uint64_t)(service_needs[k].batch_mib * 0x1p20) : 0;
	}
	for (uint32_t i = 0; i < w->task_count; i++) {
		w->tasks[i].memory_bytes =
			memory ? (uint64_t)(task_gib[w->tasks[i].profile] * 0x1p30) : 0;
		w->tasks[i].host_cost = HOST_COST;
	}
}

static void note_swaps(const struct world *w, int policy, struct outcome *ret)
{
	double with[TD_ZOO_SERVICES] = {0}, swapped[TD_ZOO_SERVICES] = {0}, all = 0, sum = 0;
	const struct td_cluster_counts *counts = &w->cluster.counts;

	for (uint32_t g = 0; g < GPUS; g++) {
		with[w->services[g].kind] += w->services[g].guest_s;
		swapped[w->services[g].kind] += w->services[g].swapped_s;
	}
	for (uint32_t k = 0; k < TD_ZOO_SERVICES; k++) {
		ret->by_kind[policy][k] = 100 * swapped[k] / fmax(1, with[k]);
		all += with[k];
		sum += swapped[k];
	}
	ret->swapped[policy] = 100 * sum / fmax(1, all);
	ret->swaps_per_h[policy] = (double)counts->swaps / fmax(1, all) * 3600;
	ret->transfer_ms[policy] = counts->swap_s / fmax(1, (double)counts->swaps) * 1e3;
}

static int simulate(struct world *w, const struct setting *setting, int policy, uint32_t seed,
	struct outcome *ret, struct td_err *err)
{
	static uint32_t nodes[GPUS / 8];
	struct td_services services = {.kinds = w->zoo.services,
		.kind_count = TD_ZOO_SERVICES,
		.list = w->services,
		.count = GPUS,
		.rates = w->rates,
		.intervals = TD_ZOO_INTERVALS,
		.interval_ns = TD_ZOO_INTERVAL_NS};
	struct td_cluster_options options = {.contention = variants[setting->variant].contention,
		.costs = {.restart_s = 60,
			.repartition_s = 5,
			.link_bytes_s = LINK_BYTES_S,
			.checkpoint_s = 1800},
		.seed = seed,
		.until_s = HORIZON_S,
		.services = &services,
		.table = &w->table,
		.knowledge = &w->knowledge.view,
		.stop = &td_sim_stop};
	double sum = 0;
	int r;

	for (uint32_t n = 0; n < GPUS / 8; n++)
		nodes[n] = 8;
	need_memory(w, setting->memory);
	r = td_cluster_init(&w->cluster, &options, &w->zoo.tasks, nodes, GPUS / 8,
		setting->memory ? (uint64_t)GPU_GIB << 30 : 0, w->tasks, w->task_count,
		scheds[policy]);
	if (r)
		return td_err_set(
			err, r, "%s cannot run this: %s", scheds[policy]->name, strerror(-r));
	td_cluster_run(&w->cluster);
	for (uint32_t i = 0; i < w->task_count; i++) {
		uint64_t end =
			w->tasks[i].end_ns == TD_NEVER ? w->cluster.now_ns : w->tasks[i].end_ns;

		sum += (double)(end - w->tasks[i].submit_ns) * 1e-9;
	}
	ret->makespan_s[policy] = (double)(w->cluster.now_ns - w->cluster.first_ns) * 1e-9;
	note_swaps(w, policy, ret);
	ret->ct_s[policy] = sum / w->task_count;
	ret->late[policy] = 100 * td_cluster_late(&w->cluster, TD_SERVICE_NONE);
	if (policy == MUDI && w->cluster.counts.tunings)
		ret->iterations =
			(double)w->cluster.counts.iterations / (double)w->cluster.counts.tunings;
	if (policy == TANDEM) {
		ret->moves = (double)w->cluster.counts.moves;
		ret->repartitions = (double)w->cluster.counts.repartitions;
	}
	ret->unfinished += w->task_count - w->cluster.ended;
	td_cluster_deinit(&w->cluster);
	return 0;
}

/* One setting's simulations, a task for each seed and policy. */
struct batch {
	struct world *w;
	const struct setting *setting;
	const int *policies;
	uint32_t policy_count;
};

static int run_task(void *arg, uint32_t index, void *ret, struct td_err *err)
{
	struct batch *batch = arg;
	uint32_t seed = index / batch->policy_count + 1;
	int policy = batch->policies[index % batch->policy_count];

	make_tasks(batch->w, seed, batch->setting->crowd);
	make_services(batch->w, seed, batch->setting->load);
	return simulate(batch->w, batch->setting, policy, seed, ret, err);
}

/* What one policy has come to. */
static void take(struct outcome *of, const struct outcome *part, int policy)
{
	of->ct_s[policy] = part->ct_s[policy];
	of->late[policy] = part->late[policy];
	of->swapped[policy] = part->swapped[policy];
	of->swaps_per_h[policy] = part->swaps_per_h[policy];
	of->transfer_ms[policy] = part->transfer_ms[policy];
	of->makespan_s[policy] = part->makespan_s[policy];
	memcpy(of->by_kind[policy], part->by_kind[policy], sizeof(of->by_kind[policy]));
	of->iterations += part->iterations;
	of->moves += part->moves;
	of->repartitions += part->repartitions;
	of->unfinished += part->unfinished;
}

static int run_batch(
	struct td_experiment_run *run, struct batch *batch, struct outcome *ret, struct td_err *err)
{
	uint32_t count = run->seeds * batch->policy_count;
	td_auto_free struct outcome *parts = calloc(count, sizeof(*parts));
	int r = parts ? td_workers_run(
				run->jobs, count, run_task, batch, parts, sizeof(*parts), err)
		      : td_err_set(err, -ENOMEM, "out of memory");

	memset(ret, 0, run->seeds * sizeof(*ret));
	for (uint32_t i = 0; !r && i < count; i++)
		take(&ret[i / batch->policy_count], &parts[i],
			batch->policies[i % batch->policy_count]);
	return r;
}

static int run_setting(struct td_experiment_run *run, struct world *w,
	const struct setting *setting, struct outcome *ret, struct td_err *err)
{
	static const int policies[POLICIES] = {
		GSLICE, GPULETS, MUXFLOW, MUDI, BOUND, TANDEM, TRUTH, EXACT};
	struct batch batch = {w, setting, policies, POLICIES};

	return run_batch(run, &batch, ret, err);
}

/* Fig. 17: its three systems, with memory. */
static int run_more(
	struct td_experiment_run *run, struct world *w, struct outcome *ret, struct td_err *err)
{
	static const int policies[] = {MUDI, MORE, EVEN};
	const struct setting setting = {0, 1, 1.6, true};
	struct batch batch = {w, &setting, policies, 3};

	return run_batch(run, &batch, ret, err);
}

/* --- rows --- */

static const char *const names[POLICIES] = {"GSLICE", "gpulets", "MuxFlow", "Mudi", "the bound",
	"tandem", "Mudi by the truth", "Mudi with exact lines"};

static void put_late(
	struct td_experiment_run *run, const char *how, const struct outcome *out, bool counts)
{
	double values[POLICIES][SEEDS_MAX], median[POLICIES];
	char metric[96], spread[64], note[160];
	bool holds = true, none = false; /* none: missed by one of the others in a seed */

	for (int p = 0; p < POLICIES; p++) {
		for (uint32_t s = 0; s < run->seeds; s++)
			values[p][s] = out[s].late[p];
		median[p] = td_median(values[p], run->seeds);
	}
	for (uint32_t s = 0; s < run->seeds; s++) {
		for (int p = 0; p < MUDI; p++)
			holds &= out[s].late[MUDI] < out[s].late[p], none |= !(out[s].late[p] > 0);
		holds &= out[s].late[MUDI] <= 2;
	}
	td_spread(values[MUDI], run->seeds, spread);
	snprintf(metric, sizeof(metric), "SLO violations (Fig. 8), %s", how);
	snprintf(note, sizeof(note),
		"GSLICE %.5f, gpulets %.5f, MuxFlow %.5f, bound %.5f, tandem %.5f %%",
		median[GSLICE], median[GPULETS], median[MUXFLOW], median[BOUND], median[TANDEM]);
	td_row_put(run,
		!counts ? TD_SHOWN
		: holds ? TD_REPRODUCED
		: none  ? TD_BOUNDED
			: TD_NOT_REPRODUCED,
		metric, "1.2 %, MuxFlow worst", spread, note, "%.5f %%", median[MUDI]);
}

/* Of a baseline's completion time, or Mudi's, over another's, per seed, rising; the median. */
static double over(struct td_experiment_run *run, const struct outcome *out, int above, int below,
	double *values, char *spread)
{
	double median;

	for (uint32_t s = 0; s < run->seeds; s++)
		values[s] = out[s].ct_s[above] / out[s].ct_s[below];
	median = td_median(values, run->seeds);
	td_spread(values, run->seeds, spread);
	return median;
}

/*
 * Two bounds of Mudi: its rules with the truth in the place of its predictions, and all of it with lines through exact samples of every pair. Bounded: in a seed one of them is not faster than the baseline
 * either, or not within 1.1 of the bound.
 */
static void put_ct(
	struct td_experiment_run *run, const char *how, const struct outcome *out, bool counts)
{
	static const char *const papers[] = {"up to 2.27x", "up to 1.49x", "up to 1.48x"};
	double values[SEEDS_MAX], rules[SEEDS_MAX], lines[SEEDS_MAX], median, most, truth, exact;
	char metric[96], spread[64], other[64], note[240];
	uint32_t last = run->seeds - 1;

	for (int p = 0; p < MUDI; p++) {
		most = over(run, out, p, BOUND, values, other);
		truth = over(run, out, p, TRUTH, rules, other);
		exact = over(run, out, p, EXACT, lines, other);
		median = over(run, out, p, MUDI, values, spread);
		snprintf(metric, sizeof(metric), "CT (Fig. 9), %s / Mudi, %s", names[p], how);
		snprintf(note, sizeof(note),
			"over the bound %.2fx, so no more can be gained; over Mudi's rules by the "
			"truth %.2fx, over Mudi with lines through exact samples %.2fx (%s)",
			most, truth, exact, other);
		td_row_put(run,
			!counts                          ? TD_SHOWN
			: values[0] > 1                  ? TD_REPRODUCED
			: rules[0] <= 1 || lines[0] <= 1 ? TD_BOUNDED
							 : TD_NOT_REPRODUCED,
			metric, papers[p], spread, note, "%.2fx", median);
	}
	truth = over(run, out, TRUTH, BOUND, rules, other);
	exact = over(run, out, EXACT, BOUND, lines, other);
	median = over(run, out, MUDI, BOUND, values, spread);
	snprintf(metric, sizeof(metric), "CT, Mudi / the bound, %s", how);
	snprintf(note, sizeof(note),
		"Mudi's rules by the truth %.2fx, with lines through exact samples %.2fx (%s)",
		truth, exact, other);
	td_row_put(run,
		!counts                                  ? TD_SHOWN
		: values[last] <= 1.1                    ? TD_REPRODUCED
		: rules[last] > 1.1 || lines[last] > 1.1 ? TD_BOUNDED
							 : TD_NOT_REPRODUCED,
		metric, "<= 1.05x", spread, note, "%.2fx", median);
}

/* The main measure, CT, while its guard holds: violations no more than Mudi's. */
static void put_tandem(struct td_experiment_run *run, const char *how, const struct outcome *out)
{
	double gain[SEEDS_MAX], late[SEEDS_MAX], mudi[SEEDS_MAX], median, of_tandem, of_mudi;
	char metric[96], spread[64], note[160];
	bool holds;

	for (uint32_t s = 0; s < run->seeds; s++) {
		gain[s] = out[s].ct_s[MUDI] / out[s].ct_s[TANDEM];
		late[s] = out[s].late[TANDEM];
		mudi[s] = out[s].late[MUDI];
	}
	median = td_median(gain, run->seeds);
	of_tandem = td_median(late, run->seeds);
	of_mudi = td_median(mudi, run->seeds);
	holds = of_tandem <= of_mudi;
	td_spread(gain, run->seeds, spread);
	snprintf(metric, sizeof(metric), "tandem: CT, Mudi / tandem, %s", how);
	snprintf(note, sizeof(note),
		"violations %.4f %%, Mudi %.4f %%%s; %.0f moves, %.0f changes of a share",
		of_tandem, of_mudi, holds ? "" : ": the guard does not hold", out[0].moves,
		out[0].repartitions);
	td_row_put(run, median >= 1 && holds ? TD_AT_LEAST : TD_LOSS, metric, "", spread, note,
		"%.2fx", median);
}

static void put_errors(struct td_experiment_run *run, const struct world *w, enum td_layers_use use,
	bool profiled, const struct td_knowledge *knowledge)
{
	static const char *const uses[TD_LAYERS_N] = {
		"counts of layers", "without any", "another task's layers"};
	double errors[4];
	char metric[96];

	td_knowledge_errors(knowledge, &w->zoo, &variants[0].contention, profiled, errors);
	snprintf(metric, sizeof(metric),
		"prediction error of k1, k2, cut-off, latency (Fig. 11), %s", uses[use]);
	td_row_put(run, TD_SHOWN, metric,
		use == TD_LAYERS_TRUE && !profiled ? "0.23, 0.16, 0.05, 0.06" : "", "",
		profiled ? "the five tasks that were profiled" : "the four tasks that were not",
		"%.2f, %.2f, %.2f, %.2f", errors[0], errors[1], errors[2], errors[3]);
}

static int compare_layers(struct td_experiment_run *run, struct world *w, struct td_err *err)
{
	struct td_knowledge *other = calloc(1, sizeof(*other));
	int r = other ? 0 : td_err_set(err, -ENOMEM, "out of memory");

	put_errors(run, w, TD_LAYERS_TRUE, true, &w->knowledge);
	put_errors(run, w, TD_LAYERS_TRUE, false, &w->knowledge);
	for (int use = TD_LAYERS_BLIND; !r && use < TD_LAYERS_N; use++) {
		r = td_knowledge_learn(&w->zoo, &variants[0].contention, (enum td_layers_use)use,
			99, run->quick, other, err);
		if (r)
			break;
		put_errors(run, w, (enum td_layers_use)use, false, other);
		td_knowledge_deinit(other);
	}
	free(other);
	return r;
}

static void put_loads(struct td_experiment_run *run, struct outcome out[][SEEDS_MAX])
{
	double rise[POLICIES], slow[POLICIES];
	bool slowest = true;

	for (int p = 0; p < POLICIES; p++) {
		rise[p] = slow[p] = 0;
		for (uint32_t s = 0; s < run->seeds; s++) {
			rise[p] += (out[3][s].late[p] - out[0][s].late[p]) / run->seeds;
			slow[p] += out[3][s].ct_s[p] / out[0][s].ct_s[p] / run->seeds;
		}
	}
	for (int p = 0; p < MUDI; p++)
		slowest &= rise[MUDI] < rise[p];
	td_row_put(run, slowest ? TD_REPRODUCED : TD_NOT_REPRODUCED,
		"rise of violations from load 1 to 4 (Fig. 15): GSLICE, gpulets, MuxFlow, Mudi",
		"slowest rise", "", "means over seeds, percentage points; tandem last",
		"%.4f, %.4f, %.4f, %.4f; %.4f", rise[GSLICE], rise[GPULETS], rise[MUXFLOW],
		rise[MUDI], rise[TANDEM]);
	td_row_put(run, TD_SHOWN, "CT at load 4 / load 1: GSLICE, gpulets, MuxFlow, Mudi; tandem",
		"", "", "", "%.2f, %.2f, %.2f, %.2f; %.2f", slow[GSLICE], slow[GPULETS],
		slow[MUXFLOW], slow[MUDI], slow[TANDEM]);
}

static double median_of(const struct outcome *out, uint32_t seeds,
	double (*get)(const struct outcome *), char *ret_spread)
{
	double values[SEEDS_MAX], median;

	for (uint32_t s = 0; s < seeds; s++)
		values[s] = get(&out[s]);
	median = td_median(values, seeds);
	td_spread(values, seeds, ret_spread);
	return median;
}

#define GET(name_, value_)                                                                         \
	static double name_(const struct outcome *out)                                             \
	{                                                                                          \
		return value_;                                                                     \
	}

GET(more_ct, out->ct_s[MORE] / out->ct_s[MUDI])
GET(even_ct, out->ct_s[EVEN] / out->ct_s[MORE])
GET(more_makespan, out->makespan_s[MORE] / out->makespan_s[MUDI])
GET(more_swapped, out->swapped[MORE])
GET(mudi_swapped, out->swapped[MUDI])
GET(transfer_ms, out->transfer_ms[MUDI])

static void put_swaps(struct td_experiment_run *run, const struct outcome *out)
{
	char spread[64], note[160];
	double more = median_of(out, run->seeds, more_swapped, spread);
	double one = median_of(out, run->seeds, mudi_swapped, spread);
	const double *kinds = out[0].by_kind[MUDI];

	snprintf(note, sizeof(note),
		"first seed, by service: %.0f, %.0f, %.0f, %.0f, %.0f, %.0f %%", kinds[0], kinds[1],
		kinds[2], kinds[3], kinds[4], kinds[5]);
	td_row_put(run, TD_SHOWN, "time with training memory on the host (Table 4), Mudi",
		"15.5 to 33.4 % by service", spread, note, "%.1f %%", one);
	td_row_put(run, more > one ? TD_REPRODUCED : TD_NOT_REPRODUCED,
		"time with training memory on the host, Mudi with up to three tasks",
		"37.78 %, 1.61x of one task's", "", "direction counts", "%.1f %%", more);
	snprintf(note, sizeof(note),
		"%.2f swaps per hour and task in the first seed; paper 1.6 to 3.5",
		out[0].swaps_per_h[MUDI]);
	td_row_put(run, TD_SHOWN, "mean transfer of a swap (Fig. 16), Mudi", "23.31 ms (YOLOv5)",
		spread, note, "%.1f ms", median_of(out, run->seeds, transfer_ms, spread));
}

/* Direction counts: more tasks on a GPU make each slower, and Random is the worst. */
static void put_more(struct td_experiment_run *run, const struct outcome *out)
{
	char spread[64], note[160];
	double ct = median_of(out, run->seeds, more_ct, spread), late[3] = {0};
	bool worse = true;

	for (uint32_t s = 0; s < run->seeds; s++) {
		late[0] += out[s].late[MUDI] / run->seeds;
		late[1] += out[s].late[MORE] / run->seeds;
		late[2] += out[s].late[EVEN] / run->seeds;
		worse &= even_ct(&out[s]) > 1 && out[s].late[EVEN] > out[s].late[MORE];
	}
	td_row_put(run, ct > 1 ? TD_REPRODUCED : TD_NOT_REPRODUCED,
		"CT (Fig. 17), Mudi with up to three tasks / with one", "1.07x", spread,
		"direction counts; 1.6x the tasks, memory of 40 GiB", "%.2fx", ct);
	td_row_put(run, TD_SHOWN, "makespan (Fig. 17), Mudi with up to three tasks / with one",
		"1.09x", spread, "", "%.2fx", median_of(out, run->seeds, more_makespan, spread));
	td_row_put(run, late[1] >= late[0] ? TD_REPRODUCED : TD_NOT_REPRODUCED,
		"SLO violations (Fig. 17), one task, up to three", "1.03x (0.52 %)", "",
		"direction counts; means over seeds", "%.4f, %.4f %%", late[0], late[1]);
	snprintf(note, sizeof(note), "violations of Random: %.1f %%", late[2]);
	ct = median_of(out, run->seeds, even_ct, spread);
	td_row_put(run, worse ? TD_REPRODUCED : TD_NOT_REPRODUCED,
		"CT (Fig. 17), Random / Mudi with up to three tasks", "Mudi better in all metrics",
		spread, note, "%.2fx", ct);
	put_swaps(run, out);
}

static int learn(struct td_experiment_run *run, struct world *w, int variant, struct td_err *err)
{
	td_knowledge_deinit(&w->knowledge);
	w->knowledge = (struct td_knowledge){.profiling_gpu_s = 0};
	return td_knowledge_learn(&w->zoo, &variants[variant].contention, TD_LAYERS_TRUE, 99,
		run->quick, &w->knowledge, err);
}

static void put_setting(
	struct td_experiment_run *run, const char *how, const struct outcome *out, bool counts)
{
	put_late(run, how, out, counts);
	put_ct(run, how, out, counts);
	put_tandem(run, how, out);
}

static int run_fitted(struct td_experiment_run *run, struct world *w, struct td_err *err)
{
	static struct outcome out[4][SEEDS_MAX];
	double iterations = 0;
	int r = compare_layers(run, w, err);

	for (int load = 1; !r && load <= 4; load++) {
		const struct setting setting = {0, load, 1, false};
		char how[32];

		if (run->quick && (load == 2 || load == 3))
			continue;
		snprintf(how, sizeof(how), "fitted, load %d", load);
		r = run_setting(run, w, &setting, out[load - 1], err);
		if (!r)
			put_setting(run, how, out[load - 1], load == 1);
		for (uint32_t s = 0; !r && s < run->seeds; s++)
			iterations = fmax(iterations, out[load - 1][s].iterations);
	}
	if (r)
		return r;
	put_loads(run, out);
	td_row_put(run, iterations <= 25 ? TD_REPRODUCED : TD_NOT_REPRODUCED,
		"iterations of a tuning (Fig. 18), mean of the worst seed and load",
		"< 25, mean 16", "", "at most 25 by construction", "%.1f", iterations);
	r = run_more(run, w, out[1], err);
	if (!r)
		put_more(run, out[1]);
	for (int k = 0; !r && k < 2 && !run->quick; k++) {
		const struct setting setting = {0, 1, k ? 1.6 : 1.2, false};
		char how[32];

		snprintf(how, sizeof(how), "fitted, %gx the tasks", setting.crowd);
		r = run_setting(run, w, &setting, out[0], err);
		if (!r)
			put_setting(run, how, out[0], false);
	}
	return r;
}

static int run_all(struct td_experiment_run *run, struct world *w, struct td_err *err)
{
	static struct outcome out[SEEDS_MAX];
	int r = 0;

	for (int v = 0; !r && v < (run->quick ? 1 : VARIANTS); v++) {
		const struct setting setting = {v, 1, 1, false};

		r = learn(run, w, v, err);
		if (!r && v == 0)
			fprintf(run->report, "Profiling took %.1f GPU hours.\n\n",
				w->knowledge.profiling_gpu_s / 3600);
		if (!r && v == 0) {
			r = run_fitted(run, w, err);
			continue;
		}
		r = r ? r : run_setting(run, w, &setting, out, err);
		if (!r)
			put_setting(run, variants[v].name, out, true);
	}
	return r;
}

int td_exp_mudi_sim(struct td_experiment_run *run, struct td_err *err)
{
	struct world *w = calloc(1, sizeof(*w));
	struct td_trace trace = {0};
	char path[PATH_MAX];
	int r = w ? td_zoo_read(run->data, &w->zoo, err)
		  : td_err_set(err, -ENOMEM, "out of memory");

	snprintf(path, sizeof(path), "%s/jobs_philly.csv.gz", run->data);
	r = r ? r : td_trace_read(path, false, &trace, err);
	if (!r) {
		w->trace = &trace;
		w->task_count = run->quick ? TASKS / 5 : TASKS;
		r = make_pools(w, err);
		r = r ? r : run_all(run, w, err);
	}
	for (uint32_t s = 0; !r && s < TD_ZOO_SERVICES; s++)
		fprintf(run->report,
			"%s: objective %.0f ms, %.0f requests/s at load 1, alpha %.2f, a batch of "
			"16 "
			"in %.1f ms.\n",
			w->zoo.services[s].name, w->zoo.services[s].objective_s * 1e3,
			0.15 * w->zoo.most_per_s[s], w->zoo.services[s].contender.serial,
			td_service_batch_s(&w->zoo.services[s], 16) * 1e3);
	fputs("\nWhere Mudi loses: GSLICE sees exact latencies every second and its services' "
	      "rates "
	      "stand still for half an hour, which is the best that can happen to feedback: it "
	      "comes within some 5 % of the bound. Mudi gives services about twice the share that "
	      "would do. Two lines through six samples are as much as twice the true latency at "
	      "shares of 0.2, where a + b / x bends; and its batch is the one that lets the task "
	      "run fastest at the largest cut-off, not at the share that it will have. Counts of "
	      "layers, learnt from five tasks, predict slopes of unseen ones worse than no counts "
	      "at all; they count only until a pair has been sampled.\n",
		run->report);
	fputs("\nTwo bounds of Mudi. By the truth: for each batch the smallest share under which "
	      "its "
	      "two conditions hold for what a batch really takes, and its 10 %, the best of these "
	      "for the task, on the GPU that is best. With lines through exact samples: all of "
	      "Mudi, but its curve of every pair goes through six samples without noise, and costs "
	      "nothing. What is between the two is what the form of the curve costs, what is "
	      "between the latter and Mudi its learning and its noise.\n",
		run->report);
	fputs("\nThe bound tries all batches and shares with the truth, for the task that is next: "
	      "it "
	      "is no optimum over time. Fig. 17 and Table 4 are with GPUs of 40 GiB and memory of "
	      "tasks and services that is declared, not measured: 4 to 32 GiB a task, 2.5 to 3 GiB "
	      "and 50 to 120 MiB a request of a batch for a service. Mudi with up to three tasks "
	      "puts them beside the services with the least slopes, in seconds over share, which "
	      "are those with the shortest batches, although other GPUs have no task at all; the "
	      "paper's 12 GPUs were full.\n",
		run->report);
	for (int c = 0; w && c < CLASSES; c++)
		free(w->pools[c]);
	if (w)
		td_knowledge_deinit(&w->knowledge);
	free(w);
	td_trace_deinit(&trace);
	return r;
}
#else
int td_exp_mudi_sim(struct td_experiment_run *run, struct td_err *err)
{
	return td_err_set(
		err, -ENOSYS, "%s: built without BLAS, so nothing can be trained", run->name);
}
#endif
