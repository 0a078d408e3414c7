/*
 * The latency curve of a service beside a training task, as Mudi learns it (Mudi 5.1): a two-piece
 * line over the share of the SMs. Four predictors give its slopes and its knee from the layer
 * counts of the task's network and from the batch.
 */
#pragma once

#include "policy/algo/fit/curve.h"
#include "policy/algo/fit/predict.h"

/*
 * The inputs count the layers by kind: conv, linear, activations, embeddings, encoder, decoder,
 * flatten, batch norm, fc, pooling, other.
 */
#define TD_MUDI_LAYERS 11
#define TD_MUDI_INPUTS (TD_MUDI_LAYERS + 1) /* log2 of the batch is the last input */

struct td_mudi_service {
	const struct td_predictor *left_slope, *right_slope, *knee_share, *knee_latency;
	/*
	 * The predictors are valid for batches from batch_min to batch_max; 0: for all that Mudi
	 * tries.
	 */
	uint32_t batch_min, batch_max;
	/* Error of the knee's latency for neighbours left out (root mean square); 0: not known. */
	double error_s;
};

/* Returns the service's latency curve at this batch, beside a task with these layers. */
struct td_curve td_mudi_curve(
	const struct td_mudi_service *service, const double layers[TD_MUDI_LAYERS], double batch);

/* Returns the mean magnitude of the slopes over the six batches. */
double td_mudi_score(const struct td_mudi_service *service, const double layers[TD_MUDI_LAYERS]);
