/* Events come out by time, and in the order in which they were put where times are equal. */
#include "test.h"

#include "sim/base/future.h"
#include "sim/base/random.h"

static struct td_future future;

/* No child before its parent. */
static bool is_heap(void)
{
	const struct td_event *events = future.near.events;

	for (uint32_t i = 1; i < future.near.count; i++)
		if (td_event_key(&events[i]) < td_event_key(&events[(i - 1) / 4]))
			return false;
	return true;
}

TEST(events_come_in_the_order_of_time)
{
	uint64_t seed = 3, last = 0;
	uint32_t pending = 0, popped = 0;
	struct td_event event;

	CHECK_EQ(td_future_reserve(&future, 5000), 0);
	for (int round = 0; round < 200000; round++) {
		if (pending < 5000 &&
			(!pending || td_random_below(&seed, 5) < (round < 100000 ? 3 : 2))) {
			td_future_push(
				&future, last + td_random_below(&seed, 1000), (uint32_t)round);
			pending++;
		} else {
			CHECK(td_future_pop(&future, &event));
			CHECK(event.at_ns >= last);
			last = event.at_ns;
			pending--;
			popped++;
		}
	}
	while (td_future_pop(&future, &event)) {
		CHECK(event.at_ns >= last);
		last = event.at_ns;
		pending--;
	}
	CHECK_EQ(pending, 0);
	CHECK(popped > 50000);
	td_future_deinit(&future);
}

TEST(events_of_one_time_come_as_they_were_put)
{
	struct td_event event;
	uint32_t next = 0;

	CHECK_EQ(td_future_reserve(&future, 100), 0);
	for (uint32_t i = 0; i < 50; i++)
		td_future_push(&future, 7, 1000 - i);
	for (uint32_t i = 50; i < 100; i++) {
		CHECK(td_future_pop(&future, &event));
		CHECK_EQ(event.what, 1000 - next++);
		td_future_push(&future, 7, 1000 - i);
	}
	while (td_future_pop(&future, &event))
		CHECK_EQ(event.what, 1000 - next++);
	CHECK_EQ(next, 100);
	td_future_deinit(&future);
}

TEST(an_empty_future_has_nothing_and_grows)
{
	struct td_event event;

	CHECK(!td_future_pop(&future, &event));
	CHECK_EQ(td_future_reserve(&future, 2), 0);
	td_future_push(&future, 2, 2);
	td_future_push(&future, 1, 1);
	CHECK_EQ(td_future_reserve(&future, 3), 0);
	td_future_push(&future, 0, 0);
	for (uint32_t i = 0; i < 3; i++) {
		CHECK(td_future_pop(&future, &event));
		CHECK_EQ(event.what, i);
	}
	CHECK(!td_future_pop(&future, &event));
	CHECK(!td_future_pop(&future, &event));
	td_future_deinit(&future);
}

static int by_key(const void *a, const void *b)
{
	unsigned __int128 x = td_event_key(a), y = td_event_key(b);

	return (x > y) - (x < y);
}

/* Returns a span of any size: each number of bits is equally likely. */
static uint64_t random_span(uint64_t *seed)
{
	return td_random_bits(seed) >> td_random_below(seed, 64);
}

/*
 * Any mixture of pushes, pops and looks, at many times, at few and at the extremes, gives the order
 * of sorting by time and order.
 */
TEST(what_comes_out_is_what_a_sorted_list_would_give)
{
	enum { MOST = 700 };
	static struct td_event reference[MOST];
	uint64_t seed = 99;

	CHECK_EQ(td_future_reserve(&future, 8), 0);
	for (int run = 0; run < 300; run++) {
		uint32_t count = 0, most = 1 + td_random_below(&seed, MOST);
		uint32_t times = 1 + td_random_below(&seed, run % 3 == 1 ? 4 : 100000);
		uint32_t push_of_8 = 1 + td_random_below(&seed, 7);
		uint64_t now = 0;

		for (int round = 0; round < 2000; round++) {
			struct td_event event;

			if (count < most && td_random_below(&seed, 8) < push_of_8) {
				uint64_t later = run % 3 < 2 ? td_random_below(&seed, times)
							     : random_span(&seed);
				uint64_t at = later > UINT64_MAX - now ? UINT64_MAX : now + later;
				uint32_t order;

				if (future.count + 1 >= future.room)
					CHECK_EQ(td_future_reserve(&future, 2 * future.room), 0);
				order = td_future_push(&future, at, (uint32_t)round);
				reference[count++] = (struct td_event){(uint32_t)round, order, at};
				continue;
			}
			qsort(reference, count, sizeof(reference[0]), by_key);
			if (round % 3 == 0) {
				const struct td_event *next = td_future_peek(&future);

				CHECK_EQ(next != NULL, count > 0);
				CHECK(!next || td_event_key(next) == td_event_key(&reference[0]));
			}
			CHECK_EQ(td_future_pop(&future, &event), count > 0);
			if (!count)
				continue;
			CHECK(td_event_key(&event) == td_event_key(&reference[0]));
			CHECK_EQ(event.what, reference[0].what);
			now = event.at_ns;
			memmove(reference, reference + 1, --count * sizeof(reference[0]));
		}
		qsort(reference, count, sizeof(reference[0]), by_key);
		for (uint32_t i = 0; i < count; i++) {
			struct td_event event;

			CHECK(td_future_pop(&future, &event));
			CHECK(td_event_key(&event) == td_event_key(&reference[i]));
		}
		CHECK(!td_future_peek(&future));
	}
	td_future_deinit(&future);
}

/* Small numbers meet the edges of the heap's last family of children all the time. */
TEST(small_ones_keep_their_order)
{
	uint64_t seed = 17, times[120], last = 0;
	struct td_event event;

	CHECK_EQ(td_future_reserve(&future, 120), 0);
	for (uint32_t size = 1; size <= 120; size++) {
		uint32_t count = 0;

		for (int round = 0; round < 2000; round++) {
			uint32_t least = 0;

			while (count < size) {
				times[count] = last + td_random_below(&seed, 1000);
				td_future_push(&future, times[count++], 0);
			}
			for (uint32_t i = 1; i < count; i++)
				least = times[i] < times[least] ? i : least;
			CHECK(td_future_pop(&future, &event));
			CHECK_EQ(event.at_ns, times[least]);
			last = event.at_ns;
			CHECK(is_heap());
			times[least] = times[--count];
			if (round % 3 == 0 && count) {
				CHECK(td_future_peek(&future)->at_ns >= event.at_ns);
			}
		}
		while (td_future_pop(&future, &event))
			count--;
		CHECK_EQ(count, 0);
	}
	td_future_deinit(&future);
}
