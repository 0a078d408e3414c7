/* What one thread does in the middle of what another does. */
#include "agent_world.h"

/*
 * A driver that is asked about an event by a thread of the usual mode, while any thread captures in the usual mode, refuses and spoils that capture. Which may begin at
 * any moment.
 */
CASE(pacing_looks_at_its_events_as_no_capture_forbids)
{
	start_open(1);
	atomic_store(&d.gate->window_ns, MS);
	word(TD_WORD_WINDOW | TD_WORD_STEP);
	for (unsigned i = 0; i < 4; i++)
		launch_on(FAKE_STREAM);
	EXPECT(atomic_load(&fake.queries) != 0);
	EXPECT(atomic_load(&fake.queries_not_relaxed) == 0);
	EXPECT(fake_mode_now == 0); /* the program's own is what it was */
}

/* A stream that waits for an event of a capture joins it: while the driver has not answered, an event that is put on it may become a part of the capture. */
CASE(nothing_is_recorded_while_a_stream_may_join_a_capture)
{
	unsigned pushes;

	start_open(1);
	td_context_stream_created(FAKE_STREAM);
	EXPECT(!td_context_join_begin()); /* there is none */
	td_context_capture_begin();
	td_context_capture_begun(true);
	EXPECT(td_context_join_begin());
	pushes = atomic_load(&fake.pushes);
	daemon_close(0);
	while (atomic_load(&fake.pushes) == pushes)
		td_time_sleep_until_ns(td_time_now_ns() + MS);
	td_time_sleep_until_ns(
		td_time_now_ns() + 10 * MS); /* in which the drain comes by again and again */
	EXPECT(atomic_load(&fake.records) == 0);
	atomic_store(&fake.capturing, true);
	td_context_join_end();
	(void)next(TD_MSG_TYPE_drained);
	EXPECT(atomic_load(&fake.records) != 0);
	EXPECT(atomic_load(&fake.records_on_capture) == 0);
}

static _Atomic int need_result = -1;

static void *ask_for_much(void *arg)
{
	(void)arg;
	atomic_store(&need_result, td_client_need(0, 80 * MIB, true));
	return NULL;
}

/* One thread allocates, and waits for the daemon; another resets the GPU. Nobody answers any more. */
CASE(who_asks_for_memory_of_a_context_that_ends_is_refused)
{
	pthread_t thread;

	start_open(1);
	EXPECT(!pthread_create(&thread, NULL, ask_for_much, NULL));
	(void)next(TD_MSG_TYPE_need);
	td_context_gone(FAKE_CONTEXT);
	(void)next(TD_MSG_TYPE_detach);
	EXPECT(!pthread_join(thread, NULL));
	EXPECT(atomic_load(&need_result) == TD_NEED_REFUSED);
	/* It was about to ask. */
	atomic_store(&need_result, -1);
	EXPECT(!pthread_create(&thread, NULL, ask_for_much, NULL));
	EXPECT(!pthread_join(thread, NULL));
	EXPECT(atomic_load(&need_result) == TD_NEED_REFUSED);
}

static void *call_while_cancelled(void *arg)
{
	(void)arg;
	pthread_cancel(pthread_self());
	td_client_memory_changed(0); /* wakes the agent */
	td_agent_wake();
	td_gate_await(); /* sleeps */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return &need_result;
}

/* A call of CUDA is no cancellation point, so that a program may hold what it likes there; and we hold promises and locks. */
CASE(a_cancelled_thread_does_not_end_in_what_we_do_in_its_calls)
{
	pthread_t thread;
	void *result;

	start_open(1);
	EXPECT(!pthread_create(&thread, NULL, call_while_cancelled, NULL));
	EXPECT(!pthread_join(thread, &result));
	EXPECT(result != PTHREAD_CANCELED);
}
