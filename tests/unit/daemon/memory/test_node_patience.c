/* A job that is not let in waits for others' memory that cannot leave, but not for ever. */
#include "base/err.h"
#include "unit/daemon/node_world.h"

#define MS 1000000ull

enum { UNANSWERED = -1, REFUSED, ON_DEVICE, LATER, ON_HOST };

static void has_now(struct fake *f, uint64_t demanded)
{
	f->slot[0].demanded = demanded;
	f->slot[0].resident = demanded;
	f->slot[0].fixed = demanded; /* as it tells */
	fake_memory(&w, f, 0);
	settle(&w);
}

/* Has memory that stays, and has never launched anything. */
static struct fake *idle_plain_program(unsigned i, const char *job, uint64_t demanded)
{
	struct fake *f = &w.fakes[i];

	fake_hello(&w, f, job, TD_BACKEND_PLAIN, false);
	fake_attach(&w, f, 0, 0, 0);
	settle(&w);
	has_now(f, demanded);
	return f;
}

static void asks(struct fake *f, uint64_t bytes)
{
	need(f, bytes);
	settle(&w);
}

static void pause(const char *job, const char *on)
{
	CHECK_EQ(td_node_set_job(&w.node, td_identity_local(1000), job, "paused", on, w.now, NULL),
		0);
	settle(&w);
}

static void passes(uint64_t ms)
{
	w.now += ms * MS;
	settle(&w);
}

static void option(const char *key, const char *value)
{
	CHECK_EQ(td_options_set(&w.node.options, key, value, NULL), 0);
	td_node_options_changed(&w.node, w.now, key);
}

TEST(who_asks_beside_a_full_gpu_is_refused_after_its_patience)
{
	begin();
	idle_plain_program(0, "a", 40 * MIB);
	struct fake *b = idle_plain_program(1, "b", 0);

	settle(&w);
	asks(b, 40 * MIB);
	passes(9999);
	CHECK_EQ(b->slot[0].answer, UNANSWERED);
	CHECK_STR(td_process_state(b->process), "waiting");
	passes(1);
	CHECK_EQ(b->slot[0].answer, REFUSED);
	CHECK_EQ(w.events[TD_EVENT_REFUSED], 1);
	/* Having emptied its caches it is not to wait again. */
	asks(b, 30 * MIB);
	CHECK_EQ(b->slot[0].answer, REFUSED);
	CHECK(within_capacity(&w));
}

TEST(memory_that_is_freed_meanwhile_is_granted)
{
	begin();
	struct fake *a = idle_plain_program(0, "a", 40 * MIB), *b = idle_plain_program(1, "b", 0);

	settle(&w);
	asks(b, 40 * MIB);
	passes(9000);
	has_now(a, 10 * MIB);
	CHECK_EQ(b->slot[0].answer, ON_DEVICE);
	has_now(b, 0);
	/* While it is not admitted, patience begins anew for memory that is taken anew. */
	pause("b", "on");
	pause("b", "off");
	CHECK(!is_open(b));
	has_now(a, 40 * MIB);
	asks(b, 40 * MIB);
	passes(9000);
	CHECK_EQ(b->slot[0].answer, UNANSWERED);
	passes(1000);
	CHECK_EQ(b->slot[0].answer, REFUSED);
}

TEST(with_no_patience_it_is_refused_at_once)
{
	begin();
	idle_plain_program(0, "a", 40 * MIB);
	struct fake *b = idle_plain_program(1, "b", 0);

	option("memory.patience", "0s");
	settle(&w);
	asks(b, 40 * MIB);
	CHECK_EQ(b->slot[0].answer, REFUSED);
	asks(b, 16 * MIB);
	CHECK_EQ(b->slot[0].answer, ON_DEVICE);
}

TEST(who_can_lie_on_the_host_is_let_in_after_its_patience)
{
	begin();
	struct fake *a = idle_plain_program(0, "a", 40 * MIB),
		    *b = spilling_program(1, "b", 40 * MIB);

	settle(&w);
	passes(9999);
	CHECK(!is_open(b));
	passes(1);
	CHECK(is_open(b));
	CHECK_EQ(a->slot[0].resident, 40 * MIB);
	CHECK_EQ(b->slot[0].resident, 24 * MIB);
	CHECK_EQ(b->slot[0].demanded, 40 * MIB);
	CHECK(within_capacity(&w));
	/* The rest comes once there is room. */
	has_now(a, 10 * MIB);
	passes(1000);
	CHECK_EQ(b->slot[0].resident, 40 * MIB);
	CHECK(is_open(b));
}

TEST(what_the_driver_pages_waits_for_nobody)
{
	begin();
	idle_plain_program(0, "a", 40 * MIB);
	struct fake *b = idle_plain_program(1, "b", 0);
	struct td_msg msg = {.type = TD_MSG_TYPE_ask};

	settle(&w);
	msg.ask.bytes = 40 * MIB;
	msg.ask.kind = TD_ASKED_UNIFIED;
	b->slot[0].answer = UNANSWERED;
	b->slot[0].asks_paged = true;
	CHECK_EQ(say(&w, b, &msg), 0);
	settle(&w);
	CHECK_EQ(b->slot[0].answer, ON_HOST);
}

/* It would not be filled again beside a's memory, so it is not moved for turns. */
TEST(who_pages_itself_gives_up_what_can_leave_for_one_that_is_let_in)
{
	begin();
	struct fake *b = &w.fakes[1], *a;

	fake_hello(&w, b, "b", TD_BACKEND_MANAGED, false);
	fake_attach(&w, b, 0, 0, 30 * MIB);
	fake_want(&w, b);
	settle(&w);
	CHECK_EQ(b->slot[0].resident, 30 * MIB);
	b->slot[0].fixed = 20 * MIB;
	fake_memory(&w, b, 0);
	pause("b", "on");
	a = plain_program(0, "a", 0);
	settle(&w);
	CHECK(is_open(a));
	asks(a, 30 * MIB);
	CHECK_EQ(a->slot[0].answer, ON_DEVICE);
	has_now(a, 30 * MIB);
	b->slot[0].demanded = 40 * MIB;
	fake_memory(&w, b, 0);
	pause("b", "off");
	fake_want(&w, b);
	asks(a, 12 * MIB);
	CHECK_EQ(a->slot[0].answer, ON_DEVICE);
	CHECK(b->slot[0].resident >= 20 * MIB);
	CHECK(within_capacity(&w));
}

TEST(a_turn_is_waited_for_however_long_it_lasts)
{
	begin();
	struct fake *a = program(0, "a", 40 * MIB), *b = program(1, "b", 40 * MIB);

	option("quantum", "1h");
	option("policy", "nvshare");
	fake_want(&w, a);
	settle(&w);
	fake_want(&w, b);
	passes(60000);
	CHECK(is_open(a) && !is_open(b));
	asks(b, 8 * MIB);
	passes(60000);
	CHECK(is_open(a) && !is_open(b));
	CHECK_EQ(w.events[TD_EVENT_REFUSED], 0);
}

TEST(a_paused_job_uses_none_of_its_patience_up)
{
	begin();
	idle_plain_program(0, "a", 40 * MIB);
	struct fake *b = idle_plain_program(1, "b", 0);

	pause("b", "on");
	asks(b, 40 * MIB);
	passes(60000);
	CHECK_EQ(b->slot[0].answer, UNANSWERED);
	pause("b", "off");
	passes(9999);
	CHECK_EQ(b->slot[0].answer, UNANSWERED);
	passes(1);
	CHECK_EQ(b->slot[0].answer, REFUSED);
}

TEST(who_pages_itself_is_let_in_after_its_patience)
{
	begin();
	struct fake *b = &w.fakes[1];

	idle_plain_program(0, "a", 40 * MIB);
	fake_hello(&w, b, "b", TD_BACKEND_MANAGED, false);
	fake_attach(&w, b, 0, 0, 30 * MIB);
	fake_want(&w, b);
	settle(&w);
	passes(9999);
	CHECK(!is_open(b));
	passes(1);
	CHECK(is_open(b));
	CHECK_EQ(b->slot[0].limit, 24 * MIB);
	CHECK(within_capacity(&w));
}

TEST(who_pages_itself_is_granted_what_the_driver_may_find_room_for)
{
	begin();
	struct fake *b = &w.fakes[1];

	idle_plain_program(0, "a", 40 * MIB);
	fake_hello(&w, b, "b", TD_BACKEND_MANAGED, false);
	fake_attach(&w, b, 0, 0, 0);
	settle(&w);
	asks(b, 30 * MIB);
	passes(20000);
	CHECK(b->slot[0].answer > REFUSED);
	CHECK_EQ(w.events[TD_EVENT_REFUSED], 0);
}

TEST(who_pages_itself_runs_at_once_while_there_are_no_turns)
{
	begin();
	struct fake *b = &w.fakes[1];

	option("enabled", "off");
	idle_plain_program(0, "a", 40 * MIB);
	fake_hello(&w, b, "b", TD_BACKEND_MANAGED, false);
	fake_attach(&w, b, 0, 0, 30 * MIB);
	fake_want(&w, b);
	settle(&w);
	CHECK(is_open(b));
	CHECK(within_capacity(&w));
}

/* As an idle one with memory that stays is let in beside anybody. */
TEST(who_runs_is_named_and_not_an_idle_owner_of_memory)
{
	begin();
	struct td_msg idle = {.type = TD_MSG_TYPE_idle};
	struct fake *a = idle_plain_program(0, "a", 8 * MIB);
	struct fake *b = program(1, "b", 40 * MIB), *c = program(2, "c", 40 * MIB);

	fake_want(&w, a);
	settle(&w);
	idle.idle.since_ns = w.now;
	CHECK_EQ(say(&w, a, &idle), 0);
	fake_want(&w, b);
	settle(&w);
	fake_want(&w, c);
	settle(&w);
	CHECK(is_open(a) && is_open(b) && !is_open(c));
	CHECK(strstr(explained(&w, c), "b (pid 101) has been running on its GPU"));
}

/* A context that has just been made, under any backend; a pool's memory cannot lie on the host. */
TEST(a_first_allocation_that_stays_waits_as_long)
{
	begin();
	idle_plain_program(0, "a", 40 * MIB);
	struct fake *b = program(1, "b", 0);
	struct td_msg msg = {.type = TD_MSG_TYPE_ask};

	settle(&w);
	msg.ask.bytes = 30 * MIB;
	msg.ask.kind = TD_ASKED_STAYS;
	b->slot[0].answer = UNANSWERED;
	CHECK_EQ(say(&w, b, &msg), 0);
	settle(&w);
	passes(9999);
	CHECK_EQ(b->slot[0].answer, UNANSWERED);
	passes(1);
	CHECK_EQ(b->slot[0].answer, REFUSED);
}

static struct fake *managed_program(unsigned i, const char *job, uint64_t demanded)
{
	struct fake *f = &w.fakes[i];

	fake_hello(&w, f, job, TD_BACKEND_MANAGED, false);
	fake_attach(&w, f, 0, 0, demanded);
	settle(&w);
	return f;
}

/* Asks for memory of a pool or, like a library that does not tell kinds apart, of any kind. */
static void asks_fixed(struct fake *f, uint64_t bytes, bool stays)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_ask};

	msg.ask.bytes = f->slot[0].asked = f->slot[0].fixed = bytes;
	msg.ask.kind = stays ? TD_ASKED_STAYS : TD_ASKED_PAGES;
	f->slot[0].answer = UNANSWERED;
	CHECK_EQ(say(&w, f, &msg), 0);
	settle(&w);
}

TEST(a_pools_first_allocation_under_managed_waits_as_long)
{
	begin();
	idle_plain_program(0, "a", 40 * MIB);
	struct fake *b = managed_program(1, "b", 0);

	asks_fixed(b, 30 * MIB, true);
	passes(9999);
	CHECK_EQ(b->slot[0].answer, UNANSWERED);
	passes(1);
	CHECK_EQ(b->slot[0].answer, REFUSED);
	/* Memory that fits beside the others' is granted. */
	asks_fixed(b, 20 * MIB, true);
	CHECK(b->slot[0].answer == ON_DEVICE || b->slot[0].answer == LATER);
}

/* The driver has it elsewhere. */
TEST(what_a_program_under_managed_has_itself_keeps_no_pool_of_its_out)
{
	begin();
	struct fake *b = managed_program(1, "b", 50 * MIB);

	idle_plain_program(0, "a", 10 * MIB);
	fake_want(&w, b);
	settle(&w);
	CHECK(is_open(b));
	asks_fixed(b, 10 * MIB, true);
	CHECK_EQ(b->slot[0].answer, ON_DEVICE);
	/* Beyond what others' memory leaves of the GPU it is refused at once. */
	asks_fixed(b, 60 * MIB, true);
	CHECK_EQ(b->slot[0].answer, REFUSED);
}

/* Its memory cannot lie on the host: after a grant nothing could be done about it. */
TEST(who_cannot_be_spread_is_granted_nothing_for_a_turn_that_does_not_come)
{
	begin();
	idle_plain_program(0, "a", 40 * MIB);
	struct fake *b = program(1, "b", 0);

	settle(&w);
	asks(b, 30 * MIB);
	passes(9999);
	CHECK_EQ(b->slot[0].answer, UNANSWERED);
	passes(1);
	CHECK_EQ(b->slot[0].answer, REFUSED);
}

/*
 * The owner of the room has ended for the daemon, and not for the driver yet: an exchange changed
 * nothing.
 */
TEST(what_could_not_come_back_is_tried_again)
{
	begin();
	struct fake *a = idle_plain_program(0, "a", 40 * MIB),
		    *b = spilling_program(1, "b", 40 * MIB);
	struct td_client *client;

	settle(&w);
	passes(10000);
	CHECK_EQ(b->slot[0].resident, 24 * MIB);
	fake_dies(&w, a);
	settle(&w);
	client = td_container_of(b->process->clients.next, struct td_client, of_process);
	client->settled.limit_bytes = client->device.told;
	client->settled.resident_bytes = client->device.used;
	client->settled.spilled_bytes = client->spilled_bytes;
	passes(1000);
	CHECK_EQ(b->slot[0].resident, 24 * MIB);
	passes(1000);
	CHECK_EQ(b->slot[0].resident, 40 * MIB);
	CHECK(is_open(b));
}
