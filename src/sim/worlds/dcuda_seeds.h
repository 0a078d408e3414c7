/*
 * dcuda's orders of three loads, seed by seed. The paper's figures are means over its fifty orders
 * of arrival. Here ten orders are a seed, and a claim about the loads has to hold for the mean of
 * every seed.
 */
#pragma once

#include "sim/report/experiment.h"

#define TD_DCUDA_SEED_ORDERS 10u
#define TD_DCUDA_SEEDS_MAX   50u

enum { TD_DCUDA_LIGHT, TD_DCUDA_MEDIUM, TD_DCUDA_HEAVY, TD_DCUDA_LOADS };

/*
 * At each load, for Least-Loaded and for DCUDA: time over the time alone, mean over applications
 * and orders; and DCUDA's energy over Least-Loaded's, in %.
 */
struct td_dcuda_seed {
	double slowdown[TD_DCUDA_LOADS][2], energy[TD_DCUDA_LOADS];
};

/*
 * DCUDA shortens most at the medium load. Forbidden: nobody is faster than alone, and even a policy
 * that slows nobody would shorten less at the medium load than DCUDA does at another one.
 */
struct td_seeds td_dcuda_best_at_medium(const struct td_dcuda_seed *seeds, uint32_t count);
/*
 * DCUDA saves most energy at the light load, less at the medium, least at the heavy, and something
 * there. No bound.
 */
struct td_seeds td_dcuda_saves_in_order(const struct td_dcuda_seed *seeds, uint32_t count);
