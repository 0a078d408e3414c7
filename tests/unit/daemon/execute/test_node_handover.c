/* Hand-overs with nothing to move: who is let in at once, and who has to say READY first. */
#include "unit/daemon/node_world.h"

static struct fake *one, *other;

/* One has the GPU, the other waits; both were let in before, and both fit. Turns are exclusive. */
static void both_had_turns(void)
{
	begin();
	CHECK_EQ(td_options_set(&w.node.options, "policy", "nvshare", NULL), 0);
	td_node_options_changed(&w.node, w.now, "policy=nvshare");
	one = program(0, "one", 8 * MIB);
	other = program(1, "other", 8 * MIB);
	fake_want(&w, one);
	fake_want(&w, other);
	for (unsigned i = 0; i < 3; i++) {
		settle(&w);
		w.now += w.node.options.quantum_ns;
	}
	settle(&w);
	CHECK(is_open(one) != is_open(other));
	if (is_open(other)) {
		struct fake *f = one;

		one = other;
		other = f;
	}
}

/* The turn ends; whoever is slow says nothing. */
static void the_turn_ends(void)
{
	w.now += w.node.options.quantum_ns;
	settle(&w);
	CHECK(!is_open(one));
}

TEST(who_has_all_its_memory_there_is_let_in_unasked)
{
	both_had_turns();
	other->slow = true;
	the_turn_ends();
	CHECK(is_open(other));
}

TEST(who_was_never_let_in_says_first_that_all_is_there)
{
	struct fake *third;

	both_had_turns();
	third = program(2, "third", 8 * MIB);
	third->slot[0].resident = 8 * MIB;
	fake_memory(&w, third, 0);
	fake_want(&w, third);
	third->slow = true;
	for (unsigned i = 0; i < 4; i++) {
		w.now += w.node.options.quantum_ns;
		settle(&w);
		CHECK(!is_open(third));
	}
	third->slow = false;
	for (unsigned i = 0; i < 4 && !is_open(third); i++) {
		settle(&w);
		w.now += w.node.options.quantum_ns;
	}
	CHECK(is_open(third));
}

TEST(memory_that_has_left_is_waited_for)
{
	both_had_turns();
	other->slot[0].resident = 4 * MIB;
	fake_memory(&w, other, 0);
	other->slow = true;
	the_turn_ends();
	CHECK(!is_open(other));
	other->slow = false;
	settle(&w);
	CHECK(is_open(other));
}

/* It may be back, and not within reach yet: only a fill tells. */
TEST(memory_that_has_left_and_is_back_is_waited_for)
{
	both_had_turns();
	other->slow = true;
	other->slot[0].resident = 4 * MIB;
	fake_memory(&w, other, 0);
	other->slot[0].resident = 8 * MIB;
	fake_memory(&w, other, 0);
	the_turn_ends();
	CHECK(!is_open(other));
}

TEST(a_lower_limit_that_is_not_acknowledged_may_be_moving_memory)
{
	both_had_turns();
	other->slow = true;
	td_quota_gather(&w.node);
	td_node_tell(&w.node,
		td_container_of(other->process->clients.next, struct td_client, of_process),
		4 * MIB);
	the_turn_ends();
	CHECK(!is_open(other));
}

TEST(who_could_not_obey_a_lower_limit_goes_on_trying)
{
	struct td_msg used = {.type = TD_MSG_TYPE_used};
	const struct td_client *client;

	both_had_turns();
	other->slow = true;
	client = td_container_of(other->process->clients.next, struct td_client, of_process);
	td_quota_gather(&w.node);
	td_node_tell(&w.node, (struct td_client *)client, 4 * MIB);
	used.used.acked_seq = client->device.seq;
	used.used.device_bytes = used.used.total_bytes = 8 * MIB;
	CHECK_EQ(say(&w, other, &used), 0);
	the_turn_ends();
	CHECK(!is_open(other));
}

TEST(an_allocation_that_came_behind_the_gate_is_waited_for)
{
	both_had_turns();
	need(other, 4 * MIB);
	settle(&w);
	other->slow = true;
	the_turn_ends();
	CHECK(!is_open(other));
}
