/*
 * The knowledge that schedulers gain before a run: runs of jobs alone and in pairs in the ground
 * truth, with noise, for the kinds that their papers profile. The engine reads none of it.
 *
 * - hyperbolas and pieces: each kind of service alone, each batch, at six shares;
 * - mudi: two-piece lines of each service, batch and profiled task, at six shares; four predictors
 *   per service from the counts of layers and the batch (learn.h);
 * - muxflow: 2,000 dry runs of services at some load beside profiled tasks, one multi-layer
 *   perceptron.
 */
#pragma once

#include "learn/learn.h"
#include "sim/engine/zoo.h"
#include "sim/scheduler/schedulers.h"

enum td_layers_use {
	TD_LAYERS_TRUE,
	TD_LAYERS_BLIND,    /* without layers, to see how much they help */
	TD_LAYERS_SHUFFLED, /* layers of another task */
	TD_LAYERS_N,
};

struct td_knowledge {
	struct td_sim_knowledge view; /* passed to the schedulers */
	struct td_curve hyperbolas[TD_ZOO_SERVICES][TD_SELECTOR_BATCHES];
	struct td_curve pieces[TD_ZOO_SERVICES][TD_SELECTOR_BATCHES];
	double layers[TD_ZOO_KINDS][TD_MUDI_LAYERS];
	struct td_model models[TD_ZOO_SERVICES]
			      /*
			       * Errors of the left slope, the right slope, the knee's share and the
			       * knee's latency.
			       */
			      [4];
	struct td_mudi_service mudi[TD_ZOO_SERVICES];
	struct td_model muxflow;
	double profiling_gpu_s; /* cost of the profiling, with a hundred batches per sample */
};

/* Makes the knowledge. *ret need not be initialised. Returns 0, or -errno with err. */
int td_knowledge_learn(const struct td_zoo *zoo, const struct td_contention *contention,
	enum td_layers_use use, uint64_t seed, bool quick, struct td_knowledge *ret,
	struct td_err *err);
void td_knowledge_deinit(struct td_knowledge *knowledge);

/*
 * Computes the mean |predicted - true| / true for each of the four numbers, over services, batches,
 * and the tasks that were (or were not) profiled, as in Fig. 11.
 */
void td_knowledge_errors(const struct td_knowledge *knowledge, const struct td_zoo *zoo,
	const struct td_contention *contention, bool profiled, double ret[4]);
