/*
 * The GPU load that MuxFlow controls: SM activity weighted by the SM clock.
 *
 * Purpose. Offline work hurts an online service twice: it takes SMs, and it draws the power that
 * keeps the clock up (a T4 lowers its clock under load). MuxFlow (4.1) folds both into one number:
 *
 *   Eq. 1   U_GPU = U_SM x a_C
 *   Eq. 2   a_C   = 1 + a_L (T - C) / T              where C <  T
 *                 = 1 - a_H (C - T) / (C_max - T)    where C >= T
 *
 * C is the SM clock, T the clock that the online workload has alone, C_max the highest clock. a_L
 * is "much larger than" a_H: below the threshold the load is exaggerated, which holds offline work
 * back until the clock recovers. Above it offline work gets a small bonus. The paper gives no
 * values ("empirically selected through trial and error").
 *
 * Invariants
 * - the clock factor never rises with the clock, and is 1 at the threshold: both branches meet
 *   there;
 * - it is never negative, whatever a_H is;
 * - a clock of 0 is unknown and gives the factor 1;
 * - where threshold and highest clock coincide, clocks above give 1.
 */
#pragma once

#include <stdint.h>

struct td_load_factor {
	double low_gain;  /* a_L in Eq. 2 */
	double high_gain; /* a_H in Eq. 2, in [0, 1] */
	uint32_t threshold_mhz;
	uint32_t max_mhz;
};

/* Returns a_C of Eq. 2. */
double td_load_factor_clock(const struct td_load_factor *factor, uint32_t clock_mhz);

/* Returns U_GPU of Eq. 1; sm_activity is a share of 1. A result above 1 is the overload. */
double td_load_factor_gpu(
	const struct td_load_factor *factor, double sm_activity, uint32_t clock_mhz);
