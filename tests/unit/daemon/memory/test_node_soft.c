/*
 * Memory beyond a soft limit, or beyond the GPU itself: which part lies on the host, and when it
 * moves.
 */
#include "base/err.h"
#include "unit/daemon/node_world.h"

#define MS 1000000ull

TEST(beyond_its_soft_limit_memory_is_granted_on_the_host)
{
	begin();
	struct fake *a = spilling_program(0, "a", 0);

	soft("a", "20m");
	settle(&w);
	need(a, 12 * MIB);
	settle(&w);
	CHECK_EQ(a->slot[0].answer, 1);
	need(a, 12 * MIB);
	settle(&w);
	CHECK_EQ(a->slot[0].answer, 3);
	CHECK_EQ(a->slot[0].resident, 12 * MIB);
	CHECK_EQ(a->slot[0].limit, 20 * MIB);
	CHECK(a->slot[0].gate == TD_GATE_OPEN);
	/* Beyond the whole GPU, too. */
	need(a, 100 * MIB);
	settle(&w);
	CHECK_EQ(a->slot[0].answer, 3);
	CHECK(is_open(a));
	CHECK_EQ(w.events[TD_EVENT_REFUSED], 0);
}

TEST(what_fits_beside_a_soft_limit_runs_beside_it)
{
	begin();
	struct fake *a = spilling_program(0, "a", 60 * MIB),
		    *b = spilling_program(1, "b", 40 * MIB);

	settle(&w);
	CHECK(is_open(a) != is_open(b));
	soft("a", "20m");
	settle(&w);
	CHECK(is_open(a) && is_open(b));
	CHECK_EQ(a->slot[0].resident, 20 * MIB);
	CHECK_EQ(b->slot[0].resident, 40 * MIB);
	CHECK(within_capacity(&w));
}

TEST(a_lower_soft_limit_drains_once_and_moves_what_is_beyond)
{
	begin();
	struct fake *a = spilling_program(0, "a", 40 * MIB);

	settle(&w);
	CHECK_EQ(a->slot[0].resident, 40 * MIB);
	a->closings = 0;
	soft("a", "10m");
	settle(&w);
	CHECK(is_open(a));
	CHECK_EQ(a->slot[0].resident, 10 * MIB);
	CHECK_EQ(a->closings, 1);
	CHECK_EQ(a->process->handovers, 1); /* the first opening: nobody else had the GPU */
	settle(&w);
	CHECK_EQ(a->closings, 1);
	/* It comes back where there is room, but not again at once. */
	soft("a", "none");
	settle(&w);
	CHECK_EQ(a->slot[0].resident, 10 * MIB);
	w.now += TD_SOFT_EVERY_NS;
	settle(&w);
	CHECK_EQ(a->slot[0].resident, 40 * MIB);
	CHECK_EQ(a->closings, 2);
	w.now += 10 * TD_SOFT_EVERY_NS;
	settle(&w);
	CHECK_EQ(a->closings, 2);
}

TEST(processes_of_a_job_share_its_soft_limit_and_what_is_there_stays)
{
	begin();
	struct fake *a = spilling_program(0, "j", 12 * MIB),
		    *b = spilling_program(1, "j", 12 * MIB);

	soft("j", "20m");
	settle(&w);
	CHECK_EQ(a->slot[0].resident, 12 * MIB);
	CHECK_EQ(b->slot[0].resident, 8 * MIB);
	a->closings = b->closings = 0;
	/* The first asks for more: that of the second does not give way for it. */
	need(a, 4 * MIB);
	settle(&w);
	CHECK_EQ(a->slot[0].answer, 3);
	CHECK_EQ(b->slot[0].resident, 8 * MIB);
	CHECK_EQ(a->closings + b->closings, 0);
	/*
	 * Room that one leaves goes to the other after a while; both are drained for it, as they
	 * may wait for each other.
	 */
	a->slot[0].demanded = a->slot[0].resident = 4 * MIB;
	fake_memory(&w, a, 0);
	settle(&w);
	w.now += TD_SOFT_EVERY_NS;
	settle(&w);
	CHECK_EQ(b->slot[0].resident, 12 * MIB);
	CHECK(a->closings == 1 && b->closings == 1);
	CHECK(is_open(a) && is_open(b));
}

/*
 * The first of them has as much as is left for both, if the second could have its memory elsewhere.
 */
TEST(what_cannot_leave_the_device_comes_off_the_parts_of_a_jobs_other_processes)
{
	begin();
	struct fake *a = spilling_program(0, "j", 36 * MIB),
		    *b = spilling_program(1, "j", 24 * MIB);

	settle(&w);
	b->slot[0].fixed = 20 * MIB;
	fake_memory(&w, b, 0);
	soft("j", "44m");
	settle(&w);
	CHECK_EQ(b->slot[0].resident, 20 * MIB);
	CHECK_EQ(a->slot[0].resident, 24 * MIB);
	CHECK(is_open(a) && is_open(b));
}

TEST(a_hard_limit_counts_what_is_on_the_host)
{
	begin();
	struct fake *a = spilling_program(0, "a", 0);

	soft("a", "20m");
	limit("a", "30m");
	settle(&w);
	need(a, 16 * MIB);
	settle(&w);
	need(a, 8 * MIB);
	settle(&w);
	CHECK_EQ(a->slot[0].answer, 3);
	/*
	 * It has 24 of 30, 8 of them on the host: 4 more fit the device, and it would not ask for
	 * 6.
	 */
	CHECK(charged("a") <= 30 * MIB);
	need(a, 8 * MIB);
	settle(&w);
	CHECK_EQ(a->slot[0].answer, 0);
	need(a, 6 * MIB);
	settle(&w);
	CHECK_EQ(a->slot[0].answer, 3);
	CHECK(charged("a") <= 30 * MIB);
	CHECK_EQ(a->slot[0].limit, 16 * MIB);
}

TEST(memory_that_cannot_leave_the_device_is_granted_there)
{
	begin();
	struct fake *a = spilling_program(0, "a", 0);
	struct td_msg msg = {.type = TD_MSG_TYPE_ask};

	soft("a", "20m");
	settle(&w);
	msg.ask.bytes = a->slot[0].asked = a->slot[0].fixed = 30 * MIB;
	msg.ask.kind = TD_ASKED_STAYS;
	CHECK_EQ(say(&w, a, &msg), 0);
	settle(&w);
	CHECK_EQ(a->slot[0].answer, 1);
	CHECK_EQ(a->slot[0].resident, 30 * MIB);
}

TEST(a_soft_limit_is_only_for_memory_that_can_leave)
{
	begin();
	struct td_err err = {0};

	plain_program(0, "a", 8 * MIB);
	CHECK_EQ(td_node_set_job(
			 &w.node, td_identity_local(1000), "a", "mem-soft", "4m", w.now, &err),
		-EINVAL);
	CHECK(strstr(err.msg, "swap") != NULL);
	CHECK_EQ(td_node_set_job(
			 &w.node, td_identity_local(1000), "a", "mem-soft", "none", w.now, &err),
		0);
	spilling_program(1, "b", 8 * MIB);
	CHECK_EQ(td_node_set_job(
			 &w.node, td_identity_local(1000), "b", "mem-soft", "50%%", w.now, &err),
		-EINVAL);
	CHECK(strstr(err.msg, "50%%") != NULL);
}

static void capacity(const char *size)
{
	CHECK_EQ(td_options_set(&w.node.options, "gpu.capacity", size, NULL), 0);
	td_node_options_changed(&w.node, w.now, "gpu.capacity");
}

TEST(a_job_is_refused_what_its_gpu_cannot_hold_beside_its_other_processes)
{
	begin();
	struct fake *a = spilling_program(0, "j", 40 * MIB), *b = spilling_program(1, "j", 0);

	settle(&w);
	need(b, 20 * MIB);
	settle(&w);
	CHECK_EQ(b->slot[0].answer, 1);
	/* The other has 40 of 64, as far as is known: it is asked first. */
	need(b, 20 * MIB);
	a->slow = true;
	settle(&w);
	CHECK_EQ(b->slot[0].answer, -1);
	a->slot[0].demanded = a->slot[0].resident = 20 * MIB;
	a->slow = false;
	settle(&w);
	CHECK_EQ(b->slot[0].answer, 1);
	need(b, 20 * MIB);
	settle(&w);
	CHECK_EQ(b->slot[0].answer, 0);
	CHECK_EQ(w.events[TD_EVENT_REFUSED], 1);
	CHECK(is_open(a) && is_open(b));
	CHECK(within_capacity(&w));
}

TEST(a_job_whose_gpu_has_become_too_small_runs_with_the_rest_on_the_host)
{
	begin();
	struct fake *a = spilling_program(0, "j", 40 * MIB),
		    *b = spilling_program(1, "j", 24 * MIB);

	settle(&w);
	CHECK_EQ(a->slot[0].resident + b->slot[0].resident, 64 * MIB);
	capacity("48m");
	settle(&w);
	CHECK(is_open(a) && is_open(b));
	CHECK_EQ(a->slot[0].resident + b->slot[0].resident, 48 * MIB);
	CHECK(strstr(explained(&w, b), "its job has more than the GPU has room for") != NULL);
	capacity("64m");
	w.now += TD_SOFT_EVERY_NS;
	settle(&w);
	CHECK_EQ(a->slot[0].resident + b->slot[0].resident, 64 * MIB);
}

TEST(one_of_a_job_that_cannot_be_drained_keeps_nobody_closed)
{
	begin();
	struct fake *a = spilling_program(0, "j", 20 * MIB),
		    *b = spilling_program(1, "j", 20 * MIB);
	struct td_msg stuck = {.type = TD_MSG_TYPE_stuck};

	settle(&w);
	b->slow = true;
	soft("j", "10m");
	settle(&w);
	CHECK(!is_open(a) && !is_open(b));
	CHECK_EQ(say(&w, b, &stuck), 0);
	b->slow = b->draining = false;
	settle(&w);
	CHECK(is_open(a) && is_open(b));
	w.now += w.node.options.drain_deadline_ns;
	settle(&w);
	CHECK(is_open(a) && is_open(b));
	CHECK_EQ(a->slot[0].resident + b->slot[0].resident, 10 * MIB);
}

TEST(one_whose_memory_does_not_leave_though_it_could_is_not_drained_for_it_without_end)
{
	begin();
	struct fake *a = spilling_program(0, "a", 40 * MIB);

	a->stays = true;
	settle(&w);
	a->closings = 0;
	soft("a", "20m");
	settle(&w);
	CHECK(is_open(a));
	CHECK_EQ(a->closings, 1);
	CHECK_EQ(settle(&w), w.now + TD_SOFT_EVERY_NS);
	w.now += TD_SOFT_EVERY_NS;
	settle(&w);
	CHECK_EQ(a->closings, 2);
	/* More of it is something else. */
	soft("a", "10m");
	settle(&w);
	CHECK_EQ(a->closings, 3);
	a->stays = false;
	w.now += TD_SOFT_EVERY_NS;
	settle(&w);
	CHECK_EQ(a->closings, 4);
	CHECK_EQ(a->slot[0].resident, 10 * MIB);
	CHECK(is_open(a));
}

static struct fake *online_beside_plain(uint64_t demanded)
{
	struct fake *a, *b = plain_program(1, "b", 24 * MIB);

	settle(&w);
	a = spilling_program(0, "a", demanded);
	CHECK_EQ(td_node_set_job(
			 &w.node, td_identity_local(1000), "a", "class", "online", w.now, NULL),
		0);
	settle(&w);
	CHECK(is_open(a) && is_open(b));
	return a;
}

TEST(who_is_let_in_grows_onto_the_host_beside_memory_that_cannot_leave)
{
	begin();
	struct fake *a = online_beside_plain(36 * MIB);

	/* b would be done if it ran, and it waits behind a, whose class is above its own. */
	need(a, 8 * MIB);
	settle(&w);
	CHECK_EQ(a->slot[0].answer, 3);
	CHECK(is_open(a));
	CHECK(within_capacity(&w));
	w.now += 60000 * MS;
	settle(&w);
	CHECK(is_open(a) && is_open(&w.fakes[1]));
	CHECK_EQ(a->slot[0].resident, 40 * MIB);
}

static void need_fixed(struct fake *f, uint64_t bytes)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_ask};

	msg.ask.bytes = bytes;
	msg.ask.kind = TD_ASKED_STAYS;
	f->slot[0].answer = -1;
	f->slot[0].asked = bytes;
	CHECK_EQ(say(&w, f, &msg), 0);
	settle(&w);
	if (f->slot[0].answer == 1)
		f->slot[0].fixed += bytes;
	fake_memory(&w, f, 0);
	settle(&w);
}

TEST(other_memory_leaves_for_what_cannot)
{
	begin();
	struct fake *a = spilling_program(0, "a", 0);

	soft("a", "20m");
	settle(&w);
	need(a, 18 * MIB);
	settle(&w);
	a->closings = 0;
	need_fixed(a, 8 * MIB);
	CHECK_EQ(a->slot[0].answer, 1);
	CHECK_EQ(a->slot[0].resident, 20 * MIB);
	CHECK_EQ(a->closings, 1);
	CHECK(is_open(a));
	/* Behind a closed gate it waits, and keeps what cannot leave. */
	spilling_program(1, "b", 50 * MIB);
	CHECK_EQ(td_node_set_job(
			 &w.node, td_identity_local(1000), "b", "class", "online", w.now, NULL),
		0);
	settle(&w);
	CHECK(!is_open(a) && is_open(&w.fakes[1]));
	need_fixed(a, 4 * MIB);
	CHECK_EQ(a->slot[0].answer, -1);
	CHECK_EQ(a->slot[0].limit, 8 * MIB);
}

TEST(what_cannot_lie_on_the_host_is_had_beside_memory_of_its_own_that_does)
{
	begin();
	struct fake *a = spilling_program(0, "a", 2 * MIB), *b = spilling_program(1, "a", 2 * MIB),
		    *c = spilling_program(2, "a", 2 * MIB);

	soft("a", "6m");
	settle(&w);
	need_fixed(c, 12 * MIB);
	w.now += 2000 * MS;
	settle(&w);
	CHECK(is_open(a) && is_open(b) && is_open(c));
	for (unsigned i = 0; i < 2; i++) {
		struct td_msg msg = {.type = TD_MSG_TYPE_ask};

		msg.ask.bytes = w.fakes[i].slot[0].asked = 6 * MIB;
		msg.ask.kind = TD_ASKED_STAYS;
		CHECK_EQ(say(&w, &w.fakes[i], &msg), 0);
	}
	settle(&w);
	w.now += 2000 * MS;
	settle(&w);
	CHECK_EQ(a->slot[0].answer, 1);
	CHECK_EQ(b->slot[0].answer, 1);
	CHECK(within_capacity(&w));
}

/*
 * If it had to ask again once the gate is open, it would find the room filled by then, time after
 * time.
 */
TEST(what_cannot_lie_on_the_host_waits_for_the_rest_of_its_job_to_leave)
{
	begin();
	struct fake *a = spilling_program(0, "a", 16 * MIB), *b = spilling_program(1, "a", 0);

	soft("a", "16m");
	fake_want(&w, a);
	fake_want(&w, b);
	settle(&w);
	CHECK_EQ(a->slot[0].resident, 16 * MIB);
	CHECK(is_open(a) && is_open(b));
	need_fixed(b, 2 * MIB);
	CHECK_EQ(b->slot[0].answer, 1);
	CHECK(a->slot[0].resident <= 14 * MIB);
	CHECK(is_open(a) && is_open(b));
}

TEST(what_has_no_room_without_others_that_stay_is_refused)
{
	begin();
	struct fake *a = online_beside_plain(36 * MIB);

	need_fixed(a, 8 * MIB);
	CHECK_EQ(a->slot[0].answer, 1);
	CHECK_EQ(a->slot[0].resident, 40 * MIB);
	/* There are 40 MiB for it, and 8 of them are taken for good. */
	need_fixed(a, 33 * MIB);
	CHECK_EQ(a->slot[0].answer, 0);
	CHECK(is_open(a) && is_open(&w.fakes[1]));
	CHECK(within_capacity(&w));
}

/*
 * b has 24 MiB that would leave if the host had room for them; a is admitted beside them and needs
 * more than is free then.
 */
static struct fake *online_beside_stranded(bool refuses)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_ask};
	struct fake *a, *b = program(1, "b", 24 * MIB);

	fake_want(&w, b);
	settle(&w);
	b->slot[0].fixed = b->slot[0].stranded = 24 * MIB;
	fake_memory(&w, b, 0);
	a = program(0, "a", 36 * MIB);
	CHECK_EQ(td_node_set_job(
			 &w.node, td_identity_local(1000), "a", "class", "online", w.now, NULL),
		0);
	fake_want(&w, a);
	settle(&w);
	CHECK(is_open(a));
	msg.ask.bytes = a->slot[0].asked = 8 * MIB;
	msg.ask.kind = TD_ASKED_STAYS;
	msg.ask.refuses = refuses;
	CHECK_EQ(say(&w, a, &msg), 0);
	settle(&w);
	return a;
}

TEST(memory_that_has_no_place_on_the_host_for_a_while_is_waited_for)
{
	begin();
	struct fake *a = online_beside_stranded(false), *b = &w.fakes[1];

	CHECK_EQ(a->slot[0].answer, -1);
	CHECK(within_capacity(&w));
	w.now += 8000 * MS;
	settle(&w);
	CHECK_EQ(a->slot[0].answer, -1);
	/* There is a place for it. */
	b->slot[0].fixed = b->slot[0].stranded = 0;
	fake_memory(&w, b, 0);
	settle(&w);
	CHECK_EQ(a->slot[0].answer, 1);
	CHECK(!is_open(b));
	CHECK(within_capacity(&w));
}

TEST(who_waits_for_a_place_on_the_host_gives_up_in_the_end_and_then_at_once)
{
	begin();
	struct fake *a = online_beside_stranded(false), *b = &w.fakes[1];
	uint64_t wakeup = settle(&w);

	CHECK_EQ(a->slot[0].answer, -1);
	CHECK(wakeup <= w.now + 10000 * MS);
	w.now += 10000 * MS;
	settle(&w);
	CHECK_EQ(a->slot[0].answer, 0);
	CHECK(is_open(a));
	/* It has emptied its caches, and asks again. */
	w.now += 1000 * MS;
	need_fixed(a, 8 * MIB);
	CHECK_EQ(a->slot[0].answer, 0);
	/* One that has room in between, and it is another matter. */
	need_fixed(a, 2 * MIB);
	CHECK_EQ(a->slot[0].answer, 1);
	CHECK_EQ(b->slot[0].stranded, 24 * MIB);
	need_fixed(a, 8 * MIB);
	CHECK_EQ(a->slot[0].answer, -1);
}

/*
 * b does not fit beside c's memory, and has such memory too: it is not moved for turns, but for a's
 * shortage behind an open gate.
 */
TEST(memory_that_is_not_moved_for_turns_leaves_for_one_that_is_let_in)
{
	begin();
	struct fake *a = program(0, "a", 10 * MIB), *b = program(1, "b", 44 * MIB),
		    *c = program(2, "c", 24 * MIB);

	CHECK_EQ(td_node_set_job(
			 &w.node, td_identity_local(1000), "a", "class", "online", w.now, NULL),
		0);
	fake_want(&w, a);
	fake_want(&w, c);
	settle(&w);
	CHECK(is_open(a) && is_open(c));
	c->slot[0].fixed = 24 * MIB;
	fake_memory(&w, c, 0);
	b->slot[0].resident = 24 * MIB;
	b->slot[0].fixed = 12 * MIB;
	fake_memory(&w, b, 0);
	settle(&w);
	CHECK(!is_open(b));
	need(a, 8 * MIB);
	settle(&w);
	CHECK_EQ(a->slot[0].answer, 1);
	CHECK(is_open(a));
	CHECK(within_capacity(&w));
	CHECK(b->slot[0].resident >= 12 * MIB && b->slot[0].resident <= 22 * MIB);
}

/*
 * d, which alone wants more than anybody else has, waits alone: with and without memory of its own
 * that cannot leave.
 */
TEST(two_take_turns_while_a_third_is_there_that_does_not_fit_beside_what_stays)
{
	for (unsigned round = 0; round < 2; round++) {
		unsigned opened[2] = {0};
		bool was[2] = {false, false};
		struct fake *d;

		begin();
		for (unsigned i = 0; i < 2; i++) {
			struct fake *f = program(i, i ? "c" : "b", 40 * MIB);

			f->slot[0].fixed = 3 * MIB;
			fake_want(&w, f);
			settle(&w);
			fake_memory(&w, f, 0);
		}
		d = program(2, "d", 60 * MIB);
		d->slot[0].resident = d->slot[0].fixed = round * MIB;
		fake_memory(&w, d, 0);
		for (unsigned k = 0; k < 600; k++) {
			w.now += 100 * MS;
			settle(&w);
			for (unsigned i = 0; i < 2; i++) {
				opened[i] += is_open(&w.fakes[i]) && !was[i];
				was[i] = is_open(&w.fakes[i]);
			}
		}
		CHECK(opened[0] >= 3 && opened[1] >= 3);
		CHECK(within_capacity(&w));
	}
}

TEST(who_would_rather_be_refused_does_not_wait_for_a_place_on_the_host)
{
	begin();
	struct fake *a = online_beside_stranded(true);

	CHECK_EQ(a->slot[0].answer, 0);
	CHECK(is_open(a));
}

TEST(what_a_whole_job_has_counts_where_none_of_it_can_lie_on_the_host)
{
	begin();
	struct fake *a, *b;

	plain_program(2, "c", 24 * MIB);
	settle(&w);
	a = program(0, "a", 18 * MIB);
	b = program(1, "a", 18 * MIB);
	CHECK_EQ(td_node_set_job(
			 &w.node, td_identity_local(1000), "a", "class", "online", w.now, NULL),
		0);
	fake_want(&w, a);
	fake_want(&w, b);
	settle(&w);
	CHECK(is_open(a) && is_open(b));
	/* Neither has 40 MiB, both have 36 of the 40 that are left. */
	need_fixed(a, 8 * MIB);
	CHECK_EQ(a->slot[0].answer, 0);
	need_fixed(b, 4 * MIB);
	CHECK_EQ(b->slot[0].answer, 1);
	CHECK(within_capacity(&w));
}

TEST(a_limit_that_comes_to_be_soft_while_memory_comes_back_is_told_so)
{
	begin();
	struct fake *a = spilling_program(0, "a", 40 * MIB), *b;

	settle(&w);
	b = spilling_program(1, "b", 44 * MIB);
	w.now += 60000 * MS;
	settle(&w);
	CHECK(is_open(b) && a->slot[0].limit == 20 * MIB);
	/* a's turn: what b has is still leaving. */
	b->slow = true;
	w.now += 60000 * MS;
	settle(&w);
	b->draining = false;
	CHECK_EQ(say(&w, b, &(struct td_msg){.type = TD_MSG_TYPE_drained}), 0);
	settle(&w);
	CHECK(a->process->phase == TD_PHASE_FILLING && a->slot[0].limit == 20 * MIB);
	soft("a", "20m");
	b->slow = false;
	settle(&w);
	CHECK(is_open(a));
	CHECK_EQ(a->slot[0].resident, 20 * MIB);
}

TEST(what_is_to_stay_once_it_is_there_need_not_all_come)
{
	begin();
	struct fake *a = spilling_program(0, "a", 58 * MIB), *b;

	settle(&w);
	b = spilling_program(1, "b", 50 * MIB);
	w.now += 60000 * MS;
	settle(&w);
	CHECK(is_open(b) && !is_open(a));
	/* From now on nothing of it is to leave, and there is less than it has. */
	a->slot[0].fixed = 58 * MIB;
	fake_memory(&w, a, 0);
	CHECK_EQ(td_options_set(&w.node.options, "gpu.capacity", "50Mi", NULL), 0);
	td_node_options_changed(&w.node, w.now, "gpu.capacity=50Mi");
	fake_dies(&w, b);
	settle(&w);
	CHECK(is_open(a));
	CHECK_EQ(a->slot[0].resident, 50 * MIB);
}

/*
 * The program has freed memory on both sides. Nothing comes to the device under running work, so
 * that has room.
 */
TEST(what_is_free_on_the_device_is_granted_beside_what_lies_on_the_host)
{
	begin();
	struct fake *a = spilling_program(0, "a", 12 * MIB);

	soft("a", "8m");
	settle(&w);
	CHECK(a->slot[0].resident == 8 * MIB && a->slot[0].gate == TD_GATE_OPEN);
	a->slow = true;
	a->slot[0].demanded = 6 * MIB;
	a->slot[0].resident = 2 * MIB;
	fake_memory(&w, a, 0);
	(void)td_node_step(&w.node, w.now);
	need(a, 4 * MIB);
	(void)td_node_step(&w.node, w.now);
	CHECK_EQ(a->slot[0].answer, 1);
	CHECK(a->slot[0].resident <= a->slot[0].limit);
	CHECK(a->slot[0].total >= a->slot[0].demanded);
	CHECK(within_capacity(&w));
}
