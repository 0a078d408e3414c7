/*
 * The agent: the memory that a limit lets onto the device, while allocations are granted, asked
 * for, and outstanding.
 */
#include "unit/preload/agent_world.h"
#include "preload/base/agent_calls.h"

static void plan_spilling(uint64_t limit_bytes)
{
	granted.grant.gate = TD_GATE_OPEN;
	grant(limit_bytes, UINT64_MAX);
}

static void until_reported(void)
{
	struct td_msg msg;

	do
		msg = next(TD_MSG_TYPE_used);
	while (msg.used.acked_seq != d.seq);
}

static void *ask(void *bytes)
{
	(void)td_client_need(0, *(uint64_t *)bytes, TD_MOVABLE);
	return NULL;
}

/* A thread that asks for so much, and has not been answered. */
static void begin_to_ask(void)
{
	static uint64_t bytes = 8 * MIB;
	pthread_t thread;

	EXPECT(!pthread_create(&thread, NULL, ask, &bytes));
	EXPECT(!pthread_detach(thread));
	EXPECT(next(TD_MSG_TYPE_ask).ask.bytes == bytes);
}

static void *ask_as(void *mobility)
{
	(void)td_client_need(0, 8 * MIB, *(enum td_mobility *)mobility);
	return NULL;
}

static void says(enum td_mobility mobility, enum td_asked kind)
{
	static enum td_mobility of;
	struct td_msg ask;
	pthread_t thread;

	of = mobility;
	EXPECT(!pthread_create(&thread, NULL, ask_as, &of));
	ask = next(TD_MSG_TYPE_ask);
	EXPECT(ask.ask.kind == kind);
	answer(ask.ask.ticket, TD_ANSWER_NO, 50 * MIB);
	EXPECT(!pthread_join(thread, NULL));
}

CASE(what_is_asked_for_says_where_else_it_can_be)
{
	start_open(1);
	atomic_store(&fake.demanded, 100 * MIB);
	says(TD_MOVABLE, TD_ASKED_MOVES);
	says(TD_FIXED, TD_ASKED_STAYS);
	says(TD_PAGED, TD_ASKED_UNIFIED);
	says(TD_PAGING, TD_ASKED_PAGES);
}

CASE(memory_that_comes_leaves_room_for_what_was_granted)
{
	start_open(1);
	EXPECT(td_client_need(0, 30 * MIB, TD_MOVABLE) == 0); /* the limit covers it */
	plan(TD_GATE_OPEN, false, 45 * MIB);
	until_reported();
	EXPECT(atomic_load(&fake.filled_to) == 15 * MIB);
}

/* The limit may have been raised for it, and the answer be on its way. */
CASE(memory_on_the_host_leaves_room_for_what_was_asked_for)
{
	start_open(1);
	atomic_store(&fake.demanded, 50 * MIB);
	begin_to_ask();
	plan_spilling(20 * MIB);
	until_reported();
	EXPECT(atomic_load(&fake.filled_to) == 12 * MIB);
}

CASE(nothing_is_granted_by_a_limit_that_is_just_being_used_up)
{
	start_open(1);
	atomic_store(&fake.demanded, 16 * MIB); /* nothing of it is on the device yet */
	plan_spilling(20 * MIB);
	until_reported();
	td_client_fills(0, true);
	begin_to_ask();
}

/* Then no higher limit comes. */
CASE(what_is_freed_may_make_a_limit_do)
{
	start_open(1);
	atomic_store(&fake.demanded, 40 * MIB);
	daemon_close(0);
	(void)next(TD_MSG_TYPE_drained);
	plan(TD_GATE_FILL, false, 10 * MIB);
	until_reported();
	EXPECT(!came(TD_MSG_TYPE_ready));
	atomic_store(&fake.demanded, 10 * MIB);
	td_client_memory_changed(0);
	EXPECT(next(TD_MSG_TYPE_ready).ready.seq == d.seq);
}

/*
 * Its gate is closed again, by a daemon that then ends before the drain does: its work would not
 * find the memory that is off the device.
 */
CASE(who_has_memory_away_waits_for_it_though_its_daemon_ends_amid_a_drain)
{
	start_open(1);
	daemon_close_and_shrink(20 * MIB);
	atomic_store(&fake.full, true); /* and cannot come back */
	atomic_store(&fake.busy, true);
	word(TD_WORD_CLOSED | ++closings * TD_WORD_STEP);
	td_agent_wake();
	td_time_sleep_until_ns(td_time_now_ns() + 20 * MS);
	program(1);
	until_waiting();
	daemon_die();
	td_time_sleep_until_ns(td_time_now_ns() + 100 * MS);
	EXPECT(atomic_load(&launched) == 1);
	atomic_store(&fake.full, false);
	until_launched(2);
	EXPECT(atomic_load(&fake.resident) == 20 * MIB);
}

/* The device has room for it, and the job may have no more. */
CASE(what_may_be_had_in_all_bounds_what_may_be_on_the_device)
{
	start_open(1);
	granted.grant.gate = TD_GATE_OPEN;
	grant(50 * MIB, 40 * MIB);
	until_reported();
	EXPECT(td_client_need(0, 35 * MIB, TD_MOVABLE) == TD_NEED_DEVICE);
	begin_to_ask();
}

/* The limit may fall for it, and no plan has said so yet. */
CASE(beside_what_came_from_other_processes_since_the_last_answer_more_is_asked_for)
{
	start_open(1);
	atomic_store(&fake.crossed, 45 * MIB);
	EXPECT(td_client_need(0, 5 * MIB, TD_MOVABLE) == TD_NEED_DEVICE);
	begin_to_ask();
	answer(1, TD_ANSWER_OK, 50 * MIB);
	EXPECT(td_client_need(0, 30 * MIB, TD_MOVABLE) == TD_NEED_DEVICE); /* the daemon knows */
	atomic_store(&fake.crossed, 46 * MIB);
	/* It knows all but the last MiB. */
	EXPECT(td_client_need(0, 6 * MIB, TD_MOVABLE) == TD_NEED_DEVICE);
	begin_to_ask();
}

CASE(the_excess_is_what_lies_on_the_device_beyond_its_limit)
{
	start_open(1);
	atomic_store(&fake.demanded, 50 * MIB);
	atomic_store(&fake.resident, 50 * MIB);
	plan_spilling(60 * MIB);
	until_reported();
	EXPECT(td_client_excess(0) == 0);
	plan_spilling(20 * MIB);
	until_reported();
	EXPECT(td_client_excess(0) == atomic_load(&fake.resident) - 20 * MIB);
}

/*
 * The daemon must hear it, or others would wait for memory that cannot leave the device. The limit
 * is acknowledged all the same.
 */
CASE(a_context_that_fails_as_its_memory_is_to_leave_the_device_is_reported)
{
	struct td_msg msg;

	start_open(1);
	atomic_store(&fake.demanded, 20 * MIB);
	atomic_store(&fake.resident, 20 * MIB);
	atomic_store(&fake.failing, true);
	daemon_close(0);
	msg = next(TD_MSG_TYPE_failed);
	EXPECT(msg.failed.slot == 0);
	EXPECT(msg.failed.result == FAKE_FAILURE);
	EXPECT(atomic_load(&fake.resident) == 20 * MIB);
}

CASE(a_context_that_fails_as_its_memory_is_to_come_back_is_reported)
{
	start_open(1);
	daemon_close_and_shrink(20 * MIB);
	atomic_store(&fake.failing, true);
	plan(TD_GATE_FILL, false, 50 * MIB);
	EXPECT(next(TD_MSG_TYPE_failed).failed.result == FAKE_FAILURE);
}
