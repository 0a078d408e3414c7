/* Explanations of why a program waits and how long a turn is, by a node with fake processes. */
#include "unit/daemon/node_world.h"

#define MS 1000000ull

/* Two programs do not fit together, and the second has been waiting for the first for 40 ms. */
static void begin_with_one_that_waits(void)
{
	static const char *const names[] = {"train-a", "train-b"};

	begin();
	for (unsigned i = 0; i < 2; i++) {
		fake_want(&w, program(i, names[i], 48 * MIB));
		settle(&w);
	}
	w.now += 40 * MS;
}

TEST(explanations_name_who_is_in_the_way)
{
	const struct fake *a = &w.fakes[0], *b = &w.fakes[1];

	begin_with_one_that_waits();
	CHECK(strstr(explained(&w, b), "train-a (pid 100)"));
	CHECK(strstr(explained(&w, b), "waiting for 40.0 ms"));
	CHECK(strstr(explained(&w, a), "may use its GPU"));
}

TEST(a_holder_that_is_idle_now_has_not_been_idle_since_it_got_the_gpu)
{
	struct td_msg idle = {.type = TD_MSG_TYPE_idle};
	struct fake *a = &w.fakes[0], *b = &w.fakes[1];

	begin_with_one_that_waits();
	CHECK(strstr(
		explained(&w, b), "train-a (pid 100) has been running on its GPU for 40.0 ms"));
	idle.idle.since_ns = w.now;
	CHECK_EQ(say(&w, a, &idle), 0);
	CHECK(strstr(explained(&w, b),
		"train-a (pid 100) has had its GPU for 40.0 ms and is idle now; 0 before it"));
}

TEST(explanations_say_how_long_a_turn_is_and_why)
{
	begin();
	struct fake *a = program(0, "train-a", 48 * MIB), *b = program(1, "train-b", 48 * MIB);

	CHECK_EQ(td_options_set(&w.node.options, "quantum", "200ms", NULL), 0);
	CHECK_EQ(td_options_set(&w.node.options, "quantum.min", "200ms", NULL), 0);
	fake_want(&w, a);
	settle(&w);
	CHECK(!strstr(explained(&w, a), "turn"));
	fake_want(&w, b);
	settle(&w);
	CHECK(strstr(explained(&w, a),
		"Its turn lasts 200.0 ms: a job that waits has used the GPU little lately."));
	CHECK(strstr(explained(&w, b),
		"The turn of train-a (pid 100) lasts 200.0 ms: a job that waits has used the GPU "
		"little lately."));
	CHECK_EQ(td_options_set(&w.node.options, "policy", "nvshare", NULL), 0);
	td_node_options_changed(&w.node, w.now, "policy=nvshare");
	settle(&w);
	CHECK(strstr(explained(&w, a), "the policy fixes it"));
}

TEST(the_queue_is_counted_by_class_where_the_policy_goes_by_it)
{
	begin();
	struct fake *a = program(0, "a", 48 * MIB), *b = program(1, "b", 48 * MIB),
		    *c = program(2, "c", 48 * MIB), *d = program(3, "d", 48 * MIB);

	fake_want(&w, a);
	settle(&w);
	fake_want(&w, b);
	w.now += MS;
	fake_want(&w, c);
	w.now += MS;
	fake_want(&w, d);
	CHECK_EQ(td_node_set_job(
			 &w.node, td_identity_local(1000), "c", "class", "online", w.now, NULL),
		0);
	CHECK_EQ(
		td_node_set_job(&w.node, td_identity_local(1000), "d", "paused", "on", w.now, NULL),
		0);
	CHECK(strstr(explained(&w, b), "1 before it in the queue"));
	CHECK(strstr(explained(&w, c), "0 before it in the queue"));
	CHECK_EQ(td_options_set(&w.node.options, "policy", "nvshare", NULL), 0);
	td_node_options_changed(&w.node, w.now, "policy=nvshare");
	CHECK(strstr(explained(&w, b), "0 before it in the queue"));
	CHECK(strstr(explained(&w, c), "1 before it in the queue"));
	CHECK(d->process != NULL);
}
