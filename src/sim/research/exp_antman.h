/* The results of antman-trace's runs (exp_antman.c), from which exp_antman_rows.c makes rows. */
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

/*
 * AntMan in other worlds than the measured one, or with other rules. None of these is a bound:
 * Algorithm 1 places by what it sees, and may place worse where no job is slower.
 */
enum td_antman_other {
	TD_ANTMAN_FREE,        /* those side by side do not slow each other down */
	TD_ANTMAN_GUARD_ALONE, /* its guard alone slows guests, and nobody else is slowed */
	/* guests without a slow guaranteed job slow each other; nobody else is slowed */
	TD_ANTMAN_GUESTS_ALONE,
	TD_ANTMAN_UNGUARDED, /* guests run as they can beside guaranteed jobs */
	TD_ANTMAN_MOVING,    /* guests move to GPUs that nobody has */
	TD_ANTMAN_OTHERS,
};

struct td_antman_setting {
	double load;
	bool memory, proportional;
};

/* The outcome of one seed in one setting. */
struct td_antman_outcome {
	double metrics[TD_ANTMAN_SCHEDS][TD_METRIC_N], other[TD_ANTMAN_OTHERS][TD_METRIC_N];
	/* guaranteed JCT if no guest exceeded the least duty, over preemption's */
	double least_slow;
	struct td_antman_bound most; /* of everybody, with all known */
	/*
	 * First come first served JCT of guaranteed jobs, each lengthened by as much as the guard
	 * permits, over their JCT.
	 */
	double guard;
	double misled[TD_METRIC_N]; /* tandem's, if what it is told of demands is wrong */
	double untold[TD_METRIC_N]; /* and if it is told nothing of them */
	double least_span_s;        /* the makespan of two jobs on every GPU all the time */
};

struct td_antman_setting td_antman_setting_of(uint32_t index);

/*
 * Writes rows and sentences of all settings. outcomes: all seeds of the first setting, then of the
 * next. pair_sum, guest_speed: means of the mix.
 */
void td_antman_put(struct td_experiment_run *run, const struct td_antman_outcome *outcomes,
	uint32_t settings, double pair_sum, double guest_speed);
