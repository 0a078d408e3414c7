/*
 * Decides which program may try work whose time nobody knows.
 *
 * Purpose. A kernel cannot be interrupted, and nothing is known of one that was never seen. Each
 * besteffort process lets in one such piece at a time (preload/gate/fresh.c). Several processes
 * beside a guaranteed job would let in one each, and its step would become longer by all of them:
 * four programs with kernels of 5 s made one step longer by 20 s, or 40. So of the besteffort
 * programs on a GPU one group at a time may try new work. Known work is not affected.
 *
 *   the turn is over   when no new work of the group is in flight or waits; or when the group has
 *                      had TURN_NS and one piece after the other is in flight; or when one piece
 *                      has been in flight for MOST_NS
 *   it goes to         the next group, in order of arrival, that has new work waiting; it stays
 *                      where none has
 *   after a long trial that ended while the guaranteed job had work, nobody tries anything until
 *                      that job has made a step or begun a pause, or four times the trial's length
 *                      is over (at most MOST_NS): so a step meets one of them
 *
 * A client reports by itself what waits and what it has in flight. One whose library is older
 * reports nothing and is not held. A client that lies keeps others from their new work for MOST_NS
 * at a time, and from nothing else.
 *
 * Invariants
 * - with fewer than two groups, or no guaranteed job, nobody is held;
 * - of the groups on a GPU that can be held, at most one is not;
 * - no waiting group is passed over.
 */
#pragma once

#include "policy/policy.h"

#define TD_TRIALS_MOST_NS 10000000000ull

/* The state of one GPU. A zeroed struct means that no group has the turn. */
struct td_trials {
	uint32_t group;     /* the group that has or last had the turn; 0: none yet */
	uint64_t since_ns;  /* when the turn began */
	uint32_t tries;     /* sum of its clients' tries at the last step */
	uint64_t flight_ns; /* when the new work in flight was first seen; 0: none is */
	uint64_t
		/* Sum of steps and pauses of the guaranteed jobs when the last long trial ended. */
		progress;
	uint64_t rest_ns; /* end of the rest after a long trial, unless progress ends it; 0: none */
	uint32_t pauses;  /* number of pauses that guaranteed jobs have begun */
	bool at_work;
};

/*
 * Sets hold_new, and others_wait for a group that keeps others from trying. The gates have to be
 * set. Brings plan->next_wakeup_ns forward while a group may try.
 */
void td_trials_step(struct td_trials *trials, const struct td_view *view, uint32_t gpu,
	uint64_t now_ns, struct td_plan *plan);
