/* Arbitrary text as the metrics of a service: the first half and the whole are two readings. */
#include <assert.h>
#include <stdint.h>

#include "cli/scrape/figures.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct td_scrape_counts before, now;
	const char *text = (const char *)data;
	const struct td_scrape_names *names;
	struct td_scrape_figures figures;

	(void)td_scrape_find(text, size / 2, "/metrics", &before);
	names = td_scrape_find(text, size, "/metrics", &now);
	assert(now.bucket_count <= TD_SCRAPE_BUCKETS && now.skipped <= size);
	for (unsigned i = 1; i < now.bucket_count; i++)
		assert(now.buckets[i - 1].end < now.buckets[i].end);
	if (names && td_scrape_compare(&before, &now, 1, names->unit_ns, &figures))
		assert(figures.rate_per_s >= 0 && (figures.has_tail || !figures.p99_ns));
	return 0;
}
