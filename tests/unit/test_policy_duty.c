/* The step-time feedback, against a guaranteed job that suffers from the duty it is given. */
#include "test.h"

#include "policy/duty.h"
#include "policy_random.h"

#define MS  1000000ull
#define PPM 1000000u

static struct td_duty duty;
static struct td_duty_input input;
static struct td_duty_output out;
static uint64_t now;

static void start(void)
{
	memset(&duty, 0, sizeof(duty));
	now = 1000 * MS;
	input = (struct td_duty_input){.guaranteed = true, .busy = true, .job = 1};
	out = td_duty_step(&duty, &td_duty_default, &input, now);
}

/* One step of the guaranteed job that takes so long. */
static void finish_step(uint64_t ns)
{
	input.step_began_ns = now;
	now += ns;
	input.steps++;
	input.step_ns = ns;
	input.step_began_ns = now;
	out = td_duty_step(&duty, &td_duty_default, &input, now);
}

static void finish_steps(int n, uint64_t ns)
{
	while (n--)
		finish_step(ns);
}

/* The first step is not judged; one round finds the baseline, four give the memory. */
static void reach_compute(void)
{
	start();
	finish_steps(1 + 5 + 4 * 5, 100 * MS);
	CHECK_EQ(duty.phase, TD_DUTY_COMPUTE);
}

TEST(without_a_guaranteed_job_nothing_is_limited)
{
	start();
	input.guaranteed = false;
	out = td_duty_step(&duty, &td_duty_default, &input, now);
	CHECK_EQ(out.duty_ppm, PPM);
	CHECK_EQ(out.memory_ppm, PPM);
}

TEST(an_arrival_cuts_besteffort_to_the_floor_at_once)
{
	start();
	CHECK_EQ(out.duty_ppm, 20000);
	CHECK_EQ(out.memory_ppm, 0);
	reach_compute();
	finish_steps(20, 100 * MS);
	input.job = 2;
	out = td_duty_step(&duty, &td_duty_default, &input, now);
	CHECK_EQ(out.duty_ppm, 20000);
	CHECK_EQ(out.memory_ppm, 0);
}

TEST(memory_is_given_back_before_compute_and_both_in_steps)
{
	start();
	finish_steps(1 + 5, 100 * MS);
	CHECK_EQ(duty.phase, TD_DUTY_MEMORY);
	for (uint32_t quarter = 1; quarter <= 4; quarter++) {
		finish_steps(5, 100 * MS);
		CHECK_EQ(out.memory_ppm, quarter * 250000);
		CHECK_EQ(out.duty_ppm, 20000);
	}
	for (uint32_t i = 1; i <= 19; i++) {
		finish_steps(5, 100 * MS);
		CHECK_EQ(out.duty_ppm, 20000 + i * 50000);
	}
	finish_steps(50, 100 * MS);
	CHECK_EQ(out.duty_ppm, PPM);
}

TEST(an_unsettled_job_keeps_besteffort_at_the_floor)
{
	start();
	for (int i = 0; i < 50; i++)
		finish_step((100 + 50 * (i % 3)) * MS);
	CHECK_EQ(duty.phase, TD_DUTY_FLOOR);
	CHECK_EQ(out.duty_ppm, 20000);
}

TEST(one_step_too_long_cuts_at_once)
{
	reach_compute();
	finish_steps(10 * 5, 100 * MS);
	CHECK_EQ(out.duty_ppm, 520000);
	finish_step(105 * MS); /* within the slack */
	CHECK_EQ(out.duty_ppm, 520000);
	finish_step(106 * MS);
	CHECK_EQ(out.duty_ppm, 20000);
	CHECK_EQ(out.memory_ppm, PPM); /* compute did it: memory stays */
}

TEST(a_step_that_does_not_end_cuts_without_waiting_for_its_end)
{
	reach_compute();
	finish_steps(10 * 5, 100 * MS);
	now += 104 * MS;
	out = td_duty_step(&duty, &td_duty_default, &input, now);
	CHECK_EQ(out.duty_ppm, 520000);
	now += 2 * MS;
	out = td_duty_step(&duty, &td_duty_default, &input, now);
	CHECK_EQ(out.duty_ppm, 20000);
}

TEST(after_a_cut_the_duty_doubles_to_a_step_below_what_failed_and_waits_there)
{
	static const uint32_t want[] = {70000, 140000, 280000, 470000, 470000, 520000, 570000};

	reach_compute();
	finish_steps(10 * 5, 100 * MS);
	finish_step(200 * MS);
	finish_steps(5, 100 * MS); /* settled again */
	finish_steps(5, 100 * MS); /* all memory is given still */
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		finish_steps(5, 100 * MS);
		CHECK_EQ(out.duty_ppm, want[i]);
	}
}

TEST(tensors_on_the_host_take_the_memory_back)
{
	reach_compute();
	input.host_bytes = 1;
	out = td_duty_step(&duty, &td_duty_default, &input, now);
	CHECK_EQ(out.memory_ppm, 0);
	CHECK_EQ(out.duty_ppm, 20000);
}

TEST(while_the_guaranteed_job_computes_on_the_cpu_besteffort_has_the_gpu)
{
	reach_compute();
	finish_steps(10, 100 * MS);
	uint32_t reached = out.duty_ppm;
	input.busy = false;
	now += 60000 * MS;
	out = td_duty_step(&duty, &td_duty_default, &input, now);
	CHECK_EQ(out.duty_ppm, PPM);
	input.busy = true;
	input.step_began_ns = now;
	out = td_duty_step(&duty, &td_duty_default, &input, now);
	CHECK_EQ(out.duty_ppm, reached);
}

TEST(steps_that_are_longer_for_good_become_the_baseline)
{
	reach_compute();
	finish_steps(5 * 5, 100 * MS);
	finish_steps(200, 150 * MS);
	CHECK(duty.baseline_ns == 150 * MS);
	CHECK(out.duty_ppm > 500000);
}

TEST(a_profile_of_the_job_alone_is_the_baseline)
{
	start();
	input.alone_step_ns = 90 * MS;
	finish_steps(1 + 5, 100 * MS);
	CHECK_EQ(duty.phase, TD_DUTY_FLOOR); /* 100 is more than 90 + 5 % */
	CHECK(duty.baseline_ns == 90 * MS);
}

/*
 * A job of 100 ms alone whose steps take longer by a share of the duty beyond its own idle time, and noise of half a percent.
 * With slack 5 % and slowdown 0.2 per unit of duty beyond 0.3, the duty that it can bear is 0.3 + 0.05 / 0.2 = 0.55.
 */
TEST(the_job_is_protected_and_besteffort_gets_what_it_can_bear)
{
	uint64_t seed = 3, steps_ns = 0;
	double duty_sum = 0;
	int n = 3000;

	start();
	for (int i = 0; i < n; i++) {
		double excess = out.duty_ppm / 1e6 - 0.3;
		double slow = 1 + (excess > 0 ? 0.2 * excess : 0) + 0.005 * random_unit(&seed);

		duty_sum += out.duty_ppm / 1e6;
		finish_step((uint64_t)(100e6 * slow));
		steps_ns += input.step_ns;
	}
	printf("# mean step %.2f ms, mean duty %.3f\n", (double)steps_ns / n / 1e6, duty_sum / n);
	CHECK((double)steps_ns / n < 105e6); /* the slack */
	CHECK(duty_sum / n > 0.4);
}

TEST(duty_never_starves_and_never_exceeds_all)
{
	uint64_t seed = 17;

	start();
	for (int i = 0; i < 200000; i++) {
		input.guaranteed = random_below(&seed, 16);
		input.busy = random_below(&seed, 4);
		input.job = random_below(&seed, 64) ? input.job : random_below(&seed, 3);
		input.host_bytes = random_below(&seed, 16) ? 0 : random_next(&seed);
		input.step_ns = random_below(&seed, 64) ? 100 * MS + random_below(&seed, 7) * MS
							: random_next(&seed);
		input.steps += random_below(&seed, 2);
		input.step_began_ns = random_below(&seed, 4) ? now : random_next(&seed);
		now += random_below(&seed, 200) * MS;
		out = td_duty_step(&duty, &td_duty_default, &input, now);
		CHECK(out.duty_ppm >= 20000 && out.duty_ppm <= PPM && out.memory_ppm <= PPM);
		CHECK(duty.times <= TD_DUTY_STEPS_MAX);
	}
}
