/* Bursts of launches: where they begin, and how long they last. */
#include "preload/base/page.h"
#include "preload/measure/bursts.h"
#include "test.h"

#define MS 1000000ull

static uint64_t now = 1000 * MS;

/* A launch, and another one that ends up to so much later; the calls between are close. */
static void burst(uint64_t length_ns)
{
	for (uint64_t at = 0; at <= length_ns; at += MS)
		td_bursts_call(now + at, false);
}

static bool is_near(uint64_t value, uint64_t expected)
{
	return value <= expected + expected / 20 && value + expected / 20 >= expected;
}

TEST(bursts_are_launches_with_a_gap_between)
{
	for (int i = 0; i < 3; i++, now += 50 * MS)
		burst(10 * MS);
	CHECK_EQ(td_meter.page.burst_every_ns, 50 * MS);
	CHECK_EQ(td_meter.page.burst_ns, 10 * MS);
	CHECK_EQ(td_meter.page.burst_began_ns, now - 50 * MS);
}

TEST(a_call_that_waits_for_the_gpu_goes_on_with_the_burst)
{
	for (int i = 0; i < 200; i++, now += 50 * MS) {
		td_bursts_call(now, false);
		td_bursts_call(now + 20 * MS, true);
		td_bursts_call(now + 21 * MS, false);
	}
	CHECK(is_near(td_meter.page.burst_every_ns, 50 * MS));
	CHECK(is_near(td_meter.page.burst_ns, 21 * MS));
}

TEST(the_means_follow_a_change)
{
	for (int i = 0; i < 200; i++, now += 10 * MS)
		burst(2 * MS);
	CHECK(is_near(td_meter.page.burst_every_ns, 10 * MS));
	CHECK(is_near(td_meter.page.burst_ns, 2 * MS));
}
