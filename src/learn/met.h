/*
 * Extends a service's profile by what was measured while it ran beside training (Mudi 4.1.2).
 *
 * Purpose. The daemon measures a service beside a company at the few shares and batches that the
 * tuner tries: too few for a curve of two lines. So one number is learnt of a company: the factor
 * by which its latencies differ from the models' (the geometric mean over its measurements).
 *
 *   training   a company that no campaign has measured becomes a neighbour more: the curve that was
 *              known for its layers, times the factor, at the campaign's batches. All models are
 *              trained again with it, so that it tells of networks that are like it.
 *   company    what the new models still differ by from the company's measurements is its factor in
 *              the profile (td_mudi_met), so that it begins there when it comes again.
 *
 * Where no campaign's points are kept, the models stay, and only the factors change.
 *
 * Invariants: same points, same profile. A factor is at most TD_PROFILE_FACTOR_MAX, and at least
 * one by this: a service cannot make its curves worse than that by false counts, nor those of other
 * services. At most TD_PROFILE_MET_MAX companies are kept, those measured last. An error leaves
 * *ret as it was.
 */
#pragma once

#include "learn/campaign.h"

struct td_err;

/* The points that a profile is learnt from. */
struct td_met_points {
	const struct td_campaign_point *campaign;
	uint32_t campaign_count;
	const struct td_campaign_point *met; /* oldest first */
	uint32_t met_count;
	uint32_t new_count; /* the last ones of `met`, which were measured at time_s */
	uint64_t time_s;
};

/*
 * `before` is the profile so far, or NULL. Returns 0; -EINVAL with err: there is neither a profile
 * nor a campaign's points, or a point is not valid; or an error of td_campaign_learn().
 */
int td_met_learn(const struct td_met_points *points, const struct td_service_profile *before,
	const char *gpu, const struct td_learn_options *options, struct td_service_profile *ret,
	struct td_err *err);
