/*
 * Computes the figures of a service from two readings of its /metrics. Pure.
 *
 * A quantile lies in the bucket that holds its rank and is interpolated there. In the last bucket,
 * which has no end, it is the end of the one before: the true value is not less.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cli/scrape/text.h"

struct td_scrape_figures {
	double rate_per_s; /* answered requests */
	/* 0: nothing was answered, or it is not known */
	uint64_t mean_ns, p50_ns, p99_ns;
	uint32_t waiting;
	bool has_tail; /* the service has a histogram, so p50_ns and p99_ns are known */
};

/*
 * Returns false if a count has fallen, because the service has begun anew; then the second reading
 * is the first one of the next pair. elapsed_ns is more than 0. A series that only the second
 * reading has began at 0.
 */
bool td_scrape_compare(const struct td_scrape_counts *before, const struct td_scrape_counts *now,
	uint64_t elapsed_ns, double unit_ns, struct td_scrape_figures *ret);
