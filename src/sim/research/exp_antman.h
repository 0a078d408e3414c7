/* The results of antman-trace's runs (exp_antman.c), from which exp_antman_rows.c makes rows. */
#pragma once

#include "sim/engine/metrics.h"
#include "sim/report/experiment.h"
#include "sim/worlds/antman_bound.h"

#define TD_ANTMAN_SEEDS_MAX 50u
#define TD_ANTMAN_LOADS     5u
/* A guaranteed job may be later by this part: the limit of the row, not of the coordinator. */
#define TD_ANTMAN_SLACK  0.05
#define TD_ANTMAN_UNTOLD 0.5 /* tandem's assumed use of a GPU by each job if nothing is known */

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
 * Algorithm 1 places jobs by what it sees, so it may place them worse even if no job is slowed
 * down.
 */
enum td_antman_other {
	TD_ANTMAN_FREE,        /* jobs side by side do not slow each other down */
	TD_ANTMAN_GUARD_ALONE, /* only guests under its guard are slowed */
	/* Only guests without a slow guaranteed job are slowed, by each other. */
	TD_ANTMAN_GUESTS_ALONE,
	TD_ANTMAN_UNGUARDED, /* guests run without a duty beside guaranteed jobs */
	TD_ANTMAN_MOVING,    /* guests move to GPUs without jobs */
	TD_ANTMAN_OTHERS,
};

struct td_antman_setting {
	double load;
	bool memory, proportional;
};

/* The outcome of one seed in one setting. */
struct td_antman_outcome {
	double metrics[TD_ANTMAN_SCHEDS][TD_METRIC_N], other[TD_ANTMAN_OTHERS][TD_METRIC_N];
	/*
	 * Guaranteed jobs' completion time, if no guest had more than the least duty, over that of
	 * preemption.
	 */
	double least_slow;
	struct td_antman_bound most; /* bound for all jobs by a scheduler that knows everything */
	/*
	 * Guaranteed jobs' completion time by first come first served, with each job lengthened by
	 * as much as the guard permits, over their completion time.
	 */
	double guard;
	double misled[TD_METRIC_N]; /* tandem's figures with wrong demands */
	double untold[TD_METRIC_N]; /* tandem's figures without demands */
	double least_span_s;        /* makespan if every GPU had two jobs all the time */
};

struct td_antman_setting td_antman_setting_of(uint32_t index);

/*
 * Writes rows and sentences of all settings. outcomes: all seeds of the first setting, then of the
 * next. pair_sum and guest_speed are means of the mix.
 */
void td_antman_put(struct td_experiment_run *run, const struct td_antman_outcome *outcomes,
	uint32_t settings, double pair_sum, double guest_speed);
