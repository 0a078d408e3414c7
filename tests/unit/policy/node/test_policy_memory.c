/*
 * Policies and memory that stays on the device although its owner is closed: pools, arrays, the
 * program's own mappings.
 */
#include "unit/policy/policy_world.h"

#include "policy/node/share.h"

TEST(what_a_closed_program_leaves_behind_is_room_for_nobody)
{
	start("tandem", 1);
	struct td_client_view *a = add(1, 0, 12 * GIB), *b = add(2, 0, 6 * GIB),
			      *c = add(3, 0, 7 * GIB);

	a->resident_bytes = a->fixed_bytes = 4 * GIB;
	want(b);
	settle();
	want(c);
	step();
	/* 4 stay, 6 are in use: 7 more do not fit 16. */
	CHECK_EQ(gate_of(b), TD_GATE_OPEN);
	CHECK_EQ(gate_of(c), TD_GATE_CLOSED);
	idle(b);
	node.now += 1000 * MS;
	settle();
	CHECK_EQ(gate_of(b), TD_GATE_CLOSED);
	CHECK_EQ(gate_of(c), TD_GATE_OPEN);
	CHECK_EQ(node.grants[0].limit_bytes, 4 * GIB);
	/* The one that left them behind counts them once. */
	idle(c);
	want(a);
	node.now += 1000 * MS;
	settle();
	CHECK_EQ(gate_of(a), TD_GATE_OPEN);
}

TEST(closing_makes_no_more_room_than_what_leaves)
{
	start("tandem", 1);
	struct td_client_view *a = add(1, 0, 10 * GIB), *b = add(2, 0, 8 * GIB);

	want(a);
	settle();
	a->fixed_bytes = 9 * GIB;
	want(b);
	node.now += 2000 * MS;
	step();
	CHECK_EQ(gate_of(a), TD_GATE_OPEN);
	CHECK_EQ(gate_of(b), TD_GATE_CLOSED);
	a->fixed_bytes = 8 * GIB;
	step();
	CHECK_EQ(gate_of(a), TD_GATE_CLOSED);
}

TEST(enough_are_closed_for_what_they_leave_behind)
{
	start("tandem", 1);
	struct td_client_view *a = add(1, 0, 12 * GIB), *b = add(2, 0, 4 * GIB),
			      *c = add(3, 0, 11 * GIB);

	want(a);
	want(b);
	settle();
	a->fixed_bytes = 4 * GIB;
	want(c);
	node.now += 2000 * MS;
	step();
	CHECK_EQ(gate_of(a), TD_GATE_CLOSED);
	CHECK_EQ(gate_of(b), TD_GATE_CLOSED);
}

TEST(what_somebody_left_behind_is_his_own_when_he_comes_back)
{
	start("tandem", 1);
	struct td_client_view *a = add(1, 0, 8 * GIB), *b = add(2, 0, 8 * GIB);

	a->resident_bytes = a->fixed_bytes = 4 * GIB;
	want(a);
	want(b);
	step();
	CHECK_EQ(gate_of(a), TD_GATE_OPEN);
	CHECK_EQ(gate_of(b), TD_GATE_OPEN);
}

TEST(the_limit_of_a_closed_program_covers_what_cannot_leave)
{
	start("tandem", 1);
	struct td_client_view *a = add(1, 0, 12 * GIB);

	add(2, 0, 14 * GIB);
	a->resident_bytes = 12 * GIB;
	a->fixed_bytes = 4 * GIB;
	node.grants[0] = (struct td_grant){.gate = TD_GATE_CLOSED, .limit_bytes = UINT64_MAX};
	node.grants[1] = (struct td_grant){.gate = TD_GATE_OPEN, .limit_bytes = UINT64_MAX};
	td_share_memory_by_class(&node.view, &node.plan);
	CHECK_EQ(node.grants[0].limit_bytes, 4 * GIB);
	CHECK_EQ(node.grants[1].limit_bytes, 12 * GIB);
}

TEST(what_is_not_moved_for_turns_leaves_last_and_only_for_what_the_open_lack)
{
	start("tandem", 1);
	struct td_client_view *a = add(1, 0, 6 * GIB), *b = add(2, 0, 6 * GIB),
			      *c = add(3, 0, 4 * GIB);

	a->resident_bytes = 6 * GIB;
	a->fixed_bytes = 2 * GIB;
	a->movable = false;
	a->last_resort = true;
	b->resident_bytes = 6 * GIB;
	want(c);
	settle();
	a->resident_bytes = b->resident_bytes = 6 * GIB;
	step();
	CHECK_EQ(gate_of(c), TD_GATE_OPEN);
	CHECK_EQ(node.grants[0].limit_bytes, 6 * GIB);
	CHECK_EQ(node.grants[1].limit_bytes, 6 * GIB);
	c->demanded_bytes = 9 * GIB;
	step();
	CHECK_EQ(node.grants[0].limit_bytes, 6 * GIB);
	CHECK_EQ(node.grants[1].limit_bytes, 1 * GIB);
	c->demanded_bytes = 13 * GIB;
	step();
	CHECK_EQ(gate_of(c), TD_GATE_OPEN);
	CHECK_EQ(node.grants[0].limit_bytes, 3 * GIB);
	CHECK_EQ(node.grants[1].limit_bytes, 0);
	CHECK_EQ(node.grants[2].limit_bytes, 13 * GIB);
}

TEST(who_has_nothing_that_can_leave_does_not_give_it_up_for_another)
{
	start("tandem", 1);
	struct td_client_view *a = add(1, 0, 6 * GIB), *b = add(2, 0, 4 * GIB),
			      *c = add(3, 0, 8 * GIB);

	/* The idle first, and of those the largest: but what has to come comes from who has it. */
	a->resident_bytes = a->fixed_bytes = 6 * GIB;
	b->resident_bytes = 4 * GIB;
	want(c);
	step();
	CHECK_EQ(node.grants[0].limit_bytes, 6 * GIB);
	CHECK_EQ(node.grants[1].limit_bytes, 2 * GIB);
	CHECK_EQ(node.grants[2].limit_bytes, 8 * GIB);
}

/* A context that came later, say, has left less of the GPU than they have there already. */
TEST(who_has_all_of_its_memory_there_and_cannot_give_it_up_is_let_in_beside_others)
{
	start("tandem", 1);
	struct td_client_view *a = add(1, 0, 9 * GIB), *b = add(2, 0, 8 * GIB);

	a->movable = b->movable = false;
	a->resident_bytes = 9 * GIB;
	b->resident_bytes = 8 * GIB;
	want(a);
	want(b);
	settle();
	CHECK_EQ(gate_of(a), TD_GATE_OPEN);
	CHECK_EQ(gate_of(b), TD_GATE_OPEN);
	settle();
	CHECK_EQ(gate_of(b), TD_GATE_OPEN);
	/* With what it asks for it waits. */
	b->demanded_bytes = 9 * GIB;
	settle();
	CHECK_EQ(gate_of(a), TD_GATE_OPEN);
	CHECK_EQ(gate_of(b), TD_GATE_CLOSED);
	a->demanded_bytes = a->resident_bytes = 7 * GIB;
	settle();
	CHECK_EQ(gate_of(b), TD_GATE_OPEN);
}
