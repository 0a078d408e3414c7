/*
 * Whose turn it is to try work of which nobody knows how long it takes.
 *
 * Purpose. A kernel cannot be interrupted, and nothing is known of one that was never seen. Each besteffort process lets in one such piece at a time (preload/gate/fresh.c); several of them beside
 * a guaranteed job let in one each, and its step became longer by all of them together: four programs with kernels of 5 s made one step 20 s longer, or 40. So of the besteffort programs on a GPU
 * one group at a time may try what is new. What is known already is nobody's matter here.
 *
 *   the turn is over     nothing new of its group is in flight, and nothing waits; or the group has had TURN_NS, and it is one piece after the other that is in flight; or the same one has been for
 *                        MOST_NS
 *   it goes to           the next group, in order of arrival, of which something new waits; it stays where none does
 *   after a long trial   that ended while the guaranteed job had work nobody tries anything until that has made a step, or begun a pause, or four times as long is over (at most MOST_NS): one step has
 *                        one of them
 *
 * A client says by itself what it waits for and has in flight, and one whose library is older says nothing and is not held: who says something wrong keeps others from what is new to them for
 * MOST_NS at a time, and from nothing else.
 *
 * Invariants
 *  - fewer than two groups, or no guaranteed job: nobody is held;
 *  - at most one group on a GPU is not held, of those that can be;
 *  - nobody who waits is passed over.
 */
#pragma once

#include "policy/policy.h"

#define TD_TRIALS_MOST_NS 10000000000ull

/* Zeroed: nobody's. One per GPU. */
struct td_trials {
	uint32_t group;    /* whose turn it is, or was; 0: nobody's yet */
	uint64_t since_ns; /* that it began */
	uint32_t tries;    /* of its clients, when it was looked last */
	uint64_t
		flight_ns; /* when something new of it was seen in flight first, of what is; 0: nothing is */
	uint64_t
		progress; /* of the guaranteed jobs, when the last long one had ended: steps and pauses */
	uint64_t rest_ns; /* nothing is tried before, or until there is progress; 0: no rest */
	uint32_t pauses;  /* of the guaranteed jobs, begun so far */
	bool at_work;
};

/* Gates are set. Sets hold_new, and others_wait of who keeps others from trying, and brings the plan's wakeup forward while anybody may. */
void td_trials_step(struct td_trials *trials, const struct td_view *view, uint32_t gpu,
	uint64_t now_ns, struct td_plan *plan);
