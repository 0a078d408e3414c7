/*
 * A histogram of durations with buckets of equal relative width (log-linear).
 *
 * Purpose. Services, load generators and the daemon count latencies in the same buckets, so counts
 * of several sources can be added, and two snapshots subtracted, before a quantile is taken.
 *
 * The unit is 1,024 ns. Durations below 32 units have a bucket each; beyond that each power of two
 * is divided into 32 buckets, so a bucket is at most 3.2 % wide. The last bucket holds everything
 * from 68 s on.
 */
#pragma once

#include <stdint.h>

#define TD_HISTOGRAM_UNIT_SHIFT 10
#define TD_HISTOGRAM_SUB_SHIFT  5
#define TD_HISTOGRAM_SUB        (1u << TD_HISTOGRAM_SUB_SHIFT)
#define TD_HISTOGRAM_OCTAVES    21
#define TD_HISTOGRAM_N          ((TD_HISTOGRAM_OCTAVES + 1) * TD_HISTOGRAM_SUB)

/* Returns the bucket of a duration, which is below TD_HISTOGRAM_N. */
static inline uint32_t td_histogram_bucket(uint64_t ns)
{
	uint64_t units = ns >> TD_HISTOGRAM_UNIT_SHIFT;
	uint32_t octave;

	if (units < TD_HISTOGRAM_SUB)
		return (uint32_t)units;
	octave = 63u - (uint32_t)__builtin_clzll(units) - TD_HISTOGRAM_SUB_SHIFT;
	if (octave >= TD_HISTOGRAM_OCTAVES)
		return TD_HISTOGRAM_N - 1;
	return (octave + 1) * TD_HISTOGRAM_SUB +
	       (uint32_t)(units >> octave & (TD_HISTOGRAM_SUB - 1));
}

/* Return the first duration of a bucket, and that of the next bucket: it holds [first, end). */
uint64_t td_histogram_first_ns(uint32_t bucket);
uint64_t td_histogram_end_ns(uint32_t bucket);

/* Returns the sum of all TD_HISTOGRAM_N counts. */
uint64_t td_histogram_total(const uint64_t *counts);

/*
 * Returns the duration that `ppm` of all counted ones do not exceed, or 0 if nothing was counted.
 * The rank is rounded up (nearest rank), and the duration is interpolated within its bucket.
 */
uint64_t td_histogram_quantile_ns(const uint64_t *counts, uint32_t ppm);
