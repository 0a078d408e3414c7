/*
 * DCUDA's fairness groups: who runs together on an overloaded GPU, slice by slice.
 *
 * Purpose. Where demands exceed the GPU, light applications lose out against heavy ones. DCUDA
 * (III-C3) divides time into slices of 100 ms, puts the applications of an overloaded GPU into
 * groups, and lets one group run per slice, in turn. A group's core demand should be close to the
 * GPU's power, and may "slightly exceed" it ("one application with 100 % ... and one with 5 %").
 * Its memory demand is within 100 %. Within a group, lighter applications have the higher priority.
 *
 * The paper gives no rule for the grouping. Here: heaviest first, each goes into the first group
 * where core demand stays within 1 + slack and memory within 1, or into a new group (first-fit
 * decreasing).
 *
 * Invariants
 * - every application is in exactly one group; a GPU that is not overloaded has one group;
 * - a group of more than one application demands at most 1 + slack of the cores and 1 of the
 *   memory;
 * - each group runs in every `groups`-th slice: equal time, nobody starves.
 */
#pragma once

#include <stdint.h>

#define TD_SLICE_NS 100000000ull

struct td_fair_member {
	double core, memory; /* demands as shares of the GPU */
	uint32_t group;      /* output */
	/* output: within its group; 0 is the highest and goes to the lightest. */
	uint32_t priority;
};

/*
 * Groups the members by first-fit decreasing. slack is 0.1 in tandem; order is scratch of `count`
 * entries. Returns the number of groups, 0 without members.
 */
uint32_t td_fair_groups(
	struct td_fair_member *members, uint32_t count, double slack, uint32_t *order);

/* Returns the index of the group whose slice the time now_ns is in. */
uint32_t td_fair_turn(uint32_t groups, uint64_t now_ns);
