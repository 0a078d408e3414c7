/*
 * A run's figures: no policy gains by a job that it lost, nothing counts twice, and a mean of
 * nothing is not a number.
 */
#include "test.h"

#include <math.h>

#include "sim/engine/metrics.h"
#include "sim/scheduler/schedulers.h"

#define JOBS 3u

static struct td_profiles profiles;
static struct td_sim_job jobs[JOBS];
static struct td_cluster cluster;
static double metrics[TD_METRIC_N];

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
		.class = class};
}

static void run(const struct td_sched *sched, const uint32_t *nodes, uint32_t count, uint32_t n)
{
	const struct td_cluster_options options = {.contention = {.capped_pressure = 1},
		.costs = {.restart_s = 30, .checkpoint_s = 600}};

	td_profiles_generic(&profiles);
	CHECK_EQ(
		td_cluster_init(&cluster, &options, &profiles, nodes, count, 0, jobs, n, sched), 0);
	td_cluster_run(&cluster);
	CHECK_EQ(td_metrics_of(&cluster, metrics, NULL), 0);
	td_cluster_deinit(&cluster);
}

TEST(a_job_that_fails_at_once_took_until_the_end)
{
	static uint32_t nodes[40];

	for (int n = 0; n < 40; n++)
		nodes[n] = 16;
	jobs[0] = make_job(0, 1000, 1, TD_CLASS_GUARANTEED);
	jobs[1] = make_job(0, 100, 513, TD_CLASS_GUARANTEED); /* AntMan's gangs are smaller */
	run(&td_sched_antman, nodes, 40, 2);
	CHECK_EQ(metrics[TD_METRIC_FAILED], 1);
	CHECK_EQ(metrics[TD_METRIC_COUNTED], 2);
	CHECK(near(metrics[TD_METRIC_JCT_MEAN_S], 1000));
	CHECK(near(metrics[TD_METRIC_MAKESPAN_S], 1000));
	CHECK(near(metrics[TD_METRIC_WORK_PERCENT], 100. / 640));
}

TEST(work_that_is_done_twice_counts_once)
{
	static const uint32_t nodes[] = {4};

	jobs[0] = make_job(0, 1000, 4, TD_CLASS_BESTEFFORT);
	jobs[1] = make_job(500, 100, 4, TD_CLASS_GUARANTEED);
	run(&td_sched_preempt, nodes, 1, 2);
	CHECK(metrics[TD_METRIC_LOST_GPU_H] > 0.5);
	CHECK(near(metrics[TD_METRIC_SIMULATED_S], 1000 + 100 + 500 + 30));
	CHECK(near(metrics[TD_METRIC_WORK_PERCENT], 100. * 1100 / 1630));
	CHECK(near(metrics[TD_METRIC_BUSY_PERCENT], 100));
}

TEST(some_jobs_alone_count_when_asked)
{
	static const bool second[] = {false, true, false}, none[JOBS];
	static const uint32_t nodes[] = {1};
	double jct[JOBS];

	jobs[0] = make_job(0, 100, 1, TD_CLASS_GUARANTEED);
	jobs[1] = make_job(0, 10, 1, TD_CLASS_BESTEFFORT);
	jobs[2] = make_job(0, 1, 1, TD_CLASS_BESTEFFORT);
	run(&td_sched_fifo, nodes, 1, 3);
	CHECK(near(metrics[TD_METRIC_JCT_MEAN_S], (100 + 110 + 111) / 3.));
	CHECK_EQ(td_metrics_of_jobs(jobs, JOBS, second, 0, 111000000000, metrics, jct), 0);
	CHECK_EQ(metrics[TD_METRIC_COUNTED], 1);
	CHECK(near(metrics[TD_METRIC_JCT_MEAN_S], 110) && near(jct[0], 110));
	CHECK(near(metrics[TD_METRIC_MAKESPAN_S], 110));
	CHECK(isnan(metrics[TD_METRIC_GUARANTEED_JCT_MEAN_S]));
	CHECK_EQ(td_metrics_of_jobs(jobs, JOBS, none, 0, 111000000000, metrics, jct), 0);
	CHECK(isnan(metrics[TD_METRIC_JCT_MEAN_S]) && isnan(metrics[TD_METRIC_JCT_P99_S]));
}
