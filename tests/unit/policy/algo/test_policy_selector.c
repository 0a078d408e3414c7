/* The device of the least slope. */
#include "test.h"

#include <math.h>

#include "policy/algo/fit/selector.h"
#include "policy_random.h"

TEST(the_score_is_the_mean_magnitude_over_batches)
{
	const struct td_curve curves[2] = {
		{.form = TD_CURVE_PIECEWISE, .left_slope = -8, .right_slope = -2},
		{.form = TD_CURVE_PIECEWISE, .left_slope = -4, .right_slope = 2},
	};

	CHECK(fabs(td_selector_score(curves, 2) - 4) < 1e-12);
	CHECK(isinf(td_selector_score(curves, 0)));
}

TEST(the_least_slope_wins_among_those_that_can_take_it)
{
	const double scores[] = {5, 3, 1};
	struct td_selector_device devices[] = {
		{.service = 0, .accepts = true, .free_bytes = 100},
		{.service = 1, .accepts = true, .free_bytes = 100},
		{.service = 2, .accepts = false, .free_bytes = 100},
		{.service = 2, .accepts = true, .free_bytes = 10},
		{.service = 2, .accepts = true, .free_bytes = 100, .tasks = 1},
	};

	CHECK_EQ(td_selector_choose(devices, 5, scores, 50, 1), 1);
	CHECK_EQ(td_selector_choose(devices, 5, scores, 50, TD_SELECTOR_TASKS_MAX), 4);
	CHECK_EQ(td_selector_choose(devices, 5, scores, 5, 3), 3); /* fewer tasks, same service */
	CHECK_EQ(td_selector_choose(devices, 5, scores, 101, 3), UINT32_MAX);
}

TEST(a_service_without_a_prediction_is_left_alone)
{
	const double scores[] = {NAN, 9};
	const struct td_selector_device devices[] = {
		{.service = 0, .accepts = true}, {.service = 1, .accepts = true}};

	CHECK_EQ(td_selector_choose(devices, 2, scores, 0, 3), 1);
}

TEST(no_device_is_better_than_the_chosen_one)
{
	uint64_t seed = 13;

	for (int run = 0; run < 500; run++) {
		struct td_selector_device devices[50];
		double scores[6];
		uint32_t chosen;

		for (int s = 0; s < 6; s++)
			scores[s] = 1 + random_below(&seed, 4);
		for (int d = 0; d < 50; d++)
			devices[d] = (struct td_selector_device){
				.service = random_below(&seed, 6),
				.tasks = random_below(&seed, 5),
				.accepts = random_below(&seed, 3),
				.free_bytes = random_below(&seed, 100),
			};
		chosen = td_selector_choose(devices, 50, scores, 40, 3);
		for (int d = 0; d < 50; d++) {
			if (!devices[d].accepts || devices[d].tasks >= 3 ||
				devices[d].free_bytes < 40)
				continue;
			CHECK(chosen != UINT32_MAX && devices[chosen].accepts);
			CHECK(scores[devices[chosen].service] <= scores[devices[d].service]);
			if (scores[devices[chosen].service] < scores[devices[d].service])
				continue;
			CHECK(devices[chosen].tasks <= devices[d].tasks);
			CHECK(devices[chosen].tasks < devices[d].tasks || chosen <= (uint32_t)d);
		}
	}
}
