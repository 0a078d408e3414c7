/*
 * Judges dcuda's claims about the order of its three loads, seed by seed. The paper's figures are
 * means over its fifty orders of arrival. Here ten orders are a seed, and a claim about the loads
 * has to hold for the mean of every seed.
 */
#pragma once

#include "sim/report/experiment.h"

#define TD_DCUDA_SEED_ORDERS 10u
#define TD_DCUDA_SEEDS_MAX   50u

enum { TD_DCUDA_LIGHT, TD_DCUDA_MEDIUM, TD_DCUDA_HEAVY, TD_DCUDA_LOADS };

/*
 * Figures at each load. slowdown: time over the time alone, mean over applications and orders, for
 * Least-Loaded and for DCUDA. energy: DCUDA's above Least-Loaded's, in per cent.
 */
struct td_dcuda_seed {
	double slowdown[TD_DCUDA_LOADS][2], energy[TD_DCUDA_LOADS];
};

/*
 * Judges whether DCUDA shortens execution most at the medium load. A seed is forbidden if even a
 * policy that slows nobody would shorten less at the medium load than DCUDA does at another one.
 */
struct td_seeds td_dcuda_best_at_medium(const struct td_dcuda_seed *seeds, uint32_t count);
/*
 * Judges whether DCUDA saves most energy at the light load, less at the medium one, least at the
 * heavy one, and still something there. No bound forbids a seed.
 */
struct td_seeds td_dcuda_saves_in_order(const struct td_dcuda_seed *seeds, uint32_t count);
