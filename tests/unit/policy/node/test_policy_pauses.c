/* How long a pause may be relied on. */
#include "test.h"

#include "policy_random.h"

#include "policy/node/beside/pauses.h"

#define MS   1000000ull
#define LATE 100000ull /* what is told of a pause is so old */

static struct td_pauses pauses;
static uint64_t now;

static void begin_with(const uint64_t *lengths_ms, unsigned count)
{
	pauses = (struct td_pauses){0};
	now = 1000 * MS;
	for (unsigned i = 0; i < count; i++) {
		td_pauses_begin(&pauses, now);
		now += lengths_ms[i] * MS;
		td_pauses_end(&pauses, now);
		now += 10 * MS;
	}
	td_pauses_begin(&pauses, now);
}

/* Asks about the present pause, in ns after its beginning; *ret_again_ns too. */
static uint64_t until(uint64_t age_ns, uint64_t *ret_again_ns)
{
	uint64_t again, at = td_pauses_until_ns(&pauses, MS, now + age_ns, &again);

	*ret_again_ns = again == UINT64_MAX ? again : again - now;
	return at == UINT64_MAX ? at : at - now;
}

TEST(where_none_has_been_seen_a_pause_has_no_end)
{
	uint64_t again;

	begin_with(NULL, 0);
	CHECK(until(0, &again) == UINT64_MAX && again == UINT64_MAX);
}

TEST(it_is_relied_on_up_to_the_shortest_that_lasted_as_long)
{
	static const uint64_t lengths[] = {200, 10, 203, 10, 201};
	uint64_t again;

	begin_with(lengths, 5);
	CHECK_EQ(until(0, &again), 10 * MS - LATE);
	CHECK_EQ(again, 10 * MS);
	/* The next of that kind may be a little longer. */
	CHECK_EQ(until(10 * MS, &again), 0);
	CHECK_EQ(again, 10 * MS + 10 * MS / 16);
	CHECK_EQ(until(11 * MS, &again), 200 * MS - LATE);
	CHECK_EQ(again, 200 * MS);
	/*
	 * Between 200 and 203 it may end at any moment, and so it may until a quarter more than the
	 * longest.
	 */
	CHECK_EQ(until(200 * MS, &again), 0);
	CHECK_EQ(again, 203 * MS + 203 * MS / 4);
	CHECK_EQ(until(230 * MS, &again), 0);
	CHECK(until(254 * MS, &again) == UINT64_MAX);
	CHECK(again == UINT64_MAX);
}

TEST(what_is_less_than_the_grain_or_a_sixteenth_is_no_gap)
{
	static const uint64_t lengths[] = {20, 24, 1000, 1040, 1200};
	uint64_t again;

	begin_with(lengths, 5);
	CHECK_EQ(until(19 * MS + MS / 2, &again), 0); /* half a millisecond is left */
	CHECK_EQ(again, 20 * MS);
	CHECK_EQ(until(21 * MS, &again), 0); /* of the kind of 20 */
	CHECK_EQ(again, 21 * MS + MS / 4);
	CHECK_EQ(until(21 * MS + MS / 4, &again), 24 * MS - LATE);
	CHECK_EQ(until(1000 * MS, &again), 0); /* 40 of 1040 */
	CHECK_EQ(again, 1040 * MS);
	CHECK_EQ(until(1040 * MS, &again), 0);
	CHECK_EQ(again, 1105 * MS);
	CHECK_EQ(until(1105 * MS, &again), 1200 * MS - LATE);
}

TEST(only_the_last_ones_count)
{
	uint64_t lengths[TD_PAUSES_MAX + 2], again;

	for (unsigned i = 0; i < TD_PAUSES_MAX + 2; i++)
		lengths[i] = i < 2 ? 5 : 100 + i % 3;
	begin_with(lengths, TD_PAUSES_MAX + 2);
	CHECK_EQ(until(0, &again), 100 * MS - LATE);
	begin_with(lengths + 1, TD_PAUSES_MAX);
	CHECK_EQ(until(0, &again), 5 * MS - LATE);
}

TEST(an_end_without_a_beginning_and_two_beginnings_count_once)
{
	uint64_t again;

	begin_with(NULL, 0);
	td_pauses_begin(&pauses, now + 5 * MS);
	td_pauses_end(&pauses, now + 8 * MS);
	td_pauses_end(&pauses, now + 90 * MS);
	CHECK_EQ(pauses.count, 1);
	now += 100 * MS;
	td_pauses_begin(&pauses, now);
	CHECK_EQ(until(0, &again), 8 * MS - LATE);
}

/*
 * Pauses in random order, of lengths of several kinds, and pieces of work of one length that are
 * let in where the pause may be relied on.
 */
static double cost_of(uint64_t seed, unsigned kind, uint64_t piece_ns, double *ret_longest_ns)
{
	double cost = 0, longest = 0;

	begin_with(NULL, 0);
	for (unsigned i = 0; i < 4000; i++) {
		double u = (random_below(&seed, 1000000) + 1) / 1e6, ms = 0;
		uint64_t length, at = now, again;

		switch (kind) {
		case 0: ms = 100 + 200 * u; break;
		case 1: ms = 200 + 2 * u; break;
		case 2: ms = u < 0.95 ? 10 + u : 200 + 50 * u; break;
		default: ms = 20 / (u + 0.01); break; /* few are long */
		}
		length = (uint64_t)(ms * 1e6);
		longest = ms * 1e6 > longest ? ms * 1e6 : longest;
		while (at < now + length) {
			uint64_t end = td_pauses_until_ns(&pauses, MS, at, &again);

			if (end > at && end - at >= piece_ns) {
				at += piece_ns;
				if (i >= 1000 && at > now + length)
					cost += (double)(at - now - length) / 3000;
			} else if (again == UINT64_MAX) {
				break;
			} else {
				CHECK(again > at); /* or it would be asked for ever */
				at = again;
			}
		}
		now += length;
		td_pauses_end(&pauses, now);
		now += 10 * MS;
		td_pauses_begin(&pauses, now);
	}
	*ret_longest_ns = longest;
	return cost;
}

TEST(whatever_the_lengths_what_is_not_over_in_time_costs_a_hundredth_of_the_longest)
{
	static const uint64_t pieces_ms[] = {2, 5, 9, 20, 50, 150};

	for (unsigned kind = 0; kind < 4; kind++)
		for (unsigned p = 0; p < 6; p++) {
			double longest, cost = cost_of(7 + kind, kind, pieces_ms[p] * MS, &longest);

			CHECK(cost <= longest / 100);
		}
}
