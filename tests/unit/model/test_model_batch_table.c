/* The table of batch queues against the exact percentile. */
#include "test.h"

#include <math.h>

#include "model/batch_table.h"

static struct td_batch_table table;
static struct td_batch_queue_work work;

static void compare(uint32_t batch, double load, double tolerance)
{
	const struct td_batch_queue queue = {
		.batch = batch, .batch_s = 0.013, .rate_per_s = load * batch / 0.013};
	double exact = td_batch_queue_latency_s(&queue, 0.99, &work);
	double quick = td_batch_table_p99_s(&table, &queue);

	if (!(fabs(quick / exact - 1) < tolerance))
		test_fail(__FILE__, __LINE__, "batch %u, load %g: %g, exactly %g", batch, load,
			quick, exact);
}

TEST(between_its_points_the_table_is_nearly_exact)
{
	static const uint32_t batches[] = {16, 17, 19, 48, 100, 200, 256, 311, 512};
	static const double loads[] = {0.03, 0.11, 0.24, 0.4, 0.55, 0.72, 0.84, 0.93};

	for (int b = 0; b < 9; b++)
		for (int l = 0; l < 8; l++)
			compare(batches[b], loads[l], 0.04);
}

TEST(small_batches_are_a_little_less_exact)
{
	static const uint32_t batches[] = {1, 5, 8};

	for (int b = 0; b < 3; b++) {
		compare(batches[b], 0.24, 0.08);
		compare(batches[b], 0.55, 0.08);
	}
}

TEST(a_service_that_is_nearly_always_busy_has_no_percentile)
{
	const struct td_batch_queue queue = {.batch = 16, .batch_s = 0.1, .rate_per_s = 153};

	CHECK(isinf(td_batch_table_p99_s(&table, &queue)));
}

TEST(few_requests_wait_for_the_batch_to_fill)
{
	const struct td_batch_queue queue = {.batch = 16, .batch_s = 0.001, .rate_per_s = 16};
	double p99 = td_batch_table_p99_s(&table, &queue);

	CHECK(p99 > 1 && p99 < 2);
}
