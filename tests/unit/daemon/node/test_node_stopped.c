/*
 * Programs that are stopped, or in a frozen control group: others pass them by, and nothing is
 * computed wrong when they go on.
 */
#include "unit/daemon/node_world.h"

#define MS 1000000ull

static void start(void)
{
	begin();
	w.node.io.stop = fake_stop;
}

/* Lets time pass, in steps in which all that run do what they are told. */
static void pass(uint64_t ms)
{
	for (uint64_t i = 0; i < ms; i += 10) {
		w.now += 10 * MS;
		settle(&w);
		CHECK(within_capacity(&w));
	}
}

static void stops(struct fake *f)
{
	f->stopped = TD_STOP_SIGNAL;
}

static bool is_stopped(const struct fake *f)
{
	return !strcmp(td_process_state(f->process), "stopped");
}

static struct td_client *client_of(const struct fake *f)
{
	return td_container_of(f->process->clients.next, struct td_client, of_process);
}

TEST(a_stopped_holder_is_passed_by_and_takes_its_turn_when_it_goes_on)
{
	start();
	struct fake *a = program(0, "a", 30 * MIB), *b = program(1, "b", 30 * MIB),
		    *c = program(2, "c", 30 * MIB);

	fake_want(&w, a);
	settle(&w);
	CHECK(is_open(a));
	stops(a);
	/* b fits beside it, c does not: it takes turns with b, as a keeps what it has. */
	fake_want(&w, b);
	fake_want(&w, c);
	pass(400);
	CHECK(is_stopped(a) && !is_open(a));
	CHECK_EQ(w.events[TD_EVENT_STOPPED], 1);
	bool b_was = false, c_was = false;
	for (int i = 0; i < 60 && !(b_was && c_was); i++) {
		pass(500);
		b_was |= is_open(b);
		c_was |= is_open(c);
	}
	CHECK(b_was && c_was);
	CHECK_EQ(w.events[TD_EVENT_STUCK], 0);
	CHECK_EQ(a->slot[0].resident, 30 * MIB);
	fake_continues(a);
	pass(100);
	CHECK(!is_stopped(a));
	CHECK_EQ(w.events[TD_EVENT_CONTINUED], 1);
	for (int i = 0; i < 60 && !is_open(a); i++)
		pass(500);
	CHECK(is_open(a));
	CHECK_EQ(a->slot[0].ceiling.device_bytes, UINT64_MAX);
}

TEST(a_waiter_that_is_stopped_while_it_fills_loses_its_turn)
{
	start();
	struct fake *a = program(0, "a", 40 * MIB), *b = program(1, "b", 40 * MIB);

	a->slow = true;
	fake_want(&w, a);
	settle(&w);
	CHECK_EQ(a->process->phase, TD_PHASE_FILLING);
	stops(a);
	fake_want(&w, b);
	pass(100);
	CHECK(!is_open(b));
	pass(400);
	CHECK(is_stopped(a) && is_open(b));
	CHECK_EQ(b->slot[0].resident, 40 * MIB);
	CHECK_EQ(td_client_charge(client_of(a)), 0);
	/* It goes on, and would fill by its earlier message before it reads the rest. */
	a->stopped = TD_STOP_NONE;
	a->cpu_ticks++;
	fake_act(&w, a);
	CHECK_EQ(a->slot[0].resident, 0);
	CHECK(within_capacity(&w));
	a->slow = false;
	fake_continues(a);
	for (int i = 0; i < 60 && !is_open(a); i++)
		pass(500);
	CHECK(is_open(a));
}

TEST(what_it_had_begun_to_bring_there_stays_its_own)
{
	start();
	struct fake *a = program(0, "a", 40 * MIB), *b = program(1, "b", 40 * MIB);

	a->slow = true;
	fake_want(&w, a);
	settle(&w);
	/* It is stopped after it has written its claim. */
	CHECK(fake_may_use(a, 0, 40 * MIB, 40 * MIB));
	stops(a);
	fake_want(&w, b);
	pass(1000);
	CHECK(is_stopped(a));
	CHECK_EQ(td_client_charge(client_of(a)), 40 * MIB);
	CHECK(b->slot[0].resident <= 24 * MIB);
	a->slot[0].resident = 40 * MIB;
	CHECK(within_capacity(&w));
	a->slow = false;
	fake_continues(a);
	for (int i = 0; i < 60 && !is_open(b); i++)
		pass(500);
	CHECK(is_open(b));
}

TEST(nobody_is_looked_at_for_whom_nobody_waits)
{
	start();
	struct fake *a = program(0, "a", 20 * MIB), *b = program(1, "b", 20 * MIB);

	fake_want(&w, a);
	fake_want(&w, b);
	settle(&w);
	stops(a);
	pass(2000);
	CHECK_EQ(a->looks + b->looks, 0);
	CHECK_STR(td_process_state_now(&w.node, a->process), "stopped");
	CHECK_STR(td_process_state_now(&w.node, b->process), "running");
}

TEST(looks_are_as_rare_as_said)
{
	start();
	struct fake *a = program(0, "a", 40 * MIB), *b = program(1, "b", 40 * MIB);

	CHECK_EQ(td_node_set_job(
			 &w.node, td_identity_local(1000), "a", "class", "guaranteed", w.now, NULL),
		0);
	fake_want(&w, a);
	settle(&w);
	fake_want(&w, b);
	pass(3000);
	CHECK(a->looks >= 15 && a->looks <= 21);
	CHECK_EQ(b->looks, 0);
}

TEST(one_that_uses_a_processor_or_speaks_is_not_stopped)
{
	start();
	struct fake *a = program(0, "a", 40 * MIB), *b = program(1, "b", 40 * MIB);

	CHECK_EQ(td_node_set_job(
			 &w.node, td_identity_local(1000), "a", "class", "guaranteed", w.now, NULL),
		0);
	fake_want(&w, a);
	settle(&w);
	fake_want(&w, b);
	a->stopped = TD_STOP_TRACED;
	for (int i = 0; i < 100; i++) {
		a->cpu_ticks++;
		pass(10);
	}
	CHECK(!is_stopped(a));
	for (int i = 0; i < 100; i++) {
		fake_memory(&w, a, 0);
		pass(10);
	}
	CHECK(!is_stopped(a));
	pass(400);
	CHECK(is_stopped(a));
	/* A debugger's stop, between two of which it runs. */
	a->cpu_ticks++;
	pass(200);
	CHECK_EQ(w.events[TD_EVENT_CONTINUED], 1);
}

TEST(one_that_counts_work_is_not_looked_at_and_still_found_when_it_stops)
{
	static struct td_meter_page meter;

	start();
	struct fake *a = program(0, "a", 40 * MIB), *b = program(1, "b", 40 * MIB);

	CHECK_EQ(td_node_set_job(
			 &w.node, td_identity_local(1000), "a", "class", "guaranteed", w.now, NULL),
		0);
	meter = (struct td_meter_page){.launches = 7};
	a->process->meter = &meter;
	fake_want(&w, a);
	settle(&w);
	fake_want(&w, b);
	/* Its count from before anybody waited says nothing of now. */
	pass(200);
	CHECK_EQ(a->looks, 1);
	for (int i = 0; i < 300; i++) {
		atomic_fetch_add(&meter.launches, 1);
		pass(10);
	}
	CHECK_EQ(a->looks, 1);
	stops(a);
	pass(600);
	CHECK(is_stopped(a));
	/* A stopped program's page may be another process's, too: only the files count then. */
	atomic_fetch_add(&meter.launches, 1);
	pass(600);
	CHECK(is_stopped(a));
	a->process->meter = NULL;
}

TEST(one_that_is_stopped_in_the_midst_of_its_drain_is_passed_by)
{
	start();
	struct fake *a = program(0, "a", 40 * MIB), *b = program(1, "b", 24 * MIB),
		    *c = program(2, "c", 24 * MIB);

	fake_want(&w, a);
	settle(&w);
	a->slow = true;
	fake_want(&w, b);
	fake_want(&w, c);
	for (int i = 0; i < 200 && a->process->phase != TD_PHASE_DRAINING; i++)
		pass(100);
	CHECK_EQ(a->process->phase, TD_PHASE_DRAINING);
	stops(a);
	pass(500);
	CHECK(is_stopped(a));
	CHECK(is_open(b) || is_open(c));
	/* Its first message after the stop is about the drain that it was in. */
	a->slow = false;
	fake_continues(a);
	pass(200);
	CHECK(!is_stopped(a));
	CHECK(a->process->phase != TD_PHASE_DRAINING);
	for (int i = 0; i < 60 && !is_open(a); i++)
		pass(500);
	CHECK(is_open(a));
}

TEST(one_that_ends_while_it_is_stopped_leaves_nothing)
{
	start();
	struct fake *a = program(0, "a", 40 * MIB), *b = program(1, "b", 40 * MIB);

	fake_want(&w, a);
	settle(&w);
	stops(a);
	fake_want(&w, b);
	pass(500);
	CHECK(is_stopped(a) && !is_open(b));
	fake_dies(&w, a);
	pass(50);
	CHECK(is_open(b));
}

TEST(an_allocation_is_answered_when_its_program_goes_on)
{
	start();
	struct fake *a = program(0, "a", 10 * MIB), *b = program(1, "b", 10 * MIB);

	fake_want(&w, a);
	fake_want(&w, b);
	settle(&w);
	/* a asks for more than is left beside b; b wants a turn, too. */
	need(a, 50 * MIB);
	stops(a);
	pass(500);
	for (int i = 0; i < 40 && !is_stopped(a); i++) {
		need(b, 1 * MIB);
		pass(500);
	}
	/* b goes on, whatever a waits for. */
	CHECK(b->slot[0].answer != 0);
	fake_continues(a);
	for (int i = 0; i < 60 && a->slot[0].answer < 0; i++)
		pass(500);
	CHECK(a->slot[0].answer > 0);
}

TEST(others_of_its_job_have_what_it_had_only_in_advance)
{
	start();
	struct fake *a = program(0, "a", 10 * MIB), *b = program(1, "a", 10 * MIB);

	limit("a", "40m");
	fake_want(&w, a);
	fake_want(&w, b);
	settle(&w);
	CHECK(td_holding_charge(&client_of(a)->total) > 10 * MIB);
	stops(a);
	need(b, 20 * MIB);
	pass(900);
	CHECK_EQ(b->slot[0].answer, 1);
	CHECK_EQ(td_holding_charge(&client_of(a)->total), 10 * MIB);
	/* Its first action after the stop follows its limit of before. */
	CHECK(!fake_may_use(a, 0, 11 * MIB, 11 * MIB));
	fake_continues(a);
	pass(100);
	CHECK(charged("a") <= 40 * MIB);
}

TEST(the_rest_of_its_group_goes_on)
{
	start();
	struct fake *a = program(0, "a", 10 * MIB), *b = program(1, "a", 10 * MIB),
		    *c = program(2, "c", 40 * MIB);

	fake_want(&w, a);
	fake_want(&w, b);
	settle(&w);
	fake_want(&w, c);
	stops(a);
	bool b_was = false, c_was = false;
	for (int i = 0; i < 60 && !(b_was && c_was); i++) {
		pass(500);
		b_was |= is_stopped(a) && is_open(b);
		c_was |= is_open(c);
	}
	CHECK(b_was && c_was);
}

TEST(what_is_stopped_is_explained)
{
	start();
	struct fake *a = program(0, "a", 40 * MIB), *b = program(1, "b", 40 * MIB);

	fake_want(&w, a);
	settle(&w);
	fake_want(&w, b);
	stops(a);
	pass(500);
	CHECK(strstr(explained(&w, a), "is stopped by a signal (SIGSTOP or Ctrl-Z)"));
	CHECK(strstr(
		explained(&w, b), "a (pid 100), which is stopped. Continue or end a (pid 100)"));
	a->stopped = TD_STOP_FROZEN;
	fake_continues(a);
	a->stopped = TD_STOP_FROZEN;
	CHECK(strstr(explained(&w, a), "is stopped by a signal"));
}
