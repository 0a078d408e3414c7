/* Finds shares under a latency objective, and MuxFlow's complement; see slo_share.h. */
#include "policy/algo/fit/slo_share.h"

#include <math.h>

#define PPM 1000000u

const struct td_dynamic_sm td_dynamic_sm_default = TD_DYNAMIC_SM_DEFAULT;

double td_slo_latency_limit_s(const struct td_slo *slo)
{
	double batch = slo->batch ? slo->batch : 1;

	if (!(slo->rate_per_s > 0))
		return slo->objective_s;
	return fmin(slo->objective_s - (batch - 1) / slo->rate_per_s,
		slo->load_max * batch / slo->rate_per_s);
}

int td_slo_smallest_share(const struct td_slo *slo, const struct td_curve *curve, double *ret_share)
{
	double share = td_curve_smallest_share(curve, td_slo_latency_limit_s(slo), slo->share_min);

	*ret_share = fmin(share * (1 + slo->headroom), 1);
	return share > 1;
}

bool td_slo_must_retune(double tuned_rate_per_s, double rate_per_s)
{
	return fabs(rate_per_s - tuned_rate_per_s) > 0.5 * tuned_rate_per_s;
}

uint32_t td_dynamic_sm_ppm(const struct td_dynamic_sm *params, uint32_t online_activity_ppm)
{
	uint64_t taken = (uint64_t)online_activity_ppm + params->reserve_ppm;
	uint32_t left = taken < PPM ? (uint32_t)(PPM - taken) : 0;

	if (params->grain_ppm)
		left -= left % params->grain_ppm;
	if (left > params->ceiling_ppm)
		left = params->ceiling_ppm;
	return left > params->floor_ppm ? left : params->floor_ppm;
}
