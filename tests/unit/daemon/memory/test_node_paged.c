/*
 * Unified memory, which may exceed the device: it counts in its job's limit, and takes room from
 * nobody.
 */
#include "base/err.h"
#include "unit/daemon/node_world.h"

#define MS 1000000ull

enum { REFUSED, ON_DEVICE, ON_HOST = 3 };

static int need_paged(struct fake *f, uint64_t bytes)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_ask};

	msg.ask.bytes = bytes;
	msg.ask.kind = TD_ASKED_UNIFIED;
	f->slot[0].answer = -1;
	f->slot[0].asked = bytes;
	f->slot[0].asks_paged = true;
	CHECK_EQ(say(&w, f, &msg), 0);
	settle(&w);
	w.now += 2000 * MS;
	settle(&w);
	f->slot[0].asks_paged = false;
	return f->slot[0].answer;
}

static void report(struct fake *f)
{
	fake_memory(&w, f, 0);
	settle(&w);
}

TEST(what_is_paged_may_come_where_there_is_no_room)
{
	begin();
	struct fake *a = plain_program(0, "a", 30 * MIB), *b = plain_program(1, "b", 10 * MIB);

	settle(&w);
	CHECK(is_open(a) && is_open(b));
	CHECK_EQ(need_paged(b, 40 * MIB), ON_HOST);
	report(b);
	/* It takes nothing of the device, so the free memory there can be had. */
	need(b, 4 * MIB);
	settle(&w);
	CHECK_EQ(b->slot[0].answer, ON_DEVICE);
	CHECK(charged("b") >= 54 * MIB);
	CHECK(is_open(a) && is_open(b));
	CHECK(within_capacity(&w));
	CHECK_EQ(w.events[TD_EVENT_REFUSED], 0);
}

TEST(more_than_the_device_has_can_be_had_of_it)
{
	begin();
	struct fake *a = plain_program(0, "a", 0);

	settle(&w);
	CHECK_EQ(need_paged(a, 500 * MIB), ON_HOST);
	report(a);
	need(a, 8 * MIB);
	settle(&w);
	CHECK_EQ(a->slot[0].answer, ON_DEVICE);
}

TEST(it_counts_in_the_limit_of_a_job_of_several_processes)
{
	for (unsigned reports = 0; reports < 2; reports++) {
		begin();
		struct fake *a = plain_program(0, "j", 0), *b = plain_program(1, "j", 0);

		limit("j", "30m");
		plain_program(2, "c", 60 * MIB);
		settle(&w);
		CHECK_EQ(need_paged(a, 20 * MIB), ON_HOST);
		if (reports)
			report(a);
		CHECK_EQ(need_paged(b, 20 * MIB), REFUSED);
		CHECK_EQ(w.events[TD_EVENT_REFUSED], 1);
		CHECK_EQ(need_paged(b, 10 * MIB), ON_HOST);
		report(b);
		/* Other memory beside it is refused as well. */
		need(a, MIB);
		settle(&w);
		w.now += 2000 * MS;
		settle(&w);
		CHECK_EQ(a->slot[0].answer, REFUSED);
		/* The other program gets memory that is freed. */
		a->slot[0].paged = 0;
		report(a);
		CHECK_EQ(need_paged(b, 20 * MIB), ON_HOST);
	}
}

TEST(what_one_pages_leaves_the_others_of_its_job_a_part_in_advance)
{
	begin();
	struct fake *a = plain_program(0, "j", 0), *b = plain_program(1, "j", 0);

	limit("j", "30m");
	plain_program(2, "c", 60 * MIB);
	settle(&w);
	CHECK_EQ(need_paged(a, 20 * MIB), ON_HOST);
	report(a);
	/* A fourth of the 10 MiB that are left, or the third of the device's 4 MiB. */
	CHECK(b->slot[0].limit > MIB && b->slot[0].limit <= 10 * MIB / 4);
}

TEST(a_closed_program_is_let_in_with_it)
{
	begin();
	struct fake *a = plain_program(0, "a", 30 * MIB), *b = plain_program(1, "b", 30 * MIB);

	settle(&w);
	CHECK_EQ(need_paged(a, 60 * MIB), ON_HOST);
	CHECK_EQ(need_paged(b, 60 * MIB), ON_HOST);
	report(a);
	report(b);
	CHECK(is_open(a) && is_open(b));
	CHECK_EQ(
		td_node_set_job(&w.node, td_identity_local(1000), "a", "paused", "on", w.now, NULL),
		0);
	CHECK_EQ(
		td_node_set_job(&w.node, td_identity_local(1000), "b", "paused", "on", w.now, NULL),
		0);
	settle(&w);
	CHECK(!is_open(a) && !is_open(b));
	CHECK_EQ(td_node_set_job(
			 &w.node, td_identity_local(1000), "a", "paused", "off", w.now, NULL),
		0);
	CHECK_EQ(td_node_set_job(
			 &w.node, td_identity_local(1000), "b", "paused", "off", w.now, NULL),
		0);
	fake_want(&w, a);
	fake_want(&w, b);
	settle(&w);
	CHECK(is_open(a) && is_open(b));
}
