/* Implements histogram.h. */
#include "base/histogram.h"

#define PPM 1000000u

uint64_t td_histogram_first_ns(uint32_t bucket)
{
	uint32_t octave = bucket / TD_HISTOGRAM_SUB;
	uint64_t units = bucket;

	if (octave)
		units = (uint64_t)(TD_HISTOGRAM_SUB + bucket % TD_HISTOGRAM_SUB) << (octave - 1);
	return units << TD_HISTOGRAM_UNIT_SHIFT;
}

uint64_t td_histogram_end_ns(uint32_t bucket)
{
	return td_histogram_first_ns(bucket + 1);
}

uint64_t td_histogram_total(const uint64_t *counts)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < TD_HISTOGRAM_N; i++)
		total += counts[i];
	return total;
}

/* Returns the rank of a quantile, from 1. Products have 128 bits, so they cannot overflow. */
static uint64_t rank_of(uint64_t total, uint32_t ppm)
{
	uint64_t rank = (uint64_t)(((unsigned __int128)total * ppm + PPM - 1) / PPM);

	return rank ? rank : 1;
}

uint64_t td_histogram_quantile_ns(const uint64_t *counts, uint32_t ppm)
{
	uint64_t total = td_histogram_total(counts), rank, before = 0;

	if (!total)
		return 0;
	rank = rank_of(total, ppm < PPM ? ppm : PPM);
	for (uint32_t i = 0; i < TD_HISTOGRAM_N; i++) {
		uint64_t first = td_histogram_first_ns(i), width = td_histogram_end_ns(i) - first;

		if (before + counts[i] >= rank)
			return first +
			       (uint64_t)((unsigned __int128)width * (rank - before) / counts[i]);
		before += counts[i];
	}
	return td_histogram_first_ns(TD_HISTOGRAM_N - 1);
}
