/* How much of a GPU there is to give: what contexts take, and what is found to be missing. */
#include "base/err.h"
#include "unit/daemon/node_world.h"

#define MS 1000000ull

static void attach_using(struct fake *f, uint64_t used, uint64_t reserve)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_attach};

	msg.attach.reserve_bytes = reserve;
	memset(msg.attach.gpu, 1, 16);
	msg.attach.total_bytes = 64 * MIB;
	msg.attach.used_bytes = used;
	CHECK_EQ(say(&w, f, &msg), 0);
	f->slots = 1;
}

static void contexts(const char *count)
{
	CHECK_EQ(td_options_set(&w.node.options, "gpu.contexts", count, NULL), 0);
	td_node_options_changed(&w.node, w.now, "gpu.contexts");
}

TEST(what_contexts_take_is_not_given_away)
{
	begin();
	contexts("1");
	struct fake *a = &w.fakes[0], *b = &w.fakes[1];

	fake_hello(&w, a, "a", TD_BACKEND_SWAP, false);
	attach_using(a, MIB, 0);
	CHECK_EQ(w.node.gpus[0].capacity_bytes, 63 * MIB);
	/*
	 * b comes when a has allocated 48 MiB and not yet reported them, which is not taken for a
	 * context
	 */
	fake_hello(&w, b, "b", TD_BACKEND_SWAP, false);
	attach_using(b, 50 * MIB, 0);
	CHECK_EQ(w.node.gpus[0].capacity_bytes, 62 * MIB);
}

TEST(unified_memory_that_is_not_there_makes_no_context_free)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_ask};

	begin();
	contexts("1");
	struct fake *a = &w.fakes[0];

	fake_hello(&w, a, "a", TD_BACKEND_MANAGED, false);
	attach_using(a, MIB, 0);
	a->slot[0].demanded = a->slot[0].resident = a->slot[0].managed = 30 * MIB;
	fake_memory(&w, a, 0);
	msg.ask.bytes = MIB;
	msg.ask.in_use_bytes = MIB; /* the context alone */
	CHECK_EQ(say(&w, a, &msg), 0);
	CHECK_EQ(w.node.gpus[0].capacity_bytes, 63 * MIB);
}

/*
 * Room for a context is kept before its program can ask for memory, and once it exists others have
 * what they had.
 */
TEST(a_context_that_is_yet_to_come_has_its_place)
{
	begin();
	struct fake *a = &w.fakes[0], *b = &w.fakes[1], *c = &w.fakes[2];

	fake_hello(&w, a, "a", TD_BACKEND_SWAP, false);
	attach_using(a, MIB, 0);
	CHECK_EQ(a->slot[0].capacity, 62 * MIB);
	need(a, 63 * MIB);
	settle(&w);
	CHECK_EQ(a->slot[0].answer, 0);
	fake_hello(&w, b, "b", TD_BACKEND_SWAP, false);
	attach_using(b, 2 * MIB, 0);
	CHECK_EQ(w.node.gpus[0].capacity_bytes, 62 * MIB);
	fake_hello(&w, c, "c", TD_BACKEND_SWAP, false);
	attach_using(c, 3 * MIB, 0);
	CHECK_EQ(w.node.gpus[0].capacity_bytes, 61 * MIB);
	contexts("4");
	CHECK_EQ(a->slot[0].capacity, 60 * MIB);
	fake_dies(&w, c);
	fake_dies(&w, b);
	CHECK_EQ(a->slot[0].capacity, 60 * MIB);
	/* Within a smaller GPU than there is they have it anyway. */
	CHECK_EQ(td_options_set(&w.node.options, "gpu.capacity", "32Mi", NULL), 0);
	td_node_options_changed(&w.node, w.now, "gpu.capacity=32Mi");
	CHECK_EQ(a->slot[0].capacity, 32 * MIB);
}

/* Memory of others that is taken for a context, or of a process that is just dying. */
TEST(no_more_than_a_32nd_of_the_gpu_is_kept_for_a_context)
{
	begin();
	struct fake *a = &w.fakes[0];

	fake_hello(&w, a, "a", TD_BACKEND_SWAP, false);
	attach_using(a, 4 * MIB, 0);
	CHECK_EQ(w.node.gpus[0].capacity_bytes, 58 * MIB);
}

TEST(what_contexts_take_is_known_again_after_a_restart)
{
	begin();
	struct fake *a = &w.fakes[0], *b = &w.fakes[1];

	fake_hello(&w, b, "b", TD_BACKEND_SWAP, false);
	attach_using(b, 0, 2 * MIB);
	fake_hello(&w, a, "a", TD_BACKEND_SWAP, true);
	attach_using(a, 0, MIB);
	CHECK_EQ(w.node.gpus[0].capacity_bytes, 62 * MIB);
}

TEST(what_a_context_takes_goes_with_it_and_all_are_told)
{
	begin();
	contexts("1");
	struct fake *a = &w.fakes[0], *b = &w.fakes[1];

	fake_hello(&w, a, "a", TD_BACKEND_SWAP, false);
	attach_using(a, MIB, 0);
	CHECK_EQ(a->slot[0].capacity, 63 * MIB);
	fake_hello(&w, b, "b", TD_BACKEND_SWAP, false);
	attach_using(b, 2 * MIB, 0);
	CHECK_EQ(a->slot[0].capacity, 62 * MIB);
	fake_dies(&w, b);
	CHECK_EQ(a->slot[0].capacity, 63 * MIB);
	CHECK_EQ(td_options_set(&w.node.options, "gpu.capacity", "32Mi", NULL), 0);
	td_node_options_changed(&w.node, w.now, "gpu.capacity=32Mi");
	CHECK_EQ(a->slot[0].capacity, 32 * MIB);
	CHECK_EQ(td_options_set(&w.node.options, "gpu.capacity", "100%", NULL), 0);
	td_node_options_changed(&w.node, w.now, "gpu.capacity=100%");
	CHECK_EQ(a->slot[0].capacity, 63 * MIB);
}

static void say_short(struct fake *f, uint64_t missing, uint64_t free_bytes)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_shortage};

	msg.shortage.seq = f->seq;
	msg.shortage.missing_bytes = missing;
	msg.shortage.free_bytes = free_bytes;
	CHECK_EQ(say(&w, f, &msg), 0);
}

TEST(a_device_that_is_fuller_than_known_is_found_out_and_looked_at_again)
{
	begin();
	struct fake *a = program(0, "a", 48 * MIB);
	uint64_t wakeup;

	fake_want(&w, a);
	settle(&w);
	say_short(a, 3 * MIB, MIB);
	CHECK_EQ(w.node.gpus[0].capacity_bytes, 62 * MIB);
	CHECK_EQ(a->slot[0].capacity, 62 * MIB);
	wakeup = settle(&w);
	CHECK(wakeup <= w.now + 1000 * MS);
	w.now += 1000 * MS;
	settle(&w);
	CHECK_EQ(w.node.gpus[0].capacity_bytes, 64 * MIB);
	say_short(a, 3 * MIB, MIB);
	w.now += 1000 * MS;
	settle(&w);
	CHECK_EQ(w.node.gpus[0].capacity_bytes, 62 * MIB); /* twice as long */
	w.now += 1000 * MS;
	settle(&w);
	CHECK_EQ(w.node.gpus[0].capacity_bytes, 64 * MIB);
}

TEST(nobody_is_refused_for_a_shortage_that_may_be_a_dying_process)
{
	begin();
	struct fake *a = program(0, "a", 48 * MIB);

	fake_want(&w, a);
	settle(&w);
	say_short(a, 3 * MIB, MIB); /* of 64 MiB two are taken by somebody */
	need(a, 15 * MIB);
	settle(&w);
	CHECK_EQ(a->slot[0].answer, -1);
	w.now += 1000 * MS;
	settle(&w);
	CHECK_EQ(a->slot[0].answer, 1);
	/* One that is found again and again is there. */
	for (unsigned i = 0; i < 3; i++) {
		say_short(a, 3 * MIB, MIB);
		w.now += 4000 * MS;
		settle(&w);
	}
	say_short(a, 3 * MIB, MIB);
	need(a, MIB);
	settle(&w);
	CHECK_EQ(a->slot[0].answer, 0);
}

TEST(a_shortage_that_is_told_twice_before_anything_could_change_counts_once)
{
	begin();
	struct fake *a = program(0, "a", 48 * MIB);

	fake_want(&w, a);
	settle(&w);
	say_short(a, 3 * MIB, MIB);
	say_short(a, 3 * MIB, MIB);
	CHECK_EQ(w.node.gpus[0].capacity_bytes, 62 * MIB);
	CHECK_EQ(w.events[TD_EVENT_SHORT], 1);
	/* and more is missing than that */
	settle(&w);
	say_short(a, 3 * MIB, MIB);
	CHECK_EQ(w.node.gpus[0].capacity_bytes, 60 * MIB);
}

TEST(while_memory_is_still_being_given_back_a_full_device_proves_nothing)
{
	begin();
	struct fake *a = program(0, "a", 48 * MIB), *b = program(1, "b", 48 * MIB);

	fake_want(&w, a);
	settle(&w);
	fake_want(&w, b);
	a->slow = true;
	w.now += 60000 * MS;
	settle(&w); /* a is told to drain and does not answer yet */
	say_short(b, 48 * MIB, 16 * MIB);
	CHECK_EQ(w.node.gpus[0].capacity_bytes, 64 * MIB);
	a->slow = false;
	settle(&w);
	CHECK(is_open(b));
}

TEST(what_no_limit_can_follow_is_found_once_and_does_not_grow)
{
	begin();
	struct fake *a, *b = program(1, "b", 32 * MIB);
	uint64_t there;

	a = plain_program(0, "a", 24 * MIB);
	settle(&w);
	fake_want(&w, b);
	settle(&w);
	CHECK(is_open(b));
	/*
	 * All 64 MiB are theirs by their limits, and half of b's shortage is there. Neither can
	 * give anything back.
	 */
	for (unsigned i = 0; i < 12; i++) {
		say_short(b, 4 * MIB, 2 * MIB);
		settle(&w);
	}
	CHECK(w.node.gpus[0].capacity_bytes >= 24 * MIB + 32 * MIB - 2 * MIB);
	CHECK(w.node.gpus[0].shortage_until_ns <= w.now + 1000 * MS);
	there = w.node.gpus[0].capacity_bytes;
	say_short(b, 4 * MIB, 3 * MIB);
	CHECK_EQ(w.node.gpus[0].capacity_bytes, there);
	CHECK_EQ(a->slot[0].resident, 24 * MIB);
}

TEST(who_comes_to_have_no_room_while_it_is_filled_keeps_nobody_waiting)
{
	begin();
	struct fake *a, *b = plain_program(1, "b", 24 * MIB), *c = program(2, "c", 10 * MIB);

	settle(&w);
	a = program(0, "a", 39 * MIB);
	CHECK_EQ(td_node_set_job(
			 &w.node, td_identity_local(1000), "a", "class", "online", w.now, NULL),
		0);
	CHECK_EQ(td_node_set_job(
			 &w.node, td_identity_local(1000), "c", "class", "guaranteed", w.now, NULL),
		0);
	a->slow = true;
	fake_want(&w, a);
	settle(&w);
	CHECK(a->process->phase == TD_PHASE_FILLING);
	fake_want(&w, c);
	/*
	 * Beside b's remaining memory there is too little for it now: b would wait behind c, and c
	 * behind a.
	 */
	say_short(a, 4 * MIB, 2 * MIB);
	a->slow = false;
	settle(&w);
	CHECK(!is_open(a) && is_open(b) && is_open(c));
	CHECK(within_capacity(&w));
	fake_dies(&w, b);
	w.now += 1000 * MS;
	settle(&w);
	CHECK(is_open(a));
}

TEST(who_is_let_in_as_things_are_is_not_sent_away_as_things_are)
{
	begin();
	struct fake *a = &w.fakes[0], *b = program(1, "b", 40 * MIB);

	/*
	 * While tandem is off, a program that pages itself does not count; and most of a's memory
	 * cannot leave.
	 */
	CHECK_EQ(td_options_set(&w.node.options, "enabled", "off", NULL), 0);
	td_node_options_changed(&w.node, w.now, "enabled=off");
	fake_hello(&w, a, "a", TD_BACKEND_MANAGED, false);
	fake_attach(&w, a, 0, 0, 40 * MIB);
	a->slot[0].fixed = 30 * MIB;
	fake_want(&w, a);
	settle(&w);
	b->slow = true;
	fake_want(&w, b);
	settle(&w);
	CHECK_EQ(w.events[TD_EVENT_FILLING], 2);
	CHECK(b->process->phase == TD_PHASE_FILLING);
}

TEST(nobody_lacks_more_than_it_may_have)
{
	begin();
	struct fake *a = program(0, "a", 8 * MIB), *b = program(1, "b", 40 * MIB);

	limit("a", "10m");
	fake_want(&w, a);
	fake_want(&w, b);
	settle(&w);
	CHECK_EQ(a->slot[0].limit, 10 * MIB);
	say_short(a, 11 * MIB, 0);
	CHECK_EQ(w.events[TD_EVENT_SHORT], 0);
	CHECK_EQ(w.node.gpus[0].capacity_bytes, 64 * MIB);
}

/* The rest suffices for either one. A part of it is of no use to either. */
TEST(room_that_is_enough_for_one_of_two_is_not_halved)
{
	begin();
	struct fake *a, *b;

	plain_program(2, "c", 50 * MIB);
	settle(&w);
	a = plain_program(0, "a", 0);
	b = plain_program(1, "b", 0);
	settle(&w);
	need(a, 12 * MIB);
	need(b, 13 * MIB);
	settle(&w);
	CHECK((a->slot[0].answer == 1) != (b->slot[0].answer == 1));
	CHECK(within_capacity(&w));
}

/* Both wait to be let in with what they ask for, and neither gives anything back before. */
TEST(of_two_that_wait_for_each_others_memory_the_later_is_refused)
{
	begin();
	struct fake *a = plain_program(0, "a", 40 * MIB), *b = plain_program(1, "b", 16 * MIB);

	settle(&w);
	for (unsigned i = 0; i < 2; i++)
		CHECK_EQ(td_node_set_job(&w.node, td_identity_local(1000), i ? "b" : "a", "paused",
				 "on", w.now, NULL),
			0);
	settle(&w);
	need(a, 12 * MIB);
	need(b, 12 * MIB);
	settle(&w);
	CHECK(a->slot[0].answer == -1 && b->slot[0].answer == -1);
	for (unsigned i = 0; i < 2; i++)
		CHECK_EQ(td_node_set_job(&w.node, td_identity_local(1000), i ? "b" : "a", "paused",
				 "off", w.now, NULL),
			0);
	settle(&w);
	CHECK_EQ(b->slot[0].answer, 0);
	CHECK(is_open(b));
	CHECK_EQ(a->slot[0].answer, -1);
	fake_dies(&w, b);
	settle(&w);
	CHECK_EQ(a->slot[0].answer, 1);
	CHECK(is_open(a));
}

/*
 * It has reported with the answer, and asks for something else: no part of the first grant is still
 * outstanding.
 */
TEST(what_was_granted_and_given_up_is_not_on_the_host_either)
{
	begin();
	struct fake *a = program(0, "a", 8 * MIB);
	const struct td_client *client =
		td_container_of(a->process->clients.next, struct td_client, of_process);
	struct td_msg msg = {.type = TD_MSG_TYPE_used};

	limit("a", "30m");
	CHECK_EQ(
		td_node_set_job(&w.node, td_identity_local(1000), "a", "paused", "on", w.now, NULL),
		0);
	settle(&w);
	a->slow = true;
	msg.used.acked_seq = client->device.seq;
	msg.used.total_bytes = msg.used.host_bytes = 8 * MIB;
	need(a, 10 * MIB);
	(void)td_node_step(&w.node, w.now);
	CHECK_EQ(a->slot[0].answer, 2);
	CHECK_EQ(say(&w, a, &msg), 0);
	CHECK_EQ(client->total.used, 18 * MIB);
	CHECK_EQ(client->host_bytes, 18 * MIB);
	need(a, 4 * MIB);
	CHECK_EQ(client->total.used, 8 * MIB);
	CHECK_EQ(client->host_bytes, 8 * MIB);
}

TEST(who_has_more_than_its_gpu_and_nowhere_else_to_put_it_is_told)
{
	begin();
	struct fake *a = program(0, "j", 64 * MIB);

	fake_want(&w, a);
	settle(&w);
	CHECK_EQ(td_options_set(&w.node.options, "gpu.capacity", "48m", NULL), 0);
	td_node_options_changed(&w.node, w.now, "gpu.capacity");
	settle(&w);
	CHECK(strstr(explained(&w, a), "cannot go on until some is freed") != NULL);
}
