/* Latency curves against values worked out by hand and against brute force. */
#include "test.h"

#include <errno.h>
#include <math.h>

#include "policy/algo/fit/curve.h"
#include "policy_random.h"

static int near(double a, double b, double within)
{
	return fabs(a - b) <= within;
}

/* Falls by 200 per unit to (0.4, 40), then by 10. */
static const double shares[] = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};
static const double bent[] = {100, 80, 60, 40, 39, 38, 37, 36, 35};

TEST(two_lines_are_found_exactly)
{
	struct td_curve curve;

	CHECK_EQ(td_curve_fit_piecewise(shares, bent, 9, &curve), 0);
	CHECK(near(curve.knee_x, 0.4, 1e-12) && near(curve.knee_y, 40, 1e-12));
	CHECK(near(curve.left_slope, -200, 1e-9) && near(curve.right_slope, -10, 1e-9));
	CHECK(near(td_curve_at(&curve, 0.25), 70, 1e-9));
	CHECK(near(td_curve_at(&curve, 1), 34, 1e-9));
	CHECK(near(td_curve_mean_slope(&curve), 105, 1e-9));
}

TEST(the_slopes_are_least_squares_through_the_knee)
{
	/*
	 * Scaled, the slopes are -2.55, -1.09, -0.18; Menger's curvature is 0.69 at 0.3 and 1.45 at
	 * 0.5.
	 */
	const double x[] = {0.1, 0.3, 0.5, 0.9}, y[] = {30, 16, 10, 8};
	struct td_curve curve;

	CHECK_EQ(td_curve_fit_piecewise(x, y, 4, &curve), 0);
	CHECK(near(curve.knee_x, 0.5, 1e-12));
	/* (-0.4 x 20 - 0.2 x 6) / (0.16 + 0.04) = -46 */
	CHECK(near(curve.left_slope, -46, 1e-9));
	CHECK(near(curve.right_slope, -5, 1e-9));
}

TEST(a_sharper_bend_the_other_way_is_no_knee)
{
	const double y[] = {100, 99, 98, 50, 49, 48, 47, 46, 45};
	struct td_curve curve;

	CHECK_EQ(td_curve_fit_piecewise(shares, y, 9, &curve), 0);
	CHECK(near(curve.knee_x, 0.4, 1e-12));
}

TEST(a_hyperbola_is_found_exactly)
{
	struct td_curve curve;
	double y[9];

	for (int i = 0; i < 9; i++)
		y[i] = 3 + 2 / shares[i];
	CHECK_EQ(td_curve_fit_hyperbola(shares, y, 9, &curve), 0);
	CHECK(near(curve.a, 3, 1e-9) && near(curve.b, 2, 1e-9));
	CHECK(near(td_curve_at(&curve, 0.5), 7, 1e-9));
	/* 2 x (10 - 2) / 0.4 = 40 and 2 x (2 - 1 / 0.9) / 0.4 = 4.444 */
	CHECK(near(td_curve_mean_slope(&curve), (40 + 4 / 0.9) / 2, 1e-9));
}

TEST(a_hyperbola_never_rises_and_is_never_negative)
{
	const double x[] = {0.2, 0.5, 1}, rising[] = {1, 2, 3}, steep[] = {100, 10, 1};
	struct td_curve curve;

	CHECK_EQ(td_curve_fit_hyperbola(x, rising, 3, &curve), 0);
	CHECK(near(curve.b, 0, 0));
	/* weights 1, 1/4, 1/9: (1 + 1/2 + 1/3) / (1 + 1/4 + 1/9) */
	CHECK(near(curve.a, (1 + 0.5 + 1. / 3) / (1 + 0.25 + 1. / 9), 1e-12));
	CHECK_EQ(td_curve_fit_hyperbola(x, steep, 3, &curve), 0);
	CHECK(near(curve.a, 0, 0) && curve.b > 0);
}

/* No other pair of coefficients nearby has a smaller relative error. */
TEST(a_hyperbola_minimises_the_relative_error)
{
	uint64_t seed = 9;

	for (int run = 0; run < 50; run++) {
		struct td_curve curve;
		double y[9], least = 0;

		for (int i = 0; i < 9; i++)
			y[i] = (1 + 5 / shares[i]) * (1 + 0.1 * random_normal(&seed));
		CHECK_EQ(td_curve_fit_hyperbola(shares, y, 9, &curve), 0);
		if (curve.a <= 0)
			continue;
		for (int k = 0; k < 25; k++) {
			double a = curve.a * (1 + 0.02 * (k / 5 - 2));
			double b = curve.b * (1 + 0.02 * (k % 5 - 2)), sum = 0;

			for (int i = 0; i < 9; i++)
				sum += pow((a + b / shares[i]) / y[i] - 1, 2);
			least = k == 0 || sum < least ? sum : least;
			if (k == 12)
				CHECK(sum <= least + 1e-12);
		}
	}
}

TEST(the_smallest_share_is_where_the_curve_crosses_the_limit)
{
	struct td_curve curve;

	CHECK_EQ(td_curve_fit_piecewise(shares, bent, 9, &curve), 0);
	CHECK(near(td_curve_smallest_share(&curve, 60, 0.01), 0.3, 1e-9));
	CHECK(near(td_curve_smallest_share(&curve, 60, 0.5), 0.5, 0));
	CHECK(near(td_curve_smallest_share(&curve, 38, 0.01), 0.6, 1e-9));
	CHECK(near(td_curve_smallest_share(&curve, 40, 0.01), 0.4, 1e-9));
	CHECK(td_curve_smallest_share(&curve, 30, 0.01) > 1);
	curve = (struct td_curve){.form = TD_CURVE_HYPERBOLA, .a = 3, .b = 2};
	CHECK(near(td_curve_smallest_share(&curve, 7, 0.01), 0.5, 1e-12));
	CHECK(td_curve_smallest_share(&curve, 4.9, 0.01) > 1);
	CHECK(td_curve_smallest_share(&curve, 3, 0.01) > 1);
}

TEST(a_limit_that_only_the_whole_gpu_keeps_needs_the_whole_gpu)
{
	const struct td_curve two_lines = {.form = TD_CURVE_PIECEWISE,
				      .knee_x = 0.5,
				      .knee_y = 50,
				      .left_slope = -100,
				      .right_slope = -20},
			      one_line = {.form = TD_CURVE_PIECEWISE,
				      .knee_x = 1,
				      .knee_y = 40,
				      .left_slope = -64},
			      hyperbola = {.form = TD_CURVE_HYPERBOLA, .a = 8, .b = 32};

	CHECK(td_curve_smallest_share(&two_lines, 40, 0.25) == 1);
	CHECK(td_curve_smallest_share(&two_lines, 40, 1) == 1);
	CHECK(td_curve_smallest_share(&two_lines, 39.5, 0.25) > 1);
	CHECK(td_curve_smallest_share(&two_lines, 50, 0.25) == 0.5);
	CHECK(td_curve_smallest_share(&one_line, 40, 0.25) == 1);
	CHECK(td_curve_smallest_share(&one_line, 39.5, 0.25) > 1);
	CHECK(td_curve_smallest_share(&hyperbola, 40, 0.25) == 1);
	CHECK(td_curve_smallest_share(&hyperbola, 39.5, 0.25) > 1);
	CHECK(td_curve_smallest_share(&hyperbola, 8, 0.25) > 1);
}

TEST(the_smallest_share_agrees_with_a_search_of_all)
{
	uint64_t seed = 31;

	for (int run = 0; run < 3000; run++) {
		struct td_curve curve = {.form = run & 1 ? TD_CURVE_HYPERBOLA : TD_CURVE_PIECEWISE};
		double limit = 100 * random_unit(&seed), least = 0.01 + 0.5 * random_unit(&seed);
		double found = 2, got;

		if (run & 1) {
			curve.a = 50 * random_unit(&seed);
			curve.b = 20 * random_unit(&seed);
		} else {
			curve.knee_x = 0.1 + random_unit(&seed);
			curve.knee_y = 60 * random_unit(&seed);
			curve.left_slope = -300 * random_unit(&seed) + 30;
			curve.right_slope = -60 * random_unit(&seed) + 20;
		}
		for (double x = least; x <= 1; x += 1e-4)
			if (td_curve_at(&curve, x) <= limit) {
				found = x;
				break;
			}
		got = td_curve_smallest_share(&curve, limit, least);
		CHECK(got > 1 || td_curve_at(&curve, got) <= limit + 1e-9);
		CHECK(got <= found + 1e-9);
		CHECK(found > 1 || near(got, found, 2e-4));
	}
}

TEST(what_is_no_curve_is_refused)
{
	const double x[] = {0.1, 0.1, 0.2}, back[] = {0.2, 0.1, 0.3}, y[] = {3, 2, 1};
	const double bad[] = {3, NAN, 1}, zero[] = {0, 0.5, 1};
	struct td_curve curve;

	CHECK_EQ(td_curve_fit_piecewise(shares, bent, 2, &curve), -EINVAL);
	CHECK_EQ(td_curve_fit_hyperbola(shares, bent, 1, &curve), -EINVAL);
	CHECK_EQ(td_curve_fit_piecewise(x, y, 3, &curve), -EINVAL);
	CHECK_EQ(td_curve_fit_piecewise(back, y, 3, &curve), -EINVAL);
	CHECK_EQ(td_curve_fit_hyperbola(zero, y, 3, &curve), -EINVAL);
	CHECK_EQ(td_curve_fit_hyperbola(shares, bad, 3, &curve), -EINVAL);
}
