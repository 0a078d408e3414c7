/*
 * Mudi's adaptive batching: finds the batch size with which the training task runs fastest while
 * the service holds its objective.
 *
 * Purpose. Mudi (5.3.1) searches the batch sizes by Bayesian optimisation: a Gaussian process over
 * the iteration times of the training task seen so far (gp.h), the lower confidence bound to choose
 * the next one, and only batches that hold the objective by the latency curve (slo_share.h) are
 * candidates. "GP-LCB effectively identifies the optimal configuration within 25 iterations" (7.5).
 *
 * The search has converged when the bound's minimum is at a sample that a second one has confirmed,
 * or after iterations_max samples. The answer is the candidate of the least mean. Batches enter the
 * process as log2, because doubling a batch changes the iteration time about as much anywhere; the
 * share enters unchanged.
 *
 * Invariants
 * - a proposal is always one of the candidates; without candidates there is no proposal (training
 *   is paused);
 * - at most iterations_max samples are asked for, whatever is observed;
 * - same observations, same proposals.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/algo/fit/gp.h"

#define TD_BATCH_CANDIDATES_MAX 512

struct td_batch_tuner {
	struct td_gp gp;
	uint32_t count;
	uint32_t batches[TD_BATCH_CANDIDATES_MAX];
	double points[TD_BATCH_CANDIDATES_MAX][TD_GP_DIMENSIONS];
	uint8_t tried[TD_BATCH_CANDIDATES_MAX]; /* how often each batch was sampled, up to 255 */
	uint32_t iterations_max;                /* 25 in the paper */
	uint32_t proposed;                      /* index of the batch last proposed */
	bool converged;
};

/*
 * Starts a search among `count` batches at a share. Returns 0; 1: no candidate; -EINVAL: too many
 * batches, a batch of 0, or iterations_max outside 1 to TD_GP_SAMPLES_MAX.
 */
int td_batch_tuner_init(struct td_batch_tuner *tuner, const uint32_t *batches, uint32_t count,
	double share, uint32_t iterations_max);

/* Returns the batch to run with now: the next one to try or, once converged, the answer. */
uint32_t td_batch_tuner_propose(struct td_batch_tuner *tuner);

/*
 * Takes the training task's iteration time under the batch last proposed. Ignored once converged,
 * or unless finite and positive.
 */
void td_batch_tuner_observe(struct td_batch_tuner *tuner, double iteration_s);
