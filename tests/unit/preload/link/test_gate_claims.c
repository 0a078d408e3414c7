/*
 * The agent: a process's claims on a device, and ceilings by which the daemon takes memory back, at
 * any moment.
 */
#include "unit/preload/agent_world.h"

static void ceiling(uint64_t device_bytes, uint64_t all_bytes)
{
	atomic_store(&d.gate->ceiling_device_bytes[0], device_bytes + 1);
	atomic_store(&d.gate->ceiling_all_bytes[0], all_bytes + 1);
	atomic_thread_fence(memory_order_seq_cst);
}

static uint64_t claimed(void)
{
	return atomic_load(&d.meter->claimed_device_bytes[0]);
}

static void *ask(void *bytes)
{
	(void)td_client_need(0, *(uint64_t *)bytes, TD_MOVABLE);
	return NULL;
}

static struct td_msg begin_to_ask(uint64_t bytes)
{
	static uint64_t asked;
	struct td_msg need;
	pthread_t thread;

	asked = bytes;
	EXPECT(!pthread_create(&thread, NULL, ask, &asked));
	EXPECT(!pthread_detach(thread));
	need = next(TD_MSG_TYPE_ask);
	EXPECT(need.ask.bytes == bytes);
	return need;
}

/* It has reported, and claims no more than it has. */
static void until_claimed(uint64_t bytes)
{
	uint64_t end = td_time_now_ns() + BOUND;

	td_client_memory_changed(0);
	while (claimed() != bytes) {
		EXPECT(td_time_now_ns() < end);
		td_time_sleep_until_ns(td_time_now_ns() + MS / 10);
	}
}

CASE(what_is_taken_is_claimed_and_beyond_the_ceiling_it_is_asked_for)
{
	start_open(1);
	EXPECT(td_client_need(0, 10 * MIB, TD_MOVABLE) == TD_NEED_DEVICE);
	EXPECT(claimed() == 10 * MIB);
	ceiling(15 * MIB, 15 * MIB);
	EXPECT(td_client_need(0, 5 * MIB, TD_MOVABLE) == TD_NEED_DEVICE);
	(void)begin_to_ask(1 * MIB);
	EXPECT(claimed() == 15 * MIB);
}

CASE(what_lies_on_the_host_has_a_ceiling_too)
{
	start_open(1);
	EXPECT(td_client_need(0, 10 * MIB, TD_MOVABLE) == TD_NEED_DEVICE);
	ceiling(50 * MIB, 12 * MIB);
	(void)begin_to_ask(5 * MIB);
	EXPECT(claimed() == 10 * MIB);
}

CASE(a_claim_falls_with_what_is_given_up)
{
	start_open(1);
	EXPECT(td_client_need(0, 10 * MIB, TD_MOVABLE) == TD_NEED_DEVICE);
	td_client_settled(0, 10 * MIB, TD_NEED_DEVICE, TD_MOVABLE);
	until_claimed(0);
	EXPECT(!atomic_load(&d.meter->claimed_all_bytes[0]));
}

CASE(an_answer_that_was_taken_back_meanwhile_is_asked_for_anew)
{
	struct td_msg need;

	start_open(1);
	EXPECT(td_client_need(0, 45 * MIB, TD_MOVABLE) == TD_NEED_DEVICE);
	need = begin_to_ask(10 * MIB);
	ceiling(45 * MIB, 45 * MIB);
	answer(need.ask.ticket, TD_ANSWER_OK, 50 * MIB);
	need = next(TD_MSG_TYPE_ask);
	EXPECT(need.ask.bytes == 10 * MIB);
	EXPECT(claimed() == 45 * MIB);
	/* The next one would lie on the host. */
	answer(need.ask.ticket, TD_ANSWER_LATER, 50 * MIB);
	need = next(TD_MSG_TYPE_ask);
	/* A refusal takes nothing. */
	answer(need.ask.ticket, TD_ANSWER_NO, 50 * MIB);
	until_claimed(45 * MIB);
}

CASE(a_fill_goes_no_further_than_the_ceiling)
{
	start_open(1);
	daemon_close_and_shrink(30 * MIB);
	until_claimed(0);
	ceiling(10 * MIB, 30 * MIB);
	plan(TD_GATE_OPEN, false, 40 * MIB);
	td_time_sleep_until_ns(td_time_now_ns() + 50 * MS);
	EXPECT(!atomic_load(&fake.resident));
	/* Taken back no more. */
	atomic_store(&d.gate->ceiling_device_bytes[0], 0);
	plan(TD_GATE_OPEN, false, 40 * MIB);
	EXPECT(next(TD_MSG_TYPE_ready).ready.seq == d.seq);
	EXPECT(atomic_load(&fake.resident) == 30 * MIB);
}

/* Small, so that the limit is far when the ceiling comes. */
#define STEP 256ull

static _Atomic uint64_t taken;

static void *take(void *unused)
{
	(void)unused;
	while (td_client_need(0, STEP, TD_MOVABLE) == TD_NEED_DEVICE)
		atomic_fetch_add(&taken, STEP);
	return NULL;
}

/*
 * At any moment, the claim that the daemon reads after it has lowered the ceiling is the most that
 * is taken, however long the process waits.
 */
CASE(no_byte_is_taken_that_the_daemon_has_taken_back)
{
	pthread_t thread;
	uint64_t left;

	start_open(1);
	EXPECT(!pthread_create(&thread, NULL, take, NULL));
	while (atomic_load(&taken) < MIB)
		;
	ceiling(0, UINT64_MAX - 1); /* what it has is more: it stays its own */
	left = claimed();
	(void)next(TD_MSG_TYPE_ask);
	EXPECT(atomic_load(&taken) <= left);
	EXPECT(left >= MIB && left < 50 * MIB);
}
