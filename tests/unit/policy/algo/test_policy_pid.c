/* The PID controller against values worked out by hand, and on a plant. */
#include "test.h"

#include <float.h>
#include <math.h>

#include "policy/algo/control/pid.h"
#include "policy_random.h"

#define MS 1000000ull
#define S  1000000000ull

static const struct td_pid_params params = {
	.set_point = 0.5,
	.kp = 0.4,
	.ki = 1.0,
	.kd = 0.1,
	.bias_ppm = 200000,
	.min_ppm = 50000,
	.max_ppm = 900000,
	.max_gap_ns = S,
};

TEST(the_first_step_is_proportional)
{
	struct td_pid pid = {0};

	/* 0.2 + 0.4 x (0.5 - 0.25) = 0.3 */
	CHECK_EQ(td_pid_step(&pid, &params, 0.25, 7 * S), 300000);
}

TEST(the_second_step_integrates_and_damps)
{
	struct td_pid pid = {0};

	(void)td_pid_step(&pid, &params, 0.25, 7 * S);
	/*
	 * error 0.125 over 0.5 s: I = 0.0625; slope 0.125 / 0.5 = 0.25: 0.2 + 0.05 + 0.0625 - 0.025
	 * = 0.2875
	 */
	CHECK_EQ(td_pid_step(&pid, &params, 0.375, 7 * S + 500 * MS), 287500);
	/*
	 * no error, no slope beyond -0.125 / 0.5 of the way to 0.5: 0.2 + 0 + 0.0625 - 0.1 x 0.25 =
	 * 0.2375
	 */
	CHECK_EQ(td_pid_step(&pid, &params, 0.5, 8 * S), 237500);
}

TEST(time_that_does_not_count_gives_neither_slope_nor_integral)
{
	struct td_pid_params still = params;
	struct td_pid pid = {0};

	still.max_gap_ns = 0;
	(void)td_pid_step(&pid, &still, 0.25, 7 * S);
	/* 0.2 + 0.4 x (0.5 - 0.375) = 0.25 */
	CHECK_EQ(td_pid_step(&pid, &still, 0.375, 8 * S), 250000);
}

TEST(a_changed_set_point_is_no_kick_of_the_derivative)
{
	struct td_pid_params moved = params;
	struct td_pid pid = {0};

	moved.set_point = 0.75;
	(void)td_pid_step(&pid, &params, 0.5, S);
	/* 0.2 + 0.4 x 0.25 + 1.0 x 0.25 x 0.25 s = 0.3625 */
	CHECK_EQ(td_pid_step(&pid, &moved, 0.5, S + 250 * MS), 362500);
}

TEST(an_hour_of_overload_is_forgotten_as_fast_as_a_second)
{
	uint64_t after[2];

	for (int hours = 0; hours < 2; hours++) {
		struct td_pid pid = {0};
		uint64_t now = S, until = hours ? 3600 * S : 20 * S;

		for (; now < until; now += 100 * MS)
			(void)td_pid_step(&pid, &params, 1.0, now);
		CHECK_EQ(pid.duty_ppm, params.min_ppm);
		for (after[hours] = 0; pid.duty_ppm < 400000; after[hours]++)
			(void)td_pid_step(&pid, &params, 0.2, now += 100 * MS);
	}
	CHECK_EQ(after[0], after[1]);
	CHECK(after[0] < 12);
}

TEST(a_measurement_that_is_no_number_changes_nothing)
{
	struct td_pid pid = {0}, before;

	CHECK_EQ(td_pid_step(&pid, &params, __builtin_nan(""), S), 200000);
	(void)td_pid_step(&pid, &params, 0.25, S);
	before = pid;
	CHECK_EQ(td_pid_step(&pid, &params, __builtin_inf(), 2 * S), 300000);
	CHECK(!memcmp(&pid, &before, sizeof(pid)));
	CHECK_EQ(td_pid_step(&pid, &params, 0.9, S), 300000); /* time stands still */
	CHECK(!memcmp(&pid, &before, sizeof(pid)));
}

TEST(a_long_gap_counts_as_its_bound)
{
	struct td_pid a = {0}, b = {0};

	(void)td_pid_step(&a, &params, 0.4, S);
	(void)td_pid_step(&b, &params, 0.4, S);
	CHECK_EQ(td_pid_step(&a, &params, 0.4, 2 * S), td_pid_step(&b, &params, 0.4, 9000 * S));
}

/*
 * Load follows online + duty x demand with a lag of three samples: the controller has to find (0.5
 * - 0.2) / 0.8 = 0.375.
 */
TEST(it_settles_on_the_set_point)
{
	struct td_pid pid = {0};
	double load = 0.2;
	uint64_t now = S;

	for (int i = 0; i < 600; i++)
		load += 0.3 *
			(0.2 + 0.8 * td_pid_step(&pid, &params, load, now += 50 * MS) / 1e6 - load);
	CHECK(load > 0.499 && load < 0.501);
	CHECK(pid.duty_ppm > 374000 && pid.duty_ppm < 376000);
}

TEST(the_duty_stays_within_its_bounds_whatever_is_measured)
{
	uint64_t seed = 11, now = S;

	for (int run = 0; run < 200; run++) {
		struct td_pid_params p = params;
		struct td_pid pid = {0};

		p.kp = 10 * random_unit(&seed);
		p.ki = 100 * random_unit(&seed);
		p.kd = 10 * random_unit(&seed);
		for (int i = 0; i < 200; i++) {
			uint32_t duty = td_pid_step(&pid, &p, 1e3 * random_normal(&seed),
				now += random_next(&seed) % S);

			CHECK(duty >= p.min_ppm && duty <= p.max_ppm);
		}
	}
}

TEST(the_largest_numbers_do_no_harm)
{
	static const double measured[] = {DBL_MAX, -DBL_MAX, DBL_MAX, DBL_MAX, -DBL_MAX};
	struct td_pid_params p = params;
	struct td_pid pid = {0};
	uint64_t now = S;

	for (int kd = 0; kd < 2; kd++) {
		p.kd = kd;
		for (int k = 0; k < 20; k++) {
			uint32_t duty = td_pid_step(&pid, &p, measured[k % 5], now += 10 * MS);

			CHECK(duty >= p.min_ppm && duty <= p.max_ppm);
			CHECK(isfinite(pid.integral));
		}
	}
	for (int k = 0; k < 100; k++)
		td_pid_step(&pid, &p, p.set_point + 1, now += S);
	CHECK_EQ(pid.duty_ppm, p.min_ppm);
}

TEST(the_output_reaches_its_bounds_and_not_only_nearly)
{
	struct td_pid_params bounded = td_pid_muxflow;
	struct td_pid pid = {0};
	uint64_t now = 0;

	bounded.min_ppm = 20000;
	for (int k = 0; k < 1000; k++)
		td_pid_step(&pid, &bounded, 0.3, now += 10000000);
	CHECK(pid.duty_ppm >= 999999);
	for (int k = 0; k < 1000; k++)
		td_pid_step(&pid, &bounded, 1.4, now += 10000000);
	CHECK(pid.duty_ppm <= 20001);
}
