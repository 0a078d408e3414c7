/* Simulates the world of mudi-sim; see mudi_world.h. */
#include "sim/worlds/mudi_world.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "sim/base/random.h"
#include "sim/base/workers.h"
#include "sim/scheduler/schedulers.h"

#define LONGEST_S (200 * 3600.)
#define HORIZON_S (30 * 86400.) /* tasks that are not done by then count with this time */

const struct td_mudi_variant td_mudi_variants[TD_MUDI_VARIANTS] = {{"fitted", {false, 1}},
	{"proportional", {true, 1}}, {"doubled", {false, 2}}, {"halved", {false, 0.5}}};

static const struct td_sched *const scheds[TD_MUDI_ALL] = {&td_sched_gslice, &td_sched_gpulets,
	&td_sched_muxflow, &td_sched_mudi, &td_sched_bound, &td_sched_tandem, &td_sched_mudi_truth,
	&td_sched_mudi_exact, &td_sched_mudi_more, &td_sched_even, &td_sched_mudi_more_exact};

static int class_of(double gpu_s)
{
	return gpu_s < 3600 ? 0 : gpu_s < 36000 ? 1 : gpu_s < 360000 ? 2 : 3;
}

int td_mudi_pools(struct td_mudi_world *w, struct td_err *err)
{
	for (int c = 0; c < TD_MUDI_CLASSES; c++) {
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
	for (int c = 0; c < TD_MUDI_CLASSES; c++)
		if (!w->pool_counts[c])
			return td_err_set(err, -ENOENT,
				"the trace has no jobs of one GPU in duration class %d", c);
	return 0;
}

static void make_tasks(struct td_mudi_world *w, uint32_t seed, double crowd)
{
	uint64_t random = seed * 31 + 5;
	uint32_t first = 0, last = w->trace->count;
	double from_s;

	/* Days 20 to 99. The parts of the seeds follow each other. */
	while (first < last && w->trace->jobs[first].submit_s < 20 * 86400.)
		first++;
	first += (seed - 1) * TD_MUDI_TASKS % (last - first - w->task_count);
	from_s = w->trace->jobs[first].submit_s;
	for (uint32_t i = 0; i < w->task_count; i++) {
		uint32_t task = td_zoo_draw_task(&w->zoo, &random);
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

static void make_services(struct td_mudi_world *w, uint32_t seed, double load)
{
	uint64_t random = seed * 131 + 7;

	for (uint32_t g = 0; g < TD_MUDI_GPUS; g++) {
		w->services[g] = (struct td_service){.gpu = g, .kind = g % TD_ZOO_SERVICES};
		td_zoo_rates(&w->zoo, g % TD_ZOO_SERVICES, load, &random,
			w->rates + (size_t)g * TD_ZOO_INTERVALS);
	}
}

/*
 * No table of the paper gives the memory of tasks and services. These values are assumptions, by
 * what such models use in these frameworks.
 */
static const double task_gib[TD_ZOO_TASKS] = {9, 7, 26, 4, 12, 14, 27, 32, 16};
static const struct {
	double gib, batch_mib;
} service_needs[TD_ZOO_SERVICES] = {{2.5, 50}, {2.5, 60}, {3, 90}, {3, 120}, {2.5, 80}, {3, 90}};

#define GPU_GIB      40
#define LINK_BYTES_S 20e9 /* PCIe 4.0 x16, pinned memory */
#define HOST_COST    1.   /* see td_spilled_speed(): memory that each iteration touches once */

static void need_memory(struct td_mudi_world *w, bool memory)
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

static void note_beside(const struct td_mudi_world *w, int policy, struct td_mudi_outcome *ret)
{
	double late = 0, with = 0, tasks = 0;

	for (uint32_t g = 0; g < TD_MUDI_GPUS; g++) {
		late += w->services[g].late_s;
		with += w->services[g].guest_s;
	}
	for (uint32_t i = 0; i < w->task_count; i++) {
		const struct td_sim_job *task = &w->tasks[i];

		if (task->start_ns == TD_NEVER)
			continue;
		tasks += (double)((task->end_ns == TD_NEVER ? w->cluster.now_ns : task->end_ns) -
				  task->start_ns) *
			 1e-9;
	}
	ret->late_s[policy] = late;
	ret->late_beside[policy] = 100 * late / fmax(1, with);
	ret->together[policy] = tasks / fmax(1, with);
}

static void note_swaps(const struct td_mudi_world *w, int policy, struct td_mudi_outcome *ret)
{
	double with[TD_ZOO_SERVICES] = {0}, swapped[TD_ZOO_SERVICES] = {0}, all = 0, sum = 0;
	const struct td_cluster_counts *counts = &w->cluster.counts;

	for (uint32_t g = 0; g < TD_MUDI_GPUS; g++) {
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

static int simulate(struct td_mudi_world *w, const struct td_mudi_setting *setting, int policy,
	uint32_t seed, struct td_mudi_outcome *ret, struct td_err *err)
{
	static uint32_t nodes[TD_MUDI_GPUS / 8];
	struct td_services services = {.kinds = w->zoo.services,
		.kind_count = TD_ZOO_SERVICES,
		.list = w->services,
		.count = TD_MUDI_GPUS,
		.rates = w->rates,
		.intervals = TD_ZOO_INTERVALS,
		.interval_ns = TD_ZOO_INTERVAL_NS};
	struct td_cluster_options options = {
		.contention = td_mudi_variants[setting->variant].contention,
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

	for (uint32_t n = 0; n < TD_MUDI_GPUS / 8; n++)
		nodes[n] = 8;
	need_memory(w, setting->memory);
	r = td_cluster_init(&w->cluster, &options, &w->zoo.tasks, nodes, TD_MUDI_GPUS / 8,
		setting->memory ? (uint64_t)GPU_GIB << 30 : 0, w->tasks, w->task_count,
		scheds[policy]);
	if (r)
		return td_err_set(err, r, "the scheduler %s cannot run the jobs: %s",
			scheds[policy]->name, strerror(-r));
	td_cluster_run(&w->cluster);
	for (uint32_t i = 0; i < w->task_count; i++) {
		uint64_t end =
			w->tasks[i].end_ns == TD_NEVER ? w->cluster.now_ns : w->tasks[i].end_ns;

		sum += (double)(end - w->tasks[i].submit_ns) * 1e-9;
	}
	ret->makespan_s[policy] = (double)(w->cluster.now_ns - w->cluster.first_ns) * 1e-9;
	note_swaps(w, policy, ret);
	note_beside(w, policy, ret);
	ret->ct_s[policy] = sum / w->task_count;
	ret->late[policy] = 100 * td_cluster_late(&w->cluster, TD_SERVICE_NONE);
	if (policy == TD_MUDI_ITSELF && w->cluster.counts.tunings)
		ret->iterations =
			(double)w->cluster.counts.iterations / (double)w->cluster.counts.tunings;
	if (policy == TD_MUDI_TANDEM) {
		ret->moves = (double)w->cluster.counts.moves;
		ret->repartitions = (double)w->cluster.counts.repartitions;
	}
	ret->unfinished += w->task_count - w->cluster.ended;
	td_cluster_deinit(&w->cluster);
	return 0;
}

/* The simulations of one setting: a task for each seed and policy. */
struct batch {
	struct td_mudi_world *w;
	const struct td_mudi_setting *setting;
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

/* Adds the results of one policy. */
static void take(struct td_mudi_outcome *of, const struct td_mudi_outcome *part, int policy)
{
	of->ct_s[policy] = part->ct_s[policy];
	of->late[policy] = part->late[policy];
	of->late_beside[policy] = part->late_beside[policy];
	of->late_s[policy] = part->late_s[policy];
	of->together[policy] = part->together[policy];
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

static int run_batch(struct td_experiment_run *run, struct batch *batch,
	struct td_mudi_outcome *ret, struct td_err *err)
{
	uint32_t count = run->seeds * batch->policy_count;
	td_auto_free struct td_mudi_outcome *parts = calloc(count, sizeof(*parts));
	int r = parts ? td_workers_run(
				run->jobs, count, run_task, batch, parts, sizeof(*parts), err)
		      : td_err_set(err, -ENOMEM, "out of memory");

	memset(ret, 0, run->seeds * sizeof(*ret));
	for (uint32_t i = 0; !r && i < count; i++)
		take(&ret[i / batch->policy_count], &parts[i],
			batch->policies[i % batch->policy_count]);
	return r;
}

int td_mudi_run(struct td_experiment_run *run, struct td_mudi_world *w,
	const struct td_mudi_setting *setting, struct td_mudi_outcome *ret, struct td_err *err)
{
	/* The systems come first, then the bounds. */
	static const int policies[TD_MUDI_POLICIES] = {TD_MUDI_GSLICE, TD_MUDI_GPULETS,
		TD_MUDI_MUXFLOW, TD_MUDI_ITSELF, TD_MUDI_TANDEM, TD_MUDI_BOUND, TD_MUDI_TRUTH,
		TD_MUDI_EXACT};
	struct batch batch = {w, setting, policies, setting->unbounded ? 5 : TD_MUDI_POLICIES};

	return run_batch(run, &batch, ret, err);
}

int td_mudi_run_more(struct td_experiment_run *run, struct td_mudi_world *w, int variant,
	struct td_mudi_outcome *ret, struct td_err *err)
{
	static const int policies[] = {
		TD_MUDI_ITSELF, TD_MUDI_MORE, TD_MUDI_EVEN, TD_MUDI_MORE_EXACT};
	const struct td_mudi_setting setting = {variant, 1, 1.6, true, false};
	struct batch batch = {w, &setting, policies, 4};

	return run_batch(run, &batch, ret, err);
}
