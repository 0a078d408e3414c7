/*
 * Bounds of AntMan's trace: in worlds small enough to know them by hand, and against schedulers in
 * larger ones.
 */
#include "test.h"

#include <math.h>
#include <string.h>

#include "policy/algo/control/duty.h"
#include "sim/base/random.h"
#include "sim/engine/metrics.h"
#include "sim/scheduler/schedulers.h"
#include "sim/worlds/antman_bound.h"

#define JOBS 120u

static struct td_profiles profiles;
static struct td_guest_room room;
static struct td_antman_bound bound;
static struct td_sim_job jobs[JOBS];
static struct td_cluster cluster;

static bool near(double a, double b)
{
	return fabs(a - b) < 1e-6 * fmax(1, fabs(b));
}

static struct td_sim_job make_job(
	double submit_s, double work_s, uint32_t gpus, enum td_class class)
{
	return (struct td_sim_job){.submit_ns = (uint64_t)(submit_s * 1e9),
		.work_s = work_s,
		.gpus = gpus,
		.class = class,
		.tenant = class != TD_CLASS_GUARANTEED};
}

/* One kind, of which a GPU does 1 and, beside a guaranteed job, `beside`. */
static void begin(double beside)
{
	room = (struct td_guest_room){.weight = {1}, .beside = {beside}};
}

static void find(uint32_t count, uint32_t gpus)
{
	CHECK_EQ(td_antman_bound(jobs, count, gpus, &room, &bound), 0);
}

/*
 * 2 GPUs: the first job has both for 10 s, the second waits for them though it would fit beside
 * nobody, the third may not overtake it.
 */
TEST(guaranteed_jobs_come_first_come_first_served)
{
	begin(0);
	jobs[0] = make_job(0, 10, 1, TD_CLASS_GUARANTEED);
	jobs[1] = make_job(1, 5, 2, TD_CLASS_GUARANTEED);
	jobs[2] = make_job(2, 5, 1, TD_CLASS_GUARANTEED);
	find(3, 2);
	CHECK(near(bound.guaranteed_jct_s, (10 + 14 + 18) / 3.));
	CHECK(near(bound.jct_s, bound.guaranteed_jct_s));
	CHECK(near(bound.span_s, 20));
}

/* 12 s of work on one GPU: the shorter one ends after 2, the longer one after 12. */
TEST(of_a_fluid_the_smallest_rest_comes_first)
{
	begin(0);
	jobs[0] = make_job(0, 10, 1, TD_CLASS_BESTEFFORT);
	jobs[1] = make_job(0, 2, 1, TD_CLASS_BESTEFFORT);
	find(2, 1);
	CHECK(near(bound.jct_s, (12 + 2) / 2.));
	CHECK(near(bound.span_s, 12));
	/* On two GPUs the fluid would take 1 and 6 s, and no job is faster than alone. */
	find(2, 2);
	CHECK(near(bound.jct_s, (10 + 2) / 2.));
	CHECK(near(bound.span_s, 10));
}

/* A tenth of the GPU until the guaranteed job ends at 10: 1 of 4 is done then, the rest takes 3. */
TEST(beside_a_guaranteed_job_guests_have_what_it_leaves)
{
	begin(0.1);
	jobs[0] = make_job(0, 10, 1, TD_CLASS_GUARANTEED);
	jobs[1] = make_job(0, 4, 1, TD_CLASS_BESTEFFORT);
	find(2, 1);
	CHECK(near(bound.guaranteed_jct_s, 10));
	CHECK(near(bound.span_s, 13));
}

/*
 * One GPU: 10 s guaranteed and 4 s of a guest. A policy that slows the first one, or lets it wait,
 * has the guest done after 4 s at best and both after 14; on two GPUs each is alone.
 */
TEST(no_mean_is_below_that_of_all_as_one_fluid)
{
	begin(0);
	jobs[0] = make_job(0, 10, 1, TD_CLASS_GUARANTEED);
	jobs[1] = make_job(0, 4, 1, TD_CLASS_BESTEFFORT);
	find(2, 1);
	CHECK(near(bound.jct_s, (4 + 14) / 2.));
	find(2, 2);
	CHECK(near(bound.jct_s, (4 + 10) / 2.));
	/*
	 * Two guaranteed ones in order, 10 s before 1 s: as one fluid the short one would be first,
	 * which the order forbids.
	 */
	jobs[0] = make_job(0, 10, 1, TD_CLASS_GUARANTEED);
	jobs[1] = make_job(0, 1, 1, TD_CLASS_GUARANTEED);
	find(2, 1);
	CHECK(near(bound.jct_s, (10 + 11) / 2.));
}

/*
 * g p = 1: two have 1/2 each, n have 1/n, so a second of work takes a second of a GPU; 5 % more of
 * a job's step are a duty of 0.05, in which a guest has half its speed.
 */
TEST(the_room_of_a_known_kind_is_known)
{
	struct td_contention contention = {.capped_pressure = 1};
	bool used[TD_PROFILES_MAX] = {true};

	profiles = (struct td_profiles){.count = 1};
	profiles.profiles[0].contender = td_contender_neutral;
	profiles.profiles[0].contender.sensitivity = 2;
	profiles.profiles[0].contender.pressure = 0.5;
	profiles.profiles[0].contender.demand = 0.8;
	td_guest_room(&profiles, &contention, used, 0.05, &room);
	CHECK(near(room.weight[0], 1));
	CHECK(near(room.beside[0], 0.05 / 2));
	contention.proportional = true;
	td_guest_room(&profiles, &contention, used, 0.05, &room);
	CHECK(near(room.weight[0], 0.8));
	CHECK(near(room.beside[0], 1 - 0.8 / 1.05));
}

static void draw(uint64_t *state)
{
	for (uint32_t i = 0; i < JOBS; i++) {
		jobs[i] = make_job(20 * i, 10 + pow(1000, td_random_unit(state)),
			1u << td_random_below(state, 3),
			td_random_below(state, 2) ? TD_CLASS_GUARANTEED : TD_CLASS_BESTEFFORT);
		jobs[i].profile = td_random_below(state, profiles.count);
	}
}

static void run(const struct td_sched *sched, const struct td_cluster_options *options,
	uint32_t count, double *ret_metrics)
{
	static const uint32_t nodes[] = {4, 4};

	CHECK_EQ(td_cluster_init(&cluster, options, &profiles, nodes, 2, 0, jobs, count, sched), 0);
	td_cluster_run(&cluster);
	CHECK_EQ(td_metrics_of(&cluster, ret_metrics, NULL), 0);
	td_cluster_deinit(&cluster);
}

/* Three kinds, of which one presses much. */
static void draw_kinds(uint64_t *state)
{
	profiles = (struct td_profiles){.count = 3};
	for (uint32_t k = 0; k < 3; k++) {
		struct td_contender *kind = &profiles.profiles[k].contender;

		*kind = td_contender_neutral;
		kind->sensitivity = 0.3 + td_random_unit(state);
		kind->pressure = 0.3 + td_random_unit(state) + (k == 2);
		kind->demand = 0.3 + 0.7 * td_random_unit(state);
	}
}

/*
 * Finds bounds of every order: alone and as one fluid, for all jobs and for the guaranteed ones by
 * themselves. tandem does not keep the order of arrival among guaranteed jobs that ask for more
 * than there is, so their bound in that order is none for it.
 */
static void find_without_order(void)
{
	static struct td_sim_job same[JOBS];
	struct td_antman_bound guaranteed;
	uint32_t count = 0;

	for (uint32_t i = 0; i < JOBS; i++)
		if (jobs[i].class == TD_CLASS_GUARANTEED) {
			same[count] = jobs[i];
			same[count++].class = TD_CLASS_BESTEFFORT;
		}
	CHECK_EQ(td_antman_bound(same, count, 8, &room, &guaranteed), 0);
	memcpy(same, jobs, sizeof(jobs));
	for (uint32_t i = 0; i < JOBS; i++)
		same[i].class = TD_CLASS_BESTEFFORT;
	CHECK_EQ(td_antman_bound(same, JOBS, 8, &room, &bound), 0);
	bound.guaranteed_jct_s = guaranteed.jct_s;
}

TEST(nobody_who_keeps_the_guard_is_better_than_the_bound)
{
	static const struct td_sched *const scheds[] = {&td_sched_antman, &td_sched_tandem};
	bool used[TD_PROFILES_MAX] = {true, true, true};
	uint64_t state = 5;

	for (int round = 0; round < 24; round++) {
		struct td_cluster_options options = {
			.contention = {.proportional = round % 2, .capped_pressure = 1}};

		draw_kinds(&state);
		draw(&state);
		td_guest_room(&profiles, &options.contention, used, 0.05, &room);
		find(JOBS, 8);
		for (int s = 0; s < 2; s++) {
			double metrics[TD_METRIC_N];

			if (scheds[s] == &td_sched_tandem)
				find_without_order();
			run(scheds[s], &options, JOBS, metrics);
			CHECK(metrics[TD_METRIC_DONE] > JOBS - 0.5);
			CHECK(metrics[TD_METRIC_JCT_MEAN_S] >= bound.jct_s);
			CHECK(metrics[TD_METRIC_GUARANTEED_JCT_MEAN_S] >=
				bound.guaranteed_jct_s - 1e-6);
			CHECK(metrics[TD_METRIC_MAKESPAN_S] >= bound.span_s * (1 - 1e-9));
		}
	}
}

/*
 * A guest that its company slows by the duty alone: 100 s alone, 200 s beside the guaranteed job,
 * which it does not slow, and the rest alone again. The engine gives the settled duty.
 */
TEST(where_the_guard_alone_slows_guests_nobody_else_is_slowed)
{
	struct td_cluster_options options = {
		.contention = {.capped_pressure = 1}, .world = TD_WORLD_GUARD_ALONE};
	struct td_duty_params params = td_duty_default;
	static const bool is_guest[2] = {true, false};
	struct td_contender pair[2];
	double metrics[TD_METRIC_N], settled[2];

	td_profiles_generic(&profiles);
	pair[0] = pair[1] = profiles.profiles[0].contender;
	params.slack_ppm = params.raise_ppm = td_sched_antman.slack_ppm;
	td_duty_settle(&options.contention, pair, is_guest, 2, &params, 12000, settled);
	CHECK(settled[0] < 0.9 && settled[1] < 0.999);
	jobs[0] = make_job(0, 300, 8, TD_CLASS_BESTEFFORT);
	jobs[1] = make_job(100, 200, 8, TD_CLASS_GUARANTEED);
	run(&td_sched_antman, &options, 2, metrics);
	CHECK(near((double)jobs[1].end_ns * 1e-9, 300));
	CHECK(near((double)jobs[0].end_ns * 1e-9, 300 + (300 - 100 - settled[0] * 200)));
}

/*
 * A guest beside a guaranteed job, which slow each other in the measured world; then two guests on
 * their own, which behave the same in both.
 */
TEST(where_guests_alone_slow_each_other_nobody_else_is_slowed)
{
	struct td_cluster_options options = {
		.contention = {.capped_pressure = 1}, .world = TD_WORLD_GUESTS_ALONE};
	struct td_contender pair[2];
	double metrics[TD_METRIC_N], speeds[2];

	td_profiles_generic(&profiles);
	profiles.profiles[0].contender.demand = 0.3;
	pair[0] = pair[1] = profiles.profiles[0].contender;
	td_contention_speeds(&options.contention, pair, 2, speeds);
	CHECK(speeds[0] < 0.95);
	jobs[0] = make_job(0, 300, 8, TD_CLASS_BESTEFFORT);
	jobs[1] = make_job(100, 200, 8, TD_CLASS_GUARANTEED);
	run(&td_sched_antman, &options, 2, metrics);
	CHECK(near((double)jobs[0].end_ns * 1e-9, 300));
	CHECK(near((double)jobs[1].end_ns * 1e-9, 300));
	jobs[1].class = TD_CLASS_BESTEFFORT;
	run(&td_sched_antman, &options, 2, metrics);
	CHECK(near((double)jobs[0].end_ns * 1e-9, 100 + 200 / speeds[0]));
	jobs[1].class = TD_CLASS_GUARANTEED;
	options.world = TD_WORLD_TRUE;
	run(&td_sched_antman, &options, 2, metrics);
	CHECK(jobs[0].end_ns > 310000000000ull);
}

/* The least that a guest costs: what it does in a fiftieth of the time. */
TEST(at_the_least_duty_a_guaranteed_job_is_slowed_by_that)
{
	struct td_cluster_options options = {
		.contention = {.capped_pressure = 1}, .world = TD_WORLD_LEAST_DUTY};
	struct td_contender pair[2];
	double metrics[TD_METRIC_N], speeds[2], truth;

	td_profiles_generic(&profiles);
	pair[0] = pair[1] = profiles.profiles[0].contender;
	pair[0].duty = td_duty_default.floor_ppm / 1e6;
	td_contention_speeds(&options.contention, pair, 2, speeds);
	CHECK(speeds[1] < 1);
	jobs[0] = make_job(0, 30000, 8, TD_CLASS_BESTEFFORT);
	jobs[1] = make_job(100, 200, 8, TD_CLASS_GUARANTEED);
	run(&td_sched_antman, &options, 2, metrics);
	CHECK(near((double)jobs[1].end_ns * 1e-9, 100 + 200 / speeds[1]));
	CHECK_EQ(td_sched_antman.slack_ppm, 40000); /* the paper's Table 5 */
	options.world = TD_WORLD_TRUE;
	run(&td_sched_antman, &options, 2, metrics);
	truth = (double)jobs[1].end_ns * 1e-9;
	CHECK(truth > 100 + 200 / speeds[1]);
	CHECK(truth <= 100 + 200 * (1 + td_sched_antman.slack_ppm / 1e6) + 1e-6);
}

/*
 * A pair that halves both: under the duty d the job has 1 / (1 + d) and the guest d / 2, so a
 * second of the guest costs 2 / (1 + d), least at d = 1. No coordinator that gets the guest's work
 * done beside the job costs it less.
 */
TEST(a_guests_work_costs_no_less_than_its_bound)
{
	const struct td_contention contention = {.capped_pressure = 1};
	struct td_contender pair[2] = {td_contender_neutral, td_contender_neutral};
	struct td_cluster_options options = {.contention = contention};
	double metrics[TD_METRIC_N], bound_s;

	for (int i = 0; i < 2; i++)
		pair[i].sensitivity = pair[i].pressure = 1;
	CHECK(near(td_least_cost_beside(&contention, pair), 1));
	td_profiles_generic(&profiles);
	pair[0] = pair[1] = profiles.profiles[0].contender;
	bound_s = td_least_cost_beside(&contention, pair);
	jobs[0] = make_job(0, 150, 8, TD_CLASS_BESTEFFORT);
	jobs[1] = make_job(100, 20000, 8, TD_CLASS_GUARANTEED);
	run(&td_sched_antman, &options, 2, metrics);
	CHECK(jobs[0].end_ns < jobs[1].end_ns);
	CHECK((double)jobs[1].end_ns * 1e-9 >= 100 + 20000 + 50 * bound_s * (1 - 1e-6));
}
