/*
 * dcuda's orders of three loads, seed by seed. The paper's figures are means over its fifty orders of arrival; here ten orders are a seed, and what is claimed of the loads has to hold of the mean of every seed.
 */
#pragma once

#include "sim/report/experiment.h"

#define TD_DCUDA_SEED_ORDERS 10u
#define TD_DCUDA_SEEDS_MAX   50u

enum { TD_DCUDA_LIGHT, TD_DCUDA_MEDIUM, TD_DCUDA_HEAVY, TD_DCUDA_LOADS };

/* At each load, of Least-Loaded and of DCUDA: time over the time alone, mean over applications and orders; and DCUDA's energy over Least-Loaded's, in %. */
struct td_dcuda_seed {
	double slowdown[TD_DCUDA_LOADS][2], energy[TD_DCUDA_LOADS];
};

/*
 * DCUDA is shorter by most at the medium load. Forbidden: nobody is faster than alone, so that not even who slows nobody would be shorter by more at the medium load than DCUDA is at another one.
 */
struct td_seeds td_dcuda_best_at_medium(const struct td_dcuda_seed *seeds, uint32_t count);
/* It saves most at the light load, less at the medium, least at the heavy, and something there. No bound. */
struct td_seeds td_dcuda_saves_in_order(const struct td_dcuda_seed *seeds, uint32_t count);
