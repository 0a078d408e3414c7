/* The step-time feedback, against a guaranteed job that suffers from the duty it is given. */
#include "test.h"

#include "unit/policy/algo/duty_world.h"

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

/*
 * AntMan 3.3: "when an opportunistic job arrives on a shared GPU, the local coordinator raises its
 * GPU resource usage in a step-like fashion".
 */
TEST(with_no_besteffort_work_nothing_rises_and_the_first_that_arrives_starts_at_the_floor)
{
	start();
	input.company = 0;
	finish_steps(500, 100 * MS);
	CHECK(duty.baseline_ns == 100 * MS); /* from its time alone */
	CHECK_EQ(out.duty_ppm, 20000);
	input.company = 1;
	out = td_duty_step(&duty, &td_duty_default, &input, now);
	CHECK_EQ(out.duty_ppm, 20000);
	finish_steps(5, 100 * MS);
	CHECK_EQ(out.duty_ppm, 70000);
}

TEST(a_further_besteffort_job_starts_at_the_floor_and_doubles_to_what_was_reached)
{
	static const uint32_t want[] = {70000, 140000, 280000, 520000, 570000};

	reach_compute();
	finish_steps(10 * 5, 100 * MS);
	CHECK_EQ(out.duty_ppm, 520000);
	input.company = 2;
	out = td_duty_step(&duty, &td_duty_default, &input, now);
	CHECK_EQ(out.duty_ppm, 20000);
	CHECK_EQ(out.memory_ppm, PPM);
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		finish_steps(5, 100 * MS);
		CHECK_EQ(out.duty_ppm, want[i]);
	}
	input.company = 1; /* who leaves takes nothing along */
	out = td_duty_step(&duty, &td_duty_default, &input, now);
	CHECK_EQ(out.duty_ppm, 570000);
}

TEST(nor_is_what_another_unit_had_reached_given_to_who_arrives)
{
	reach_compute();
	finish_steps(10 * 5, 100 * MS);
	input.unit = 7;
	finish_steps(100, 30 * MS);
	input.company = 2;
	input.unit = 0;
	finish_step(100 * MS);
	CHECK_EQ(out.duty_ppm, 20000);
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
 * A job of 100 ms alone whose steps take longer by a share of the duty beyond its own idle time,
 * and noise of half a percent. With slack 5 % and slowdown 0.2 per unit of duty beyond 0.3, it
 * bears a duty of 0.3 + 0.05 / 0.2 = 0.55.
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

/*
 * A larger batch or other data. No besteffort work makes steps ten times as long, so none of them
 * is its doing, but they are the job's steps from now on.
 */
TEST(steps_that_are_many_times_as_long_for_good_become_the_baseline_too)
{
	static const double factors[] = {0.1, 3, 10, 100};

	for (unsigned i = 0; i < 4; i++) {
		struct job job = {100, 0.5, 0.2, 0, 7};

		begin(10000);
		(void)live(&job, 600, 1, 10000);
		CHECK(out.duty_ppm > 400000);
		job.alone_ms *= factors[i];
		struct seen seen = live(&job, 600, 1000, 10000);

		printf("# %g times as long: duty %.3f, %u late\n", factors[i], seen.given,
			seen.late);
		CHECK(seen.given > 0.4);
		CHECK(seen.late <= 10);
	}
}

/* Each validation of a few steps is none. */
TEST(a_few_long_steps_in_a_row_change_nothing)
{
	reach_compute();
	finish_steps(10 * 5, 100 * MS);
	for (unsigned k = 0; k < 20; k++) {
		finish_steps(39, 5000 * MS);
		CHECK(out.duty_ppm >= 520000);
		CHECK(duty.baseline_ns == 100 * MS);
		finish_step(100 * MS);
	}
}

/* Slack 1 %: it can bear 0.3 + 0.01 / 0.2 = 0.35. */
TEST(a_slack_of_one_percent_is_kept_by_99_of_100_steps)
{
	struct job job = {100, 0.3, 0.2, 0, 5};

	begin(10000);
	struct seen seen = live(&job, 600, 2000, 10000);

	printf("# duty %.3f, mean %.2f ms, worst %.2f, late %u, cuts %u\n", seen.duty, seen.mean_ms,
		seen.worst_ms, seen.late, seen.cuts);
	CHECK(seen.late <= 20);
	CHECK(seen.worst_ms < 100 * 1.01 + 5);
	CHECK(seen.duty > 0.22);
}

TEST(a_job_that_bears_nothing_keeps_its_speed_all_the_same)
{
	struct job job = {100, 0, 1, 0, 5};

	begin(10000);
	struct seen seen = live(&job, 600, 2000, 10000);

	CHECK(seen.late <= 20);
	CHECK(seen.duty >= 0.002 && seen.duty < 0.02);
}

TEST(half_of_the_slack_is_left_for_what_no_duty_takes_away)
{
	struct job job = {100, 2, 0, 0, 1};

	begin(10000);
	(void)live(&job, 60, 1, 10000);
	uint32_t reached = out.duty_ppm;

	job.alone_ms = 100.7;
	(void)live(&job, 60, 1, 10000);
	CHECK_EQ(out.duty_ppm, reached);
	job.alone_ms = 100.4;
	(void)live(&job, 60, 1, 10000);
	CHECK(out.duty_ppm > reached);
}

/* No oscillation: what was found is kept, and tried beyond ever more rarely. */
TEST(once_settled_it_stays)
{
	for (uint64_t s = 1; s <= 30; s++) {
		struct job job = {
			50 + (double)s * 20, 0.02 * (double)s, 0.1 + 0.05 * (double)s, 0, s};

		begin(50000);
		struct seen seen = live(&job, 500, 2000, 50000);

		if (seen.cuts > 2000 / 150 || seen.late > 40)
			test_fail(__FILE__, __LINE__, "seed %d: %u cuts, %u late, duty %.3f",
				(int)s, seen.cuts, seen.late, seen.duty);
	}
}

/*
 * Besteffort work that costs nothing, while the job's own steps grow by half of its slack: the duty
 * does not suffer for it.
 */
TEST(steps_that_grow_a_little_by_themselves_do_not_keep_the_duty_down)
{
	double mean = 0;

	for (uint64_t s = 1; s <= 10; s++) {
		struct job job = {100, 1, 0, 0.002, s};
		struct seen seen;

		begin(10000);
		(void)live(&job, 0, 150, 10000);
		job.alone_ms = 100.5;
		seen = live(&job, 2000, 4000, 10000);
		mean += seen.duty / 10;
	}
	printf("# mean duty %.2f\n", mean);
	CHECK(mean > 0.65);
}

/* Steps that vary by themselves are judged by their median, as long as that tells enough. */
TEST(noise_of_the_jobs_own_is_not_taken_for_harm)
{
	static const double noises[] = {0.005, 0.02, 0.05, 0.1};

	for (unsigned i = 0; i < 4; i++) {
		struct job job = {100, 0.4, 0.3, noises[i], i + 1};

		begin(50000);
		struct seen seen = live(&job, 2000, 6000, 50000);

		printf("# noise %g: duty %.3f, mean %.2f ms, cuts %u\n", noises[i], seen.duty,
			seen.mean_ms, seen.cuts);
		CHECK(seen.mean_ms < 105 + 100 * noises[i] / 4);
		CHECK(seen.duty > 0.25);
	}
}

TEST(noise_that_hides_the_slack_is_unstable_and_means_the_floor)
{
	struct job job = {100, 0.4, 0.3, 0.3, 9};

	begin(50000);
	struct seen seen = live(&job, 200, 2000, 50000);

	CHECK(seen.duty < 0.05);
}

/* Figures 3 and 4: a validation every 50 steps, of which the job says nothing. */
TEST(a_validation_does_not_cost_besteffort_what_was_reached)
{
	struct job job = {100, 0.5, 0.2, 0.002, 3};
	double duty_sum = 0;

	begin(50000);
	(void)live(&job, 500, 1, 50000);
	for (int epoch = 0; epoch < 40; epoch++) {
		struct job validation = job;

		validation.alone_ms = 3000;
		(void)live_through(&validation);
		duty_sum += live(&job, 0, 50, 50000).duty / 40;
	}
	printf("# duty %.3f\n", duty_sum);
	CHECK(duty_sum > 0.45);
}

TEST(nor_does_one_that_ends_without_a_step)
{
	reach_compute();
	finish_steps(10 * 5, 100 * MS);
	uint32_t reached = out.duty_ppm;

	finish_step(5000 * MS); /* nobody woke the policy in between */
	CHECK_EQ(out.duty_ppm, reached);

	now += 110 * MS;
	out = td_duty_step(&duty, &td_duty_default, &input, now);
	CHECK_EQ(out.duty_ppm, 20000);
	now += 5000 * MS;
	input.step_began_ns = now; /* what was found to be none is over */
	out = td_duty_step(&duty, &td_duty_default, &input, now);
	CHECK_EQ(out.duty_ppm, reached);
	/* but what besteffort work can have done stays a cut */
	now += 110 * MS;
	out = td_duty_step(&duty, &td_duty_default, &input, now);
	now += 50 * MS;
	input.step_began_ns = now;
	out = td_duty_step(&duty, &td_duty_default, &input, now);
	CHECK_EQ(out.duty_ppm, 20000);
}

TEST(steps_of_another_unit_have_a_baseline_and_a_duty_of_their_own)
{
	reach_compute();
	finish_steps(10 * 5, 100 * MS);
	uint32_t reached = out.duty_ppm;

	input.unit = 7;
	finish_steps(2, 30 * MS);
	CHECK_EQ(out.duty_ppm, 20000);
	finish_steps(40, 30 * MS);
	CHECK(duty.baseline_ns == 30 * MS);
	CHECK(out.duty_ppm > 20000);
	input.unit = 0;
	finish_step(100 * MS);
	CHECK_EQ(out.duty_ppm, reached);
	CHECK(duty.baseline_ns == 100 * MS);
	finish_steps(4, 100 * MS);
	CHECK(out.duty_ppm >= reached);
}

TEST(a_unit_that_ends_while_the_floor_is_looked_at_keeps_its_duty)
{
	reach_compute();
	finish_steps(10 * 5, 100 * MS);
	duty.look_ppm = duty.duty_ppm;
	duty.duty_ppm = 20000;
	duty.phase = TD_DUTY_FLOOR;
	uint32_t reached = duty.look_ppm;

	CHECK(reached > 20000);
	input.unit = 7;
	finish_steps(2, 30 * MS);
	input.unit = 0;
	finish_step(100 * MS);
	CHECK_EQ(out.duty_ppm, reached);
}

TEST(rounds_of_one_unit_are_not_averaged_with_those_of_another)
{
	reach_compute();
	for (unsigned k = 0; k < 12; k++) {
		input.unit = 0;
		finish_steps(200, 100 * MS);
		input.unit = 7;
		finish_steps(40, 20 * MS);
	}
	CHECK_EQ(out.duty_ppm, PPM);
	for (unsigned k = 0; k < 40; k++) {
		finish_steps(1, 20 * MS);
		CHECK_EQ(out.duty_ppm, PPM);
	}
}

TEST(the_pauses_of_the_first_steps_are_left_empty_for_a_while)
{
	start();
	finish_steps(2, 100 * MS);
	input.busy = false;
	now += 50 * MS;
	out = td_duty_step(&duty, &td_duty_default, &input, now);
	CHECK_EQ(out.duty_ppm, 20000);
	now += 400 * MS; /* it does something else than steps */
	out = td_duty_step(&duty, &td_duty_default, &input, now);
	CHECK_EQ(out.duty_ppm, PPM);
	input.busy = true;
	finish_steps(8, 100 * MS);
	input.busy = false;
	out = td_duty_step(&duty, &td_duty_default, &input, now);
	CHECK_EQ(out.duty_ppm, PPM);
}

TEST(nor_are_they_for_ever_where_no_baseline_is_found)
{
	start();
	for (int i = 0; i < 42; i++)
		finish_step((100 + 100 * (uint64_t)(i % 3)) * MS);
	CHECK_EQ(duty.baseline_ns, 0);
	input.busy = false;
	out = td_duty_step(&duty, &td_duty_default, &input, now);
	CHECK_EQ(out.duty_ppm, PPM);
}

/* Its times vary by themselves; its part of the memory does not. */
TEST(besteffort_work_gets_the_memory_although_no_baseline_is_found)
{
	start();
	for (int i = 0; i < 1 + 4 * TD_DUTY_STEPS_MAX; i++) {
		CHECK_EQ(out.memory_ppm, (uint32_t)(i ? (i - 1) / TD_DUTY_STEPS_MAX : 0) * 250000);
		finish_step((100 + 100 * (uint64_t)(i % 3)) * MS);
		CHECK_EQ(out.duty_ppm, 20000);
	}
	CHECK_EQ(duty.baseline_ns, 0);
	CHECK_EQ(out.memory_ppm, PPM);
}

/* An epoch may be taken for a step. */
TEST(nor_for_many_minutes)
{
	start();
	finish_steps(2, 100000 * MS);
	input.busy = false;
	now += 50000 * MS;
	out = td_duty_step(&duty, &td_duty_default, &input, now);
	CHECK_EQ(out.duty_ppm, PPM);
}

/* Its lies hurt only itself: besteffort work has its floor, and the effect of lies is bounded. */
TEST(a_job_that_lies_gains_nothing_and_breaks_nothing)
{
	uint64_t seed = 23;

	start();
	for (int i = 0; i < 20000;
		i++) { /* each step a half longer than the last, then short again */
		finish_step((100 + 50 * (uint64_t)(i % 8)) * MS);
		CHECK_EQ(out.duty_ppm, 20000);
	}
	begin(50000);
	for (int i = 0; i < 200000;
		i++) { /* steps go back, begin in the past or in the future, have any unit */
		input.steps = random_below(&seed, 4) ? input.steps + 1 : random_next(&seed);
		input.step_ns = random_below(&seed, 8)
					? 100 * MS
					: random_next(&seed) >> random_below(&seed, 64);
		input.step_began_ns = random_below(&seed, 8)
					      ? now
					      : random_next(&seed) >> random_below(&seed, 64);
		input.unit = random_below(&seed, 8) ? input.unit : random_below(&seed, 9);
		now += random_below(&seed, 200) * MS;
		params = td_duty_params_of(
			random_below(&seed, 2) * (1 + random_below(&seed, 1000000)));
		out = td_duty_step(&duty, &params, &input, now);
		CHECK(out.duty_ppm >= 1 && out.duty_ppm <= PPM && out.memory_ppm <= PPM);
		CHECK(duty.times <= TD_DUTY_STEPS_MAX);
		CHECK(td_duty_wakeup_ns(&duty, &params, &input, now) > now);
	}
}

TEST(duty_never_starves_and_never_exceeds_all)
{
	uint64_t seed = 17;

	start();
	for (int i = 0; i < 200000; i++) {
		input.guaranteed = random_below(&seed, 16);
		input.busy = random_below(&seed, 4);
		input.job = random_below(&seed, 64) ? input.job : random_below(&seed, 3);
		input.company = random_below(&seed, 64) ? input.company : random_below(&seed, 4);
		input.host_bytes = random_below(&seed, 16) ? 0 : random_next(&seed);
		input.step_ns = random_below(&seed, 64) ? 100 * MS + random_below(&seed, 7) * MS
							: random_next(&seed);
		input.steps += random_below(&seed, 2);
		input.step_began_ns = random_below(&seed, 4) ? now : random_next(&seed);
		input.unit = random_below(&seed, 32) ? input.unit : random_below(&seed, 7);
		now += random_below(&seed, 200) * MS;
		out = td_duty_step(&duty, &td_duty_default, &input, now);
		CHECK(out.duty_ppm >= 20000 && out.duty_ppm <= PPM && out.memory_ppm <= PPM);
		CHECK(duty.times <= TD_DUTY_STEPS_MAX);
	}
}
