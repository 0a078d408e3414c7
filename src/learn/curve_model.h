/*
 * Learns one number of a service's latency curves over the neighbour's layers and the batch.
 *
 * Purpose. Mudi takes the best of several small models for each number (4.1.2). With the few
 * neighbours that a campaign has, a model that follows the layers is often worse, beside a
 * neighbour that it has not seen, than one that ignores them. So the mean over the neighbours is
 * one of the candidates: a number for each batch, and lines between the batches (over log2 of the
 * batch). Beside a neighbour that was measured, and for the service alone, whose layers are all 0,
 * it gives what was measured there.
 *
 * Choice. Each neighbour is left out once. The mean is taken, unless the best of the other models
 * is better by more than one standard error of the difference over the neighbours (the rule of
 * Breiman et al., 1984, for the simplest of models that are as good). The service alone is never
 * left out, because every campaign measures it.
 *
 * Invariants: same rows, options and seed, same model. A model passes td_predictor_check(). Only
 * the rows that were given decide, so that a neighbour which is judged by later has no part in it.
 */
#pragma once

#include "learn/learn.h"

/*
 * The rows have TD_MUDI_INPUTS inputs, as td_mudi_curve() has them; groups[i] is the same for the
 * rows of one neighbour, and only for them. *ret_error is the root mean square of the errors beside
 * neighbours left out. Returns 0; -EINVAL: leaving out some neighbour leaves fewer than two rows;
 * or an error of td_learn().
 */
int td_curve_model_learn(const struct td_dataset *data, const uint32_t *groups,
	const struct td_learn_options *options, struct td_model *ret_model, double *ret_error);

/* Makes the model of the mean. -ERANGE: more than 64 batches. */
int td_curve_model_mean(const struct td_dataset *data, struct td_model *ret_model);
