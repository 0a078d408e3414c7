/*
 * The period of streams of work as training programs make them: regular, noisy, in phases, and
 * without any.
 */
#include "test.h"

#include "policy_random.h"
#include "preload/measure/period.h"

#define MS 1000000ull
#define US 1000ull

static struct td_period period;
static uint64_t now, seed;

/* The findings since forget(). */
static struct {
	uint32_t steps, breaks, units;
	uint32_t unit;
	uint64_t sum_ns, least_ns, most_ns;
} found;

static void forget(void)
{
	memset(&found, 0, sizeof(found));
	found.least_ns = UINT64_MAX;
}

static void start(uint64_t with_seed)
{
	memset(&period, 0, sizeof(period));
	now = 5000 * MS;
	seed = with_seed * 0x9e3779b97f4a7c15ull + 1;
	forget();
}

/* After `ns` the program makes this call. */
static void call(uint32_t signature, uint64_t ns)
{
	struct td_period_step step;
	enum td_period_verdict verdict;

	now += ns;
	verdict = td_period_event(&period, signature, now, &step);
	if (verdict == TD_PERIOD_NOTHING)
		return;
	found.units += step.unit != found.unit;
	found.unit = step.unit;
	CHECK(step.unit);
	CHECK(step.sure_ppm <= 1000000);
	if (verdict == TD_PERIOD_BREAK) {
		found.breaks++;
		return;
	}
	found.steps++;
	found.sum_ns += step.step_ns;
	found.least_ns = step.step_ns < found.least_ns ? step.step_ns : found.least_ns;
	found.most_ns = step.step_ns > found.most_ns ? step.step_ns : found.most_ns;
}

/* ns, as much as `percent` more or less. */
static uint64_t about(uint64_t ns, uint32_t percent)
{
	return ns - ns * percent / 100 + random_below(&seed, 2001) * (ns * percent / 100) / 1000;
}

#define COPY   1
#define SYNC   2
#define UPDATE 3
#define LOG    4

/*
 * Makes one step: a copy, `layers` layers forwards and backwards, the update; then a wait until the
 * step is over. A launch takes launch_ns.
 */
static void train(uint32_t layers, uint64_t launch_ns, uint64_t step_ns)
{
	uint64_t began = now;

	call(COPY, launch_ns);
	for (uint32_t i = 0; i < layers; i++)
		for (uint32_t k = 0; k < 4; k++)
			call(100 + k, launch_ns);
	for (uint32_t i = 0; i < layers; i++)
		for (uint32_t k = 0; k < 7; k++)
			call(200 + k, launch_ns);
	for (uint32_t k = 0; k < 30; k++)
		call(UPDATE, launch_ns);
	call(SYNC, launch_ns);
	if (now - began < step_ns)
		now = began + step_ns;
}

/* One batch of a validation: other work. */
static void validate(uint64_t step_ns)
{
	uint64_t began = now;

	call(COPY, 20 * US);
	for (uint32_t k = 0; k < 48; k++)
		call(300 + k % 6, 5 * US);
	call(SYNC, 5 * US);
	now = began + step_ns;
}

static double mean_ms(void)
{
	return found.steps ? (double)found.sum_ns / found.steps / 1e6 : 0;
}

static void check_mean(double ms, double percent)
{
	if (mean_ms() < ms * (1 - percent / 100) || mean_ms() > ms * (1 + percent / 100))
		test_fail(__FILE__, __LINE__, "a mean of %.3f ms, expected %.3f", mean_ms(), ms);
}

TEST(a_step_is_found_within_five_and_then_each_of_them)
{
	start(1);
	for (int i = 0; i < 5; i++)
		train(24, 8 * US, about(100 * MS, 3));
	CHECK(found.steps);
	forget();
	for (int i = 0; i < 200; i++)
		train(24, 8 * US, about(100 * MS, 3));
	CHECK_EQ(found.steps, 200);
	CHECK_EQ(found.breaks, 0);
	check_mean(100, 0.5);
	CHECK(found.least_ns >= 97 * MS && found.most_ns <= 103 * MS);
}

TEST(layers_that_repeat_within_the_step_are_not_taken_for_it)
{
	/* As slow as the GPU: the host waits for a place in the queue at every launch. */
	start(2);
	for (int i = 0; i < 12; i++)
		train(24, 1500 * US, 0);
	forget();
	for (int i = 0; i < 50; i++)
		train(24, 1500 * US, 0);
	CHECK_EQ(found.steps, 50);
	check_mean((1 + 24 * 11 + 30 + 1) * 1.5, 0.1);
}

TEST(a_kernel_that_is_launched_a_hundred_times_is_not_a_step_each)
{
	start(3);
	for (int step = 0; step < 40; step++) {
		if (step == 10)
			forget();
		call(1, 1 * MS);
		for (int i = 0; i < 100; i++)
			call(2, 2 * MS);
		call(SYNC, 1 * MS);
	}
	CHECK_EQ(found.steps, 30);
	check_mean(202, 0.1);
}

TEST(a_graph_a_step_is_enough)
{
	start(4);
	for (int i = 0; i < 8; i++)
		call(77, about(30 * MS, 2));
	forget();
	for (int i = 0; i < 100; i++)
		call(77, about(30 * MS, 2));
	CHECK_EQ(found.steps, 100);
	check_mean(30, 0.5);
}

TEST(a_validation_is_no_step_and_training_is_known_again)
{
	start(5);
	for (int epoch = 0; epoch < 12; epoch++) {
		if (epoch == 2)
			forget();
		for (int i = 0; i < 60; i++)
			train(12, 8 * US, about(80 * MS, 2));
		for (int i = 0; i < 8; i++)
			validate(about(30 * MS, 2));
		now += 400 * MS; /* a checkpoint is written */
	}
	CHECK(found.steps >= 10 * 57 && found.steps <= 10 * 68);
	CHECK(found.most_ns <= 84 * MS);
	CHECK(found.breaks >= 10);
}

TEST(a_long_validation_has_steps_of_its_own_unit)
{
	uint32_t unit;

	start(6);
	for (int i = 0; i < 60; i++)
		train(12, 8 * US, about(80 * MS, 2));
	unit = found.unit;
	forget();
	for (int i = 0; i < 100; i++)
		validate(about(30 * MS, 2));
	CHECK(found.steps >= 70);
	CHECK(found.unit != unit || found.most_ns < 35 * MS);
	for (int i = 0; i < 6; i++)
		train(12, 8 * US, about(80 * MS, 2));
	forget();
	for (int i = 0; i < 60; i++)
		train(12, 8 * US, about(80 * MS, 2));
	CHECK(found.steps >= 58);
	check_mean(80, 1);
}

/* An epoch is as regular as a step, and covers the validation, too. */
TEST(an_epoch_is_not_taken_for_a_step)
{
	start(4);
	for (int epoch = 0; epoch < 8; epoch++) {
		for (int i = 0; i < 300; i++)
			train(8, 8 * US, about(400 * MS, 1));
		call(777, 20000 * MS);
	}
	CHECK(found.steps > 8 * 290);
	CHECK(found.most_ns < 1000 * MS);
}

TEST(steps_of_varying_length_and_choice_of_kernels_are_found)
{
	start(7);
	for (int i = 0; i < 300; i++) {
		uint64_t length = 60 + random_below(&seed, 81), began = now; /* of a sentence */

		if (i == 30)
			forget();
		call(COPY, 10 * US);
		for (uint64_t k = 0; k < length; k++)
			call(400 + (uint32_t)k % 12, 10 * US);
		call(500 + random_below(&seed, 2), 10 * US); /* whichever suits the shape */
		call(UPDATE, 10 * US);
		call(SYNC, 10 * US);
		now = began + length * MS;
	}
	CHECK(found.steps >= 260);
	check_mean(100, 4);
}

TEST(steps_that_now_and_then_do_more_are_found)
{
	start(8);
	for (int i = 0; i < 400; i++) {
		if (i == 30)
			forget();
		train(6, 8 * US, about(50 * MS, 2));
		if (!random_below(&seed, 10)) {
			call(LOG, 1 * MS);
			call(LOG + 1, 1 * MS);
		}
	}
	CHECK(found.steps >= 360);
	CHECK_EQ(found.units, 1);
	check_mean(50.2, 1);
}

TEST(small_batches_that_add_up_are_seen_as_one_or_the_other_but_steadily)
{
	start(9);
	for (int i = 0; i < 60; i++) {
		if (i == 20)
			forget();
		for (int micro = 0; micro < 8; micro++) {
			call(COPY, 10 * US);
			for (uint32_t k = 0; k < 200; k++)
				call(600 + k % 20, 10 * US);
			now += about(10 * MS, 1);
		}
		call(UPDATE, 10 * US);
		call(SYNC, 10 * US);
		now += 10 * MS;
	}
	CHECK(found.units <= 1);
	CHECK(found.steps >= 40);
}

/* No period: at most now and then a handful of intervals happens to look alike. */
TEST(without_a_period_nothing_lasting_is_found)
{
	for (uint64_t s = 1; s <= 20; s++) {
		uint64_t began;

		start(s);
		began = now;
		for (int i = 0; i < 20000; i++)
			call(1 + random_below(&seed, 40), random_below(&seed, 2000) * US);
		if (found.sum_ns * 4 > now - began)
			test_fail(__FILE__, __LINE__, "seed %d: %u steps of %.1f ms", (int)s,
				found.steps, mean_ms());
	}
}

TEST(two_threads_that_meet_anyhow_do_not_hide_the_step)
{
	start(10);
	for (int i = 0; i < 120; i++) {
		uint64_t began = now;
		uint32_t a = 0, b = 0;

		if (i == 20)
			forget();
		while (a < 60 || b < 60) { /* a loader's copies among launches */
			bool first = b == 60 || (a < 60 && random_below(&seed, 2));

			call(first ? 700 + a % 15 : 800 + b % 5, 20 * US);
			first ? a++ : b++;
		}
		call(SYNC, 10 * US);
		now = began + about(40 * MS, 1);
	}
	CHECK(found.steps >= 98);
	check_mean(40, 1);
}

/* The list holds every mark once, and every mark is found by its signature. */
static void check_structure(void)
{
	uint32_t n = 0;

	for (uint16_t i = period.newest; i; i = period.marks[i - 1].older, n++)
		CHECK(n < period.count);
	CHECK_EQ(n, period.count);
	n = 0;
	for (uint32_t b = 0; b < 2 * TD_PERIOD_SIGNATURES; b++)
		for (uint16_t i = period.buckets[b]; i; i = period.marks[i - 1].chain)
			CHECK(n++ < period.count);
	CHECK_EQ(n, period.count);
	CHECK(period.mark <= period.count);
}

TEST(a_mark_that_is_forgotten_is_no_mark)
{
	start(12);
	for (int i = 0; i < 10; i++)
		train(2, 8 * US, 20 * MS);
	CHECK(period.mark);
	for (uint32_t i = 0; i < TD_PERIOD_SIGNATURES; i++)
		call(10000 + i, 2 * MS);
	CHECK_EQ(period.mark, 0);
	check_structure();
}

TEST(any_stream_leaves_it_whole_and_steps_add_up_to_no_more_than_the_time)
{
	for (uint64_t s = 1; s <= 30; s++) {
		uint64_t began;

		start(s);
		began = now;
		for (int i = 0; i < 6000; i++) {
			uint32_t kinds = 1u << (1 + s % 12);

			call(random_below(&seed, kinds) * (s % 2 ? 1 : 2654435761u),
				random_below(&seed, 8) ? random_below(&seed, 3000)
						       : random_below(&seed, 30) * MS);
			if (i % 500 == 0)
				check_structure();
		}
		check_structure();
		CHECK(found.sum_ns <=
			2 * (now - began)); /* units may overlap where one follows another */
	}
}

TEST(the_end_of_time_is_an_interval_like_any_other)
{
	start(11);
	for (int i = 0; i < 20; i++)
		call(1, 10 * MS);
	now = UINT64_MAX - 1;
	call(1, 0);
	call(1, 1);
	CHECK(found.most_ns < 11 * MS);
}
