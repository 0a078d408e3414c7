/* Speeds of jobs side by side, by turns, and short of memory. */
#include "test.h"

#include <math.h>

#include "model/contention.h"
#include "policy_random.h"

static const struct td_contention side_by_side = {.capped_pressure = 1};
static const struct td_contention turns = {.proportional = true, .capped_pressure = 1};

static bool near(double a, double b)
{
	return fabs(a - b) < 1e-9;
}

TEST(alone_on_the_whole_gpu_the_speed_is_one)
{
	struct td_contender job = {.sensitivity = 2,
		.pressure = 3,
		.host = 1,
		.serial = 0.2,
		.share = 1,
		.duty = 1,
		.demand = 0.7};
	double speed;

	td_contention_speeds(&side_by_side, &job, 1, &speed);
	CHECK(near(speed, 1));
	td_contention_speeds(&turns, &job, 1, &speed);
	CHECK(near(speed, 1));
}

TEST(two_jobs_slow_each_other_down_as_the_formula_says)
{
	struct td_contender jobs[2] = {td_contender_neutral, td_contender_neutral};
	double speeds[2];

	jobs[0].sensitivity = 0.5;
	jobs[0].host = 0.2;
	jobs[1].pressure = 2;
	jobs[1].host = 0.1;
	td_contention_speeds(&side_by_side, jobs, 2, speeds);
	CHECK(near(speeds[0], 1 / (1 + 0.5 * 2 + 0.2 * 0.1)));
	CHECK(near(speeds[1], 1 / (1 + 0.2 * 0.1)));
}

TEST(a_share_costs_what_its_curve_says_and_presses_less)
{
	struct td_contender jobs[2] = {td_contender_neutral, td_contender_neutral};
	struct td_contention doubled = {.capped_pressure = 2};
	double speeds[2];

	jobs[0].sensitivity = 1;
	jobs[1].pressure = 1;
	jobs[1].serial = 0.25;
	jobs[1].share = 0.5;
	td_contention_speeds(&side_by_side, jobs, 2, speeds);
	CHECK(near(speeds[1], 1 / (0.25 + 0.75 / 0.5)));
	CHECK(near(speeds[0], 1 / (1 + speeds[1])));
	td_contention_speeds(&doubled, jobs, 2, speeds);
	CHECK(near(speeds[0], 1 / (1 + 2 * speeds[1])));
}

TEST(a_duty_scales_speed_and_pressure)
{
	struct td_contender jobs[2] = {td_contender_neutral, td_contender_neutral};
	double speeds[2];

	jobs[0].sensitivity = 1;
	jobs[1].pressure = 1;
	jobs[1].duty = 0.25;
	td_contention_speeds(&side_by_side, jobs, 2, speeds);
	CHECK(near(speeds[0], 1 / 1.25));
	CHECK(near(speeds[1], 0.25));
}

TEST(turns_are_max_min_fair)
{
	double demands[4] = {0.1, 0.5, 0.9, 0.2}, parts[4];

	td_fair_parts(demands, 4, parts);
	CHECK(near(parts[0], 0.1));
	CHECK(near(parts[3], 0.2));
	CHECK(near(parts[1], 0.35));
	CHECK(near(parts[2], 0.35));
	td_fair_parts(demands, 2, parts);
	CHECK(near(parts[0], 0.1));
	CHECK(near(parts[1], 0.5));
}

TEST(more_company_makes_nobody_faster)
{
	uint64_t seed = 5;

	for (int round = 0; round < 2000; round++) {
		struct td_contender jobs[5];
		double before[5], after[5];
		const struct td_contention *how = round % 2 ? &turns : &side_by_side;

		for (int i = 0; i < 5; i++)
			jobs[i] = (struct td_contender){random_unit(&seed), random_unit(&seed),
				random_unit(&seed), random_unit(&seed),
				0.05 + 0.95 * random_unit(&seed), 0.05 + 0.95 * random_unit(&seed),
				0.05 + 0.95 * random_unit(&seed)};
		td_contention_speeds(how, jobs, 4, before);
		td_contention_speeds(how, jobs, 5, after);
		for (int i = 0; i < 4; i++)
			CHECK(after[i] > 0 && after[i] <= before[i] + 1e-12 && before[i] <= 1);
	}
}

TEST(missing_memory_slows_down_in_proportion)
{
	CHECK(near(td_spilled_speed(100, 100, 5), 1));
	CHECK(near(td_spilled_speed(100, 200, 5), 1));
	CHECK(near(td_spilled_speed(100, 60, 5), 1. / 3));
	CHECK(near(td_spilled_speed(100, 0, 5), 1. / 6));
	CHECK(near(td_thrash_slowdown(100, 100, 8), 1));
	CHECK(near(td_thrash_slowdown(150, 100, 8), 4.5));
	CHECK(near(td_thrash_slowdown(900, 100, 8), 8));
	CHECK(near(td_thrash_slowdown(1, 0, 8), 8));
}
