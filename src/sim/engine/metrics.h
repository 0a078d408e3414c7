/*
 * The figures of a run, with names.
 *
 * Leaving out the jobs that are not done would reward a scheduler for losing them, and so would the
 * short time of a job that failed at once. There are two remedies. The experiments count all jobs
 * in every mean, and a job that failed or has not ended took until the run's end (slowdowns are of
 * the jobs that are done). tandem-sim run compares several runs over the jobs that are done in each
 * of them, and shows beside it how many each has not done.
 *
 * The mean over no jobs is NAN.
 */
#pragma once

#include "sim/engine/cluster.h"

enum td_metric {
	TD_METRIC_JOBS,
	TD_METRIC_DONE,
	TD_METRIC_FAILED,
	TD_METRIC_UNFINISHED,
	TD_METRIC_COUNTED, /* number of jobs that the times below are of */
	TD_METRIC_JCT_MEAN_S,
	TD_METRIC_JCT_MEDIAN_S,
	TD_METRIC_JCT_P90_S,
	TD_METRIC_JCT_P99_S,
	TD_METRIC_GUARANTEED_JCT_MEAN_S,
	TD_METRIC_OTHER_JCT_MEAN_S,
	TD_METRIC_WAIT_MEAN_S,
	TD_METRIC_WAIT_MEDIAN_S,
	TD_METRIC_SLOWDOWN_MEAN, /* time since the first start over the time alone */
	TD_METRIC_MAKESPAN_S,
	TD_METRIC_SIMULATED_S,    /* time from the first arrival to the end of the run */
	TD_METRIC_BUSY_PERCENT,   /* part of the GPU time from the first arrival to the end */
	TD_METRIC_SHARED_PERCENT, /* part of the GPU time with several jobs on the GPU */
	TD_METRIC_WORK_PERCENT,   /* kept progress of the jobs over GPU time */
	TD_METRIC_EVICTIONS,
	TD_METRIC_EVICTED_PERCENT, /* part of the jobs that were evicted at least once */
	TD_METRIC_SUSPENSIONS,
	TD_METRIC_LOST_GPU_H, /* work that was done again */
	TD_METRIC_RESTART_GPU_H,
	TD_METRIC_MOVES,
	TD_METRIC_MOVE_GPU_H,
	TD_METRIC_GUEST_STARTS,
	TD_METRIC_UPGRADES,
	TD_METRIC_EVENTS,
	TD_METRIC_N,
};

struct td_metric_info {
	const char *name, *text, *unit;
	int better; /* 1: more is better; -1: less is better; 0: neither */
};

extern const struct td_metric_info td_metrics[TD_METRIC_N];

/*
 * Computes the figures over all jobs after a run. Writes the completion times in ascending order to
 * ret_jct_s (job_count entries), unless it is NULL. Returns 0 or -ENOMEM.
 */
int td_metrics_of(const struct td_cluster *cluster, double *ret, double *ret_jct_s);

/*
 * Computes the figures from TD_METRIC_JCT_MEAN_S to TD_METRIC_MAKESPAN_S, and TD_METRIC_COUNTED,
 * over the jobs with counted[i] true (NULL: all). The jobs are as at the run's end, now_ns. Writes
 * their completion times in ascending order to ret_jct_s, unless it is NULL. Returns 0 or -ENOMEM.
 */
int td_metrics_of_jobs(const struct td_sim_job *jobs, uint32_t count, const bool *counted,
	uint64_t first_ns, uint64_t now_ns, double *ret, double *ret_jct_s);
