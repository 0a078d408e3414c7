/*
 * A capture that begins beside a thread that waits for a whole context. The capture may begin only
 * when that wait has entered the driver, which nobody can see, so it waits for a while. The clock
 * is the test's.
 */
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/time.h"
#include "unit/preload/fake_gpu.h"
#include "preload/context/context.h"

static _Atomic uint64_t now_ns = TD_NS_PER_S;
static _Atomic bool begun;

uint64_t td_time_now_ns(void)
{
	return atomic_load(&now_ns);
}

void td_time_sleep_until_ns(uint64_t deadline_ns)
{
	(void)deadline_ns;
	nanosleep(&(struct timespec){0, 1000000}, NULL);
}

static void *begin_capture(void *arg)
{
	td_context_capture_begin();
	atomic_store(&begun, true);
	return arg;
}

static pthread_t begin_beside_a_wait(void)
{
	pthread_t thread;

	td_driver_set(&fake_driver);
	atomic_store(&begun, false);
	CHECK(td_context_hold_captures());
	td_context_waiting(true);
	td_context_release_captures();
	CHECK_EQ(pthread_create(&thread, NULL, begin_capture, NULL), 0);
	/*
	 * The capture is known from here on: a thread that would wait for a context now does not.
	 */
	while (!td_context_any_capture())
		td_time_sleep_until_ns(0);
	CHECK(!td_context_hold_captures());
	CHECK(td_context_capture_is_beginning());
	td_context_release_captures();
	for (unsigned i = 0; i < 20; i++)
		td_time_sleep_until_ns(0); /* in which it would begin, if it did not wait */
	CHECK(!atomic_load(&begun));
	return thread;
}

static void end_capture(pthread_t thread)
{
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK(atomic_load(&begun));
	td_context_capture_begun(true, FAKE_STREAM);
	CHECK(!td_context_hold_captures());
	CHECK(!td_context_capture_is_beginning());
	td_context_release_captures();
	td_context_capture_ended(FAKE_STREAM);
	CHECK(!td_context_any_capture());
}

TEST(a_capture_begins_when_nobody_waits_for_a_context_any_more)
{
	pthread_t thread = begin_beside_a_wait();

	td_context_waiting(false);
	end_capture(thread);
}

/* The wait may itself wait for the thread that captures. */
TEST(or_after_a_while)
{
	pthread_t thread = begin_beside_a_wait();

	atomic_fetch_add(&now_ns, TD_NS_PER_S / 5);
	end_capture(thread);
	td_context_waiting(false);
}

TEST(one_that_the_driver_refuses_is_none)
{
	td_context_capture_begin();
	CHECK(td_context_any_capture());
	td_context_capture_begun(false, FAKE_STREAM);
	CHECK(!td_context_any_capture());
	td_context_capture_ended(
		FAKE_STREAM); /* nor does an end that was begun unseen take one off */
	CHECK(!td_context_any_capture());
}

static void capture_in(void *context)
{
	atomic_store(&fake.context, context);
	td_context_capture_begin();
	td_context_capture_begun(true, FAKE_STREAM);
}

static void end_in(void *context)
{
	atomic_store(&fake.context, context);
	td_context_capture_ended(FAKE_STREAM);
}

TEST(a_context_that_ends_takes_its_open_captures_along_and_no_others)
{
	void *a = (void *)0xa0, *b = (void *)0xb0;

	td_driver_set(&fake_driver);
	capture_in(a);
	td_captures_context_ended(a);
	CHECK(!td_context_any_capture());
	/* One that is over already does not end again with its context. */
	capture_in(a);
	end_in(a);
	capture_in(b);
	td_captures_context_ended(a);
	CHECK(td_context_any_capture());
	/* All of a context end with it. */
	capture_in(a);
	capture_in(a);
	capture_in(a);
	end_in(a);
	td_captures_context_ended(a);
	CHECK(td_context_any_capture());
	td_captures_context_ended(a);
	CHECK(td_context_any_capture());
	end_in(b);
	CHECK(!td_context_any_capture());
	td_captures_context_ended(b);
	CHECK(!td_context_any_capture());
	atomic_store(&fake.context, NULL);
}

/* The table has room for 64. */
TEST(as_many_captures_as_the_table_has_room_for_end_with_their_contexts)
{
	td_driver_set(&fake_driver);
	for (uintptr_t i = 1; i <= 64; i++)
		capture_in((void *)(i << 8));
	for (uintptr_t i = 64; i; i--) {
		CHECK(td_context_any_capture());
		td_captures_context_ended((void *)(i << 8));
	}
	CHECK(!td_context_any_capture());
	atomic_store(&fake.context, NULL);
}
