/*
 * Which state the plans take for drained, shown by their messages: the test is the daemon, the
 * clock, and a system that may refuse threads.
 */
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>

#include "unit/preload/fake_gpu.h"
#include "preload/agent/agent.h"
#include "preload/agent/plans.h"
#include "preload/base/settings.h"
#include "preload/base/thread.h"
#include "preload/context/context.h"
#include "preload/context/drain.h"
#include "preload/context/marker.h"
#include "preload/gate/gate.h"
#include "proto/proto.h"

#define SECONDS TD_NS_PER_S
#define BOUND   (10 * SECONDS) /* only a hang reaches it */

static _Atomic bool no_thread;
static unsigned sent[TD_MSG_TYPE_error + 1];
static uint32_t word;

/* In the place of thread.c's. */
int td_thread_start(void *(*run)(void *arg))
{
	pthread_t thread;

	if (atomic_load(&no_thread) || pthread_create(&thread, NULL, run, NULL))
		return -EAGAIN;
	pthread_detach(thread);
	return 0;
}

static void hear(const struct td_msg *msg)
{
	sent[msg->type]++;
}

static void launch(void)
{
	td_gate_leave(td_gate_enter(NULL, 0));
}

static void close_gate(void)
{
	word += TD_WORD_STEP;
	td_gate_write(TD_WORD_CLOSED | word);
}

static void begin(void)
{
	td_marker_init();
	td_gate_init();
	td_driver_set(&fake_driver);
	td_plans_set_backend(&fake_backend);
	td_plans_init(hear);
	td_settings.drain_deadline_ns = 10 * SECONDS;
	launch();
	CHECK_EQ(td_context_gpu_count(), 1);
}

/* The drain would be over at once; but there is nobody to see that. */
TEST(a_drain_for_which_no_thread_can_be_had_is_not_over)
{
	uint64_t now = td_time_now_ns(), end;

	begin();
	atomic_store(&no_thread, true);
	close_gate();
	for (unsigned i = 0; i < 20; i++) {
		uint64_t next = td_plans_step(now);

		CHECK_EQ(td_plans_closing(), TD_CLOSING_EMPTYING);
		CHECK(next > now && next < now + SECONDS); /* it is tried again */
		now = next;
	}
	CHECK_EQ(sent[TD_MSG_TYPE_drained], 0);
	atomic_store(&no_thread, false);
	for (end = td_time_now_ns() + BOUND; !sent[TD_MSG_TYPE_drained];) {
		CHECK(td_time_now_ns() < end);
		(void)td_plans_step(now += TD_NS_PER_MS / 100);
		td_time_sleep_until_ns(td_time_now_ns() + TD_NS_PER_MS / 10);
	}
	CHECK_EQ(td_plans_closing(), TD_CLOSING_DRAINED);
	CHECK_EQ(atomic_load(&fake.context_syncs), 1);
	td_gate_write(0);
	(void)td_plans_step(now);
}

TEST(and_by_its_deadline_it_is_given_up)
{
	uint64_t now = td_time_now_ns();

	atomic_store(&fake.busy, true); /* the thread that there is by now comes to no end */
	sent[TD_MSG_TYPE_drained] = 0;
	close_gate();
	(void)td_plans_step(now);
	(void)td_plans_step(now + 5 * SECONDS);
	CHECK_EQ(sent[TD_MSG_TYPE_stuck], 0);
	(void)td_plans_step(now + 10 * SECONDS);
	CHECK_EQ(sent[TD_MSG_TYPE_stuck], 1);
	CHECK_EQ(sent[TD_MSG_TYPE_drained], 0);
	atomic_store(&fake.busy, false);
	td_gate_write(0);
	(void)td_plans_step(now + 11 * SECONDS);
}

/* A program has a twin of its context for each share of the SMs that it has had (rehome.h). */
TEST(contexts_that_the_program_has_left_are_not_asked_for_work)
{
	const uintptr_t first = 0x1000, count = 10;

	for (uintptr_t c = first; c < first + count; c++) {
		atomic_store(&fake.context, (void *)c);
		td_context_note((void *)c, true);
		td_context_set_left((void *)c, true);
	}
	atomic_store(&fake.context, NULL);
	atomic_store(&fake.tells_idle, true);
	CHECK(td_drain_is_idle());
	for (uintptr_t c = first; c < first + count; c++)
		td_context_set_left((void *)c, false);
	CHECK(!td_drain_is_idle());
	for (uintptr_t c = first; c < first + count; c++)
		td_context_gone((void *)c);
	CHECK(td_drain_is_idle());
	atomic_store(&fake.tells_idle, false);
}

/* Nobody knows whose it is: its context may be any. */
TEST(a_stream_that_was_made_without_a_context_is_not_forgotten)
{
	void *handles[4];
	unsigned count;

	CHECK(td_context_streams(FAKE_CONTEXT, handles, 4, &count));
	atomic_store(&fake.lost_context, true);
	td_context_stream_created(FAKE_STREAM);
	atomic_store(&fake.lost_context, false);
	CHECK(!td_context_streams(FAKE_CONTEXT, handles, 4, &count));
	CHECK_EQ(count, 0);
}
