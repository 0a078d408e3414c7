/* The duty's arithmetic on a made-up clock. */
#include "test.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/time.h"
#include "preload/base/window.h"
#include "preload/gate/budget.h"

#define MS      TD_NS_PER_MS
#define SECONDS (1000 * MS)
#define AHEAD   (10 * MS) /* so much sooner work may be submitted */

/*
 * Runs a device that does one thing after the other, and a program that always has work of c ns and
 * submits it whenever it may, with at most one submission in flight that has not begun. Returns the
 * share of the time that the work took, in ppm.
 */
static uint32_t run(
	uint32_t duty_ppm, uint64_t least_ns, uint64_t most_ns, uint64_t *ret_submissions)
{
	struct td_budget budget = {0};
	uint64_t now = 7 * SECONDS, begin = now, end = now + 10 * SECONDS, busy = 0, free_at = now;
	unsigned seed = duty_ppm;

	*ret_submissions = 0;
	td_budget_reset(&budget, now);
	while (now < end) {
		uint64_t work = least_ns + (uint64_t)rand_r(&seed) % (most_ns - least_ns + 1);
		uint64_t wait;

		/* Sleeps are never exact. */
		while ((wait = td_budget_wait_ns(&budget, 0, duty_ppm, now)) > 0)
			now += wait + 60000;
		free_at = (free_at > now ? free_at : now) + work;
		now = free_at;
		busy += work;
		++*ret_submissions;
		td_budget_charge(&budget, work, duty_ppm);
	}
	return (uint32_t)((double)busy / (double)(free_at - begin) * 1e6);
}

TEST(every_cap_is_held_for_work_of_every_length)
{
	static const uint64_t lengths[][2] = {
		{20000, 20000}, {5000, 400000}, {3 * MS, 3 * MS}, {1 * MS, 40 * MS}};

	for (uint32_t cap = 100000; cap < 1000000; cap += 100000) {
		for (unsigned i = 0; i < 4; i++) {
			uint64_t submissions;
			uint32_t share = run(cap, lengths[i][0], lengths[i][1], &submissions);

			/* one kernel of 40 ms in 10 s is 4000 ppm */
			CHECK(share < cap + 5000);
			CHECK(share > cap - 15000);
		}
	}
}

TEST(what_was_not_used_is_not_saved_up)
{
	struct td_budget budget = {0};
	uint64_t now = 5 * SECONDS, spent = 0;

	td_budget_reset(&budget, now);
	now += 3600 * SECONDS;
	/* 10 %: an hour of rest is worth a few milliseconds of work. */
	while (!td_budget_wait_ns(&budget, 0, 100000, now)) {
		td_budget_charge(&budget, 100000, 100000);
		spent += 100000;
	}
	CHECK(spent <= 4 * MS);
}

TEST(long_work_is_paid_for_afterwards)
{
	struct td_budget budget = {0};
	uint64_t now = 5 * SECONDS, wait;

	td_budget_reset(&budget, now);
	CHECK_EQ(td_budget_wait_ns(&budget, 0, 250000, now), 0);
	now += 100 * MS;
	td_budget_charge(&budget, 100 * MS, 250000);
	wait = td_budget_wait_ns(&budget, 0, 250000, now);
	CHECK(wait > 280 * MS && wait <= 300 * MS);
	/* Another duty begins without debts. */
	td_budget_reset(&budget, now);
	CHECK_EQ(td_budget_wait_ns(&budget, 0, 500000, now), 0);
}

/*
 * A piece of 20 ms and one of 1 ms behind it each second, at 4 %: 525 ms a second. Charged to the
 * time in between, it costs no wait at all.
 */
TEST(time_between_long_pieces_pays_for_them)
{
	struct td_budget budget = {0};
	uint64_t now = 5 * SECONDS, waited = 0, wait;

	td_budget_reset(&budget, now);
	for (unsigned i = 0; i < 20; i++) {
		for (unsigned piece = 0; piece < 2; piece++) {
			wait = td_budget_wait_ns(&budget, 0, 40000, now);
			waited += i ? wait : 0;
			now += wait + (piece ? 1 : 20) * MS;
			td_budget_charge(&budget, (piece ? 1 : 20) * MS, 40000);
		}
		now += 979 * MS;
	}
	CHECK(waited / 19 <= 130 * MS); /* the part up to which work is short */
	/* nor is it saved up any longer: an hour is worth one piece */
	now += 3600 * SECONDS;
	CHECK_EQ(td_budget_wait_ns(&budget, 0, 40000, now), 0);
	td_budget_charge(&budget, 20 * MS, 40000);
	CHECK(td_budget_wait_ns(&budget, 0, 40000, now) <= 130 * MS);
	td_budget_charge(&budget, 20 * MS, 40000);
	wait = td_budget_wait_ns(&budget, 0, 40000, now);
	CHECK(wait > 400 * MS);
}

TEST(the_time_before_the_first_long_piece_pays_for_it_too)
{
	struct td_budget budget = {0};
	uint64_t now = 5 * SECONDS, wait;

	td_budget_reset(&budget, now);
	now += 1 * SECONDS;
	CHECK_EQ(td_budget_wait_ns(&budget, 0, 40000, now), 0);
	td_budget_charge(&budget, 25 * MS, 40000);
	wait = td_budget_wait_ns(&budget, 0, 40000, now);
	CHECK(wait <= 130 * MS); /* of 625; the part up to which work is short */
	/* No more than there was: half a second of idle time. */
	now += wait + 500 * MS;
	CHECK_EQ(td_budget_wait_ns(&budget, 0, 40000, now), 0);
	td_budget_charge(&budget, 100 * MS, 40000);
	CHECK(td_budget_wait_ns(&budget, 0, 40000, now) >= 1980 * MS);
}

TEST(work_in_flight_counts)
{
	struct td_budget budget = {0};
	uint64_t now = 5 * SECONDS;

	td_budget_reset(&budget, now);
	CHECK_EQ(td_budget_wait_ns(&budget, 0, 500000, now), 0);
	CHECK_EQ(td_budget_wait_ns(&budget, 30 * MS, 500000, now), 50 * MS);
}

TEST(beside_others_work_costs_its_solo_time)
{
	static struct td_solo solo;

	CHECK_EQ(td_solo_correct(&solo, 77, 2 * MS, TD_INTERVAL_EXACT), 2 * MS);
	for (unsigned i = 0; i < 6; i++)
		CHECK_EQ(td_solo_correct(&solo, 77, 4 * MS, TD_INTERVAL_UPPER), 2 * MS);
	CHECK_EQ(td_solo_correct(&solo, 77, 4 * MS, TD_INTERVAL_UPPER), 2 * MS + 2 * MS / 256);
	/* other work in the same place */
	CHECK_EQ(td_solo_correct(&solo, 77 + 256 * TD_SOLO_PLACES, 4 * MS, TD_INTERVAL_UPPER),
		4 * MS);
	for (uint32_t hash = 79; hash < 0xf0000000; hash += 0x1234567) {
		CHECK_EQ(td_solo_expect(&solo, hash), 0);
		(void)td_solo_correct(&solo, hash, 3 * MS, TD_INTERVAL_EXACT);
		CHECK_EQ(td_solo_expect(&solo, hash), 3 * MS);
	}
	/* the first time is not to be believed */
	CHECK_EQ(td_solo_correct(&solo, 78, 900 * MS, TD_INTERVAL_UPPER), 5 * MS);
	/* of the next few half, of what took as long beside others */
	CHECK_EQ(td_solo_correct(&solo, 78, 900 * MS, TD_INTERVAL_UPPER), 450 * MS);
}

/* A program with as many kinds of work as a set has places, all in one. */
TEST(work_that_meets_in_one_set_is_known_side_by_side)
{
	static struct td_solo solo;
	static struct td_lengths lengths;

	for (uint32_t i = 0; i < TD_SOLO_WAYS; i++) {
		(void)td_solo_correct(&solo, 5 + i * TD_SOLO_SETS, (i + 1) * MS, TD_INTERVAL_EXACT);
		td_lengths_note(&lengths, 5 + i * TD_SOLO_SETS, (i + 1) * MS, true);
	}
	for (uint32_t i = 0; i < TD_SOLO_WAYS; i++) {
		CHECK_EQ(td_solo_expect(&solo, 5 + i * TD_SOLO_SETS), (i + 1) * MS);
		CHECK_EQ(td_lengths_expect(&lengths, 5 + i * TD_SOLO_SETS), (i + 1) * MS);
	}
	/* One more is known, and takes another's place. */
	(void)td_solo_correct(&solo, 5 + TD_SOLO_PLACES, 9 * MS, TD_INTERVAL_EXACT);
	CHECK_EQ(td_solo_expect(&solo, 5 + TD_SOLO_PLACES), 9 * MS);
}

TEST(work_that_was_never_alone_costs_about_the_least_that_was_seen)
{
	static struct td_solo solo;
	uint64_t sum = 0;

	for (unsigned i = 0; i < 100; i++)
		(void)td_solo_correct(&solo, 1, i % 4 ? 60 * MS : 3 * MS, TD_INTERVAL_UPPER);
	for (unsigned i = 0; i < 100; i++)
		sum += td_solo_correct(&solo, 1, i % 4 ? 60 * MS : 3 * MS, TD_INTERVAL_UPPER);
	CHECK(sum / 100 < 3200000);
}

TEST(alone_it_costs_what_it_takes_and_longer_work_is_noticed)
{
	static struct td_solo solo;

	CHECK_EQ(td_solo_correct(&solo, 1, 1 * MS, TD_INTERVAL_EXACT), 1 * MS);
	for (unsigned i = 0; i < 80; i++)
		(void)td_solo_correct(&solo, 1, 5 * MS, TD_INTERVAL_EXACT);
	CHECK(td_solo_correct(&solo, 1, 9 * MS, TD_INTERVAL_UPPER) > 4500000);
	/* and beside others too, in time */
	for (unsigned i = 0; i < 2000; i++)
		(void)td_solo_correct(&solo, 1, 9 * MS, TD_INTERVAL_UPPER);
	CHECK(td_solo_correct(&solo, 1, 9 * MS, TD_INTERVAL_UPPER) > 8900000);
	CHECK_EQ(td_solo_correct(&solo, 1, 1ull << 50, TD_INTERVAL_EXACT), 1ull << 50);
	/* a gap in the middle of one piece of work costs a few times the work, not the gap */
	CHECK(td_solo_correct(&solo, 1, 900 * MS, TD_INTERVAL_EXACT) < 30 * MS);
}

TEST(what_is_owed_is_the_same_gpu_time_under_another_duty)
{
	struct td_budget budget = {0};
	uint64_t now = 1000 * MS;

	td_budget_reset(&budget, now);
	td_budget_charge(&budget, 20 * MS, 10000);
	CHECK_EQ(td_budget_wait_ns(&budget, 0, 10000, now), 2000 * MS - AHEAD);
	td_budget_change(&budget, 10000, 100000, now);
	CHECK_EQ(td_budget_wait_ns(&budget, 0, 100000, now), 200 * MS - AHEAD);
	/* Who owes nothing has saved nothing either. */
	td_budget_reset(&budget, now - 900 * MS);
	td_budget_change(&budget, 100000, 10000, now);
	td_budget_charge(&budget, MS, 10000);
	CHECK_EQ(td_budget_wait_ns(&budget, 0, 10000, now), 100 * MS - AHEAD);
}

TEST(after_a_free_piece_the_next_is_as_far_away_as_behind_a_paid_one_and_many_cost_no_more_than_one)
{
	struct td_budget budget = {0};
	uint64_t now = 1000 * MS;

	td_budget_reset(&budget, now);
	for (unsigned i = 0; i < 5; i++, now += 50 * MS)
		td_budget_spend(&budget, 50 * MS, 10000, now);
	CHECK_EQ(td_budget_wait_ns(&budget, 0, 10000, now), 5000 * MS - 50 * MS - AHEAD);
}

TEST(the_longest_that_work_took_lately_is_what_it_may_take)
{
	static struct td_lengths lengths;
	uint32_t hash = td_window_hash(5);

	CHECK_EQ(td_lengths_expect(&lengths, hash), 0);
	td_lengths_note(&lengths, hash, 10 * MS, true);
	td_lengths_note(&lengths, hash, 266 * MS, true);
	CHECK_EQ(td_lengths_expect(&lengths, hash), 266 * MS);
	td_lengths_note(&lengths, hash, 10 * MS, true);
	CHECK_EQ(td_lengths_expect(&lengths, hash), 265 * MS);
	/* Where others may have been served in between, at most a quarter more. */
	td_lengths_note(&lengths, hash, 280 * MS, false);
	CHECK_EQ(td_lengths_expect(&lengths, hash), 280 * MS);
	td_lengths_note(&lengths, hash, 1000 * MS, false);
	CHECK_EQ(td_lengths_expect(&lengths, hash), 350 * MS);
	for (unsigned i = 0; i < 2000; i++)
		td_lengths_note(&lengths, hash, 10 * MS, true);
	CHECK(td_lengths_expect(&lengths, hash) < 11 * MS);
	CHECK_EQ(td_lengths_expect(&lengths, td_window_hash(6)), 0);
}

/* Otherwise one long piece would let idle time be saved up for ever. */
TEST(short_pieces_let_a_long_one_be_forgotten)
{
	struct td_budget budget = {0};

	td_budget_reset(&budget, SECONDS);
	td_budget_charge(&budget, 400 * MS, 500000);
	CHECK_EQ(atomic_load(&budget.longest_ns), 400 * MS);
	for (unsigned i = 0; i < 2000; i++)
		td_budget_charge(&budget, MS, 500000);
	CHECK(atomic_load(&budget.longest_ns) >= MS);
	CHECK(atomic_load(&budget.longest_ns) < 10 * MS);
}
