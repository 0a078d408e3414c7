/*
 * The machine of DCUDA's experiments and its bounds, in worlds small enough to know what is best.
 */
#include "test.h"

#include <math.h>

#include "sim/worlds/dcuda_machine.h"

static struct td_dcuda_machine_app apps[TD_DCUDA_MACHINE_APPS];
static const struct td_contention side_by_side = {.capped_pressure = 1};

/* All come at once. */
static void begin(uint32_t count, double core, double sensitivity, double pressure)
{
	for (uint32_t i = 0; i < count; i++) {
		apps[i] = (struct td_dcuda_machine_app){
			.work_s = 10, .core = core, .contender = td_contender_neutral};
		apps[i].contender.sensitivity = sensitivity;
		apps[i].contender.pressure = pressure;
		apps[i].contender.demand = core;
	}
}

static double slowdown(struct td_dcuda_how how, double gpu_gib, uint32_t count)
{
	return td_dcuda_simulate(how, &side_by_side, gpu_gib, apps, count).slowdown;
}

static bool near(double a, double b)
{
	return fabs(a - b) < 0.02;
}

/*
 * Four of five are alone until 10 s, except that one shares: the two have half of their speed, and
 * a GPU each for the other half of their work.
 */
TEST(the_truth_lets_as_few_share_as_there_must)
{
	begin(5, 0.5, 1, 1);
	CHECK(near(slowdown((struct td_dcuda_how){.truth = true}, 0, 5), (3 * 1 + 2 * 1.5) / 5));
}

/*
 * Four that suffer, then four that press: all of one sort on two GPUs, all of the other on the
 * others, and none is slowed. By number each presses on one that suffers.
 */
TEST(the_truth_parts_those_who_hurt_each_other)
{
	for (int truth = 0; truth < 2; truth++) {
		double slow;

		begin(8, 0.1, 0, 0);
		for (uint32_t i = 0; i < 4; i++) {
			apps[i].contender.sensitivity = 1;
			apps[4 + i].contender.pressure = 1;
		}
		slow = slowdown((struct td_dcuda_how){.truth = truth, .by_count = !truth}, 0, 8);
		CHECK(truth ? near(slow, 1) : slow > 1.2);
	}
}

/*
 * None slows another, but two of 0.6 are more than a GPU has: under DCUDA's slices they take turns.
 */
TEST(under_slices_the_truth_waits_as_well)
{
	begin(5, 0.6, 0, 0);
	CHECK(near(slowdown((struct td_dcuda_how){.truth = true}, 0, 5), 1));
	begin(5, 0.6, 0, 0);
	CHECK(near(slowdown((struct td_dcuda_how){.truth = true, .slices = true}, 0, 5),
		(3 * 1 + 2 * 1.5) / 5));
	/* Two of 0.5 are not. */
	begin(5, 0.5, 0, 0);
	CHECK(near(slowdown((struct td_dcuda_how){.truth = true, .slices = true}, 0, 5), 1));
}

/*
 * Eight of twelve of 6 GiB fit by twos: by number all GPUs exceed their memory, the truth has three
 * within it.
 */
TEST(the_truth_gives_up_one_gpu_where_memory_is_short)
{
	struct td_dcuda_outcome truth, spread;

	for (int k = 0; k < 2; k++) {
		begin(12, 0.05, 0, 0);
		for (uint32_t i = 0; i < 12; i++)
			apps[i].memory_gib = 6;
		*(k ? &spread : &truth) =
			td_dcuda_simulate((struct td_dcuda_how){.truth = !k, .by_count = k},
				&side_by_side, 12, apps, 12);
	}
	CHECK(truth.slowdown < spread.slowdown - 0.1);
	for (uint32_t g = 0, over = 0; g < TD_DCUDA_MACHINE_GPUS; g++) {
		over += truth.memory_overloaded[g] > 0;
		CHECK(over <= 1);
		CHECK(spread.memory_overloaded[g] > 0);
	}
}

/*
 * Six of 10 GiB and no room for the last two of them by 90 %: by load they go to two GPUs, stacked
 * to one.
 */
TEST(who_finds_no_room_is_counted_and_may_be_stacked)
{
	struct td_dcuda_how how = {.dcuda = true, .memory = true};

	for (int k = 0; k < 2; k++) {
		struct td_dcuda_outcome out;
		uint32_t over = 0;

		begin(6, 0.05, 0, 0);
		for (uint32_t i = 0; i < 6; i++)
			apps[i].memory_gib = 10;
		how.stack = k;
		out = td_dcuda_simulate(how, &side_by_side, 12, apps, 6);
		CHECK_EQ(out.without_room, 2);
		for (uint32_t g = 0; g < TD_DCUDA_MACHINE_GPUS; g++)
			over += out.memory_overloaded[g] > 0;
		CHECK_EQ(over, k ? 1 : 2);
	}
}

/*
 * On each GPU three of 5 GiB, of which two fit in its 12, and whose demands are 1.2 together:
 * groups of two and of one. 3 GiB too many slow everybody by 1 + 4.2 / 4; if the running ones find
 * their memory in place, none is slowed.
 */
TEST(in_place_a_slice_does_not_thrash)
{
	struct td_dcuda_how how = {.dcuda = true, .memory = true, .slices = true};
	double slow[2];

	for (int k = 0; k < 2; k++) {
		begin(12, 0.4, 0, 0);
		for (uint32_t i = 0; i < 12; i++)
			apps[i].memory_gib = 5;
		how.in_place = k;
		slow[k] = slowdown(how, 12, 12);
	}
	CHECK(near(slow[1], 2));
	CHECK(slow[0] > 1.9 * slow[1]);
}

/*
 * Five of 0.6 for 10 s each, of which two take turns. One that waits for its slice uses nothing of
 * the GPU, so the work is the sum of their uses, whatever the slices.
 */
TEST(who_waits_for_its_slice_uses_nothing)
{
	struct td_dcuda_outcome out;

	begin(5, 0.6, 0, 0);
	out = td_dcuda_simulate(
		(struct td_dcuda_how){.truth = true, .slices = true}, &side_by_side, 0, apps, 5);
	CHECK(out.slowdown > 1.1);
	CHECK(near(out.busy_s / (5 * 10 * 0.6), 1));
}

/*
 * The same with slices that page for their own part alone: 1.7 times as slow for the 10 of 15 GiB,
 * 1.35 times for the 5, by turns. That one ends at 27 s, and the others have the last 2.06 s of
 * their work to themselves.
 */
TEST(a_slice_that_pages_for_itself_is_between_the_two)
{
	begin(12, 0.4, 0, 0);
	for (uint32_t i = 0; i < 12; i++)
		apps[i].memory_gib = 5;
	CHECK(near(
		slowdown(
			(struct td_dcuda_how){
				.dcuda = true, .memory = true, .slices = true, .own_pages = true},
			12, 12),
		(2.7 + 2 * 2.906) / 3));
}

TEST(thrashing_is_as_bad_as_it_is_told_to_be)
{
	for (int k = 0; k < 2; k++) {
		double worst = k ? 9 : 3;

		begin(12, 0.05, 0, 0);
		for (uint32_t i = 0; i < 12; i++)
			apps[i].memory_gib = 5;
		CHECK(near(slowdown((struct td_dcuda_how){.by_count = true, .worst_thrash = worst},
				   12, 12),
			1 + (worst - 1) / 4));
	}
}

/* Two on each GPU: where 1.0 is free they are as fast as alone, 1.2 is not. */
TEST(who_fits_slows_nobody_where_that_is_the_premise)
{
	for (int k = 0; k < 4; k++) {
		bool premise = k & 1, fits = k & 2;

		begin(8, fits ? 0.5 : 0.6, 1, 1);
		CHECK(near(slowdown((struct td_dcuda_how){.by_count = true, .fit_is_free = premise},
				   0, 8),
			premise && fits ? 1 : 2));
	}
}

/* Two of 0.6 are one group where it may exceed the GPU by a quarter, and nobody waits. */
TEST(a_larger_group_waits_less)
{
	const struct td_dcuda_how how = {.truth = true, .slices = true, .group_slack = 0.25};

	begin(5, 0.6, 0, 0);
	CHECK(near(slowdown(how, 0, 5), 1));
}

/*
 * Five of which one is done after 2 s: one of the two that share moves to its GPU then, for a tenth
 * of a second. They have done half of 2 s.
 */
TEST(tandem_moves_as_cheaply_as_everybody)
{
	struct td_dcuda_outcome out;

	begin(5, 0.9, 1, 1);
	apps[3].work_s = 2;
	out = td_dcuda_simulate((struct td_dcuda_how){.tandem = true}, &side_by_side, 0, apps, 5);
	CHECK_EQ(out.migrations, 1);
	CHECK(near(out.slowdown, (1 + 1 + 1 + 1.1 + 1.11) / 5));
}
