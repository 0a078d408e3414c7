/* Computes MuxFlow's Equations 1 and 2; see load_factor.h. */
#include "policy/algo/control/load_factor.h"

double td_load_factor_clock(const struct td_load_factor *factor, uint32_t clock_mhz)
{
	double clock = clock_mhz, threshold = factor->threshold_mhz, a;

	if (!clock_mhz || !factor->threshold_mhz)
		return 1;
	if (clock_mhz < factor->threshold_mhz)
		return 1 + factor->low_gain * (threshold - clock) / threshold;
	if (factor->max_mhz <= factor->threshold_mhz)
		return 1;
	a = 1 - factor->high_gain * (clock - threshold) / (factor->max_mhz - threshold);
	return a > 0 ? a : 0;
}

double td_load_factor_gpu(
	const struct td_load_factor *factor, double sm_activity, uint32_t clock_mhz)
{
	return sm_activity * td_load_factor_clock(factor, clock_mhz);
}
