/*
 * The mean time between the ends of a job's pauses.
 *
 * Purpose. Besteffort work costs a protected job time at the end of a pause: it is still in flight,
 * and memory has to come back. Divided by the mean time between two such ends, this cost is a share
 * of the job's time, whatever its steps are and whether they are known.
 *
 * Invariants: one pause that lasts for minutes counts as four at most; same times, same mean.
 */
#pragma once

#include <stdint.h>

/* A zeroed struct has seen no pause. */
struct td_cycle {
	uint64_t woke_ns; /* when the last pause ended; 0: none has */
	uint64_t mean_ns; /* the mean time between ends; 0: not known */
};

static inline void td_cycle_wake(struct td_cycle *cycle, uint64_t now_ns)
{
	uint64_t ns = now_ns > cycle->woke_ns ? now_ns - cycle->woke_ns : 0,
		 most_ns = 4 * cycle->mean_ns;

	if (cycle->mean_ns)
		cycle->mean_ns += (ns < most_ns ? ns : most_ns) / 4 - cycle->mean_ns / 4;
	else if (cycle->woke_ns)
		cycle->mean_ns = ns;
	cycle->woke_ns = now_ns;
}
