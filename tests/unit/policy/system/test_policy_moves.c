/*
 * Moves to other GPUs as policies plan them: those of dcuda, with its slices, and those of tandem.
 */
#include "unit/policy/nodes_world.h"

/* Gates that are open count as held. */
static void pass(uint64_t ns)
{
	for (uint64_t t = 0; t < ns; t += 10 * MS) {
		node.now += 10 * MS;
		for (uint32_t c = 0; c < node.view.client_count; c++)
			if (is_open(&node.clients[c]))
				node.clients[c].held_ns += 10 * MS;
		step();
	}
}

TEST(dcuda_moves_from_the_overloaded_gpu_and_slices_what_stays)
{
	start("dcuda", 2);
	struct td_client_view *a = add(1, 0, TD_CLASS_BESTEFFORT, GIB),
			      *b = add(2, 0, TD_CLASS_BESTEFFORT, GIB);

	a->core_ppm = 800000;
	b->core_ppm = 700000;
	step();
	CHECK(!node.plan.action_count);
	pass(300 * MS);
	CHECK_EQ(count_actions(TD_ACTION_MIGRATE, a), 1);
	CHECK_EQ(node.actions[0].gpu, 1);
	CHECK_EQ(node.actions[0].why, TD_MOVE_OVERLOAD);
	a->gpu = 1;
	step();
	CHECK(!node.plan.action_count && is_open(a) && is_open(b));
	a->gpu = 0;
	a->migrates = b->migrates = false;
	step();
	CHECK(!node.plan.action_count && is_open(a) != is_open(b));
	CHECK_EQ(node.plan.next_wakeup_ns, (node.now / (100 * MS) + 1) * (100 * MS));
	bool first = is_open(a);
	node.now = node.plan.next_wakeup_ns;
	step();
	CHECK(is_open(a) != first && is_open(a) != is_open(b));
}

TEST(dcuda_plans_no_second_move_while_the_first_is_on_its_way)
{
	start("dcuda", 3);
	struct td_client_view *a = add(1, 0, TD_CLASS_BESTEFFORT, GIB),
			      *b = add(2, 0, TD_CLASS_BESTEFFORT, GIB);

	a->core_ppm = 800000;
	b->core_ppm = 700000;
	pass(400 * MS);
	CHECK_EQ(count_actions(TD_ACTION_MIGRATE, a), 1);
	a->moves = true;
	a->moves_to = node.actions[0].gpu;
	pass(1000 * MS);
	CHECK(!node.plan.action_count);
}

TEST(dcuda_moves_nothing_to_a_gpu_that_is_shut_nor_what_cannot_move)
{
	start("dcuda", 3);
	struct td_client_view *a = add(1, 0, TD_CLASS_BESTEFFORT, GIB),
			      *b = add(2, 0, TD_CLASS_BESTEFFORT, GIB);

	a->core_ppm = 800000;
	b->core_ppm = 700000;
	node.gpus[2].shut = true;
	pass(1000 * MS);
	CHECK_EQ(node.plan.action_count, 1);
	CHECK_EQ(node.actions[0].gpu, 1);
	a->migrates = false;
	pass(1000 * MS);
	CHECK_EQ(count_actions(TD_ACTION_MIGRATE, b), 1);
	node.gpus[1].shut = true;
	pass(1000 * MS);
	CHECK(!node.plan.action_count);
}

/* It is lost, and a program has not left it yet: the one with room is a target all the same. */
TEST(dcuda_moves_nothing_to_a_gpu_that_is_shut_with_a_program_on_it)
{
	start("dcuda", 3);
	struct td_client_view *a = add(1, 0, TD_CLASS_BESTEFFORT, GIB),
			      *b = add(2, 0, TD_CLASS_BESTEFFORT, GIB),
			      *c = add(3, 1, TD_CLASS_BESTEFFORT, GIB),
			      *d = add(4, 2, TD_CLASS_BESTEFFORT, GIB);

	a->core_ppm = 800000;
	b->core_ppm = 700000;
	c->core_ppm = 100000;
	d->core_ppm = 50000;
	d->migrates = false;
	node.gpus[2].shut = true;
	pass(1000 * MS);
	CHECK_EQ(count_actions(TD_ACTION_MIGRATE, a), 1);
	CHECK_EQ(node.actions[0].gpu, 1);
	/* Nowhere to go: the two take slices. */
	node.gpus[1].shut = true;
	pass(1000 * MS);
	CHECK(!node.plan.action_count && is_open(a) != is_open(b) && is_open(c) && is_open(d));
}

TEST(dcuda_moves_a_program_again_only_when_its_last_move_is_paid_for)
{
	start("dcuda", 2);
	struct td_client_view *a = add(1, 0, TD_CLASS_BESTEFFORT, GIB),
			      *b = add(2, 0, TD_CLASS_BESTEFFORT, GIB);

	a->core_ppm = b->core_ppm = 800000;
	a->moved_ns = b->moved_ns = node.now;
	a->move_pause_ns = b->move_pause_ns = 200 * MS;
	pass(3900 * MS);
	CHECK(!node.plan.action_count);
	pass(500 * MS);
	CHECK_EQ(node.plan.action_count, 1);
}

TEST(dcuda_compacts_what_has_been_light_for_long)
{
	start("dcuda", 2);
	struct td_client_view *a = add(1, 0, TD_CLASS_BESTEFFORT, GIB),
			      *b = add(2, 1, TD_CLASS_BESTEFFORT, GIB);

	a->core_ppm = 200000;
	b->core_ppm = 300000;
	pass(4900 * MS);
	CHECK(!node.plan.action_count);
	pass(200 * MS);
	CHECK_EQ(count_actions(TD_ACTION_MIGRATE, a), 1);
	CHECK_EQ(node.actions[0].why, TD_MOVE_COMPACT);
	/* A burst in between begins the wait anew. */
	b->core_ppm = 900000;
	pass(1000 * MS);
	CHECK(!node.plan.action_count);
}

/*
 * The work of each is in flight for longer than alone, because the others' is: 62 % of the time
 * where each alone would use 42 % of the GPU. One more fits beside a program of half a GPU, which
 * nobody slows down; one of 87 %, of which 95 % is seen, does not.
 */
TEST(dcuda_goes_by_what_programs_would_use_alone_where_contexts_take_turns)
{
	start("dcuda", 2);
	struct td_client_view *a = add(1, 0, TD_CLASS_BESTEFFORT, GIB),
			      *b = add(2, 0, TD_CLASS_BESTEFFORT, GIB),
			      *c = add(3, 0, TD_CLASS_BESTEFFORT, GIB),
			      *d = add(4, 1, TD_CLASS_BESTEFFORT, GIB);

	node.gpus[0].mps = node.gpus[1].mps = TD_MPS_OFF;
	a->core_ppm = b->core_ppm = c->core_ppm = 100000;
	a->busy_ppm = b->busy_ppm = c->busy_ppm = 950000;
	d->core_ppm = 500000;
	pass(400 * MS);
	CHECK(!node.plan.action_count);
	a->busy_ppm = b->busy_ppm = c->busy_ppm = 620000;
	pass(2000 * MS);
	CHECK_EQ(node.plan.action_count, 1);
	CHECK_EQ(node.actions[0].gpu, 1);
	a->migrates = b->migrates = c->migrates = false;
	step();
	CHECK(!node.plan.action_count && is_open(a) && is_open(b) && is_open(c));
}

/* Its first window is not over when it comes: what it did before that is no measure. */
TEST(dcuda_takes_a_newcomers_first_window_as_its_demand)
{
	start("dcuda", 2);
	struct td_client_view *a = add(1, 0, TD_CLASS_BESTEFFORT, GIB),
			      *b = add(2, 0, TD_CLASS_BESTEFFORT, GIB);

	a->core_ppm = 160000;
	b->core_ppm = 0;
	pass(1000 * MS);
	b->core_ppm = 980000;
	pass(300 * MS);
	CHECK_EQ(count_actions(TD_ACTION_MIGRATE, b), 1);
}

/* It has to leave, wherever it goes. */
TEST(dcuda_waits_no_longer_where_two_targets_are_alike)
{
	start("dcuda", 3);
	struct td_client_view *a = add(1, 0, TD_CLASS_BESTEFFORT, GIB),
			      *b = add(2, 0, TD_CLASS_BESTEFFORT, GIB),
			      *c = add(3, 1, TD_CLASS_BESTEFFORT, GIB),
			      *d = add(4, 2, TD_CLASS_BESTEFFORT, GIB);

	a->core_ppm = 600000;
	b->core_ppm = 700000;
	for (int i = 0; i < 4; i++) {
		c->core_ppm = i % 2 ? 100000 : 200000;
		d->core_ppm = i % 2 ? 200000 : 100000;
		pass(100 * MS);
	}
	CHECK_EQ(count_actions(TD_ACTION_MIGRATE, b), 1);
}

/*
 * The first needs half of a GPU and works on the host while its kernels run. Beside a program that
 * fills the GPU it has work in flight nearly always, and loses little.
 */
TEST(dcuda_remembers_what_a_program_needed_while_its_gpu_had_room)
{
	start("dcuda", 2);
	struct td_client_view *a = add(1, 0, TD_CLASS_BESTEFFORT, GIB),
			      *b = add(2, 1, TD_CLASS_BESTEFFORT, GIB), *c;

	node.gpus[0].mps = node.gpus[1].mps = TD_MPS_OFF;
	a->core_ppm = 500000;
	b->core_ppm = 450000;
	pass(2000 * MS);
	c = add(3, 0, TD_CLASS_BESTEFFORT, GIB);
	a->core_ppm = 950000;
	c->core_ppm = 980000;
	pass(1000 * MS);
	CHECK_EQ(count_actions(TD_ACTION_MIGRATE, a), 1);
	CHECK_EQ(node.actions[0].gpu, 1);
	/* A demand of long ago says nothing. */
	a->migrates = false;
	pass(10000 * MS);
	a->migrates = true;
	pass(1000 * MS);
	CHECK_EQ(node.plan.action_count, 0);
}

/* 12 GiB on a GPU of 8, beside one with 4: by turns 1 - 8/12 of the time is lost. */
static struct td_client_view *begin_tandem(void)
{
	struct td_client_view *a, *b;

	start("tandem", 2);
	node.view.has |= TD_HAS(MIGRATION);
	node.gpus[0].capacity_bytes = node.gpus[1].capacity_bytes = 8 * GIB;
	a = add(1, 0, TD_CLASS_GUARANTEED, 8 * GIB);
	b = add(2, 0, TD_CLASS_GUARANTEED, 4 * GIB);
	(void)add(3, 1, TD_CLASS_GUARANTEED, 2 * GIB);
	a->migrates = b->migrates = true;
	return b;
}

TEST(tandem_moves_a_job_that_its_gpu_has_no_room_for_once_that_pays)
{
	struct td_client_view *b = begin_tandem();

	/* 50 ms and 4 GiB at 10 GB/s, 0.48 s, cost a third of 1.44 s. */
	pass(1400 * MS);
	CHECK_EQ(node.plan.action_count, 0);
	pass(100 * MS);
	CHECK_EQ(count_actions(TD_ACTION_MIGRATE, b), 1);
	CHECK_EQ(node.actions[0].gpu, 1);
	CHECK_EQ(node.actions[0].why, TD_MOVE_OVERLOAD);
}

TEST(tandem_goes_by_the_measured_pause_and_lets_a_job_rest)
{
	struct td_client_view *b = begin_tandem();

	b->moved_ns = node.now;
	b->move_pause_ns = 1000 * MS;
	pass(19000 * MS);
	CHECK_EQ(node.plan.action_count, 0);
	pass(4500 * MS); /* the rest ends after 20 s, and 3 s later its pause is lost */
	CHECK_EQ(count_actions(TD_ACTION_MIGRATE, b), 1);
}

TEST(tandem_moves_nothing_that_does_not_fit_or_does_not_pay)
{
	struct td_client_view *b = begin_tandem();

	node.gpus[1].capacity_bytes = 5 * GIB;
	pass(5000 * MS);
	CHECK_EQ(node.plan.action_count, 0);
	node.gpus[1].capacity_bytes = 8 * GIB;
	b->demanded_bytes = b->resident_bytes = GIB / 1024; /* 1.0001 of the GPU */
	pass(60000 * MS);
	CHECK_EQ(node.plan.action_count, 0);
	b->demanded_bytes = b->resident_bytes = 4 * GIB;
	b->migrates = false;
	node.clients[0].migrates = false;
	pass(5000 * MS);
	CHECK_EQ(node.plan.action_count, 0);
}

TEST(tandem_moves_no_job_because_of_less_protected_ones)
{
	struct td_client_view *b = begin_tandem();

	node.clients[0].class = TD_CLASS_BESTEFFORT;
	node.clients[0].migrates = false;
	pass(60000 * MS);
	CHECK_EQ(node.plan.action_count, 0);
	b->class = TD_CLASS_BESTEFFORT;
	pass(1600 * MS);
	CHECK_EQ(count_actions(TD_ACTION_MIGRATE, b), 1);
}

TEST(tandem_moves_nothing_while_moves_are_off_and_begins_anew_afterwards)
{
	struct td_client_view *b = begin_tandem();

	node.options.stays = true;
	pass(60000 * MS);
	CHECK_EQ(node.plan.action_count, 0);
	node.options.stays = false;
	pass(1400 * MS);
	node.options.stays = true;
	pass(10 * MS);
	node.options.stays = false;
	pass(1400 * MS);
	CHECK_EQ(node.plan.action_count, 0);
	pass(100 * MS);
	CHECK_EQ(count_actions(TD_ACTION_MIGRATE, b), 1);
}

/* Otherwise what is sliced would seem to need less, and be let in all at once. */
TEST(dcuda_does_not_take_closed_time_for_idle_time)
{
	start("dcuda", 1);
	struct td_client_view *a = add(1, 0, TD_CLASS_BESTEFFORT, GIB),
			      *b = add(2, 0, TD_CLASS_BESTEFFORT, GIB);

	for (int i = 0; i < 300; i++) {
		a->core_ppm = is_open(a) ? 900000 : 0;
		b->core_ppm = is_open(b) ? 800000 : 0;
		pass(10 * MS);
		CHECK(is_open(a) != is_open(b) || i < 1);
	}
}

/*
 * On GPU 0 it belongs to the first slice, on GPU 1 to the second: it must not wait for a slice of
 * both.
 */
TEST(dcuda_does_not_starve_a_job_on_two_overloaded_gpus)
{
	start("dcuda", 2);
	struct td_client_view *wide0 = add(1, 0, TD_CLASS_BESTEFFORT, GIB),
			      *wide1 = add(1, 1, TD_CLASS_BESTEFFORT, GIB),
			      *a = add(2, 0, TD_CLASS_BESTEFFORT, GIB),
			      *b = add(3, 1, TD_CLASS_BESTEFFORT, GIB);
	uint32_t slices[3] = {0};

	static const uint32_t cores[] = {900000, 700000, 800000, 800000};

	wide0->migrates = wide1->migrates = a->migrates = b->migrates = false;
	for (int i = 0; i < 10; i++) {
		for (uint32_t c = 0; c < 4; c++)
			node.clients[c].core_ppm = !i || is_open(&node.clients[c]) ? cores[c] : 0;
		step();
		CHECK_EQ(is_open(wide0), is_open(wide1));
		slices[0] += is_open(wide0);
		slices[1] += is_open(a);
		slices[2] += is_open(b);
		for (uint32_t c = 0; c < 4; c++)
			node.clients[c].held_ns += is_open(&node.clients[c]) ? 100 * MS : 0;
		node.now += 100 * MS;
	}
	CHECK(slices[0] >= 5 && slices[1] == 5 && slices[2] == 5);
}
