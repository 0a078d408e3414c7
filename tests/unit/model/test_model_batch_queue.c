/* The batch-queue formula against a simulation of every request. */
#include "test.h"

#include <math.h>

#include "model/batch_queue.h"
#include "sim/base/random.h"

#define REQUESTS 400000u

static struct td_batch_queue_work work;
static double latencies[REQUESTS];

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/*
 * Simulates requests one by one: the b-th completes a batch, one server takes the batches in their
 * order.
 */
static void simulate(const struct td_batch_queue *queue, uint64_t seed)
{
	double now = 0, free_at = 0, arrived[512];
	uint32_t n = 0, waiting = 0;

	while (n + queue->batch <= REQUESTS) {
		now += td_random_exponential(&seed, 1 / queue->rate_per_s);
		arrived[waiting++] = now;
		if (waiting < queue->batch)
			continue;
		free_at = fmax(free_at, now) + queue->batch_s;
		for (uint32_t i = 0; i < waiting; i++)
			latencies[n++] = free_at - arrived[i];
		waiting = 0;
	}
	for (; n < REQUESTS; n++)
		latencies[n] = latencies[0];
	qsort(latencies, REQUESTS, sizeof(double), compare);
}

static void compare_with_simulation(uint32_t batch, double load, double tolerance)
{
	struct td_batch_queue queue = {
		.batch = batch, .batch_s = 0.02, .rate_per_s = load * batch / 0.02};
	static const double quantiles[] = {0.5, 0.99};

	simulate(&queue, batch * 1000 + (uint64_t)(load * 100));
	for (int q = 0; q < 2; q++) {
		double formula = td_batch_queue_latency_s(&queue, quantiles[q], &work);
		double simulated = latencies[(uint32_t)(quantiles[q] * REQUESTS)];

		if (fabs(formula / simulated - 1) > tolerance)
			test_fail(__FILE__, __LINE__,
				"batch %u, load %g, quantile %g: %g, simulated %g", batch, load,
				quantiles[q], formula, simulated);
	}
}

TEST(percentiles_are_those_of_every_request_simulated)
{
	static const uint32_t batches[] = {1, 2, 8, 32, 128, 256};
	static const double loads[] = {0.1, 0.4, 0.6, 0.8};

	for (int b = 0; b < 6; b++)
		for (int l = 0; l < 4; l++)
			compare_with_simulation(batches[b], loads[l], 0.05);
}

TEST(one_by_one_at_a_high_load_is_still_right)
{
	compare_with_simulation(1, 0.9, 0.05);
	compare_with_simulation(4, 0.9, 0.05);
}

TEST(a_server_that_cannot_keep_up_has_no_latency)
{
	struct td_batch_queue queue = {.batch = 4, .batch_s = 0.1, .rate_per_s = 40};

	CHECK(isinf(td_batch_queue_latency_s(&queue, 0.99, &work)));
	CHECK(td_batch_queue_late(&queue, 10, &work) >= 1);
}

TEST(late_requests_and_percentiles_agree)
{
	struct td_batch_queue queue = {.batch = 16, .batch_s = 0.05, .rate_per_s = 200};
	double p95 = td_batch_queue_latency_s(&queue, 0.95, &work);

	CHECK(fabs(td_batch_queue_late(&queue, p95, &work) - 0.05) < 1e-3);
	CHECK(td_batch_queue_late(&queue, 0.04, &work) >= 1 - 1e-9);
}
