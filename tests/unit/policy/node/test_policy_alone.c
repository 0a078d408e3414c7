/* Moments alone, on a made-up clock. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "policy/node/alone.h"

#define MS      1000000ull
#define SECONDS (1000 * MS)

static struct td_alone alone;
static struct td_alone_tenant x, y, z;
static uint32_t last_number;
static uint64_t now;

static uint64_t step(unsigned count)
{
	struct td_alone_tenant all[] = {x, y, z};
	uint64_t at = td_alone_step(&alone, all, count, &last_number, now);

	x = all[0], y = all[1], z = all[2];
	return at;
}

static void begin(void)
{
	alone = (struct td_alone){0};
	last_number = 40;
	x = (struct td_alone_tenant){.id = 7};
	y = (struct td_alone_tenant){.id = 8};
	z = (struct td_alone_tenant){.id = 9};
	now = 5 * SECONDS;
}

static bool is_quiet(void)
{
	return !x.ret_hold && !y.ret_hold && !z.ret_hold && !x.ret_alone && !y.ret_alone &&
	       !z.ret_alone;
}

TEST(without_a_guess_or_a_second_program_nobody_is_held)
{
	begin();
	x.guesses = 3;
	CHECK_EQ(step(1), UINT64_MAX);
	CHECK(is_quiet());
	CHECK_EQ(step(0), UINT64_MAX);
	x.guesses = 0;
	for (unsigned i = 0; i < 1000; i++) {
		now = step(3);
		CHECK(is_quiet());
	}
}

TEST(who_has_guessed_is_alone_once_the_others_are_dry_until_it_has_measured)
{
	begin();
	x.guesses = 1;
	CHECK(step(3) <= now + 2 * MS);
	CHECK(!x.ret_hold && !x.ret_alone && y.ret_hold && z.ret_hold == y.ret_hold);
	y.dry = y.ret_hold;
	now += 30 * MS;
	(void)step(3);
	CHECK(!x.ret_alone && y.ret_hold);
	z.dry = z.ret_hold;
	now += 1 * MS;
	(void)step(3);
	CHECK(x.ret_alone == y.ret_hold && y.ret_hold && z.ret_hold);
	/* an old number says nothing */
	x.measured = x.ret_alone - 1;
	now += 1 * MS;
	(void)step(3);
	CHECK(x.ret_alone && y.ret_hold);
	x.measured = x.ret_alone;
	x.guesses = 2; /* meanwhile */
	(void)step(3);
	CHECK(is_quiet());
	for (uint64_t end = now + 10 * SECONDS; now < end;) {
		now = step(3);
		CHECK(is_quiet());
	}
}

TEST(all_who_have_guessed_are_served_in_turn)
{
	unsigned served[3] = {0};

	begin();
	for (uint64_t end = now + 20 * SECONDS; now < end;) {
		struct td_alone_tenant *all[] = {&x, &y, &z};

		now = step(3);
		for (unsigned i = 0; i < 3; i++) {
			all[i]->guesses++;
			all[i]->dry = all[i]->ret_hold;
			served[i] += all[i]->ret_alone && all[i]->measured != all[i]->ret_alone;
			all[i]->measured = all[i]->ret_alone;
		}
	}
	CHECK(served[0] >= 5);
	CHECK(abs((int)served[0] - (int)served[1]) <= 1 &&
		abs((int)served[1] - (int)served[2]) <= 1);
}

/*
 * Whatever programs report, and however they come and go, none of them is held for long or often,
 * and one that is held is always released. The node steps at any time, in pauses too.
 */
TEST(nobody_can_hold_the_others_up)
{
	for (unsigned seed = 1; seed < 40; seed++) {
		uint64_t held = 0, since = 0, begun;
		unsigned count = 3, s = seed;
		bool comes_and_goes = seed % 2;

		begin();
		begun = now;
		for (uint64_t end = now + 60 * SECONDS; now < end; now += MS) {
			if (rand_r(&s) % 3)
				x.guesses = (uint32_t)rand_r(&s);
			if (rand_r(&s) % 64 == 0)
				z.dry = z.ret_hold;
			if (seed % 3 != 2)
				y.dry = y.ret_hold;
			/* in time, mostly */
			if (seed % 3 == 1 && x.ret_alone && rand_r(&s) % 100 == 0)
				x.measured = x.ret_alone;
			if (comes_and_goes && rand_r(&s) % 50 == 0)
				count = rand_r(&s) % 8 ? 2 + (count == 2)
						       : (unsigned)rand_r(&s) % 4;
			CHECK(step(count) > now);
			CHECK(!x.ret_hold || !x.ret_alone);
			if (count >= 2 && y.ret_hold) {
				since = since ? since : now;
				CHECK(now - since <= TD_ALONE_MOST_NS);
				held += MS;
			} else {
				since = 0;
			}
		}
		CHECK((double)held < 0.22 * (double)(now - begun));
	}
}

TEST(who_goes_ends_its_moment_and_who_comes_is_measured_soon)
{
	uint64_t came;

	begin();
	x.guesses = 1;
	(void)step(2);
	y.dry = y.ret_hold;
	now += 1 * MS;
	(void)step(2);
	CHECK(x.ret_alone);
	x = (struct td_alone_tenant){.id = 11};
	now += 1 * MS;
	(void)step(2);
	CHECK(is_quiet());
	/* long pauses, for one that never comes to an end */
	for (uint64_t end = now + 30 * SECONDS; now < end;) {
		x.guesses++;
		y.dry = y.ret_hold;
		x.measured = x.ret_alone;
		now = step(2);
	}
	CHECK(alone.pause_ns == TD_ALONE_PAUSE_MAX_NS);
	came = now;
	z.guesses = 1;
	x.guesses++;
	while (!z.ret_alone && now < came + SECONDS) {
		x.dry = x.ret_hold, y.dry = y.ret_hold, z.dry = z.ret_hold;
		x.measured = x.ret_alone;
		now = step(3);
	}
	CHECK(now - came < 200 * MS);
}

/*
 * Returns how long y, or x, was held from from_s to to_s seconds, in ppm. The first two guess all
 * the time, and do their part as told.
 */
static uint64_t held_ppm(unsigned from_s, unsigned to_s, bool x_dry, bool x_measured)
{
	uint64_t begun = now, held = 0;

	for (; now < begun + to_s * SECONDS; now += MS) {
		x.guesses++;
		y.guesses++;
		(void)step(2);
		held += now >= begun + from_s * SECONDS && (x.ret_hold || y.ret_hold) ? MS : 0;
		y.dry = y.ret_hold;
		y.measured = y.ret_alone ? y.ret_alone : y.measured;
		if (x_dry)
			x.dry = x.ret_hold;
		if (x_measured && x.ret_alone)
			x.measured = x.ret_alone;
	}
	return held / ((to_s - from_s) * SECONDS / 1000000);
}

/* It is stopped, for example. */
TEST(who_never_does_its_part_is_waited_for_less_and_less_until_it_does)
{
	begin();
	CHECK(held_ppm(0, 10, false, false) > 20000);
	CHECK(held_ppm(200, 1000, false, false) < 6000);
	CHECK(!y.ret_measurable && !x.ret_measurable);
	/* goes on: is found out by the next trial, and from then on both are measured as ever */
	(void)held_ppm(0, 140, true, true);
	CHECK(x.ret_measurable && y.ret_measurable);
	CHECK(x.measured && x.guesses - alone.known[0].guesses < 6000);
}

/* The other one is measured no less for it. */
TEST(whose_work_takes_longer_than_a_moment_is_tried_less_and_less)
{
	uint32_t before;

	begin();
	(void)held_ppm(0, 100, true, false);
	before = last_number;
	CHECK(held_ppm(100, 500, true, false) < 10000);
	CHECK(!x.ret_measurable && y.ret_measurable);
	CHECK(last_number - before > 200);
	CHECK(y.measured >= last_number - 1);
}

TEST(who_comes_instead_of_one_that_was_set_aside_is_not)
{
	begin();
	(void)held_ppm(0, 200, false, false);
	CHECK(!y.ret_measurable);
	x = (struct td_alone_tenant){.id = 12};
	(void)held_ppm(0, 2, true, true);
	CHECK(x.ret_measurable && y.ret_measurable && x.measured && y.measured);
}

/* It has done its part in a moment on another GPU, and moves here. */
TEST(nobody_is_believed_for_a_moment_on_another_gpu)
{
	static struct td_alone other;
	struct td_alone_tenant there[] = {{.id = 20, .guesses = 1}, {.id = 8}};

	begin();
	(void)td_alone_step(&other, there, 2, &last_number, now);
	CHECK(there[1].ret_hold);
	y.dry = y.measured = there[1].ret_hold;
	x.guesses = 1;
	(void)step(2);
	CHECK(y.ret_hold && y.ret_hold != y.dry);
	now += MS;
	(void)step(2);
	CHECK(!x.ret_alone);
}
