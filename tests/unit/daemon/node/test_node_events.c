/* Each kind of event tells in tandem events whose it is, and its TOOK and SIZE. */
#include "unit/daemon/node_world.h"

#define MS 1000000ull

static const struct td_event *event(enum td_event_kind kind)
{
	CHECK(w.events[kind] > 0);
	return &w.last_event[kind];
}

static void took(enum td_event_kind kind, const char *job, uint64_t ns, uint64_t bytes)
{
	const struct td_event *e = event(kind);

	CHECK_STR(e->job, job);
	CHECK_EQ(e->gpu, 0);
	CHECK_EQ(e->value_ns, ns);
	CHECK_EQ(e->value_bytes, bytes);
}

static struct fake *open_program(unsigned i, const char *job, uint64_t demanded)
{
	struct fake *f = program(i, job, demanded);

	fake_want(&w, f);
	settle(&w);
	CHECK(is_open(f));
	return f;
}

static void until(enum td_event_kind kind)
{
	uint64_t before = w.events[kind];

	for (int i = 0; i < 600 && w.events[kind] == before; i++) {
		w.now += 100 * MS;
		settle(&w);
	}
	CHECK(w.events[kind] > before);
}

TEST(opened_tells_the_wait_and_the_memory_that_is_on_the_gpu)
{
	uint64_t wanted_ns;
	struct fake *b;

	begin();
	(void)open_program(0, "a", 8 * MIB);
	took(TD_EVENT_OPENED, "a", 0, 8 * MIB);
	CHECK_EQ(event(TD_EVENT_OPENED)->pid, 100);
	b = program(1, "b", 16 * MIB);
	w.now += 3 * MS;
	wanted_ns = w.now;
	fake_want(&w, b);
	until(TD_EVENT_OPENED);
	took(TD_EVENT_OPENED, "b", w.now - wanted_ns, 16 * MIB);
	CHECK_EQ(event(TD_EVENT_OPENED)->pid, 101);
}

TEST(drained_tells_how_long_the_work_in_flight_took)
{
	struct fake *a, *b;

	begin();
	a = open_program(0, "a", 8 * MIB);
	b = program(1, "b", 8 * MIB);
	a->slow = true;
	fake_want(&w, b);
	until(TD_EVENT_DRAINING);
	took(TD_EVENT_DRAINING, "a", 0, 0);
	w.now += 7 * MS;
	a->slow = false;
	settle(&w);
	took(TD_EVENT_DRAINED, "a", 7 * MS, 0);
}

TEST(idle_tells_for_how_long)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_idle};
	struct fake *a;

	begin();
	a = open_program(0, "a", 8 * MIB);
	w.now += 10 * MS;
	msg.idle.since_ns = w.now - 4 * MS;
	CHECK_EQ(say(&w, a, &msg), 0);
	took(TD_EVENT_IDLE, "a", 4 * MS, 0);
}

TEST(shrunk_tells_how_much_has_left_the_device)
{
	struct fake *a, *b;

	begin();
	a = open_program(0, "a", 40 * MIB);
	b = program(1, "b", 40 * MIB);
	fake_want(&w, b);
	until(TD_EVENT_SHRUNK);
	CHECK(a->slot[0].out > 0);
	took(TD_EVENT_SHRUNK, "a", 0, a->slot[0].out);
}

TEST(refused_tells_the_size_of_what_did_not_fit)
{
	struct fake *a;

	begin();
	a = open_program(0, "a", 4 * MIB);
	limit("a", "8m");
	need(a, 16 * MIB);
	settle(&w);
	took(TD_EVENT_REFUSED, "a", 0, 16 * MIB);
	CHECK_STR(event(TD_EVENT_REFUSED)->detail, "beyond the job's limit");
}

TEST(failed_tells_the_error_and_no_size)
{
	begin();
	fails(open_program(0, "a", 4 * MIB), 0);
	took(TD_EVENT_FAILED, "a", 0, 0);
	CHECK_STR(event(TD_EVENT_FAILED)->detail, "its context has failed: CUDA error 700");
}

TEST(left_tells_for_how_long_it_might_use_the_gpu)
{
	struct fake *a;

	begin();
	a = open_program(0, "a", 4 * MIB);
	w.now += 250 * MS;
	fake_dies(&w, a);
	took(TD_EVENT_LEFT, "a", 250 * MS, 0);
}
