/* The window's arithmetic on made-up events. */
#include "test.h"

#include "base/time.h"
#include "preload/base/sizes.h"
#include "preload/base/window.h"
#include "preload/gate/gate.h"

#define MS TD_NS_PER_MS

static char stream_a;

/* n submissions, then a mark behind them. */
static void submit(struct td_window *w, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		td_window_submitted(w, &stream_a, 0);
	CHECK(td_window_next_mark(w) != NULL);
	td_window_marked(w);
}

TEST(two_submissions_may_always_be_in_flight)
{
	struct td_window w = {0};

	CHECK(td_window_may_submit(&w, 0, 0));
	submit(&w, 1);
	CHECK(td_window_may_submit(&w, 1000 * MS, 1));
	submit(&w, 1);
	CHECK(!td_window_may_submit(&w, 1000 * MS, 1));
}

TEST(nothing_beyond_the_minimum_before_a_length_is_known)
{
	struct td_window w = {0};

	submit(&w, 2);
	CHECK(!td_window_may_submit(&w, 0, 1000 * MS));
	td_window_completed(&w, 0);
	CHECK(td_window_may_submit(&w, 0, 1000 * MS));
}

TEST(the_length_comes_from_intervals_in_which_the_device_was_busy)
{
	struct td_window w = {0};

	submit(&w, 4);
	submit(&w, 4);
	td_window_completed(&w, 400 * MS); /* the first: the device was dry before it */
	CHECK_EQ(w.estimate_ns, 0);
	td_window_completed(&w, 8 * MS);
	CHECK_EQ(w.estimate_ns, 2 * MS);
	CHECK_EQ(w.in_flight, 0);
}

TEST(a_gap_between_submissions_is_not_their_length)
{
	struct td_window w = {0};

	submit(&w, 1);
	submit(&w, 1);
	td_window_completed(&w, 0);
	td_window_completed(&w, 1 * MS);
	submit(&w, 1); /* nothing in flight: the interval holds a pause of the program */
	td_window_completed(&w, 500 * MS);
	CHECK_EQ(w.estimate_ns, 1 * MS);
}

TEST(longer_work_is_believed_at_once_and_shorter_slowly)
{
	struct td_window w = {.estimate_ns = 8 * MS};

	submit(&w, 1);
	submit(&w, 1);
	submit(&w, 1);
	td_window_completed(&w, 0);
	td_window_completed(&w, 16 * MS);
	CHECK_EQ(w.estimate_ns, 16 * MS);
	td_window_completed(&w, 8 * MS);
	CHECK_EQ(w.estimate_ns, 15 * MS);
}

TEST(no_more_is_let_into_flight_than_fits_the_window)
{
	struct td_window w = {.estimate_ns = 1 * MS};
	unsigned let_in = 0;

	while (td_window_may_submit(&w, td_window_in_flight_ns(&w), 10 * MS) && let_in < 100) {
		td_window_submitted(&w, &stream_a, 0);
		let_in++;
	}
	CHECK_EQ(let_in, 10);
}

TEST(work_of_other_threads_counts)
{
	struct td_window w = {.estimate_ns = 1 * MS, .in_flight = 2};

	CHECK(td_window_may_submit(&w, 5 * MS, 10 * MS));
	CHECK(!td_window_may_submit(&w, 10 * MS, 10 * MS));
}

TEST(short_work_is_marked_rarely_and_long_work_every_time)
{
	struct td_window w = {.estimate_ns = 1 * MS, .unmarked = 1};

	CHECK(td_window_mark_due(&w, 4 * MS));
	w.estimate_ns = MS / 100;
	CHECK(!td_window_mark_due(&w, 4 * MS));
	w.unmarked = TD_WINDOW_EVERY_MAX;
	CHECK(td_window_mark_due(&w, 4 * MS));
	w.unmarked = 0;
	CHECK(!td_window_mark_due(&w, 4 * MS));
}

TEST(nothing_is_marked_that_has_a_mark_or_is_forgotten)
{
	struct td_window w = {0};

	CHECK(!td_window_mark_due(&w, 0));
	w.estimate_ns = 1000 * MS; /* each submission is to have a mark */
	CHECK(!td_window_mark_due(&w, 2 * MS));
	td_window_submitted(&w, &stream_a, 0);
	CHECK(td_window_mark_due(&w, 2 * MS));
	CHECK(td_window_next_mark(&w) != NULL);
	td_window_marked(&w);
	CHECK(!td_window_mark_due(&w, 2 * MS));
	td_window_submitted(&w, &stream_a, 0);
	td_window_forget_unmarked(&w);
	CHECK(!td_window_mark_due(&w, 2 * MS));
	CHECK_EQ(w.in_flight, 1);
}

TEST(a_full_ring_takes_no_mark_and_loses_no_count)
{
	struct td_window w = {0};

	for (int i = 0; i < TD_WINDOW_MARKS; i++)
		submit(&w, 1);
	td_window_submitted(&w, &stream_a, 0);
	CHECK(!td_window_next_mark(&w));
	CHECK_EQ(w.in_flight, TD_WINDOW_MARKS + 1);
	while (td_window_oldest(&w))
		td_window_completed(&w, 1 * MS);
	CHECK_EQ(w.in_flight, 1);
	td_window_marked(&w);
	td_window_completed(&w, 0);
	CHECK_EQ(w.in_flight, 0);
}

TEST(forgotten_submissions_leave_the_count)
{
	struct td_window w = {0};

	submit(&w, 3);
	td_window_submitted(&w, &stream_a, 0);
	td_window_forget_unmarked(&w);
	CHECK_EQ(w.in_flight, 3);
	td_window_completed(&w, 0);
	CHECK_EQ(w.in_flight, 0);
}

TEST(pauses_are_short_and_bounded)
{
	struct td_window w = {.estimate_ns = 1000 * MS};

	CHECK(td_window_pause_ns(&w, 10 * MS) <= 1 * MS);
	w.estimate_ns = 1;
	CHECK(td_window_pause_ns(&w, 10 * MS) >= 10000);
}

/*
 * A copy is known by its size alone, and by nothing else of its call; a launch is never taken for
 * one.
 */
TEST(copies_are_told_apart_by_the_power_of_two_of_their_size)
{
	struct td_window w = {0};
	uint32_t call = TD_SUBMIT_CALL | 600u << TD_SUBMIT_WORK_SHIFT,
		 small = td_submit_as_work(call | td_submit_size(4096)),
		 large = td_submit_as_work(call | td_submit_size(8192));
	size_t a2 = 4095;

	CHECK_EQ(td_submit_as_work(call), 0);
	CHECK_EQ(td_submit_as_work(call | td_submit_size(0)), 0);
	CHECK_EQ(td_submit_as_work(call | td_submit_size(8191)), small);
	CHECK(small != large && td_window_is_sized(small) && td_window_is_sized(large));
	CHECK_EQ(td_submit_call(call | td_submit_size(UINT64_MAX)), 600);
	CHECK_EQ(td_submit_as_work(call | td_submit_size(UINT64_MAX)), 0);
	CHECK(!td_window_is_sized(0));
	CHECK(!td_window_is_sized(td_submit_as_work(td_submit_work(&w, 1, 1, 1))));
	td_window_submitted(&w, &stream_a, small);
	CHECK_EQ(w.hash, small);
	td_window_submitted(&w, &stream_a, large);
	CHECK(!td_window_is_sized(w.hash)); /* a mark of several is none of them */
	CHECK_EQ(TD_SIZE(cuMemcpyHtoDAsync_v2), a2);
	CHECK_EQ(TD_SIZE(cuLaunchKernel), 0);
	CHECK_EQ(TD_SIZE(cuMemcpy3DAsync_v2), 0);
}
