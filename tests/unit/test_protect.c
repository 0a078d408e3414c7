/*
 * What was promised of a guaranteed job's speed, shown where nothing but the policies decides: in the model of protect_world.h, which is no GPU. A machine's
 * noise hides it on softgpu (docs/results/protect.md).
 */
#include "test.h"

#include "protect_judge.h"

#define MS     TD_NS_PER_MS
#define SETTLE 700u
#define JUDGED 3000u

static struct pm_result alone, run;

/* Steps of 200 ms on the host and 200 ms on the GPU, as scripts/demo protect has them. */
static struct pm_settings training(const char *policy, bool told, bool waits, uint64_t seed)
{
	return (struct pm_settings){
		.policy = policy,
		.slack = "1%",
		.told = told,
		.waits = waits,
		.fill_ns = MS / 2,
		.seed = seed,
		.phases = {{.steps = 1,
			.host_ns = 200 * MS,
			.kernel_ns = 5 * MS,
			.kernels = 40,
			.noise = 0.005}},
		.phase_count = 1,
	};
}

static struct pm_judgement judge(struct pm_settings settings, uint32_t settle, uint32_t judged)
{
	struct pm_settings without = settings;

	without.policy = NULL;
	pm_run(&without, settle + judged, &alone);
	pm_run(&settings, settle + judged, &run);
	return pm_judge(&run, &alone, settle, settle + judged, 0.05);
}

static void show(const struct pm_settings *s, const struct pm_judgement *j)
{
	printf("# %s, %s, %s: %.2f%% of the steps within 1%%, %.1f%% of what is left, residual "
	       "%.2f ms\n",
		s->policy, s->told ? "told" : "found", s->waits ? "kernel by kernel" : "queued",
		100 * j->within_1, 100 * j->of_what_is_left, j->residual_most_ms);
}

/* 99 % of the steps within 1 % of alone, at least 90 % of what is left; a step waits at most for what is in flight when it launches. */
TEST(under_tandem_a_job_keeps_its_speed_and_leaves_nine_tenths)
{
	for (unsigned v = 0; v < 4; v++)
		for (uint64_t seed = 1; seed <= 3; seed++) {
			struct pm_settings s = training("tandem", v & 1, v & 2, seed);
			struct pm_judgement j = judge(s, SETTLE, JUDGED);

			show(&s, &j);
			CHECK(j.within_1 >= 0.99);
			CHECK(j.of_what_is_left >= 0.9);
			CHECK(j.residual_most_ms <= 2 + 0.5); /* half of the slack, and a kernel */
			CHECK(!run.closed);
		}
}

TEST(under_antman_a_job_keeps_its_speed_too)
{
	for (unsigned v = 0; v < 4; v++) {
		bool waits = v & 2;
		double left = 0;

		for (uint64_t seed = 1; seed <= 3; seed++) {
			struct pm_settings s = training("antman", v & 1, waits, seed);
			struct pm_judgement j = judge(s, SETTLE, JUDGED);

			show(&s, &j);
			CHECK(j.within_1 >= 0.99);
			CHECK(!run.closed);
			left += j.of_what_is_left / 3;
		}
		/* By duty alone: much where all is queued, next to nothing between kernels. How much depends on when a cut comes, so that a single run says little. */
		CHECK(left >= (waits ? 0.006 : 0.65));
	}
}

/* What is longer than the window is let into a pause where it will be over when that is. A pause of 200 ms, of which 3 go by until it is known. */
TEST(however_long_a_besteffort_kernel_is_it_is_over_when_the_pause_is)
{
	static const struct {
		double ms,
			left; /* of what is left: as many as a pause has room for, but for a twentieth */
	} kernels[] = {{1, 0.9}, {2, 0.9}, {4, 0.9}, {10, 0.9}, {20, 0.85}, {50, 0.7}, {100, 0.45}};

	for (unsigned k = 0; k < 7; k++)
		for (unsigned v = 0; v < 4; v++) {
			struct pm_settings s = training("tandem", v & 1, v & 2, 1);

			s.fill_ns = (uint64_t)(kernels[k].ms * MS);
			struct pm_judgement j = judge(s, SETTLE, 500);

			printf("# kernels of %g ms: ", kernels[k].ms);
			show(&s, &j);
			CHECK(j.within_1 >= 0.99);
			CHECK(j.of_what_is_left >= kernels[k].left);
			CHECK(!run.closed);
		}
}

/* Of several kinds: of each few have been seen, and all of a step's add up. */
TEST(pauses_of_several_kinds_in_a_step_are_told_apart)
{
	static const uint64_t kinds_ms[][4] = {
		{10, 30, 60, 150}, {20, 40, 80, 160}, {10, 14, 20, 150}, {20, 200, 20, 200}};
	static const uint64_t kernels_ms[] = {5, 15, 40};

	for (unsigned i = 0; i < 4; i++)
		for (unsigned k = 0; k < 3; k++) {
			struct pm_settings s = training("tandem", true, true, 1);

			s.fill_ns = kernels_ms[k] * MS;
			s.phases[0].parts = 4;
			s.phases[0].kernel_ns = 3 * MS;
			for (unsigned p = 0; p < 4; p++)
				s.phases[0].part_host_ns[p] = kinds_ms[i][p] * MS;
			struct pm_judgement j = judge(s, SETTLE, 500);

			printf("# pauses of %u, %u, %u and %u ms, kernels of %u: ",
				(unsigned)kinds_ms[i][0], (unsigned)kinds_ms[i][1],
				(unsigned)kinds_ms[i][2], (unsigned)kinds_ms[i][3],
				(unsigned)kernels_ms[k]);
			show(&s, &j);
			CHECK(j.within_1 >= 0.99);
			CHECK(j.share >= 0.05);
		}
}

/* What it had in flight is not forgotten with it. */
TEST(a_thread_for_each_launch_gets_no_more_in_flight)
{
	static const double kernels_ms[] = {0.5, 5, 20};

	for (unsigned k = 0; k < 3; k++) {
		struct pm_settings s = training("tandem", true, true, 1);

		s.fill_ns = (uint64_t)(kernels_ms[k] * MS);
		s.fill_threads = true;
		struct pm_judgement j = judge(s, SETTLE, 500);

		printf("# threads, kernels of %g ms: ", kernels_ms[k]);
		show(&s, &j);
		CHECK(j.within_1 >= 0.99);
		CHECK(j.of_what_is_left >= 0.3);
		CHECK(!run.closed);
	}
}

/* It has the floor, so that it does not starve: one in some hundred steps. */
TEST(what_no_pause_has_room_for_is_let_in_now_and_then)
{
	for (unsigned v = 0; v < 4; v++) {
		struct pm_settings s = training("tandem", v & 1, v & 2, 1);

		s.fill_ns = 500 * MS;
		struct pm_judgement j = judge(s, SETTLE, 5000);

		printf("# kernels of 500 ms: ");
		show(&s, &j);
		CHECK(j.within_1 >= 0.99);
		CHECK(j.share >= 0.001);
		CHECK(j.residual_most_ms <= 500);
		CHECK(!run.closed);
	}
}

/* Then the duty is all there is; a kernel that is too long by itself it lets in once in 128 steps, so that 99 of 100 stay within the slack. */
TEST(a_job_that_never_pauses_bears_long_kernels_rarely)
{
	static const uint64_t kernels_ms[] = {4, 10, 50, 100};

	for (unsigned k = 0; k < 4; k++)
		for (unsigned v = 0; v < 4; v++) {
			bool wide = v & 1;
			struct pm_settings s = training("tandem", true, v & 2, 1);

			s.slack = wide ? "5%" : "1%";
			s.fill_ns = kernels_ms[k] * MS;
			s.phases[0].host_ns = 2 * MS;
			s.phases[0].kernel_ns = 20 * MS;
			s.phases[0].kernels = 20;
			struct pm_judgement j = judge(s, SETTLE, 500);

			printf("# never a pause, slack %s, kernels of %u ms: ", s.slack,
				(unsigned)kernels_ms[k]);
			show(&s, &j);
			CHECK((wide ? j.within_slack : j.within_1) >= 0.99);
			CHECK(j.share >= 0.0001);
			CHECK(!run.closed);
		}
}

/* By its function and grid it is always the same. */
TEST(a_kernel_that_takes_longer_now_and_then_is_taken_for_a_long_one)
{
	static const uint32_t every[] = {2, 5, 20, 60};

	for (unsigned e = 0; e < 4; e++) {
		struct pm_settings s = training("tandem", true, true, 1);

		s.fill_ns = 5 * MS;
		s.fill_long_ns = 40 * MS;
		s.fill_long_every = every[e];
		struct pm_judgement j = judge(s, SETTLE, 500);

		printf("# each %u. kernel takes 40 ms instead of 5: ", every[e]);
		show(&s, &j);
		CHECK(j.within_1 >= (every[e] < 60 ? 0.99 : 0.95));
		CHECK(j.of_what_is_left >= 0.6);
	}
}

/* Half on the host; 3 ms of each pause go by until it is known. */
TEST(short_steps_keep_their_time_too)
{
	static const struct {
		uint64_t ms;
		double left;
	} steps[] = {{8, 0.15}, {16, 0.5}, {32, 0.7}, {64, 0.8}, {128, 0.9}};

	for (unsigned i = 0; i < 5; i++)
		for (unsigned v = 0; v < 4; v++) {
			struct pm_settings s = training("tandem", v & 1, v & 2, 1);

			s.fill_ns = MS / 20;
			s.phases[0].host_ns = steps[i].ms * MS / 2;
			s.phases[0].kernels = 10;
			s.phases[0].kernel_ns = steps[i].ms * MS / 20;
			struct pm_judgement j = judge(s, SETTLE, 500);

			printf("# steps of %u ms: ", (unsigned)steps[i].ms);
			show(&s, &j);
			CHECK(j.within_1 >= 0.99);
			CHECK(j.of_what_is_left >= steps[i].left);
		}
}

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
			/* where single steps vary as much as the slack is wide, it is the mean that is kept */
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

/* AntMan's figure 4: training, a decoding that fills the GPU, a synthesis on the CPU, training again. */
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

/* It can keep besteffort work at the floor while it has work, as it could by having work all the time; in its pauses it cannot. */
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
 * From the 60th step on already, and against the median of its steps alone, so that their own noise counts too: 0.2 % of a step of
 * a second, here.
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

/* Neither told nor found, at a time: before they are found, after the program's last, or ever. 1000 steps. */
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
			/* Its own noise moves nothing, as nothing goes by its times. */
			j = judge_unknown("tandem", v, from[i], i < 2 ? 0 : 300, 0.1);
			CHECK(j.median < 0.01);
			CHECK(j.of_what_is_left >= 0.9);
		}
	for (unsigned v = 0; v < 4; v++)
		CHECK(judge_unknown("antman", v, UINT32_MAX, 0, 0.005).within_1 >= 0.99);
}

/* Each pause ends with what besteffort work has in flight: twenty in a step cost no more than one may. */
TEST(many_pauses_in_a_step_cost_no_more_than_one)
{
	for (unsigned v = 0; v < 3; v++) {
		struct pm_settings s = training("tandem", v & 1, false, 5);
		struct pm_judgement j;

		s.fill_ns = MS / 20;
		s.phases[0].parts = 20;
		s.known_from = v == 2 ? UINT32_MAX : 0;
		j = judge(s, 300, 1000);
		printf("# 20 pauses in a step, %s: %.2f%% within 1%%, median %.2f%%, %.1f%% of "
		       "what is "
		       "left\n",
			v & 4   ? "unknown"
			: v & 1 ? "told"
				: "found",
			100 * j.within_1, 100 * j.median, 100 * j.of_what_is_left);
		CHECK(j.within_1 >= 0.99);
		CHECK(j.of_what_is_left >= 0.25);
		CHECK(!run.closed);
	}
}

/* It is there from the first step on; nothing shows what its work would cost. */
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

/* Neither its pauses nor how long the kernels are is known: what begins in the first pause is one, and no more while it runs. */
TEST(a_first_pause_has_one_kernel_of_a_second_and_no_more)
{
	for (unsigned v = 0; v < 4; v++) {
		struct pm_settings s = training("tandem", v & 1, v & 2, 7), without = s;
		uint64_t most = 0;

		s.fill_ns = 1000 * MS;
		without.policy = NULL;
		pm_run(&without, 20, &alone);
		pm_run(&s, 20, &run);
		for (uint32_t i = 0; i < 20; i++) {
			uint64_t more = run.step_ns[i] > alone.step_ns[i]
						? run.step_ns[i] - alone.step_ns[i]
						: 0;

			most = more > most ? more : most;
		}
		printf("# %s: the longest of the first 20 steps %.0f ms longer\n",
			s.told ? "told" : "found", (double)most / MS);
		CHECK(most <= 1000 * MS);
	}
}

/* They divide the window, and what a pause has room for. */
TEST(several_besteffort_programs_together_cost_no_more_than_one)
{
	static const uint64_t kernels_us[] = {500, 20000};

	for (uint32_t fills = 2; fills <= FILLS_MAX; fills += 2)
		for (unsigned k = 0; k < 2; k++) {
			struct pm_settings s = training("tandem", k & 1, k & 1, fills);
			uint64_t least = UINT64_MAX, most = 0;

			s.fills = fills;
			s.fill_ns = kernels_us[k] * 1000;
			struct pm_judgement j = judge(s, 150, 200);

			for (uint32_t i = 0; i < fills; i++) {
				least = run.each_ns[i] < least ? run.each_ns[i] : least;
				most = run.each_ns[i] > most ? run.each_ns[i] : most;
			}
			printf("# %u programs, kernels of %g ms, the least has %.2f of the most: ",
				fills, (double)kernels_us[k] / 1000, (double)least / (double)most);
			show(&s, &j);
			CHECK(j.within_1 >= 0.99);
			CHECK(j.of_what_is_left >= 0.5);
			CHECK(least >= most / 2);
		}
}

/* As a framework launches them. */
TEST(a_long_kernel_behind_short_ones_is_over_when_the_pause_is)
{
	static const struct {
		uint64_t short_us, long_ms;
		uint32_t every;
	} mixes[] = {{20, 5, 2}, {20, 50, 2}, {100, 20, 64}, {100, 100, 64}};

	for (unsigned i = 0; i < 4; i++) {
		struct pm_settings s = training("tandem", i & 1, i & 2, i);

		s.fill_ns = mixes[i].short_us * 1000;
		s.fill_long_ns = mixes[i].long_ms * MS;
		s.fill_long_every = mixes[i].every;
		s.fill_long_other = true;
		struct pm_judgement j = judge(s, 300, 400);

		printf("# %u kernels of %u us, then one of %u ms: ", mixes[i].every - 1,
			(unsigned)mixes[i].short_us, (unsigned)mixes[i].long_ms);
		show(&s, &j);
		CHECK(j.within_1 >= 0.99);
		CHECK(j.of_what_is_left >= 0.5);
	}
}

/* One number stands for all copies: for long ones, where some are. */
TEST(a_long_copy_among_short_ones_is_over_when_the_pause_is)
{
	for (unsigned i = 0; i < 2; i++) {
		struct pm_settings s = training("tandem", i, !i, i);

		s.fill_ns = MS / 10;
		s.fill_copies = true;
		s.fill_long_ns = i ? 20 * MS : 5 * MS;
		s.fill_long_every = 40;
		struct pm_judgement j = judge(s, 300, 400);

		printf("# 39 copies of 0.1 ms, then one of %u ms: ", i ? 20 : 5);
		show(&s, &j);
		CHECK(j.within_1 >= 0.99);
		CHECK(j.of_what_is_left >= 0.5);
	}
}
