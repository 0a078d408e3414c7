/* The agent and the host's memory: asked for, waited for, tried again. */
#include "agent_world.h"

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
	atomic_store(&fake.again_ns, td_time_now_ns() + 30 * MS);
	td_client_memory_changed(0);
	(void)next(TD_MSG_TYPE_used);
	(void)next(TD_MSG_TYPE_used);
	EXPECT(td_time_now_ns() >= atomic_load(&fake.again_ns));
}

static void *reserve(void *bytes)
{
	(void)td_host_reserve(*(uint64_t *)bytes);
	return NULL;
}

/* It believes in no more than it knows to be allocated. */
CASE(the_daemon_hears_of_an_allocation_before_a_place_for_it_on_the_host_is_asked_for)
{
	static uint64_t bytes = 30 * MIB;
	struct td_msg msg, host = {.type = TD_MSG_TYPE_host};
	uint64_t demanded = 0;
	pthread_t thread;

	setenv("TANDEM_HOST_FULL", "refuse", 1);
	start_open(1);
	host.host.seq = 1;
	EXPECT(!td_socket_send(d.fd, &host, NULL, 0));
	EXPECT(next(TD_MSG_TYPE_host_need).host_need.seq == 1);
	EXPECT(td_client_need(0, bytes, TD_MOVABLE) == 0); /* the limit covers it */
	EXPECT(!pthread_create(&thread, NULL, reserve, &bytes));
	do {
		EXPECT(!td_socket_recv(d.fd, &msg, NULL, 0));
		if (msg.type == TD_MSG_TYPE_used)
			demanded = msg.used.total_bytes;
		/* What is wanted may have been told before it was asked for. */
	} while (msg.type != TD_MSG_TYPE_host_need || !msg.host_need.ticket);
	EXPECT(msg.host_need.ticket == 1 && msg.host_need.wanted_bytes == bytes);
	EXPECT(demanded == bytes);
	host.host.seq = 2;
	host.host.bytes = UINT64_MAX;
	EXPECT(!td_socket_send(d.fd, &host, NULL, 0));
	EXPECT(!pthread_join(thread, NULL));
}

CASE(a_place_on_the_host_is_asked_for_before_memory_is_to_lie_there)
{
	struct td_msg msg, host = {.type = TD_MSG_TYPE_host};

	start_open(1);
	atomic_store(&fake.demanded, 40 * MIB);
	atomic_store(&fake.resident, 40 * MIB);
	daemon_close(50 * MIB);
	(void)next(TD_MSG_TYPE_drained);
	host.host.seq = 1;
	EXPECT(!td_socket_send(d.fd, &host, NULL, 0));
	EXPECT(next(TD_MSG_TYPE_host_need).host_need.wanted_bytes == 0);
	granted.grant.gate = TD_GATE_OPEN;
	grant(10 * MIB, 40 * MIB);
	msg = next(TD_MSG_TYPE_host_need);
	EXPECT(msg.host_need.ticket == 1 && msg.host_need.wanted_bytes == 30 * MIB);
	EXPECT(atomic_load(&fake.reaches) == 0);
	host.host = (struct td_msg_host){.seq = 2, .bytes = 20 * MIB, .ticket = 1};
	EXPECT(!td_socket_send(d.fd, &host, NULL, 0));
	EXPECT(next(TD_MSG_TYPE_ready).ready.seq == d.seq);
	EXPECT(atomic_load(&fake.reaches) == 1);
}
