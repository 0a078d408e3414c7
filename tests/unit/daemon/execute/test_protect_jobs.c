/*
 * The promise about a guaranteed job's speed for other jobs than in test_protect.c: with noise,
 * phases, lies, unknown steps, changing pauses, or beside another one; and the time at which
 * besteffort work comes.
 */
#include "unit/daemon/execute/protect_cases.h"

/* The job's own noise is not besteffort's doing. */
TEST(a_noisy_job_keeps_its_speed_within_a_wider_slack)
{
	static const double noises[] = {0.02, 0.05, 0.1};

	for (unsigned i = 0; i < 3; i++)
		for (unsigned told = 0; told < 2; told++) {
			struct pm_settings s = training("tandem", told, true, 4);

			s.slack = "5%";
			s.phases[0].noise = noises[i];
			struct pm_judgement j = judge(s, SETTLE, JUDGED);

			printf("# noise %g: %.2f%% of the steps within 5%%, median %.2f%%, %.1f%% "
			       "of what is left\n",
				noises[i], 100 * j.within_slack, 100 * j.median,
				100 * j.of_what_is_left);
			/* where single steps vary as much as the slack is wide, the mean is kept */
			CHECK(j.within_slack >= (noises[i] < 0.1 ? 0.95 : 0.8));
			CHECK(j.median < 0.05);
			CHECK(j.of_what_is_left >= 0.9);
		}
}

static uint32_t cuts(uint32_t from, uint32_t to)
{
	uint32_t n = 0;

	for (uint32_t i = from + 1; i < to; i++)
		n += run.duty_ppm[i] < run.duty_ppm[i - 1] / 2;
	return n;
}

/*
 * AntMan's figure 4: training, a decoding that fills the GPU, a synthesis on the CPU, training
 * again.
 */
TEST(phases_of_other_work_cost_neither_side_what_was_reached)
{
	for (unsigned v = 0; v < 4; v++) {
		struct pm_settings s = training(v & 1 ? "tandem" : "antman", v & 2, false, 2);
		uint32_t round = 302;

		s.phases[0].steps = 300;
		s.phases[1] = (struct pm_phase){.steps = 1,
			.host_ns = 20 * MS,
			.kernel_ns = 5 * MS,
			.kernels = 2000,
			.function = 100,
			.silent = true};
		s.phases[2] = (struct pm_phase){.steps = 1,
			.host_ns = 10000 * MS,
			.kernel_ns = MS,
			.kernels = 1,
			.function = 200,
			.silent = true};
		s.phase_count = 3;
		struct pm_judgement j = judge(s, 2 * round, 4 * round);

		printf("# %s, %s: %.2f%% within 1%%, %.1f%% of what is left, %u cuts\n", s.policy,
			s.told ? "told" : "found", 100 * j.within_1, 100 * j.of_what_is_left,
			cuts(2 * round, 6 * round));
		CHECK(j.within_1 >= 0.97);
		CHECK(cuts(2 * round, 6 * round) < 4 * round / 25);
		if (!strcmp(s.policy, "tandem"))
			CHECK(j.of_what_is_left >= 0.9);
	}
}

/*
 * Steps of 400 and 260 ms in turn, 50 of each: each length has a baseline and a duty of its own,
 * and a change from one to the other costs neither side its progress.
 */
TEST(pauses_that_alternate_do_not_make_the_duty_oscillate)
{
	for (unsigned v = 0; v < 8; v++) {
		struct pm_settings s = training(v & 4 ? "tandem" : "antman", v & 1, v & 2, 2);
		struct pm_judgement j;
		uint32_t cut = 0;

		s.phases[0].steps = 50;
		s.phases[1] = s.phases[0];
		s.phases[1].host_ns = 60 * MS;
		s.phase_count = 2;
		j = judge(s, SETTLE, 1600);
		/* Within a length; each has its own. */
		for (uint32_t i = SETTLE; i < SETTLE + 1600; i++)
			cut += i % 50 > 1 && run.duty_ppm[i] < run.duty_ppm[i - 1] / 2;
		printf("# pauses of 200 and 60 ms, %u cuts: ", cut);
		show(&s, &j);
		CHECK(j.within_1 >= 0.99);
		CHECK(cut <= 8);
		CHECK(j.of_what_is_left >= (v & 4 ? 0.9 : v & 2 ? 0.005 : 0.4));
		CHECK(!run.closed);
	}
}

/* Figure 3: nothing for the GPU at first, then all at once. */
TEST(a_surge_is_served_at_once)
{
	for (unsigned told = 0; told < 2; told++) {
		struct pm_settings s = training("tandem", told, true, 3);
		uint32_t late = 0;

		s.phases[0].steps = 10000;
		s.phases[1] = s.phases[0];
		s.phases[0] = (struct pm_phase){.steps = 30,
			.host_ns = 2000 * MS,
			.kernel_ns = MS,
			.kernels = 1,
			.function = 300,
			.silent = true};
		s.phase_count = 2;
		(void)judge(s, 30, 200);
		for (uint32_t i = 30; i < 230; i++)
			late += run.step_ns[i] > alone.step_ns[i] / 20 * 21;
		printf("# %u of 200 steps from the surge on are more than 5%% longer\n", late);
		CHECK(late <= 2);
	}
}

/* By its time alone the guaranteed job's steps are known; what besteffort work costs is not. */
TEST(besteffort_work_that_arrives_later_starts_at_the_floor)
{
	for (unsigned v = 0; v < 8; v++) {
		struct pm_settings s = training(v & 4 ? "tandem" : "antman", v & 1, v & 2, 3);
		struct pm_judgement j;

		s.join_step = 300;
		j = judge(s, 300, 200);
		printf("# %s, %s, %s: from the arrival on %.1f%% within 1%%, worst %.1f%% longer\n",
			s.policy, s.told ? "told" : "found",
			s.waits ? "kernel by kernel" : "queued", 100 * j.within_1, 100 * j.most);
		CHECK(j.within_1 >= 0.9); /* where the duty ends is still tried out */
		CHECK(j.most < 0.03);
	}
}

static void says_ever_more(struct td_msg_step *step, uint64_t now_ns)
{
	(void)now_ns;
	step->step_ns += step->steps * MS;
}

static void says_nothing_takes_time(struct td_msg_step *step, uint64_t now_ns)
{
	(void)now_ns;
	step->step_ns = 1;
	step->steps *= 1000;
}

static void says_anything(struct td_msg_step *step, uint64_t now_ns)
{
	static uint64_t seed = 99;

	step->step_ns = random_next(&seed) >> random_below(&seed, 63);
	step->steps = random_next(&seed) >> random_below(&seed, 63);
	step->began_ns = now_ns + random_next(&seed) % (1000 * MS) - 500 * MS;
	step->unit = random_below(&seed, 3);
}

/*
 * Only reported steps can be lies: steps that are found follow the launches. Lies keep besteffort
 * work at the floor while the job has work, as constant work would; in its pauses they do nothing.
 */
TEST(a_job_that_lies_starves_nobody)
{
	static void (*const lies[])(struct td_msg_step * step, uint64_t now_ns) = {
		says_ever_more, says_nothing_takes_time, says_anything};

	for (unsigned i = 0; i < 3; i++)
		for (unsigned p = 0; p < 2; p++) {
			struct pm_settings s = training(p ? "tandem" : "antman", true, true, 6);

			s.lie = lies[i];
			struct pm_judgement j = judge(s, 50, 500);

			printf("# lie %u, %s: besteffort has %.2f%% of the time\n", i, s.policy,
				100 * j.share);
			CHECK(!run.closed);
			CHECK(j.share >= (p ? 0.1 : 0.001));
		}
}

/*
 * Judged from the 60th step on, and against the median of its steps alone, so that their own noise
 * counts too: here 0.2 % of a step of a second.
 */
TEST(what_a_rise_might_cost_is_not_tried_out_on_a_job_that_has_just_settled)
{
	for (unsigned v = 0; v < 4; v++) {
		double within = 0;

		for (uint64_t seed = 1; seed <= 10; seed++) {
			struct pm_settings s = training("tandem", v & 1, v & 2, seed);
			struct pm_judgement j;

			s.fill_ns = 2 * MS;
			s.phases[0].host_ns = 500 * MS;
			s.phases[0].kernels = 100;
			s.phases[0].noise = 0.004;
			j = judge(s, 60, 240);
			within += j.within_1_of_median / 10;
			CHECK(j.of_what_is_left >= 0.9);
		}
		printf("# %s, %s: %.2f%% within 1%% of the median alone\n",
			v & 1 ? "told" : "found", v & 2 ? "kernel by kernel" : "queued",
			100 * within);
		CHECK(within >= 0.97);
	}
}

/*
 * Runs 1000 steps of a job whose steps are unknown for some time: before they are found, after the
 * program's last, or always.
 */
static struct pm_judgement judge_unknown(
	const char *policy, unsigned variant, uint32_t from, uint32_t to, double noise)
{
	struct pm_settings s = training(policy, variant & 1, variant & 2, 7);
	struct pm_judgement j;

	s.known_from = from;
	s.known_to = to;
	s.phases[0].noise = noise;
	j = judge(s, 10, 1000);
	printf("# %s, known from %u to %u, noise %g, %s: %.2f%% within 1%%, %.2f%% within 5%%, "
	       "median "
	       "%.2f%%, worst %.1f%%, %.1f%% of what is left\n",
		policy, from, to, noise, variant & 2 ? "kernel by kernel" : "queued",
		100 * j.within_1, 100 * j.within_slack, 100 * j.median, 100 * j.most,
		100 * j.of_what_is_left);
	CHECK(!run.closed);
	return j;
}

TEST(a_job_whose_steps_nobody_knows_is_protected_by_the_floor_and_its_pauses_are_filled)
{
	static const uint32_t from[] = {UINT32_MAX, 300, 0};

	for (unsigned i = 0; i < 3; i++)
		for (unsigned v = 0; v < 4; v++) {
			struct pm_judgement j =
				judge_unknown("tandem", v, from[i], i < 2 ? 0 : 300, 0.005);

			CHECK(j.within_1 >= 0.99);
			CHECK(j.most < 0.03);
			CHECK(j.of_what_is_left >= 0.9);
			/*
			 * The job's own noise changes nothing, because nothing is decided by its
			 * times.
			 */
			j = judge_unknown("tandem", v, from[i], i < 2 ? 0 : 300, 0.1);
			CHECK(j.median < 0.01);
			CHECK(j.of_what_is_left >= 0.9);
		}
	for (unsigned v = 0; v < 4; v++)
		CHECK(judge_unknown("antman", v, UINT32_MAX, 0, 0.005).within_1 >= 0.99);
}

/*
 * Besteffort work is there from the first step on, but idle, so nothing shows what it would cost.
 */
TEST(besteffort_work_that_begins_after_long_idleness_finds_no_duty_that_nothing_had_tested)
{
	for (unsigned v = 0; v < 4; v++) {
		struct pm_settings s = training(v & 2 ? "tandem" : "antman", v & 1, false, 3);
		struct pm_judgement j;

		s.fill_step = 600;
		j = judge(s, 600, 200);
		printf("# %s, %s: from the first work on %.1f%% within 1%%, worst %.1f%% longer\n",
			s.policy, s.told ? "told" : "found", 100 * j.within_1, 100 * j.most);
		CHECK(j.within_1 >= 0.9);
		CHECK(j.most < 0.05);
	}
}

static double mean_ms(const struct pm_result *result, uint32_t from)
{
	return (double)(result->ended_ns[result->steps - 1] - result->ended_ns[from - 1]) /
	       (result->steps - from) / MS;
}

/*
 * No single step time shows what both jobs bear: besteffort work has the least of their floors
 * while one of them works, and under tandem all of the GPU where both pause. The test compares
 * means with those of both jobs without besteffort work, because it is chance which of the two
 * disturbs the other at a time.
 */
TEST(two_guaranteed_jobs_keep_their_speed_beside_besteffort_work)
{
	static struct pm_result second, second_alone;

	for (unsigned v = 0; v < 8; v++) {
		bool pauses = v & 4;
		struct pm_settings s = training(pauses ? "tandem" : "antman", v & 1, v & 2, 8);
		double first_longer, second_longer, share;
		uint32_t above = 0;

		s.second = (struct pm_phase){.steps = 1,
			.host_ns = 260 * MS,
			.kernel_ns = 5 * MS,
			.kernels = 10,
			.function = 500,
			.noise = 0.005};
		s.second_result = &second;
		(void)judge(s, 100, 1500);
		s.second_result = &second_alone;
		s.policy = NULL;
		pm_run(&s, 1600, &alone);
		for (uint32_t i = 100; i < 1600; i++)
			above += run.duty_ppm[i] != 2000;
		first_longer = mean_ms(&run, 100) / mean_ms(&alone, 100) - 1;
		second_longer = mean_ms(&second, 100) / mean_ms(&second_alone, 100) - 1;
		share = (double)(run.filled_ns[1599] - run.filled_ns[99]) /
			(double)(run.ended_ns[1599] - run.ended_ns[99]);
		printf("# %s, %s, %s: %.2f%% and %.2f%% longer, besteffort has %.1f%% of the time, "
		       "%u steps end with another duty than the floor\n",
			pauses ? "tandem" : "antman", v & 1 ? "told" : "found",
			v & 2 ? "kernel by kernel" : "queued", 100 * first_longer,
			100 * second_longer, 100 * share, above);
		CHECK(first_longer < 0.01);
		CHECK(second_longer < 0.01);
		CHECK_EQ(above, 0);
		CHECK(share >= (pauses ? 0.2 : 0.001));
		CHECK(!run.closed);
	}
}
