/*
 * What a run comes to, as figures with names. Jobs that failed or have not ended stay in every mean, with the time that they have taken so far: leaving them out would reward a
 * scheduler for losing them.
 */
#pragma once

#include "sim/cluster.h"

enum td_metric {
	TD_METRIC_JOBS,
	TD_METRIC_DONE,
	TD_METRIC_FAILED,
	TD_METRIC_UNFINISHED,
	TD_METRIC_JCT_MEAN_S,
	TD_METRIC_JCT_MEDIAN_S,
	TD_METRIC_JCT_P90_S,
	TD_METRIC_JCT_P99_S,
	TD_METRIC_GUARANTEED_JCT_MEAN_S,
	TD_METRIC_OTHER_JCT_MEAN_S,
	TD_METRIC_WAIT_MEAN_S,
	TD_METRIC_WAIT_MEDIAN_S,
	TD_METRIC_SLOWDOWN_MEAN, /* time on GPUs over the time alone, of jobs that are done */
	TD_METRIC_MAKESPAN_S,
	TD_METRIC_BUSY_PERCENT,   /* of GPU time from first arrival to the end */
	TD_METRIC_SHARED_PERCENT, /* with several jobs */
	TD_METRIC_WORK_PERCENT,   /* progress of jobs over GPU time */
	TD_METRIC_EVICTIONS,
	TD_METRIC_EVICTED_PERCENT, /* of jobs, at least once */
	TD_METRIC_LOST_GPU_H,      /* work done again */
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
	int better; /* 1: more, -1: less, 0: neither */
};

extern const struct td_metric_info td_metrics[TD_METRIC_N];

/* After a run; completion times ascending go to ret_jct_s (job_count of them) unless it is NULL. 0 or -ENOMEM. */
int td_metrics_of(const struct td_cluster *cluster, double *ret, double *ret_jct_s);
