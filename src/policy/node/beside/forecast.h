/*
 * A forecast, by a service's learnt latency curves, of what besteffort work beside it may have.
 *
 * Purpose. P99 tells of the last second, so a controller by it learns too late that the rate has
 * grown. Mudi's curves (algo/fit/mudi_curve.h) tell the time of a batch beforehand, alone and
 * beside neighbours whose layers are known:
 *
 *   limit  = the longest time of a batch at the present rate         (algo/fit/slo_share.h), for
 *            TD_FORECAST_PART of the objective
 *   duty   = (limit - alone) / (beside + error - alone), the largest of all batches up to the
 *            present one; the error is the curves' own, beside neighbours that they have not seen
 *   left   = 1 - the smallest share of the SMs that holds the limit alone, for a rate half as large
 *            again, because a program keeps the share that it begins with
 *
 * A neighbour with a duty d disturbs d of the time, so alone + d (beside - alone) is a mean and no
 * P99: guard.h takes it as the value to begin with, which the P99 corrects.
 *
 * It is known for one service on a GPU under MPS, for which the curves were measured. The duty is
 * known only if the layers of all besteffort programs there are known.
 *
 * Invariants: everything is 0 without curves. A higher rate counts at once, a lower one after some
 * seconds (rate_peak.h). The same views yield the same forecast.
 */
#pragma once

#include "policy/algo/fit/mudi_curve.h"
#include "policy/algo/control/rate_peak.h"
#include "policy/policy.h"

#define TD_FORECAST_PART 0.8

/* The state of one GPU. A zeroed struct has seen nothing. */
struct td_forecast {
	struct td_rate_peak peak;
	/* The figures by which the values below were computed, so that equal ones cost nothing. */
	struct td_forecast_of {
		const struct td_mudi_service *curves; /* NULL: none */
		uint64_t objective_ns;
		double rate_per_s, share;
		double layers[TD_MUDI_LAYERS];
		uint32_t batch;
		uint32_t has_layers; /* 1: the layers of all besteffort programs are known */
	} of;
	uint32_t duty_ppm; /* of the GPU's time for besteffort work; 0: not known */
	uint32_t left_ppm; /* of the SMs for besteffort work that starts now; 0: not known */
	uint64_t error_ns; /* the curves' error for neighbours not seen; 0: not known */
};

/* Looks at one GPU; called for every plan, once its gates are decided. */
void td_forecast_step(struct td_forecast *forecast, const struct td_view *view,
	const struct td_plan *plan, uint32_t gpu, uint64_t now_ns);
