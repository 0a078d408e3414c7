/* This file implements figures.h. */
#include "cli/scrape/figures.h"

#include <math.h>

/* The longest latency and the highest count that are believed: about 146 years. */
#define MOST 4.6e18

static double count_before(const struct td_scrape_counts *before, double end)
{
	for (unsigned i = 0; i < before->bucket_count; i++)
		if (!(before->buckets[i].end < end) && !(before->buckets[i].end > end))
			return before->buckets[i].count;
	return 0;
}

static bool has_begun_anew(
	const struct td_scrape_counts *before, const struct td_scrape_counts *now)
{
	if (now->count < before->count || now->sum < before->sum)
		return true;
	for (unsigned i = 0; i < now->bucket_count; i++)
		if (now->buckets[i].count < count_before(before, now->buckets[i].end))
			return true;
	return (before->has_buckets && !now->has_buckets) || (before->has_count && !now->has_count);
}

static uint64_t to_u64(double value)
{
	return value > 0 ? (uint64_t)fmin(value, MOST) : 0;
}

/* Returns the latency at a rank of the answers between the two readings, in ns. */
static uint64_t at_rank(const struct td_scrape_counts *before, const struct td_scrape_counts *now,
	double rank, double unit_ns)
{
	double first = 0, below = 0;

	for (unsigned i = 0; i < now->bucket_count; i++) {
		double end = now->buckets[i].end;
		double up_to = fmax(below, now->buckets[i].count - count_before(before, end));

		if (up_to >= rank && up_to > below)
			return to_u64((first + (end - first) * (rank - below) / (up_to - below)) *
				      unit_ns);
		below = up_to;
		first = fmax(first, end);
	}
	return to_u64(first * unit_ns);
}

bool td_scrape_compare(const struct td_scrape_counts *before, const struct td_scrape_counts *now,
	uint64_t elapsed_ns, double unit_ns, struct td_scrape_figures *ret)
{
	double answered = now->count - before->count;

	*ret = (struct td_scrape_figures){.has_tail = now->has_buckets};
	if (has_begun_anew(before, now))
		return false;
	ret->rate_per_s = answered * 1e9 / (double)elapsed_ns;
	ret->waiting = (uint32_t)fmin(now->waiting, UINT32_MAX);
	if (!(answered > 0))
		return true;
	if (now->has_sum)
		ret->mean_ns = to_u64((now->sum - before->sum) / answered * unit_ns);
	if (now->has_buckets) {
		ret->p50_ns = at_rank(before, now, answered * 0.5, unit_ns);
		ret->p99_ns = at_rank(before, now, answered * 0.99, unit_ns);
	}
	return true;
}
