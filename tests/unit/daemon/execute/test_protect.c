/*
 * The promise about a guaranteed job's speed, in the model of protect_world.h, where only the
 * policies decide. On softgpu a machine's noise hides it (docs/results/protect.md).
 */
#include "unit/daemon/execute/protect_cases.h"

/*
 * 99 % of the steps are within 1 % of alone, and at least 90 % of the rest is used; a step waits at
 * most for the work in flight when it launches.
 */
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
		/*
		 * The duty alone leaves much where all is queued, and next to nothing between
		 * kernels. The amount depends on when a cut comes, so a single run varies much.
		 */
		CHECK(left >= (waits ? 0.006 : 0.65));
	}
}

/*
 * Work longer than the window is let into a pause that will outlast it. The pause is 200 ms, and 3
 * ms pass until it is known.
 */
TEST(however_long_a_besteffort_kernel_is_it_is_over_when_the_pause_is)
{
	static const struct {
		double ms,
			left; /* of the rest: as many as a pause has room for, less a twentieth */
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

/* Few of each kind have been seen, and the costs of all pauses in a step add up. */
TEST(pauses_of_several_kinds_in_a_step_are_told_apart)
{
	static const uint64_t kinds_ms[][4] = {
		{10, 30, 60, 150}, {20, 40, 80, 160}, {10, 14, 20, 150}, {20, 200, 20, 200}};
	static const uint64_t kernels_ms[] = {5, 15, 40};

	for (unsigned i = 0; i < 4; i++)
		for (unsigned k = 0; k < 6; k++) {
			struct pm_settings s = training("tandem", k & 1, true, 1);

			s.fill_ns = kernels_ms[k / 2] * MS;
			s.phases[0].parts = 4;
			s.phases[0].kernel_ns = 3 * MS;
			for (unsigned p = 0; p < 4; p++)
				s.phases[0].part_host_ns[p] = kinds_ms[i][p] * MS;
			struct pm_judgement j = judge(s, SETTLE, 500);

			printf("# pauses of %u, %u, %u and %u ms, kernels of %u: ",
				(unsigned)kinds_ms[i][0], (unsigned)kinds_ms[i][1],
				(unsigned)kinds_ms[i][2], (unsigned)kinds_ms[i][3],
				(unsigned)kernels_ms[k / 2]);
			show(&s, &j);
			CHECK(j.within_1 >= 0.99);
			CHECK(j.share >= 0.05);
		}
}

/* Work in flight of a thread that ended still counts. */
TEST(a_thread_for_each_launch_gets_no_more_in_flight)
{
	static const double kernels_ms[] = {0.5, 5, 20};

	for (unsigned k = 0; k < 6; k++) {
		struct pm_settings s = training("tandem", k & 1, true, 1);

		s.fill_ns = (uint64_t)(kernels_ms[k / 2] * MS);
		s.fill_threads = true;
		struct pm_judgement j = judge(s, SETTLE, 500);

		printf("# threads, kernels of %g ms: ", kernels_ms[k / 2]);
		show(&s, &j);
		CHECK(j.within_1 >= 0.99);
		CHECK(j.of_what_is_left >= 0.3);
		CHECK(!run.closed);
	}
}

/* Long work has the floor, so that it does not starve: one in some hundred steps. */
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

/*
 * Without pauses only the duty applies. It lets in a kernel that is too long by itself once in 128
 * steps, so that 99 of 100 stay within the slack.
 */
TEST(a_job_that_never_pauses_bears_long_kernels_rarely)
{
	static const uint64_t kernels_ms[] = {4, 10, 50, 100};

	for (unsigned k = 0; k < 4; k++)
		for (unsigned v = 0; v < 8; v++) {
			bool wide = v & 1;
			struct pm_settings s = training("tandem", v & 4, v & 2, 1);

			s.slack = wide ? "5%" : "1%";
			s.fill_ns = kernels_ms[k] * MS;
			s.phases[0].host_ns = 2 * MS;
			s.phases[0].kernel_ns = 20 * MS;
			s.phases[0].kernels = 20;
			struct pm_judgement j = judge(s, SETTLE, 500);

			printf("# never a pause, slack %s, kernels of %u ms: ", s.slack,
				(unsigned)kernels_ms[k]);
			show(&s, &j);
			/*
			 * Where launches come kernel by kernel without a pause, the steps that are
			 * found are runs of seven kernels: one of 128 of those is one of 44 steps.
			 */
			CHECK((wide ? j.within_slack : j.within_1) >=
				(s.told || !s.waits ? 0.99 : 0.97));
			CHECK(j.share >= 0.0001);
			CHECK(!run.closed);
		}
}

/* By its function and grid it is always the same. */
TEST(a_kernel_that_takes_longer_now_and_then_is_taken_for_a_long_one)
{
	static const uint32_t every[] = {2, 5, 20, 60};

	for (unsigned v = 0; v < 8; v++) {
		struct pm_settings s = training("tandem", v & 1, true, 1);
		unsigned e = v / 2;

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

/*
 * Each pause ends with besteffort work in flight: twenty pauses in a step may cost no more than
 * one.
 */
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

/*
 * Neither the pauses nor the kernels' lengths are known: the first pause has one kernel at a time.
 */
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

/*
 * Four unknown programs try their work one at a time, and no step has two trials. Their second
 * kernels are known and come by the duty, rarely once the steps are known; two of those may meet.
 * Antman has no rule for long kernels that are known.
 */
TEST(of_several_programs_one_at_a_time_tries_what_is_new)
{
	static const uint64_t kernels_ms[] = {1000, 5000};

	for (unsigned v = 0; v < 8; v++) {
		uint64_t kernel_ms = kernels_ms[v & 1], most = 0, all = 0;
		struct pm_settings s = training("tandem", v & 2, v & 4, 7), without = s;

		s.fills = 4;
		s.fill_ns = kernel_ms * MS;
		without.policy = NULL;
		pm_run(&without, 60, &alone);
		pm_run(&s, 60, &run);
		for (uint32_t i = 0; i < 60; i++) {
			uint64_t more = run.step_ns[i] > alone.step_ns[i]
						? run.step_ns[i] - alone.step_ns[i]
						: 0;

			most = more > most ? more : most;
			all += more;
		}
		printf("# %s, %s, %s, 4 programs with kernels of %u ms: the longest of the first "
		       "60 steps "
		       "%.0f ms longer, all together %.0f\n",
			s.policy, s.told ? "told" : "found",
			s.waits ? "kernel by kernel" : "queued", (unsigned)kernel_ms,
			(double)most / MS, (double)all / MS);
		CHECK(most <= 2 * kernel_ms * MS);
		CHECK(all <= 6 * kernel_ms * MS);
	}
}

/* They divide the window, and the room of a pause. */
TEST(several_besteffort_programs_together_cost_no_more_than_one)
{
	static const uint64_t kernels_us[] = {500, 20000};

	for (uint32_t fills = 2; fills <= FILLS_MAX; fills += 2)
		for (unsigned v = 0; v < 4; v++) {
			unsigned k = v / 2;
			struct pm_settings s = training("tandem", v & 1, k, fills);
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

	for (unsigned v = 0; v < 8; v++) {
		unsigned i = v / 2;
		struct pm_settings s = training("tandem", v & 1, i & 2, i);

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

/*
 * Copies of rectangles have no known size, so one figure stands for all of them; it is that of long
 * ones if there are some.
 */
TEST(a_long_copy_among_short_ones_is_over_when_the_pause_is)
{
	for (unsigned v = 0; v < 4; v++) {
		unsigned i = v / 2;
		struct pm_settings s = training("tandem", v & 1, !i, i);

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

/* Copies of known size are told apart by it. */
TEST(copies_of_other_sizes_are_other_work)
{
	static const struct {
		uint64_t ms;
		double left;
	} longs[] = {{5, 0.8}, {20, 0.8}, {50, 0.6}, {100, 0.4}};

	for (unsigned v = 0; v < 8; v++) {
		unsigned i = v / 2;
		struct pm_settings s = training("tandem", v & 1, i & 1, i);

		s.fill_ns = MS / 10;
		s.fill_copies = s.fill_sized = true;
		s.fill_long_ns = longs[i].ms * MS;
		s.fill_long_every = 40;
		struct pm_judgement j = judge(s, 300, 400);

		printf("# 39 copies of 0.1 ms, then a larger one of %u ms: ",
			(unsigned)longs[i].ms);
		show(&s, &j);
		CHECK(j.within_1 >= 0.99);
		CHECK(j.of_what_is_left >= longs[i].left);
	}
}

/* Under the duty alone a long copy lengthens its step by itself: one copy, and none behind it. */
TEST(under_antman_a_step_has_one_long_copy)
{
	static const struct {
		uint64_t ms;
		bool waits;
	} longs[] = {{20, true}, {20, false}, {100, true}, {100, false}};

	for (unsigned v = 0; v < 8; v++) {
		uint64_t long_ms = longs[v / 2].ms;
		struct pm_settings s = training("antman", v & 1, longs[v / 2].waits, 1);

		s.fill_ns = MS / 10;
		s.fill_copies = s.fill_sized = true;
		s.fill_long_ns = long_ms * MS;
		s.fill_long_every = 40;
		struct pm_judgement j = judge(s, 300, 400);

		printf("# 39 copies of 0.1 ms, then a larger one of %u ms, worst step %.0f%% "
		       "longer: ",
			(unsigned)long_ms, 100 * j.most);
		show(&s, &j);
		CHECK(j.most * 400 <= (double)long_ms + 10);
		CHECK(j.share >= 0.001);
	}
}
