/* Declares all schedulers. They are thin adapters between the engine's events and src/policy. */
#pragma once

#include "policy/system/mudi.h"
#include "sim/engine/sched.h"

/* The knowledge that schedulers gain before a run. NULL fields: not known. */
struct td_sim_knowledge {
	const struct td_mudi_service *mudi;     /* one per kind of service */
	const double (*layers)[TD_MUDI_LAYERS]; /* one per profile */
	/* The first so many profiles were profiled beforehand. */
	uint32_t profiled;
	const struct td_predictor *muxflow;
	/*
	 * Latency curves over the share of each kind of service alone, for each of the selector's
	 * batches.
	 */
	const struct td_curve (*hyperbolas)[TD_SELECTOR_BATCHES], (*pieces)[TD_SELECTOR_BATCHES];
};

extern const struct td_sched td_sched_fifo, td_sched_preempt, td_sched_gandiva, td_sched_antman,
	td_sched_tandem, td_sched_round_robin, td_sched_nvshare, td_sched_dcuda, td_sched_optimum;
/*
 * AntMan, except that its guests may move to other GPUs, which the paper's do not. It shows what
 * staying costs AntMan. `tandem-sim run` does not offer it.
 */
extern const struct td_sched td_sched_antman_moving;
/*
 * These schedulers need services and knowledge of them, and are not available in tandem-sim run.
 * Without knowledge init returns -ENODATA.
 */
extern const struct td_sched td_sched_gslice, td_sched_gpulets, td_sched_muxflow, td_sched_mudi,
	td_sched_mudi_more, td_sched_even, td_sched_bound, td_sched_mudi_truth, td_sched_mudi_exact,
	td_sched_mudi_more_exact;

/* All schedulers of tandem-sim run, NULL-terminated. */
extern const struct td_sched *const td_scheds[];
const struct td_sched *td_sched_find(const char *name);
