/* Processes whose contexts are beyond help: on all of their GPUs, or on some. */
#include "unit/daemon/node_world.h"

#define MS 1000000ull

/* Behind a gate it would wait for ever for memory that cannot come back. */
TEST(a_process_whose_context_has_failed_is_let_go_and_keeps_nobody_waiting)
{
	begin();
	struct fake *a = program(0, "a", 40 * MIB), *b = program(1, "b", 40 * MIB),
		    *c = program(2, "c", 20 * MIB);
	struct td_msg msg = {.type = TD_MSG_TYPE_failed};

	fake_want(&w, a);
	settle(&w);
	fake_want(&w, b);
	a->slow = true;
	msg.failed.result = 214;
	CHECK_EQ(say(&w, a, &msg), 0);
	fake_want(&w, c);
	settle(&w);
	CHECK(is_open(a));
	CHECK_STR(td_process_state(a->process), "failed");
	CHECK_EQ(w.events[TD_EVENT_FAILED], 1);
	/*
	 * its 40 MiB stay taken: c runs beside it; b, which is older, gets its request as soon as
	 * they are back
	 */
	CHECK(!is_open(b) || b->slot[0].resident <= 24 * MIB);
	fake_dies(&w, a);
	settle(&w);
	CHECK(is_open(b) || is_open(c));
	CHECK(within_capacity(&w));
}

TEST(a_failed_process_is_governed_again_with_its_next_context)
{
	begin();
	struct fake *a = program(0, "a", 40 * MIB), *b = program(1, "b", 40 * MIB);
	struct td_msg failed = {.type = TD_MSG_TYPE_failed}, detach = {.type = TD_MSG_TYPE_detach};

	failed.failed.result = 700;
	CHECK_EQ(say(&w, a, &failed), 0);
	CHECK_EQ(say(&w, a, &detach), 0);
	fake_want(&w, b);
	settle(&w);
	CHECK(is_open(b));
	a->slot[0].resident = 0;
	fake_attach(&w, a, 0, 0, 40 * MIB);
	CHECK_EQ(a->process->failed, 0);
	settle(&w);
	CHECK(within_capacity(&w));
}

/*
 * It is governed again as soon as it attaches anywhere: its former limit must not be forgotten
 * meanwhile.
 */
TEST(a_failed_process_gives_back_the_limit_that_it_did_not_use)
{
	begin();
	struct fake *a = program(0, "a", 20 * MIB);
	struct td_msg failed = {.type = TD_MSG_TYPE_failed};
	const struct td_client *client;

	fake_want(&w, a);
	settle(&w);
	CHECK(a->slot[0].limit > 20 * MIB);
	failed.failed.result = 700;
	a->slow = true;
	CHECK_EQ(say(&w, a, &failed), 0);
	fake_attach(&w, a, 1, 1, 0);
	(void)td_node_step(&w.node, w.now);
	client = td_container_of(a->process->clients.next, struct td_client, of_process);
	CHECK(client->device.believed >= a->slot[0].limit);
	CHECK(client->device.told == a->slot[0].limit);
}

/* The plan in force is then what it has, which is what it is told. */
TEST(where_a_context_has_failed_nothing_more_is_granted)
{
	begin();
	struct fake *a = program(0, "a", 20 * MIB);
	struct td_msg failed = {.type = TD_MSG_TYPE_failed};
	const struct td_client *client =
		td_container_of(a->process->clients.next, struct td_client, of_process);

	fake_want(&w, a);
	settle(&w);
	CHECK(client->grant.limit_bytes > 20 * MIB);
	failed.failed.result = 700;
	CHECK_EQ(say(&w, a, &failed), 0);
	CHECK_EQ(client->device.told, 20 * MIB);
	CHECK_EQ(client->grant.limit_bytes, client->device.told);
}

static struct fake *on_two_gpus(unsigned i, const char *job, uint64_t first, uint64_t second)
{
	struct fake *f = &w.fakes[i];

	fake_hello(&w, f, job, TD_BACKEND_SWAP, false);
	fake_attach(&w, f, 0, 0, first);
	fake_attach(&w, f, 1, 1, second);
	fake_want(&w, f);
	return f;
}

/* Its kernels on the other GPU would find unmapped memory. */
TEST(a_process_of_which_one_gpu_has_failed_opens_when_the_memory_of_the_other_is_back)
{
	begin();
	struct fake *a = on_two_gpus(0, "a", 8 * MIB, 48 * MIB), *b = &w.fakes[1];

	settle(&w);
	CHECK(is_open(a));
	fake_hello(&w, b, "b", TD_BACKEND_SWAP, false);
	fake_attach(&w, b, 0, 1, 48 * MIB);
	fake_want(&w, b);
	w.now += 30000 * MS;
	settle(&w);
	CHECK(is_open(b) && !is_open(a));
	CHECK(a->slot[1].resident < 48 * MIB);
	fails(a, 0);
	CHECK(!is_open(a));
	settle(&w);
	CHECK(!is_open(a) && is_open(b));
	CHECK_STR(td_process_state(a->process), "waiting");
	w.now += 30000 * MS;
	settle(&w);
	CHECK(is_open(a) && !is_open(b)); /* as anybody's turn */
	CHECK_EQ(a->slot[1].resident, 48 * MIB);
	fails(a, 1);
	settle(&w);
	CHECK_STR(td_process_state(a->process), "failed");
	CHECK_EQ(w.events[TD_EVENT_FAILED], 2);
	CHECK(within_capacity(&w));
}

TEST(a_process_of_which_all_gpus_have_failed_is_let_go_at_the_last)
{
	begin();
	struct fake *a = on_two_gpus(0, "a", 8 * MIB, 48 * MIB), *b = program(1, "b", 60 * MIB);
	struct td_msg detach = {.type = TD_MSG_TYPE_detach};

	settle(&w);
	fake_want(&w, b);
	w.now += 30000 * MS;
	settle(&w);
	CHECK(is_open(b) && !is_open(a));
	fails(a, 1);
	CHECK(!is_open(a));
	fails(a, 1);
	CHECK(!is_open(a));
	CHECK_EQ(w.events[TD_EVENT_FAILED], 1);
	fails(a, 0);
	CHECK(is_open(a));
	begin();
	a = on_two_gpus(0, "a", 8 * MIB, 48 * MIB);
	b = program(1, "b", 60 * MIB);
	settle(&w);
	fake_want(&w, b);
	w.now += 30000 * MS;
	settle(&w);
	fails(a, 1);
	detach.detach.slot = 0; /* the one that could still be helped */
	CHECK_EQ(say(&w, a, &detach), 0);
	CHECK(is_open(a));
}

/*
 * It is asked to close for the GPU that it can still use, which does not wait for the one that
 * failed.
 */
TEST(a_process_of_which_one_gpu_has_failed_still_gives_way_on_the_other)
{
	begin();
	struct fake *a = on_two_gpus(0, "a", 48 * MIB, 48 * MIB), *b = &w.fakes[1];
	uint32_t seq;

	settle(&w);
	fails(a, 0);
	settle(&w);
	CHECK(is_open(a));
	seq = a->slot[0].seq;
	fake_hello(&w, b, "b", TD_BACKEND_SWAP, false);
	fake_attach(&w, b, 0, 1, 48 * MIB);
	fake_want(&w, b);
	w.now += 30000 * MS;
	settle(&w);
	CHECK(is_open(b) && !is_open(a));
	CHECK_EQ(a->slot[0].resident, 48 * MIB);
	CHECK_EQ(a->slot[0].seq, seq); /* nothing more is asked of that one */
	fake_dies(&w, b);
	settle(&w);
	CHECK(is_open(a));
}

TEST(what_a_failed_context_has_off_the_device_needs_no_room)
{
	begin();
	struct fake *a = on_two_gpus(0, "a", 48 * MIB, 8 * MIB), *b = program(1, "b", 48 * MIB);

	settle(&w);
	fake_want(&w, b);
	w.now += 30000 * MS;
	settle(&w);
	CHECK(is_open(b) && !is_open(a));
	CHECK_EQ(a->slot[0].resident, 16 * MIB);
	fails(a, 0);
	settle(&w);
	CHECK(is_open(b) && is_open(a)); /* side by side */
}

/*
 * Memory that a shrink under way had left is all that it has: nobody waits for it to give more
 * back.
 */
TEST(a_failed_context_is_not_waited_for_to_shrink)
{
	begin();
	struct fake *a = program(0, "a", 40 * MIB), *b = program(1, "b", 40 * MIB);
	struct td_msg shortage = {.type = TD_MSG_TYPE_shortage};

	fake_want(&w, a);
	settle(&w);
	a->slow = true;
	fake_want(&w, b);
	w.now += 30000 * MS;
	settle(&w);
	fake_act(&w, a); /* drained; then it is to shrink to 24 MiB, which fails */
	(void)td_node_step(&w.node, w.now);
	CHECK(a->slot[0].limit < 40 * MIB);
	fake_memory(&w, a, 0);
	fails(a, 0);
	b->slow = true;
	settle(&w);
	fake_memory(&w, a, 0);
	shortage.shortage.seq = b->seq;
	shortage.shortage.missing_bytes = 8 * MIB;
	CHECK_EQ(say(&w, b, &shortage), 0);
	CHECK_EQ(w.events[TD_EVENT_SHORT], 1);
}

TEST(what_a_failed_context_holds_is_no_room_for_who_is_in)
{
	begin();
	struct fake *a = on_two_gpus(0, "a", 40 * MIB, 8 * MIB), *b;

	settle(&w);
	fails(a, 0);
	b = program(1, "b", 20 * MIB); /* its driver has no memory of the host in reach */
	fake_want(&w, b);
	settle(&w);
	need(b, 8 * MIB);
	settle(&w);
	CHECK_EQ(b->slot[0].answer, 0);
}
