/*
 * tandem's split of a GPU between a service and the jobs beside it: by a model first, then by
 * measurement.
 *
 * Purpose. Mudi's curves are predicted and never corrected while they are in force. GSLICE's
 * feedback starts anywhere and takes a window per step. Here the first share comes from the
 * service's curve alone, a + b / x per batch, times a factor for the company, and the measured P99
 * corrects it:
 *
 *   batch, share <- least share over the batches that holds the objective by the curve, slo_share.h
 *   P99 > 95 % of the objective: share x (P99 / 95 % of the objective), at least x 1.15
 *   P99 < 70 %, not grown yet, and the service busy 74 % of the time at most:
 *       share x 0.93, so that it stays busy at most 80 % of the time
 *   otherwise settled; factor <- the factor for which the curve gives the present share
 *
 * so that the same company starts there the next time. The factor of one company varies with the
 * rate. A caller that remembers it keeps the largest, so that a start errs towards a large share.
 *
 * A split that has settled under a cap is tried without it, with the jobs' part unchanged, because
 * a cap wastes whatever the service leaves unused of its share. The cap returns where P99 does not
 * hold. Where a cap would leave the jobs less than a quarter of the SMs, or where no share is
 * enough, the cap costs the service more than it gives the jobs, and there is none. The jobs beside
 * a service without a cap have room: up to a quarter of the SMs it is a part of the time (duty),
 * beyond that it is more SMs. P99 moves the room from an eighth:
 *
 *   P99 > 95 %, no room has held yet: room / 2; below 2 % of the quarter the jobs are paused
 *   P99 > 95 %:                       back to the largest room that has held
 *   otherwise: between the room that held and the one that did not, by the line through both
 *       to 95 %. With no miss yet: half of the way that the line through the last two gives,
 *       twice as much at most. Latency rises more than in proportion, so between two points the
 *       line is above it and beyond them below it; hence half of the way.
 *   settled where that is less than 7 % more
 *
 * Invariants
 * - a share is in [share_min, 1], a duty in [0.02, 1], and a duty below 1 comes only with the share
 *   1;
 * - after growing, the share never shrinks before the next begin;
 * - the jobs are paused where the service alone would not hold by the curve, or the least room did
 *   not hold;
 * - there are at most TD_SLO_SPLIT_ROUNDS rounds; after them the last split that was seen to hold
 *   is in force, or the jobs are paused;
 * - same calls, same splits.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/algo/fit/curve.h"

#define TD_SLO_SPLIT_ROUNDS 24u

struct td_slo_split {
	uint32_t batch;
	double share, guest_share, duty; /* guest_share and duty are for all jobs together */
	bool paused;
	/* The inputs of the search. */
	double objective_s, rate_per_s, factor;
	const struct td_curve *curve; /* curve of the chosen batch alone; the caller owns it */
	uint32_t rounds;
	bool grown;
	double capped; /* the share that held under a cap, before the try without it; 0: none yet */
	/*
	 * The room is guest_share x duty beside a service without a cap, and 0 under a cap. In the
	 * three records below a room of 0 means that nothing was recorded.
	 */
	double room;
	struct td_slo_seen {
		double room, p99_s, busy;
	} held, before,
		missed; /* the largest room that held, the one before it, the last that did not */
};

/*
 * Starts a split. curves[k] is the hyperbola of batches[k] alone, in seconds; the caller keeps it.
 * Rates of 0 count as 1 per second. factor: latency beside the present company over that alone, at
 * least 1.
 */
void td_slo_split_begin(struct td_slo_split *split, const struct td_curve *curves,
	const uint32_t *batches, uint32_t count, double objective_s, double rate_per_s,
	double factor);

/*
 * Takes P99 under the present split (INFINITY: the service cannot keep up), and the part of the
 * time in which the service is at work. Returns true if the split has changed.
 */
bool td_slo_split_observe(struct td_slo_split *split, double p99_s, double busy);
