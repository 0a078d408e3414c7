/*
 * The share of a GPU that a service needs, and the share that it leaves.
 *
 * Purpose. Mudi (5.3.2) gives a service the smallest share of the SMs that holds its latency
 * objective at the present request rate, plus 10 % for prediction errors; the training task gets
 * the rest. MuxFlow (4.3) looks from the other side: offline work gets the SMs that the online
 * workload does not use, by its SM activity.
 *
 * Mudi's Eq. 4 compares W / b x P, a number without unit, with the objective in milliseconds. Two
 * conditions must hold:
 * - fill + latency: the first request of a batch of b waits (b - 1) / W for the batch to fill, then
 *   for its execution: (b - 1) / W + P99(b, share) <= SLO;
 * - stability: batches arrive every b / W and must be served in less: W P / b <= 0.8, so that
 *   queues stay short.
 * Both bound P from above, so the smallest share follows from the latency curve without a solver.
 *
 * Invariants
 * - the share returned holds both conditions on the curve that was given, and never exceeds 1;
 * - for the same batch, a higher rate or a tighter objective never yields a smaller share by the
 *   stability condition;
 * - MuxFlow's rule never gives more than the online workload leaves, except for the floor.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/algo/fit/curve.h"

struct td_slo {
	double objective_s; /* P99 latency from arrival to answer */
	double rate_per_s;  /* W; 0: no requests */
	uint32_t batch;     /* b, 1 and more */
	double load_max;    /* longest part of the time that the service may be busy: 0.8 */
	double headroom;    /* added to the smallest share: 0.1 */
	double share_min;   /* the smallest share that MPS can give: 0.01 */
};

/*
 * Returns the longest time that one batch may take under the objective; 0 or less where no share
 * can hold it with this batch.
 */
double td_slo_latency_limit_s(const struct td_slo *slo);

/*
 * Finds the smallest share that holds the objective on the curve (in seconds), plus the headroom.
 * Returns 0, or 1 with *ret_share 1 where not even the whole GPU holds it (Mudi pauses training).
 */
int td_slo_smallest_share(
	const struct td_slo *slo, const struct td_curve *curve, double *ret_share);

/* Tells whether Mudi tunes again: the rate has changed by more than half since the last tuning. */
bool td_slo_must_retune(double tuned_rate_per_s, double rate_per_s);

struct td_dynamic_sm {
	uint32_t floor_ppm, ceiling_ppm; /* bounds of the offline work's share */
	uint32_t reserve_ppm;            /* kept free for bursts of the online workload */
	uint32_t grain_ppm;              /* step of the share: MPS gives whole percents, 10,000 */
};

/* The floor is 10 %, the ceiling 100 %, nothing is reserved, and shares are whole percents. */
#define TD_DYNAMIC_SM_DEFAULT                                                                      \
	{                                                                                          \
		.floor_ppm = 100000, .ceiling_ppm = 1000000, .grain_ppm = 10000                    \
	}
extern const struct td_dynamic_sm td_dynamic_sm_default;

/*
 * Returns the offline workload's share of the SMs, rounded down to the grain: DynamicSM of
 * MuxFlow's Algorithm 1.
 */
uint32_t td_dynamic_sm_ppm(const struct td_dynamic_sm *params, uint32_t online_activity_ppm);
