/* The agent and the host's memory: asked for, waited for, tried again. */
#include "unit/preload/agent_world.h"

/* Nobody tells when the host has a place again. */
CASE(what_could_not_leave_is_tried_again_by_itself)
{
	struct td_msg msg;

	start_open(1);
	atomic_store(&fake.demanded, 40 * MIB);
	atomic_store(&fake.resident, 40 * MIB);
	atomic_store(&fake.stuck, true);
	daemon_close(10 * MIB);
	do
		msg = next(TD_MSG_TYPE_used);
	while (msg.used.acked_seq != d.seq);
	EXPECT(msg.used.device_bytes == 40 * MIB);
	while (atomic_load(&fake.shrinks) < 3)
		td_time_sleep_until_ns(td_time_now_ns() + MS);
	atomic_store(&fake.stuck, false);
	do
		msg = next(TD_MSG_TYPE_used);
	while (msg.used.device_bytes != 10 * MIB);
}

CASE(the_daemon_is_told_when_what_could_not_leave_may_be_able_to)
{
	start_open(1);
	atomic_store(&fake.demanded, 10 * MIB);
	atomic_store(&fake.resident, 10 * MIB);
	atomic_store(&fake.again_ns, td_time_now_ns() + 30 * MS);
	td_client_memory_changed(0);
	(void)next(TD_MSG_TYPE_used);
	(void)next(TD_MSG_TYPE_used);
	EXPECT(td_time_now_ns() >= atomic_load(&fake.again_ns));
}

static void grant_host(uint32_t seq, uint64_t bytes, uint32_t ticket)
{
	const struct td_msg msg = {.type = TD_MSG_TYPE_grant,
		.grant = {.slot = TD_SLOT_HOST,
			.seq = seq,
			.host_bytes = bytes,
			.ticket = ticket,
			.verdict = ticket ? TD_ANSWER_NO : TD_ANSWER_NONE}};

	EXPECT(!td_socket_send(d.fd, &msg, NULL, 0));
}

/* It has heard of its bound. */
static void until_acknowledged(uint32_t seq)
{
	struct td_msg msg;

	do
		msg = next(TD_MSG_TYPE_used);
	while (msg.used.slot != TD_SLOT_HOST);
	EXPECT(msg.used.acked_seq == seq);
}

static void *reserve(void *bytes)
{
	(void)td_host_reserve(*(uint64_t *)bytes);
	return NULL;
}

/* It relies only on memory that it knows to be allocated. */
CASE(the_daemon_hears_of_an_allocation_before_a_place_for_it_on_the_host_is_asked_for)
{
	static uint64_t bytes = 30 * MIB;
	struct td_msg msg;
	uint64_t demanded = 0;
	pthread_t thread;

	setenv("TANDEM_HOST_FULL", "refuse", 1);
	start_open(1);
	grant_host(1, 0, 0);
	until_acknowledged(1);
	EXPECT(td_client_need(0, bytes, TD_MOVABLE) == 0); /* the limit covers it */
	EXPECT(!pthread_create(&thread, NULL, reserve, &bytes));
	do {
		EXPECT(!td_socket_recv(d.fd, &msg, NULL, 0));
		if (msg.type == TD_MSG_TYPE_used && msg.used.slot != TD_SLOT_HOST)
			demanded = msg.used.total_bytes;
		/* The wish may have been reported before it asked. */
	} while (msg.type != TD_MSG_TYPE_ask || !msg.ask.ticket);
	EXPECT(msg.ask.kind == TD_ASKED_HOST && msg.ask.ticket == 1 && msg.ask.bytes == bytes);
	EXPECT(demanded == bytes);
	grant_host(2, UINT64_MAX, 0);
	EXPECT(!pthread_join(thread, NULL));
}

CASE(a_place_on_the_host_is_asked_for_before_memory_is_to_lie_there)
{
	struct td_msg msg;

	start_open(1);
	atomic_store(&fake.demanded, 40 * MIB);
	atomic_store(&fake.resident, 40 * MIB);
	daemon_close(50 * MIB);
	(void)next(TD_MSG_TYPE_drained);
	grant_host(1, 0, 0);
	until_acknowledged(1);
	granted.grant.gate = TD_GATE_OPEN;
	grant(10 * MIB, 40 * MIB);
	msg = next(TD_MSG_TYPE_ask);
	EXPECT(msg.ask.slot == TD_SLOT_HOST && msg.ask.kind == TD_ASKED_HOST);
	EXPECT(msg.ask.ticket == 1 && msg.ask.bytes == 30 * MIB);
	EXPECT(atomic_load(&fake.reaches) == 0);
	grant_host(2, 20 * MIB, 1);
	EXPECT(next(TD_MSG_TYPE_ready).ready.seq == d.seq);
	EXPECT(atomic_load(&fake.reaches) == 1);
}
