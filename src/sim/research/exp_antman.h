/*
 * What antman-trace has of its runs (exp_antman.c) and what its rows are made of (exp_antman_rows.c).
 */
#pragma once

#include "sim/engine/metrics.h"
#include "sim/report/experiment.h"
#include "sim/worlds/antman_bound.h"

#define TD_ANTMAN_SEEDS_MAX 50u
#define TD_ANTMAN_LOADS     5u
#define TD_ANTMAN_SLACK                                                                            \
	0.05 /* by which a guaranteed job may be later: the row's limit, not the coordinator's */
#define TD_ANTMAN_UNTOLD 0.5 /* what tandem is told that each uses when nothing is known */

enum {
	TD_ANTMAN_FIFO,
	TD_ANTMAN_PREEMPT,
	TD_ANTMAN_GANDIVA,
	TD_ANTMAN_ITSELF,
	TD_ANTMAN_TANDEM,
	TD_ANTMAN_SCHEDS,
};

/* AntMan in other worlds than the measured one, or with other rules. None of these is a bound: Algorithm 1 places by what it sees, and where nobody is slower it may place worse. */
enum td_antman_other {
	TD_ANTMAN_FREE,        /* those side by side do not slow each other down */
	TD_ANTMAN_GUARD_ALONE, /* its guard alone slows guests, and nobody else is slowed */
	TD_ANTMAN_GUESTS_ALONE, /* guests where no guaranteed job is slow each other, and nobody else is slowed */
	TD_ANTMAN_UNGUARDED, /* guests run as they can beside guaranteed jobs */
	TD_ANTMAN_MOVING,    /* guests move to GPUs that nobody has */
	TD_ANTMAN_OTHERS,
};

struct td_antman_setting {
	double load;
	bool memory, proportional;
};

/* Of one seed in one setting. */
struct td_antman_outcome {
	double metrics[TD_ANTMAN_SCHEDS][TD_METRIC_N], other[TD_ANTMAN_OTHERS][TD_METRIC_N];
	double least_slow; /* guaranteed JCT, AntMan's over preemption's, if no guest had more than the least duty */
	struct td_antman_bound most; /* of everybody, with all known */
	double guard; /* guaranteed jobs, first come first served: JCT if each took as much longer as the guard permits, over JCT */
	double misled[TD_METRIC_N]; /* tandem's, if what it is told of demands is wrong */
	double untold[TD_METRIC_N]; /* and if it is told nothing of them */
	double least_span_s;        /* the makespan of two jobs on every GPU all the time */
};

struct td_antman_setting td_antman_setting_of(uint32_t index);

/* Rows and sentences of all settings; outcomes: of the first one all seeds, then of the next. pair_sum, guest_speed: means of the mix. */
void td_antman_put(struct td_experiment_run *run, const struct td_antman_outcome *outcomes,
	uint32_t settings, double pair_sum, double guest_speed);
