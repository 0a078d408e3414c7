/* The text of Prometheus, and what a service did between two readings of it. */
#include <math.h>

#include "cli/scrape/figures.h"
#include "test.h"

#define S 1000000000ull

static struct td_scrape_counts counts, later;
static struct td_scrape_figures figures;

static const struct td_scrape_names *find(const char *text, struct td_scrape_counts *ret)
{
	return td_scrape_find(text, strlen(text), "/metrics", ret);
}

static bool is_near(double a, double b)
{
	return fabs(a - b) <= 1e-6 * fabs(b);
}

TEST(labels_are_added_up)
{
	const struct td_scrape_names *names =
		find("# HELP vllm:e2e_request_latency_seconds Histogram of e2e request latency.\n"
		     "# TYPE vllm:e2e_request_latency_seconds histogram\n"
		     "vllm:e2e_request_latency_seconds_bucket{le=\"0.3\",model_name=\"a\"} 3.0\n"
		     "vllm:e2e_request_latency_seconds_bucket{model_name=\"b\",le=\"0.3\"} 4.0\n"
		     "vllm:e2e_request_latency_seconds_bucket{le=\"0.5\",model_name=\"a\"} 5\n"
		     "vllm:e2e_request_latency_seconds_bucket{le=\"+Inf\",model_name=\"a\"} 6\n"
		     "vllm:e2e_request_latency_seconds_sum{model_name=\"a\"} 1.25e1\n"
		     "vllm:request_success_total{finished_reason=\"stop\",model_name=\"a\"} 6.0 "
		     "1395066363\n"
		     "vllm:request_success_total{finished_reason=\"length\",model_name=\"a\"} 1.0\n"
		     "vllm:num_requests_waiting{model_name=\"a\",} 2.0\n",
			&counts);

	CHECK(names);
	CHECK_STR(names->engine, "vLLM");
	CHECK_EQ(counts.bucket_count, 2);
	CHECK(is_near(counts.buckets[0].end, 0.3) && is_near(counts.buckets[0].count, 7));
	CHECK(is_near(counts.buckets[1].count, 5));
	CHECK(is_near(counts.count, 7) && is_near(counts.sum, 12.5) && is_near(counts.waiting, 2));
	CHECK_EQ(counts.skipped, 0);
}

TEST(buckets_are_sorted_whatever_their_order)
{
	CHECK(find("http_request_duration_seconds_bucket{le=\"1\"} 3\n"
		   "http_request_duration_seconds_bucket{le=\"1e-3\"} 1\r\n"
		   "http_request_duration_seconds_bucket{le=\"0.01\"} 2\n"
		   "http_request_duration_seconds_count 3",
		&counts));
	CHECK_EQ(counts.bucket_count, 3);
	CHECK(is_near(counts.buckets[0].end, 0.001) && is_near(counts.buckets[2].end, 1));
	CHECK(is_near(counts.count, 3));
}

TEST(a_line_that_is_no_sample_is_skipped_and_counted)
{
	CHECK(find("http_request_duration_seconds_count 5\n"
		   "http_request_duration_seconds_count NaN\n"
		   "http_request_duration_seconds_count -1\n"
		   "http_request_duration_seconds_count +Inf\n"
		   "http_request_duration_seconds_count\n"
		   "http_request_duration_seconds_count 0x10\n"
		   "http_request_duration_seconds_count{a=b} 1\n"
		   "http_request_duration_seconds_count{a=\"b} 1\n"
		   "http_request_duration_seconds_count{a=\"b\"\n"
		   "http_request_duration_seconds_bucket 1\n"
		   "http_request_duration_seconds_bucket{le=\"NaN\"} 1\n"
		   "http_request_duration_seconds_bucket{le=\"x\"} 1\n"
		   "<html>\n\n  \t\n",
		&counts));
	CHECK_EQ(counts.skipped, 12);
	CHECK_EQ(counts.bucket_count, 0);
	CHECK(is_near(counts.count, 5));
	/* NaN is a value where it does not matter. */
	CHECK(!find("other NaN\nhttp_request_duration_secondsx_count 5\n", &counts));
	CHECK_EQ(counts.skipped, 0);
}

TEST(escaped_quotes_do_not_end_a_label)
{
	CHECK(find(
		"http_request_duration_seconds_count{path=\"a\\\"} 7\",x=\"\\\\\"} 2\n", &counts));
	CHECK(is_near(counts.count, 2));
	CHECK_EQ(counts.skipped, 0);
}

TEST(requests_for_the_metrics_themselves_do_not_count)
{
	CHECK(find("http_request_duration_seconds_count{handler=\"/metrics\"} 90\n"
		   "http_request_duration_seconds_count{handler=\"/v1\"} 2\n",
		&counts));
	CHECK(is_near(counts.count, 2));
}

TEST(more_buckets_than_there_is_room_for_are_skipped)
{
	static char text[64 * 300];
	size_t n = 0;

	for (int i = 0; i < 200; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
			"http_request_duration_seconds_bucket{le=\"%d\"} 1\n", i);
	CHECK(find(text, &counts));
	CHECK_EQ(counts.bucket_count, TD_SCRAPE_BUCKETS);
	CHECK_EQ(counts.skipped, 200 - TD_SCRAPE_BUCKETS);
}

static const char *const hundred = "http_request_duration_seconds_bucket{le=\"0.1\"} 90\n"
				   "http_request_duration_seconds_bucket{le=\"0.2\"} 99\n"
				   "http_request_duration_seconds_bucket{le=\"0.4\"} 100\n"
				   "http_request_duration_seconds_bucket{le=\"+Inf\"} 100\n"
				   "http_request_duration_seconds_sum 10\n"
				   "http_request_duration_seconds_count 100\n";

static bool compare(const char *before, const char *now, uint64_t elapsed_ns)
{
	const struct td_scrape_names *names;

	(void)find(before, &counts);
	names = find(now, &later);
	CHECK(names);
	return td_scrape_compare(&counts, &later, elapsed_ns, names->unit_ns, &figures);
}

TEST(quantiles_are_those_of_the_time_between)
{
	CHECK(compare("", hundred, 2 * S));
	CHECK(figures.has_tail && is_near(figures.rate_per_s, 50));
	CHECK_EQ(figures.mean_ns, 100000000);
	CHECK_EQ(figures.p50_ns, 55555555);
	CHECK_EQ(figures.p99_ns, 200000000);
	/* The next second: ten answers, all of the slowest bucket. */
	CHECK(compare(hundred,
		"http_request_duration_seconds_bucket{le=\"0.1\"} 90\n"
		"http_request_duration_seconds_bucket{le=\"0.2\"} 99\n"
		"http_request_duration_seconds_bucket{le=\"0.4\"} 110\n"
		"http_request_duration_seconds_sum 13\n"
		"http_request_duration_seconds_count 110\n",
		S));
	CHECK(is_near(figures.rate_per_s, 10));
	CHECK_EQ(figures.p50_ns, 300000000);
	CHECK_EQ(figures.p99_ns, 398000000);
}

TEST(a_latency_beyond_the_last_end_is_that_end)
{
	CHECK(compare("http_request_duration_seconds_bucket{le=\"0.1\"} 0\n",
		"http_request_duration_seconds_bucket{le=\"0.1\"} 1\n"
		"http_request_duration_seconds_bucket{le=\"+Inf\"} 100\n"
		"http_request_duration_seconds_count 100\n",
		S));
	CHECK_EQ(figures.p99_ns, 100000000);
}

TEST(nobody_asked_is_a_rate_of_nothing)
{
	CHECK(compare(hundred, hundred, S));
	CHECK(!(figures.rate_per_s > 0) && !figures.p99_ns && !figures.mean_ns);
	CHECK(figures.has_tail);
}

TEST(counts_that_fall_are_those_of_a_service_that_began_anew)
{
	CHECK(!compare(hundred, "http_request_duration_seconds_count 3\n", S));
	CHECK(!compare(hundred,
		"http_request_duration_seconds_bucket{le=\"0.1\"} 1\n"
		"http_request_duration_seconds_sum 11\n"
		"http_request_duration_seconds_count 100\n",
		S));
}

TEST(without_a_histogram_there_is_a_mean_and_no_tail)
{
	CHECK(compare("nv_inference_request_success{model=\"a\",version=\"1\"} 10\n"
		      "nv_inference_request_duration_us{model=\"a\",version=\"1\"} 1000\n",
		"nv_inference_request_success{model=\"a\",version=\"1\"} 30\n"
		"nv_inference_request_duration_us{model=\"a\",version=\"1\"} 41000\n"
		"nv_inference_pending_request_count{model=\"a\",version=\"1\"} 3\n",
		S));
	CHECK(!figures.has_tail && !figures.p99_ns);
	CHECK(is_near(figures.rate_per_s, 20));
	CHECK_EQ(figures.mean_ns, 2000000);
	CHECK_EQ(figures.waiting, 3);
}

TEST(tensorflow_counts_in_microseconds)
{
	CHECK(compare("",
		":tensorflow:serving:request_latency_bucket{API=\"predict\",le=\"10\"} 0\n"
		":tensorflow:serving:request_latency_bucket{API=\"predict\",le=\"20\"} 100\n"
		":tensorflow:serving:request_latency_count{API=\"predict\"} 100\n",
		S));
	CHECK_EQ(figures.p50_ns, 15000);
	CHECK(is_near(td_scrape_unit_ns("my_latency_ms"), 1e6));
	CHECK(is_near(td_scrape_unit_ns("my_latency_seconds"), 1e9));
	CHECK(is_near(td_scrape_unit_ns("latency_usec"), 1e3));
}
