/*
 * The output of every benchmark: one JSON object a line for each figure, {"figure", "unit",
 * "median", "p5", "p95", "n"}. tools/run-bench collects them.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>

static inline int bench_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts the samples. Nothing is printed without any. */
static inline void bench_row(const char *figure, const char *unit, double *samples, size_t n)
{
	if (!n)
		return;
	qsort(samples, n, sizeof(*samples), bench_compare);
	printf("{\"figure\": \"%s\", \"unit\": \"%s\", \"median\": %.4g, \"p5\": %.4g, \"p95\": "
	       "%.4g, \"n\": %zu}\n",
		figure, unit, samples[n / 2], samples[n / 20], samples[n - 1 - n / 20], n);
}
