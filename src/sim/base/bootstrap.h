/*
 * Tells whether one policy is better than another or the difference is chance. Both run the same
 * seeds, so the values are paired: a ratio or a difference for each seed. The interval is of their
 * median, by bootstrap.
 *
 * Method. The values are drawn again with replacement, as many as there are, 2,000 times. The
 * interval goes from the 2.5th to the 97.5th percentile of the medians (Efron and Tibshirani 1993,
 * chapter 13). Fewer than six pairs show nothing at that level: n values have one sign by chance
 * with a probability of 2^(1-n), which is more than 5 % up to n = 5.
 *
 * Invariants: no clock, I/O or allocation; the same values in any order give the same interval.
 */
#pragma once

#include <stdint.h>

#define TD_BOOTSTRAP_RESAMPLES 2000u
#define TD_BOOTSTRAP_LEAST     6u
#define TD_BOOTSTRAP_MOST      512u /* maximum number of values */

struct td_interval {
	double low, high;
};

/*
 * Returns the interval of the median. It is -INFINITY to INFINITY for fewer than TD_BOOTSTRAP_LEAST
 * values, or if one is not a number.
 */
struct td_interval td_bootstrap_median(const double *values, uint32_t count);

enum td_difference {
	TD_NOT_SHOWN,
	TD_MORE,
	TD_LESS,
};

/*
 * Tells which side of `none` the interval is on. `none` means no difference: 1 for ratios, 0 for
 * differences.
 */
enum td_difference td_interval_shows(struct td_interval interval, double none);
