/*
 * Learns the profile of a service from the measurements of a campaign (Mudi 4.1).
 *
 * Purpose. A campaign measures the latency of a service with several batches, shares of the SMs and
 * neighbours. The points of one batch beside one neighbour are a curve, of which the two-piece fit
 * (policy/algo/fit/curve.h) has four numbers. A model of each number over the neighbour's layers
 * and the batch is learnt: the best of the learners, or the mean, judged by neighbours that it has
 * not seen (curve_model.h).
 *
 * Invariants: same points in any order, options and seed, same profile. An error leaves
 * *ret_profile as it was.
 */
#pragma once

#include "learn/learn.h"
#include "profile/service.h"

struct td_err;

struct td_campaign_point {
	double layers[TD_MUDI_LAYERS]; /* the neighbour's layers; zeros: the service ran alone */
	uint32_t batch;
	double share; /* share of the SMs; in (0, 1] */
	double latency_s;
};

/*
 * Learns the profile. Returns 0; -EINVAL with err: a curve has fewer than three shares, a point is
 * not a number, or there are too few neighbours to judge a model; or an error of
 * td_curve_model_learn().
 */
int td_campaign_learn(const struct td_campaign_point *points, uint32_t count, const char *gpu,
	const struct td_learn_options *options, struct td_service_profile *ret_profile,
	struct td_err *err);

/*
 * The errors of the models for neighbours that they have not seen. Each neighbour is left out once.
 * An error is the sum of the distances between predicted and fitted numbers, over the sum of the
 * fitted numbers' magnitudes.
 */
struct td_campaign_judged {
	double error[TD_PROFILE_MODELS];
	/*
	 * The same errors, of a predictor that always gives the mean of all other neighbours with
	 * that batch.
	 */
	double of_mean[TD_PROFILE_MODELS];
	uint32_t neighbours, curves; /* the number of neighbours and of curves that were left out */
};

/*
 * Computes the errors. Returns the same values as td_campaign_learn(); -EINVAL also if fewer than
 * three neighbours were measured.
 */
int td_campaign_judge(const struct td_campaign_point *points, uint32_t count,
	const struct td_learn_options *options, struct td_campaign_judged *ret, struct td_err *err);
