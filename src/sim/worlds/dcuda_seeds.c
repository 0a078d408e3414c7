/* Judges orders of loads by seed; see dcuda_seeds.h. */
#include "sim/worlds/dcuda_seeds.h"

#include <math.h>

static double over(const struct td_dcuda_seed *seed, int load)
{
	return seed->slowdown[load][1] / seed->slowdown[load][0];
}

struct td_seeds td_dcuda_best_at_medium(const struct td_dcuda_seed *seeds, uint32_t count)
{
	struct td_seeds ret = {0};

	for (uint32_t s = 0; s < count; s++) {
		double other =
			fmin(over(&seeds[s], TD_DCUDA_LIGHT), over(&seeds[s], TD_DCUDA_HEAVY));

		td_seed_add(&ret, over(&seeds[s], TD_DCUDA_MEDIUM) < other,
			1 / seeds[s].slowdown[TD_DCUDA_MEDIUM][0] >= other);
	}
	return ret;
}

struct td_seeds td_dcuda_saves_in_order(const struct td_dcuda_seed *seeds, uint32_t count)
{
	struct td_seeds ret = {0};

	for (uint32_t s = 0; s < count; s++) {
		const double *energy = seeds[s].energy;

		td_seed_add(&ret,
			energy[TD_DCUDA_LIGHT] < energy[TD_DCUDA_MEDIUM] &&
				energy[TD_DCUDA_MEDIUM] < energy[TD_DCUDA_HEAVY] &&
				energy[TD_DCUDA_HEAVY] < 0,
			false);
	}
	return ret;
}
