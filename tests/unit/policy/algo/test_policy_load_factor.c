/* MuxFlow's Equations 1 and 2, by hand. */
#include "test.h"

#include "policy/algo/control/load_factor.h"

static const struct td_load_factor t4 = {
	.low_gain = 4, .high_gain = 0.25, .threshold_mhz = 1000, .max_mhz = 1600};

static int near(double a, double b)
{
	return a - b < 1e-12 && b - a < 1e-12;
}

TEST(below_the_threshold_the_load_is_exaggerated)
{
	/* 1 + 4 x (1000 - 900) / 1000 */
	CHECK(near(td_load_factor_clock(&t4, 900), 1.4));
	CHECK(near(td_load_factor_gpu(&t4, 0.5, 900), 0.7));
}

TEST(above_the_threshold_it_is_a_little_less)
{
	/* 1 - 0.25 x (1300 - 1000) / (1600 - 1000) */
	CHECK(near(td_load_factor_clock(&t4, 1300), 0.875));
	CHECK(near(td_load_factor_clock(&t4, 1600), 0.75));
	CHECK(near(td_load_factor_gpu(&t4, 0.8, 1600), 0.6));
}

TEST(both_branches_meet_at_the_threshold_and_the_factor_never_rises)
{
	double last = td_load_factor_clock(&t4, 1);

	CHECK(near(td_load_factor_clock(&t4, 1000), 1));
	for (uint32_t mhz = 2; mhz < 4000; mhz++) {
		double next = td_load_factor_clock(&t4, mhz);

		CHECK(next <= last && next >= 0);
		last = next;
	}
}

TEST(an_unknown_clock_corrects_nothing)
{
	struct td_load_factor flat = t4;

	CHECK(near(td_load_factor_clock(&t4, 0), 1));
	flat.max_mhz = flat.threshold_mhz;
	CHECK(near(td_load_factor_clock(&flat, 1200), 1));
	flat.threshold_mhz = 0;
	CHECK(near(td_load_factor_clock(&flat, 1200), 1));
}
