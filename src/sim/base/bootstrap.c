/* Computes bootstrap intervals of paired values; see bootstrap.h. */
#include "sim/base/bootstrap.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/random.h"

#define TAIL (TD_BOOTSTRAP_RESAMPLES / 40) /* number of resamples below 2.5 % */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Returns the value at a rank of a resample that has sorted[k] counts[k] times. */
static double at_rank(const double *sorted, const uint16_t *counts, uint32_t rank)
{
	uint32_t k = 0;

	for (uint32_t before = counts[0]; before <= rank; before += counts[k])
		k++;
	return sorted[k];
}

static double resampled_median(const double *sorted, uint32_t count, uint64_t *random)
{
	uint16_t counts[TD_BOOTSTRAP_MOST];

	memset(counts, 0, count * sizeof(*counts));
	for (uint32_t i = 0; i < count; i++)
		counts[td_random_below(random, count)]++;
	return (at_rank(sorted, counts, (count - 1) / 2) + at_rank(sorted, counts, count / 2)) / 2;
}

struct td_interval td_bootstrap_median(const double *values, uint32_t count)
{
	double sorted[TD_BOOTSTRAP_MOST], medians[TD_BOOTSTRAP_RESAMPLES];
	uint64_t random = 1;

	assert(count <= TD_BOOTSTRAP_MOST);
	for (uint32_t i = 0; i < count; i++)
		if (isnan(values[i]))
			count = 0;
	if (count < TD_BOOTSTRAP_LEAST)
		return (struct td_interval){-INFINITY, INFINITY};
	memcpy(sorted, values, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), compare);
	for (uint32_t r = 0; r < TD_BOOTSTRAP_RESAMPLES; r++)
		medians[r] = resampled_median(sorted, count, &random);
	qsort(medians, TD_BOOTSTRAP_RESAMPLES, sizeof(*medians), compare);
	return (struct td_interval){medians[TAIL], medians[TD_BOOTSTRAP_RESAMPLES - 1 - TAIL]};
}

enum td_difference td_interval_shows(struct td_interval interval, double none)
{
	if (interval.low > none)
		return TD_MORE;
	return interval.high < none ? TD_LESS : TD_NOT_SHOWN;
}
