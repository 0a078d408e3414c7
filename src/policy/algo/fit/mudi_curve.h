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

/*
 * A company beside which a service was measured while it ran: its latencies are those of the
 * models, times the factor. It is for exactly these layers.
 */
struct td_mudi_met {
	double layers[TD_MUDI_LAYERS];
	double factor;
	uint64_t points; /* number of measurements */
	uint64_t time_s; /* of the last one, since 1970 */
};

struct td_mudi_service {
	const struct td_predictor *left_slope, *right_slope, *knee_share, *knee_latency;
	/*
	 * The predictors are valid for batches from batch_min to batch_max; 0: for all that Mudi
	 * tries.
	 */
	uint32_t batch_min, batch_max;
	/* Error of the knee's latency for neighbours left out (root mean square); 0: not known. */
	double error_s;
	/* The companies that it has met; the owner of the models owns them, too. */
	const struct td_mudi_met *met;
	uint32_t met_count;
};

/* Returns the service's latency curve at this batch, beside a task with these layers. */
struct td_curve td_mudi_curve(
	const struct td_mudi_service *service, const double layers[TD_MUDI_LAYERS], double batch);

/* Returns the mean magnitude of the slopes over the six batches. */
double td_mudi_score(const struct td_mudi_service *service, const double layers[TD_MUDI_LAYERS]);
