/*
 * tandem's split of a GPU between a service and the jobs beside it: by a model first, then by what is seen.
 *
 * Purpose. Mudi's curves are predicted and never corrected while they are in force; GSLICE's feedback starts anywhere and takes a window per step. Here the first share comes from the service's
 * curve alone, a + b / x per batch, times a factor for who is beside it, and P99 as measured moves it from there:
 *
 *   batch, share <- least share over the batches that holds the objective by the curve        (slo_share.h)
 *   P99 > 95 % of the objective: share x what P99 is of these 95 %, 1.15 at least
 *   P99 < 70 %, not grown yet, and the service busy 74 % of the time at most: share x 0.93, so that it stays within 80 %
 *   else settled; factor <- what makes the curve ask for the share that it has come to
 *
 * so that the same company starts there the next time. The factor of one company differs with the rate: who remembers it keeps the largest, so that a start is too large rather than a miss.
 *
 * What has settled under a cap is tried without it, the jobs' part as it was: a cap takes from them whatever the service leaves unused of its share. It is capped again where P99 does not hold then.
 * Where a cap leaves the jobs less than a quarter of the SMs, or where no share is enough, it costs the service more than it gives them. A service that is not capped leaves room beside it: of a quarter
 * of the SMs a part of the time (duty), and beyond that more SMs. P99 moves it from an eighth:
 *
 *   P99 > 95 %, nothing has held yet: room / 2; below 2 % of the quarter they are paused
 *   P99 > 95 %:                       back to the most that has held
 *   else: between what held and what did not, as far as the line through both allows 95 %, of the time, too; nothing missed yet: half of the way that the line
 *         through the last two allows, twice as much at most. Latencies rise more than in proportion: between two points the line is above them, beyond it is below, so half of it.
 *   settled where that is less than 7 % more
 *
 * Invariants: a share is in [share_min, 1], a duty in [0.02, 1]; after growing the share never shrinks before the next begin; a duty below 1 only with the share 1; paused where the service alone would
 * not hold by the curve, or the least room did not; at most TD_SLO_SPLIT_ROUNDS rounds, and when they are over the last that was seen held, or the jobs are paused; same calls, same splits.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/algo/fit/curve.h"

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
	double capped; /* the share with which it has held, before it was tried without; 0: not yet */
	/* room: guest_share x duty beside a service that is not capped, 0 while it is; room 0 in those below: not seen yet */
	double room;
	struct td_slo_seen {
		double room, p99_s, busy;
	} held, before,
		missed; /* the most that has held, the one before it, the last that has not */
};

/*
 * curves[k]: hyperbola of batches[k] alone, in seconds, which the caller keeps; rates of 0 count as 1 per second. factor: latency beside the present company over that alone, 1 and more.
 */
void td_slo_split_begin(struct td_slo_split *split, const struct td_curve *curves,
	const uint32_t *batches, uint32_t count, double objective_s, double rate_per_s,
	double factor);

/* P99 under the present split (INFINITY: it cannot keep up), and the part of the time in which the service is at work. True: the split has changed, look again. */
bool td_slo_split_observe(struct td_slo_split *split, double p99_s, double busy);
