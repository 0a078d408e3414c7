/* Intervals of medians that can be computed by hand. */
#include "test.h"

#include <math.h>

#include "sim/base/bootstrap.h"

/*
 * Seven values. The median of a resample is at most the j-th smallest when four or more of its
 * seven draws are among the j smallest: a binomial tail. For j = 1 it is 1.0 %, for j = 2 it is
 * 10.8 %. So the 2.5th percentile is the 2nd smallest, and the 97.5th the 2nd largest.
 */
TEST(the_interval_of_seven_leaves_out_the_least_and_the_most)
{
	static const double values[7] = {50, 10, 70, 20, 40, 60, 30};
	struct td_interval of = td_bootstrap_median(values, 7);

	CHECK_EQ((int)of.low, 20);
	CHECK_EQ((int)of.high, 60);
}

/*
 * Three of six are 0: four or more of six draws are 0 with a probability of 34 %, and likewise 1.
 */
TEST(the_interval_of_six_halves_is_all_of_them)
{
	static const double values[6] = {0, 1, 0, 1, 0, 1};
	struct td_interval of = td_bootstrap_median(values, 6);

	CHECK(!(of.low < 0) && !(of.low > 0));
	CHECK(!(of.high < 1) && !(of.high > 1));
}

TEST(the_order_of_seeds_does_not_matter)
{
	static const double values[7] = {1.1, 0.9, 1.3, 1.2, 1, 1.4, 0.8},
			    turned[7] = {0.8, 1.4, 1, 1.2, 1.3, 0.9, 1.1};
	struct td_interval of = td_bootstrap_median(values, 7),
			   other = td_bootstrap_median(turned, 7);

	CHECK(!memcmp(&of, &other, sizeof(of)));
}

/* Five of one sign come by chance with a probability of 1/16, six with 1/32. */
TEST(fewer_than_six_pairs_show_nothing)
{
	static const double values[6] = {1.1, 1.2, 1.3, 1.4, 1.5, 1.6};

	for (uint32_t n = 0; n < 6; n++)
		CHECK_EQ(td_interval_shows(td_bootstrap_median(values, n), 1), TD_NOT_SHOWN);
	CHECK_EQ(td_interval_shows(td_bootstrap_median(values, 6), 1), TD_MORE);
}

TEST(a_difference_is_shown_when_the_interval_excludes_none)
{
	CHECK_EQ(td_interval_shows((struct td_interval){1.01, 1.2}, 1), TD_MORE);
	CHECK_EQ(td_interval_shows((struct td_interval){1, 1.2}, 1), TD_NOT_SHOWN);
	CHECK_EQ(td_interval_shows((struct td_interval){-3, -1}, 0), TD_LESS);
	CHECK_EQ(td_interval_shows((struct td_interval){-3, 0}, 0), TD_NOT_SHOWN);
}

TEST(what_is_not_a_number_shows_nothing)
{
	static const double values[7] = {2, 2, 2, NAN, 2, 2, 2};

	CHECK_EQ(td_interval_shows(td_bootstrap_median(values, 7), 1), TD_NOT_SHOWN);
}
