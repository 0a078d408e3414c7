/*
 * Programs that run and do not answer: nobody waits for them without end, and they rejoin when they
 * answer.
 */
#include "unit/daemon/node_world.h"

#define MS 1000000ull

/* Lets time pass, in steps in which all but the slow ones do what they are told. */
static void pass(uint64_t ms)
{
	for (uint64_t i = 0; i < ms; i += 100) {
		w.now += 100 * MS;
		settle(&w);
		CHECK(within_capacity(&w));
	}
}

static bool is_silent(const struct fake *f)
{
	return !strcmp(td_process_state(f->process), "unresponsive");
}

static struct td_client *client_of(const struct fake *f)
{
	return td_container_of(f->process->clients.next, struct td_client, of_process);
}

/* a is let in, and promised all that it demands; it never says that it has heard of it. */
static void let_in_and_never_heard_of(struct fake **ret_a, struct fake **ret_b)
{
	begin();
	*ret_a = program(0, "a", 40 * MIB);
	*ret_b = program(1, "b", 40 * MIB);
	(*ret_a)->slow = true;
	fake_want(&w, *ret_a);
	settle(&w);
	fake_want(&w, *ret_b);
}

TEST(a_promise_that_is_never_acknowledged_is_taken_back)
{
	struct fake *a, *b;

	let_in_and_never_heard_of(&a, &b);
	pass(9000);
	CHECK(!is_silent(a) && !is_open(b));
	pass(3000);
	CHECK(is_silent(a) && is_open(b));
	CHECK_EQ(w.events[TD_EVENT_UNRESPONSIVE], 1);
	CHECK_EQ(td_client_charge(client_of(a)), 0);
	CHECK_EQ(b->slot[0].resident, 40 * MIB);
	/* Whatever it was told before, it may not use it now. */
	CHECK(!fake_may_use(a, 0, MIB, MIB));
	pass(60000);
	CHECK(is_silent(a));
	CHECK_EQ(w.events[TD_EVENT_UNRESPONSIVE], 1);
}

/* Nothing else happens: each step comes when the one before said. */
TEST(the_daemon_looks_whether_an_answer_comes)
{
	begin();
	struct fake *a = program(0, "a", 40 * MIB);
	uint64_t due, from_ns = w.now;

	settle(&w);
	a->slow = true;
	fake_want(&w, a);
	do
		due = td_node_step(&w.node, w.now);
	while (due <= w.now);
	CHECK(due <= w.now + 1000 * MS);
	for (int i = 0; i < 2; i++) {
		w.now += 300 * MS;
		due = td_node_step(&w.node, w.now);
	}
	while (!is_silent(a)) {
		CHECK(due < from_ns + 12000 * MS);
		w.now = due - 1;
		(void)td_node_step(&w.node, w.now);
		CHECK(!is_silent(a));
		w.now++;
		due = td_node_step(&w.node, w.now);
	}
	CHECK(w.now > from_ns + 9000 * MS);
}

TEST(who_answers_again_takes_its_turn)
{
	struct fake *a, *b;

	let_in_and_never_heard_of(&a, &b);
	pass(12000);
	CHECK(is_silent(a));
	a->slow = false;
	pass(500);
	CHECK(!is_silent(a));
	CHECK_EQ(w.events[TD_EVENT_CONTINUED], 1);
	CHECK_EQ(client_of(a)->has_ceiling, false);
	for (int i = 0; i < 120 && !is_open(a); i++)
		pass(500);
	CHECK(is_open(a));
}

TEST(others_of_its_job_have_what_it_was_promised)
{
	begin();
	struct fake *a = program(0, "a", 10 * MIB), *b = program(1, "a", 10 * MIB);

	limit("a", "40m");
	fake_want(&w, a);
	fake_want(&w, b);
	settle(&w);
	CHECK(td_holding_charge(&client_of(a)->total) > 10 * MIB);
	a->slow = true;
	/* Refused first: what a may have by now is not known. */
	need(b, 20 * MIB);
	pass(3000);
	CHECK_EQ(b->slot[0].answer, 0);
	pass(9000);
	CHECK(is_silent(a));
	need(b, 20 * MIB);
	pass(500);
	CHECK_EQ(b->slot[0].answer, 1);
	CHECK(charged("a") <= 40 * MIB);
}

TEST(old_acknowledgements_are_none)
{
	struct fake *a, *b;
	struct td_msg memory = {.type = TD_MSG_TYPE_used};

	let_in_and_never_heard_of(&a, &b);
	for (int i = 0; i < 120; i++) {
		CHECK_EQ(say(&w, a, &memory), 0);
		pass(100);
	}
	CHECK(is_silent(a) && is_open(b));
}

TEST(a_daemon_that_did_not_run_blames_nobody)
{
	struct fake *a, *b;

	let_in_and_never_heard_of(&a, &b);
	settle(&w);
	w.now += 3600000 * MS;
	settle(&w);
	CHECK(!is_silent(a));
	pass(3000);
	CHECK(!is_silent(a));
	a->slow = false;
	pass(100);
	CHECK_EQ(w.events[TD_EVENT_UNRESPONSIVE], 0);
}

TEST(who_does_not_drain_is_passed_by)
{
	begin();
	struct fake *a = program(0, "a", 40 * MIB), *b = program(1, "b", 24 * MIB),
		    *c = program(2, "c", 24 * MIB);

	fake_want(&w, a);
	settle(&w);
	a->slow = true;
	fake_want(&w, b);
	fake_want(&w, c);
	for (int i = 0; i < 900 && !is_silent(a); i++)
		pass(100);
	CHECK(is_silent(a) && !is_open(a));
	CHECK_EQ(w.events[TD_EVENT_STUCK], 1);
	/* A program that fits beside it runs. */
	pass(500);
	CHECK(is_open(b) || is_open(c));
	a->slow = false;
	pass(500);
	CHECK(!is_silent(a));
	for (int i = 0; i < 240 && !is_open(a); i++)
		pass(500);
	CHECK(is_open(a));
}

/*
 * Its work does not end by the deadline, so it goes on. It is told so, and confirms that it knows.
 */
TEST(a_drain_that_was_given_up_is_no_debt)
{
	begin();
	struct fake *a = program(0, "a", 48 * MIB), *b = program(1, "b", 48 * MIB);
	struct td_msg stuck = {.type = TD_MSG_TYPE_stuck};

	fake_want(&w, a);
	settle(&w);
	fake_want(&w, b);
	a->slow = true;
	w.now += 30000 * MS;
	settle(&w);
	CHECK_EQ(say(&w, a, &stuck), 0);
	CHECK_EQ(a->slot[0].opening, true);
	CHECK_EQ(a->slot[0].seq, client_of(a)->device.seq);
}

TEST(it_is_explained)
{
	struct fake *a, *b;

	let_in_and_never_heard_of(&a, &b);
	pass(12000);
	CHECK(strstr(explained(&w, a), "does not acknowledge the daemon's messages"));
	CHECK_STR(td_process_state_now(&w.node, a->process), "unresponsive");
}
