/* Reports about memory that processes share, and the daemon's answers about it. */
#include <errno.h>
#include <string.h>

#include "unit/daemon/node_world.h"

static void tell_shares(struct fake *f, uint32_t handles, uint32_t open)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_shares};

	msg.shares.handles = handles;
	msg.shares.open = open;
	CHECK_EQ(say(&w, f, &msg), 0);
}

static int tell_denied(struct fake *f, uint8_t why, uint32_t count)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_denied};

	msg.denied.why = why;
	msg.denied.count = count;
	return say(&w, f, &msg);
}

static unsigned events(enum td_event_kind kind)
{
	const struct td_event *e;
	unsigned n = 0;

	for (uint64_t i = 1; (e = td_events_get(&w.node.events, i)); i = e->number + 1)
		n += e->kind == kind;
	return n;
}

TEST(who_may_open_its_memory_is_said_while_there_are_handles)
{
	struct fake *a;

	begin();
	a = program(0, "a", 10 * MIB);
	CHECK(!strstr(explained(&w, a), "memory"));
	tell_shares(a, 1, 0);
	CHECK(strstr(explained(&w, a), "1 handle(s) of its memory; they have opened 0."));
	CHECK(strstr(explained(&w, a), "CUDA_ERROR_INVALID_VALUE.")); /* nothing is cut off */
	tell_shares(a, 4000000000u, 4000000000u);
	CHECK(strstr(explained(&w, a), "INVALID_VALUE."));
	CHECK_EQ(events(TD_EVENT_SHARES), 1);
	tell_shares(a, 0, 0);
	CHECK(!strstr(explained(&w, a), "memory"));
	CHECK(a->process->shares.was_told);
}

TEST(who_cannot_be_reached_from_everywhere_is_said_once_as_an_event)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_shares, .shares = {.handles = 1}};
	struct fake *a;

	begin();
	a = program(0, "a", 10 * MIB);
	tell_shares(a, 1, 0);
	CHECK(!strstr(explained(&w, a), "open its memory") &&
		!strstr(explained(&w, a), "could not"));
	for (msg.shares.unreachable = 1; msg.shares.unreachable <= TD_UNREACHABLE_N;
		msg.shares.unreachable++) {
		CHECK_EQ(say(&w, a, &msg), 0); /* the last: of a newer library */
		CHECK(strstr(explained(&w, a), "Only programs in its network namespace"));
		CHECK(strstr(explained(&w, a), ".ipc beside"));
		CHECK_EQ(events(TD_EVENT_SHARES),
			msg.shares.unreachable == TD_UNREACHABLE_NOWHERE ? 1 : 2);
	}
	tell_shares(a, 1, 0);
	CHECK(!strstr(explained(&w, a), "open its memory") &&
		!strstr(explained(&w, a), "could not"));
	msg.shares = (struct td_msg_shares){.unreachable = TD_UNREACHABLE_TAKEN};
	CHECK_EQ(say(&w, a, &msg), 0); /* nobody misses it */
	CHECK(!strstr(explained(&w, a), "open its memory") &&
		!strstr(explained(&w, a), "could not"));
}

TEST(why_a_handle_could_not_be_opened_is_said_once_as_an_event_and_counted)
{
	struct fake *a;

	begin();
	a = program(0, "a", 10 * MIB);
	CHECK(!strstr(explained(&w, a), "open its memory") &&
		!strstr(explained(&w, a), "could not"));
	for (uint8_t why = 0; why < TD_DENIED_N; why++) {
		CHECK_EQ(tell_denied(a, why, 1), 0);
		CHECK_EQ(tell_denied(a, why, 2), 0);
		CHECK_EQ(events(TD_EVENT_DENIED), why + 1);
		CHECK(strstr(explained(&w, a), "3 time(s): it"));
	}
	CHECK_EQ(tell_denied(a, 0, UINT32_MAX), 0);
	CHECK_EQ(a->process->shares.denied[0], UINT32_MAX);
	CHECK_EQ(tell_denied(a, TD_DENIED_N, 1), -EPROTO);
}
