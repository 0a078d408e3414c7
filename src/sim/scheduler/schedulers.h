/* The schedulers that there are: thin adapters between the engine's events and src/policy. */
#pragma once

#include "policy/system/mudi.h"
#include "sim/engine/sched.h"

/* The knowledge learnt or profiled before a run, for the schedulers that need it; NULL: none. */
struct td_sim_knowledge {
	const struct td_mudi_service *mudi;     /* of each kind of service */
	const double (*layers)[TD_MUDI_LAYERS]; /* of each profile */
	uint32_t profiled;                      /* of the profiles: the first ones were dry-run */
	const struct td_predictor *muxflow;
	/* of each kind of service alone, each of the selector's batches, over the share */
	const struct td_curve (*hyperbolas)[TD_SELECTOR_BATCHES], (*pieces)[TD_SELECTOR_BATCHES];
};

extern const struct td_sched td_sched_fifo, td_sched_preempt, td_sched_gandiva, td_sched_antman,
	td_sched_tandem, td_sched_round_robin, td_sched_nvshare, td_sched_dcuda, td_sched_optimum;
/*
 * AntMan with guests that move, which its paper does not do: a measure of what staying costs it.
 * Not available in tandem-sim run.
 */
extern const struct td_sched td_sched_antman_moving;
/*
 * These schedulers need services and knowledge of them, and are not available in tandem-sim run.
 * Without knowledge init returns -ENODATA.
 */
extern const struct td_sched td_sched_gslice, td_sched_gpulets, td_sched_muxflow, td_sched_mudi,
	td_sched_mudi_more, td_sched_even, td_sched_bound, td_sched_mudi_truth, td_sched_mudi_exact,
	td_sched_mudi_more_exact;

/* NULL-terminated. */
extern const struct td_sched *const td_scheds[];
const struct td_sched *td_sched_find(const char *name);
