/* Beyond a soft limit: a program that caches memory is asked to drop it before it is moved. */
#include "unit/daemon/node_world.h"

#define MS 1000000ull

TEST(one_that_keeps_memory_for_later_is_asked_to_drop_it_before_it_is_moved)
{
	begin();
	struct fake *a = spilling_program(0, "a", 40 * MIB);

	a->slot[0].cached = 30 * MIB;
	fake_memory(&w, a, 0);
	settle(&w);
	a->closings = 0;
	soft("a", "20m");
	settle(&w);
	/* It is told, and nothing happens to it. */
	CHECK(is_open(a));
	CHECK_EQ(a->slot[0].limit, 20 * MIB);
	CHECK_EQ(a->slot[0].resident, 40 * MIB);
	a->slot[0].demanded = a->slot[0].resident = 15 * MIB;
	a->slot[0].cached = 5 * MIB;
	fake_memory(&w, a, 0);
	w.now += 2 * TD_SOFT_ASK_NS;
	settle(&w);
	CHECK_EQ(a->closings, 0);
	/* One that tells no steps has a second for it. */
	a->slot[0].demanded = a->slot[0].resident = 18 * MIB;
	fake_memory(&w, a, 0);
	soft("a", "10m");
	CHECK_EQ(settle(&w), w.now + TD_SOFT_ASK_NS);
	w.now += TD_SOFT_ASK_NS - 1;
	settle(&w);
	CHECK_EQ(a->closings, 0);
	w.now++;
	settle(&w);
	CHECK_EQ(a->closings, 1);
	CHECK(is_open(a));
	CHECK_EQ(a->slot[0].resident, 10 * MIB);
}

static void tells_steps(struct fake *a, uint64_t count)
{
	struct td_msg step = {.type = TD_MSG_TYPE_step};

	step.step.steps = count;
	step.step.step_ns = step.step.median_ns = MS;
	CHECK_EQ(say(&w, a, &step), 0);
}

/* As busy as the machine may be, and however short its steps are alone. */
TEST(one_that_keeps_memory_for_later_has_two_steps_to_drop_it)
{
	begin();
	struct fake *a = spilling_program(0, "a", 40 * MIB);

	a->slot[0].cached = 30 * MIB;
	fake_memory(&w, a, 0);
	tells_steps(a, 10);
	settle(&w);
	a->closings = 0;
	soft("a", "30m");
	/* It makes steps and has not read the message. */
	for (uint64_t i = 0; i < 10; i++) {
		(void)td_node_step(&w.node, w.now);
		tells_steps(a, 20 + 2 * i);
		w.now += 20 * MS;
	}
	CHECK_EQ(a->closings, 0);
	CHECK_EQ(settle(&w), w.now + TD_SOFT_ASK_NS - 200 * MS);
	CHECK_EQ(a->closings, 0);
	/* Those may be from before it heard of it, too. */
	w.now += 500 * MS;
	tells_steps(a, 90);
	settle(&w);
	tells_steps(a, 91);
	settle(&w);
	CHECK_EQ(a->closings, 0);
	tells_steps(a, 92);
	settle(&w);
	CHECK_EQ(a->closings, 1);
	CHECK_EQ(a->slot[0].resident, 30 * MIB);
	/* Steps of no time at all leave it 100 ms. */
	w.now += 2 * TD_SOFT_EVERY_NS;
	settle(&w);
	soft("a", "20m");
	settle(&w);
	tells_steps(a, 93);
	settle(&w);
	tells_steps(a, 200);
	CHECK_EQ(settle(&w), w.now + 100 * MS);
	CHECK_EQ(a->closings, 1);
	w.now += 100 * MS;
	settle(&w);
	CHECK_EQ(a->closings, 2);
	/* One that makes none has a second. */
	w.now += 2 * TD_SOFT_EVERY_NS;
	settle(&w);
	soft("a", "10m");
	settle(&w);
	w.now += TD_SOFT_ASK_NS - 1;
	settle(&w);
	CHECK_EQ(a->closings, 2);
	w.now++;
	settle(&w);
	CHECK_EQ(a->closings, 3);
}

TEST(who_was_asked_to_drop_memory_moves_none_while_its_drain_may_be_given_up)
{
	begin();
	struct fake *a = spilling_program(0, "a", 40 * MIB);

	a->slot[0].cached = 30 * MIB;
	fake_memory(&w, a, 0);
	settle(&w);
	soft("a", "20m");
	settle(&w);
	CHECK_EQ(a->slot[0].limit, 20 * MIB);
	a->slow = true;
	CHECK_EQ(
		td_node_set_job(&w.node, td_identity_local(1000), "a", "paused", "on", w.now, NULL),
		0);
	settle(&w);
	CHECK_EQ(a->process->phase, TD_PHASE_DRAINING);
	CHECK_EQ(a->slot[0].limit, 40 * MIB);
	a->slow = false;
	settle(&w);
	CHECK_EQ(a->process->phase, TD_PHASE_CLOSED);
}
