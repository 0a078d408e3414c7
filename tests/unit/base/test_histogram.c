/* Buckets cover all durations without a gap, and quantiles are those of hand-made lists. */
#include "test.h"

#include "base/histogram.h"

#define MS 1000000ull

static uint64_t counts[TD_HISTOGRAM_N];

static void start(void)
{
	memset(counts, 0, sizeof(counts));
}

static void count(uint64_t ns, uint64_t times)
{
	counts[td_histogram_bucket(ns)] += times;
}

TEST(buckets_follow_each_other_without_a_gap)
{
	CHECK_EQ(td_histogram_first_ns(0), 0);
	for (uint32_t i = 0; i + 1 < TD_HISTOGRAM_N; i++) {
		uint64_t first = td_histogram_first_ns(i), end = td_histogram_end_ns(i);

		CHECK(end > first);
		CHECK_EQ(td_histogram_bucket(first), i);
		CHECK_EQ(td_histogram_bucket(end - 1), i);
		CHECK_EQ(td_histogram_bucket(end), i + 1);
		CHECK((end - first) * 32 <= first || first < 32 * 1024);
	}
	CHECK_EQ(td_histogram_bucket(UINT64_MAX), TD_HISTOGRAM_N - 1);
}

TEST(a_quantile_is_the_nearest_rank)
{
	start();
	CHECK_EQ(td_histogram_quantile_ns(counts, 500000), 0);
	count(10 * MS, 98);
	count(50 * MS, 1);
	count(200 * MS, 1);
	CHECK_EQ(td_histogram_total(counts), 100);
	CHECK_EQ(td_histogram_bucket(td_histogram_quantile_ns(counts, 980000) - 1),
		td_histogram_bucket(10 * MS));
	CHECK_EQ(td_histogram_bucket(td_histogram_quantile_ns(counts, 990000) - 1),
		td_histogram_bucket(50 * MS));
	CHECK_EQ(td_histogram_bucket(td_histogram_quantile_ns(counts, 990001) - 1),
		td_histogram_bucket(200 * MS));
	CHECK_EQ(td_histogram_bucket(td_histogram_quantile_ns(counts, 1000000) - 1),
		td_histogram_bucket(200 * MS));
}

TEST(quantiles_are_within_the_width_of_a_bucket)
{
	start();
	for (uint64_t i = 1; i <= 1000; i++)
		count(i * MS, 1);
	for (uint32_t permille = 10; permille <= 1000; permille += 10) {
		uint64_t exact = permille * MS, found;

		found = td_histogram_quantile_ns(counts, permille * 1000);
		CHECK(found <= exact + exact / 31 && found + exact / 31 >= exact);
	}
}

TEST(a_thousand_million_counts_do_not_overflow)
{
	start();
	count(5 * MS, UINT64_MAX / 4);
	count(6 * MS, UINT64_MAX / 4);
	CHECK(td_histogram_quantile_ns(counts, 250000) < 6 * MS);
	CHECK(td_histogram_quantile_ns(counts, 750000) > 5 * MS);
}
