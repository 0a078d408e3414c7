/*
 * Predicts how long the present pause will last, from the pauses before it.
 *
 * Purpose. Work that is over when a protected job's pause ends costs that job nothing, however long
 * it is; work that is not over costs it the rest. A step's pauses resemble each other. So the
 * present pause is relied on to last as long as the shortest of the last TD_PAUSES_MAX pauses that
 * were at least as long as it already is. In an unknown order the chance that the next pause is
 * shorter than all of n is 1 / (n + 1). Work that this rule admits and that is not over in time
 * costs, in the mean, at most 1 / (TD_PAUSES_MAX + 1) of the longest pause.
 *
 *   earlier lengths      x x              xxx                             x
 *   the present one  |----+------------|      |------------------------|    |--------|----------->
 *                     relied on until here    until here                    a quarter  no end
 *
 * Neighbouring lengths form one range where the gap between them is less than a sixteenth of the
 * longer one, or than the grain. Within a range, and a sixteenth beyond it, the pause may end at
 * any moment, because pauses come in kinds of which few have been seen. Past the longest length and
 * a quarter more (lengths may grow from pause to pause), the pause is taken to last. So it is where
 * no pause has been seen yet.
 *
 * Invariants: the same pauses, the same answers; a question changes nothing.
 */
#pragma once

#include <stdint.h>

#define TD_PAUSES_MAX 128

/* A zeroed struct has seen no pause. */
struct td_pauses {
	uint64_t since_ns; /* when the present pause began; 0: there is none */
	uint32_t count, oldest;
	/* Ring of the last lengths; `oldest` is its start once it is full. */
	uint64_t in_order_ns[TD_PAUSES_MAX];
	uint64_t sorted_ns[TD_PAUSES_MAX];
};

void td_pauses_begin(struct td_pauses *pauses, uint64_t now_ns);
/* Records the end of a pause. Ignored if none has begun. */
void td_pauses_end(struct td_pauses *pauses, uint64_t now_ns);

/*
 * Returns the time until which the present pause is relied on: its beginning if it may end at any
 * moment, UINT64_MAX if it is taken to last. Lengths that differ by less than grain_ns count as
 * equal. *ret_again_ns is when the answer changes by itself; UINT64_MAX: never.
 */
uint64_t td_pauses_until_ns(
	const struct td_pauses *pauses, uint64_t grain_ns, uint64_t now_ns, uint64_t *ret_again_ns);
