/*
 * The experiment antman-trace. AntMan's jobs and profiles are not public, so the jobs are those of
 * Philly's days 20-99 with at most 8 GPUs and from 60 s to 6 h. Each seed has 800 of them, in
 * order, on 64 GPUs, and their arrivals are stretched to offered loads. Half of the jobs are
 * guaranteed, half without quota, at random as in the paper. Kinds are the nearest of Gavel's jobs,
 * mixed as in Table 3. Host memory costs half of the jobs 0.37 and half 15 per unit on the host,
 * the two ends of the paper's Fig. 10.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "sim/base/random.h"
#include "sim/base/sim.h"
#include "sim/base/workers.h"
#include "sim/research/exp_antman.h"
#include "sim/scheduler/schedulers.h"

#define JOBS 800u
#define GPUS 64u
#define GIB  0x1p30

static const struct td_sched *const scheds[TD_ANTMAN_SCHEDS] = {
	&td_sched_fifo, &td_sched_preempt, &td_sched_gandiva, &td_sched_antman, &td_sched_tandem};

/* The mix of Table 3: each of five categories has 20 %. */
static const char *const mix[5][3] = {
	{"ResNet-50 (batch size 64)", "ResNet-18 (batch size 128)", "CycleGAN"},
	{"Transformer (batch size 64)", NULL, NULL},
	{"LM (batch size 20)", NULL, NULL},
	{"Recommendation (batch size 2048)", "A3C", NULL},
	{"Recommendation (batch size 512)", "Recommendation (batch size 8192)", NULL},
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

/*
 * Makes the jobs of a seed. Their arrivals are stretched so that they ask for `load` times the
 * cluster.
 */
static int make_jobs(const struct td_trace *trace, const struct td_profiles *profiles,
	uint32_t seed, const struct td_antman_setting *setting, struct td_sim_job *jobs,
	struct td_err *err)
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
	const struct td_antman_setting *setting, enum td_sim_world world, struct td_sim_job *jobs,
	double *ret_metrics, struct td_err *err)
{
	static struct td_cluster cluster;
	static const uint32_t nodes[] = {8, 8, 8, 8, 8, 8, 8, 8};
	struct td_cluster_options options = {
		.contention = {.proportional = setting->proportional, .capped_pressure = 1},
		.costs = {.restart_s = 60, .checkpoint_s = 1800},
		.world = world,
		.stop = &td_sim_stop};
	int r = td_cluster_init(
		&cluster, &options, profiles, nodes, 8, 32ull << 30, jobs, JOBS, sched);

	if (r)
		return td_err_set(err, r, "the scheduler %s cannot run the trace", sched->name);
	td_cluster_run(&cluster);
	if (td_metrics_of(&cluster, ret_metrics, NULL))
		r = td_err_set(err, -ENOMEM, "out of memory");
	td_cluster_deinit(&cluster);
	return r;
}

/*
 * Returns the least possible makespan. The last job cannot end before it has come and worked, and
 * all of the work takes as long as with two jobs on every GPU.
 */
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

/* The inputs of the bounds. */
struct bounds {
	struct td_profiles free;       /* the kinds of jobs if they did not slow each other down */
	struct td_guest_room rooms[2]; /* one for the fitted model, one for proportional sharing */
	double pair_sum, guest_speed;
};

#define WRONG 0.5 /* the most by which a kind's told demand is wrong, as a part of it */

/*
 * Runs tandem with wrong demands: with one error per kind for the whole seed or, if `untold`, with
 * the same demand for all kinds.
 */
static int run_misled(const struct td_profiles *profiles, uint32_t seed,
	const struct td_antman_setting *setting, bool untold, struct td_sim_job *jobs,
	double *ret_metrics, struct td_err *err)
{
	static struct td_profiles misled;
	uint64_t state = seed * 77 + 5;

	misled = *profiles;
	for (uint32_t k = 0; k < misled.count; k++) {
		double *told = &misled.profiles[k].told_demand;
		double wrong = *told * (1 + WRONG * (2 * td_random_unit(&state) - 1));

		*told = untold ? TD_ANTMAN_UNTOLD : fmin(1, wrong);
	}
	return run_sched(&misled, &td_sched_tandem, setting, TD_WORLD_TRUE, jobs, ret_metrics, err);
}

/* Computes the bounds for which no scheduler has to run. */
static int find_most(const struct td_guest_room *room, const struct td_sim_job *jobs,
	struct td_antman_outcome *ret, struct td_err *err)
{
	static struct td_sim_job longer[JOBS];
	struct td_antman_bound bound;

	for (uint32_t i = 0; i < JOBS; i++) {
		longer[i] = jobs[i];
		longer[i].work_s *= 1 + TD_ANTMAN_SLACK;
	}
	if (td_antman_bound(jobs, JOBS, GPUS, room, &ret->most) ||
		td_antman_bound(longer, JOBS, GPUS, room, &bound))
		return td_err_set(err, -ENOMEM, "out of memory");
	ret->guard = bound.guaranteed_jct_s / ret->most.guaranteed_jct_s;
	return 0;
}

/* Runs AntMan in the other worlds, and with other rules. */
static int run_others(const struct td_profiles *profiles, const struct bounds *bounds,
	const struct td_antman_setting *setting, struct td_sim_job *jobs,
	double ret[TD_ANTMAN_OTHERS][TD_METRIC_N], struct td_err *err)
{
	const struct td_antman_setting fitted = {setting->load, setting->memory, false};
	struct td_sched unguarded = td_sched_antman;
	int r;

	unguarded.guards = false;
	r = run_sched(&bounds->free, &td_sched_antman, &fitted, TD_WORLD_TRUE, jobs,
		ret[TD_ANTMAN_FREE], err);
	r = r ? r
	      : run_sched(profiles, &td_sched_antman, setting, TD_WORLD_GUARD_ALONE, jobs,
			ret[TD_ANTMAN_GUARD_ALONE], err);
	r = r ? r
	      : run_sched(profiles, &td_sched_antman, setting, TD_WORLD_GUESTS_ALONE, jobs,
			ret[TD_ANTMAN_GUESTS_ALONE], err);
	r = r ? r
	      : run_sched(profiles, &unguarded, setting, TD_WORLD_TRUE, jobs,
			ret[TD_ANTMAN_UNGUARDED], err);
	return r ? r
		 : run_sched(profiles, &td_sched_antman_moving, setting, TD_WORLD_TRUE, jobs,
			   ret[TD_ANTMAN_MOVING], err);
}

static int run_seed(const struct td_trace *trace, const struct td_profiles *profiles,
	const struct bounds *bounds, uint32_t seed, const struct td_antman_setting *setting,
	struct td_antman_outcome *ret, struct td_err *err)
{
	static struct td_sim_job jobs[JOBS];
	double least[TD_METRIC_N];
	const struct td_guest_room *room = &bounds->rooms[setting->proportional];
	int r = make_jobs(trace, profiles, seed, setting, jobs, err);

	for (int s = 0; !r && s < TD_ANTMAN_SCHEDS; s++)
		r = run_sched(
			profiles, scheds[s], setting, TD_WORLD_TRUE, jobs, ret->metrics[s], err);
	ret->least_span_s = r ? 0 : least_span(jobs, bounds->pair_sum);
	r = r ? r : run_others(profiles, bounds, setting, jobs, ret->other, err);
	r = r ? r : run_misled(profiles, seed, setting, false, jobs, ret->misled, err);
	r = r ? r : run_misled(profiles, seed, setting, true, jobs, ret->untold, err);
	r = r ? r : find_most(room, jobs, ret, err);
	r = r ? r
	      : run_sched(
			profiles, &td_sched_antman, setting, TD_WORLD_LEAST_DUTY, jobs, least, err);
	if (!r)
		ret->least_slow = least[TD_METRIC_GUARANTEED_JCT_MEAN_S] /
				  ret->metrics[TD_ANTMAN_PREEMPT][TD_METRIC_GUARANTEED_JCT_MEAN_S];
	return r;
}

/*
 * Finds two means over the mix: the joint speed of two jobs, where 1 is one GPU; and the speed of a
 * guest beside a guaranteed job that it slows down by at most 4 %, with the duty that results.
 */
static void find_bounds(const struct td_profiles *profiles, uint32_t samples, struct bounds *ret)
{
	const struct td_contention contention = {.capped_pressure = 1};
	static const bool guest[2] = {false, true};
	struct td_duty_params duty = td_duty_default;
	uint64_t state = 99;

	duty.slack_ppm = duty.raise_ppm = td_sched_antman.slack_ppm;
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
		td_duty_settle(&contention, pair, guest, 2, &duty, 12000, speeds);
		ret->guest_speed += speeds[1] / ((samples + 15) / 16);
	}
}

/* Finds the room for guests of the mix's kinds, in both contention variants. */
static void find_rooms(const struct td_profiles *profiles, struct td_guest_room rooms[2])
{
	bool used[TD_PROFILES_MAX] = {false};

	for (int c = 0; c < 5; c++)
		for (int n = 0; n < 3 && mix[c][n]; n++)
			used[td_profiles_find(profiles, mix[c][n])] = true;
	for (int variant = 0; variant < 2; variant++) {
		const struct td_contention contention = {
			.proportional = variant, .capped_pressure = 1};

		td_guest_room(profiles, &contention, used, TD_ANTMAN_SLACK, &rooms[variant]);
	}
}

/* The batch has a task for each setting and seed. */
struct batch {
	const struct td_trace *trace;
	const struct td_profiles *profiles;
	const struct bounds *bounds;
	uint32_t seeds;
};

static int run_task(void *arg, uint32_t index, void *ret, struct td_err *err)
{
	const struct batch *batch = arg;
	struct td_antman_setting setting = td_antman_setting_of(index / batch->seeds);

	return run_seed(batch->trace, batch->profiles, batch->bounds, index % batch->seeds + 1,
		&setting, ret, err);
}

static int run_all(struct td_experiment_run *run, const struct td_trace *trace,
	const struct td_profiles *profiles, struct td_err *err)
{
	const uint32_t settings = run->quick ? 2 * TD_ANTMAN_LOADS : 4 * TD_ANTMAN_LOADS;
	td_auto_free struct bounds *bounds = calloc(1, sizeof(*bounds));
	struct batch batch = {trace, profiles, bounds, run->seeds};
	td_auto_free struct td_antman_outcome *outcomes =
		calloc((size_t)settings * run->seeds, sizeof(*outcomes));
	int r;

	if (!outcomes || !bounds)
		return td_err_set(err, -ENOMEM, "out of memory");
	find_bounds(profiles, 4000, bounds);
	find_rooms(profiles, bounds->rooms);
	r = td_workers_run(run->jobs, settings * run->seeds, run_task, &batch, outcomes,
		sizeof(*outcomes), err);
	if (r)
		return r;
	td_antman_put(run, outcomes, settings, bounds->pair_sum, bounds->guest_speed);
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
	return r;
}
