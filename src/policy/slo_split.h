/*
 * tandem's split of a GPU between a service and the jobs beside it: by a model first, then by what is seen.
 *
 * Purpose. Mudi's curves are predicted and never corrected while they are in force; GSLICE's feedback starts anywhere and takes a window per step. Here the first share comes from the service's
 * curve alone, a + b / x per batch, times a factor for who is beside it, and P99 as measured moves it from there:
 *
 *   batch, share <- least share over the batches that holds the objective by the curve        (slo_share.h)
 *   P99 > 95 % of the objective: share x 1.15
 *   P99 < 70 %, not grown yet:   share x 0.93
 *   else settled; factor <- what makes the curve ask for the share that it has come to
 *
 * so that the same company starts there the next time. Where a share of 90 % is not enough, the service is not capped any more and the jobs run in a part of the time (duty) on a quarter of the
 * SMs, halved until P99 holds, as guard.h would; below 2 % they are paused.
 *
 * Invariants: a share is in [share_min, 1], a duty in [0.02, 1]; after growing the share never shrinks before the next begin; a duty below 1 only with the share 1; paused where the service alone would
 * not hold by the curve, or the least duty did not; at most TD_SLO_SPLIT_ROUNDS rounds; same calls, same splits.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/curve.h"

#define TD_SLO_SPLIT_ROUNDS 24u

struct td_slo_split {
	uint32_t batch;
	double share, guest_share, duty; /* duty, guest_share: of the jobs together */
	bool paused;
	/* of the search */
	double objective_s, rate_per_s, factor;
	const struct td_curve *curve; /* of the batch, alone; the caller's */
	uint32_t rounds;
	bool grown;
};

/*
 * curves[k]: hyperbola of batches[k] alone, in seconds, which the caller keeps; rates of 0 count as 1 per second. factor: latency beside the present company over that alone, 1 and more.
 */
void td_slo_split_begin(struct td_slo_split *split, const struct td_curve *curves,
	const uint32_t *batches, uint32_t count, double objective_s, double rate_per_s,
	double factor);

/* P99 under the present split (INFINITY: it cannot keep up). True: the split has changed, look again. */
bool td_slo_split_observe(struct td_slo_split *split, double p99_s);
