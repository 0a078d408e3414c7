/*
 * Reads the requests of a service from the text format of Prometheus, which its /metrics returns.
 * Pure; any text is safe.
 *
 * Series of one name that differ in their labels are added up. A series with a label whose value is
 * `own_path` is left out: it counts the requests for the metrics themselves. A line that is no
 * sample, or whose value is no count, is skipped and counted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define TD_SCRAPE_BUCKETS 128
#define TD_SCRAPE_NAME    128 /* bytes of a metric's name, with its NUL */

/* Which metrics are read; see names.def. */
struct td_scrape_names {
	const char *engine;
	double unit_ns;
	const char *latency, *sum, *count, *waiting;
};

extern const struct td_scrape_names td_scrape_engines[]; /* ends with a zeroed row */

/* A bucket of the histogram: the answers that took `end` or less, in the unit of the histogram. */
struct td_scrape_bucket {
	double end, count;
};

struct td_scrape_counts {
	bool has_buckets, has_count, has_sum;
	unsigned bucket_count; /* the last bucket, which has no end, is not among them */
	struct td_scrape_bucket buckets[TD_SCRAPE_BUCKETS]; /* by `end` */
	double count;                                       /* answered requests */
	double sum;       /* the time that they took, in the unit of the histogram */
	double waiting;   /* 0 if not known */
	unsigned skipped; /* lines that are no samples */
};

/*
 * Reads one row's metrics. Returns whether the text has its histogram or its count. *ret is zeroed
 * first.
 */
bool td_scrape_read(const char *text, size_t len, const struct td_scrape_names *names,
	const char *own_path, struct td_scrape_counts *ret);
/* Does so for the first engine whose metrics the text has. Returns its row, or NULL. */
const struct td_scrape_names *td_scrape_find(
	const char *text, size_t len, const char *own_path, struct td_scrape_counts *ret);
/* Returns the unit that the end of a metric's name says, such as _seconds or _us. */
double td_scrape_unit_ns(const char *name);
