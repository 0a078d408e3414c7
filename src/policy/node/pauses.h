/*
 * How long the pause that has begun is going to last, by those before it.
 *
 * Purpose. Work that is over when a protected job's pause ends costs that job nothing, however long it is; work that is not costs it what is left of it. A step's
 * pauses resemble each other, so the shortest of the last TD_PAUSES_MAX that have lasted as long as the present one already has is how long this one may be
 * relied on. Where nothing of the order is known, the chance that the next pause is shorter than all of n is 1 / (n + 1): what is let in by that rule and is not over in time
 * costs in the mean at most 1 / (TD_PAUSES_MAX + 1) of the longest pause, whatever their lengths are.
 *
 *   lengths so far      x x              xxx                                x
 *   the present one  |----+------------|      |---------------------------|    |---------|------------------->
 *                     relied on until here      until here                       a quarter   without an end
 *
 * A gap between two lengths that is less than a sixteenth of the longer one, or than the grain, is none: there the pause may end at any moment, and so it may a sixteenth beyond the last before a gap, as pauses
 * come in kinds, of which few have been seen each. Past the longest, and
 * a quarter of it more (lengths may grow from pause to pause), it is taken to last: as it is where none has been seen yet.
 *
 * Invariants: the same pauses, the same answers; to ask changes nothing.
 */
#pragma once

#include <stdint.h>

#define TD_PAUSES_MAX 128

/* Zeroed: none seen. */
struct td_pauses {
	uint64_t since_ns; /* of the present one; 0: there is none */
	uint32_t count, oldest;
	uint64_t in_order_ns[TD_PAUSES_MAX]; /* from `oldest` on, when all places are taken */
	uint64_t sorted_ns[TD_PAUSES_MAX];
};

void td_pauses_begin(struct td_pauses *pauses, uint64_t now_ns);
/* Without a beginning it is none. */
void td_pauses_end(struct td_pauses *pauses, uint64_t now_ns);

/*
 * The present one is relied on until then; its beginning: it may end at any moment; UINT64_MAX: it has no end. grain_ns: the least that is worth telling.
 * *ret_again_ns: when the answer changes by itself; UINT64_MAX: it does not.
 */
uint64_t td_pauses_until_ns(
	const struct td_pauses *pauses, uint64_t grain_ns, uint64_t now_ns, uint64_t *ret_again_ns);
