/* Requests on one GPU: by hand, and at random against the formula for such a queue. */
#include "test.h"

#include <math.h>
#include <stdbool.h>

#include "sim/base/random.h"
#include "sim/data/request_load.h"

#define MANY 200000u

static double arrivals[MANY], latencies[MANY];

static bool near(double a, double b)
{
	return fabs(a - b) < 1e-9 * fmax(1, fabs(b));
}

TEST(who_waits_is_served_together_and_nobody_waits_for_company)
{
	static const double come[] = {0, 0, 0, 0.5, 10};
	const struct td_server one = {1, 1, 1}, two = {1, 2, 1}, slow = {1, 4, 3};

	/* Two take 1.5: the first two at 0, the third and the fourth at 1.5, the last alone. */
	CHECK(near(td_serve(come, 5, &two, latencies), 4));
	CHECK(near(latencies[0], 1.5) && near(latencies[1], 1.5));
	CHECK(near(latencies[2], 3) && near(latencies[3], 2.5) && near(latencies[4], 1));
	CHECK(near(td_serve(come, 5, &one, latencies), 5));
	CHECK(near(latencies[2], 3) && near(latencies[3], 3.5));
	/* The fourth comes when the three have begun: 6, then 3, then 3. */
	CHECK(near(td_serve(come, 5, &slow, latencies), 12));
	CHECK(near(latencies[2], 6) && near(latencies[3], 8.5) && near(latencies[4], 3));
}

TEST(latency_at_random_is_that_of_the_formula)
{
	const struct td_server server = {1, 1, 1};
	uint64_t random = 7;
	double sum = 0, at = 0;

	for (uint32_t i = 0; i < MANY; i++) {
		at -= log(1 - td_random_unit(&random)) / 0.5;
		arrivals[i] = at;
	}
	(void)td_serve(arrivals, MANY, &server, latencies);
	for (uint32_t i = 0; i < MANY; i++)
		sum += latencies[i] / MANY;
	/* Pollaczek and Khinchine: half a service on the mean wait at a load of a half. */
	CHECK(fabs(sum / 1.5 - 1) < 0.02);
}

TEST(figures_of_a_load_by_hand)
{
	static const double come[] = {100, 101, 102, 103, 163};
	const struct td_server server = {0.1, 4, 1};
	double scratch[5];
	struct td_request_load load = td_request_load_of(come, 5, &server, 0.35, 60, scratch);

	CHECK_EQ(load.requests, 5);
	CHECK(near(load.span_s, 63) && near(load.mean_per_s, 5 / 63.));
	CHECK(near(load.peak_per_s, 5 / 63.)); /* 4 in 60 s are fewer than 5 in 63 */
	CHECK(near(load.p50_s, 0.1) && near(load.p99_s, 0.1) && near(load.busy, 0.5 / 63.1));
	CHECK(load.variation > 1.62 && load.variation < 1.63);
	CHECK(load.room <= 3.5 && load.room > 3.46); /* 0.1 s times 3.5 */
	load = td_request_load_of(come, 5, &server, 0.09, 30, scratch);
	CHECK(near(load.peak_per_s, 4 / 30.));
	CHECK(near(load.room, 0));
	load = td_request_load_of(come, 5, &server, 1e6, 60, scratch);
	CHECK(near(load.room, TD_ROOM_MOST));
	load = td_request_load_of(come, 1, &server, 1, 60, scratch);
	CHECK(near(load.peak_per_s, 1 / 60.)); /* no span: the window as it is */
	CHECK(near(load.mean_per_s, 0) && near(load.variation, 0) && near(load.p99_s, 0.1));
}

TEST(the_peak_of_a_short_file_is_its_mean)
{
	static const double come[] = {0, 1, 2, 3, 4};
	const struct td_server server = {0.1, 4, 1};
	double scratch[5];
	struct td_request_load load = td_request_load_of(come, 5, &server, 1, 60, scratch);

	CHECK(near(load.mean_per_s, 5 / 4.) && near(load.peak_per_s, load.mean_per_s));
	load = td_request_load_of(come, 5, &server, 1, 3, scratch);
	CHECK(near(load.peak_per_s, load.mean_per_s)); /* 3 of 3 s, 2 of the next 3 */
}
