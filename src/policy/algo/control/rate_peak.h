/*
 * The rate of a service's requests to decide by: the largest of the last seconds.
 *
 * A rate that has grown counts at once. One that has fallen counts for five to ten seconds more,
 * because it may grow again before what was decided is in force.
 */
#pragma once

#include <math.h>
#include <stdint.h>

#define TD_RATE_HOLD_NS 5000000000ull

/* A zeroed struct has seen no rate. */
struct td_rate_peak {
	/* The largest rates of the present period of TD_RATE_HOLD_NS and of the one before. */
	double now_per_s, before_per_s;
	uint64_t since_ns;
};

/* Takes the present rate. Returns the rate to decide by. */
static inline double td_rate_peak_of(struct td_rate_peak *peak, double rate_per_s, uint64_t now_ns)
{
	if (now_ns - peak->since_ns >= TD_RATE_HOLD_NS) {
		peak->before_per_s = peak->now_per_s;
		peak->now_per_s = rate_per_s;
		peak->since_ns = now_ns;
	}
	peak->now_per_s = fmax(peak->now_per_s, rate_per_s);
	return fmax(peak->now_per_s, peak->before_per_s);
}
