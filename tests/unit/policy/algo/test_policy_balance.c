/* DCUDA's balancing, compaction and groups: by hand, then under random loads. */
#include "test.h"

#include "policy/algo/control/balance.h"
#include "policy/algo/control/fair_groups.h"
#include "policy_random.h"

#define APPS 40

static struct td_balance_app apps[APPS];
static struct td_balance_move moves[APPS];
static uint32_t order[APPS], count;

static void app(uint32_t gpu, double core, double memory)
{
	apps[count++] = (struct td_balance_app){gpu, core, memory, true};
}

static uint32_t balance(uint32_t gpus)
{
	return td_balance(&td_balance_default, apps, count, gpus, order, moves);
}

TEST(the_heaviest_that_fits_moves)
{
	count = 0;
	app(0, 0.7, 0.1);
	app(0, 0.6, 0.1);
	app(0, 0.2, 0.1);
	app(1, 0.35, 0.1);
	/* 1.5 on GPU 0: 0.7 would make 1.05, 0.6 makes 0.95 */
	CHECK_EQ(balance(2), 1);
	CHECK(moves[0].app == 1 && moves[0].from == 0 && moves[0].to == 1);
}

TEST(it_stops_once_the_source_is_no_longer_overloaded)
{
	count = 0;
	app(0, 0.6, 0.1);
	app(0, 0.3, 0.1);
	app(0, 0.2, 0.1);
	CHECK_EQ(balance(2), 1); /* as printed, all three would go: 0.6 + 0.3 < 1 */
	CHECK_EQ(apps[0].gpu, 1);
}

TEST(between_the_thresholds_nothing_moves)
{
	count = 0;
	app(0, 0.99, 0.1);
	app(1, 0.1, 0.1);
	CHECK_EQ(balance(2), 0);
	apps[0].core = 0.6;
	app(0, 0.45, 0.1);
	apps[1].core = 0.95; /* not underloaded */
	CHECK_EQ(balance(2), 0);
}

TEST(sums_start_anew_for_each_pair)
{
	count = 0;
	for (uint32_t g = 0; g < 2; g++) {
		app(g, 0.8, 0.1);
		app(g, 0.5, 0.1);
	}
	/*
	 * GPUs 2 and 3 are idle: each takes one of 0.8; with sums kept, the second pair would be
	 * refused
	 */
	CHECK_EQ(balance(4), 2);
	CHECK(moves[0].to != moves[1].to);
}

TEST(memory_over_the_watermark_is_a_reason_of_its_own)
{
	struct td_balance_params blind = td_balance_default;

	count = 0;
	app(0, 0.3, 0.6);
	app(0, 0.2, 0.5);
	app(1, 0.1, 0.2);
	blind.memory_aware = false;
	CHECK_EQ(td_balance(&blind, apps, count, 2, order, moves), 0);
	CHECK_EQ(balance(2), 1);
	CHECK_EQ(moves[0].app, 0); /* 0.8 of the memory there */
}

TEST(what_would_thrash_the_target_stays)
{
	count = 0;
	app(0, 0.7, 0.4);
	app(0, 0.6, 0.3);
	app(1, 0.1, 0.55);
	CHECK_EQ(balance(2), 1);
	CHECK_EQ(moves[0].app, 1); /* 0.95 with the heavier one */
}

TEST(a_newcomer_starts_on_the_least_loaded_with_memory)
{
	count = 0;
	app(0, 0.2, 0.8);
	app(1, 0.6, 0.3);
	CHECK_EQ(td_balance_start(&td_balance_default, apps, count, 2, 0.2), 1);
	CHECK_EQ(td_balance_start(&td_balance_default, apps, count, 2, 0.05), 0);
	CHECK_EQ(td_balance_start(&td_balance_default, apps, count, 2, 0.7), 0); /* none has it */
	CHECK_EQ(td_balance_start(&td_balance_default, apps, count, 3, 0.7), 2);
}

TEST(light_gpus_are_compacted_until_none_can)
{
	count = 0;
	app(0, 0.35, 0.2);
	app(1, 0.2, 0.2);
	app(2, 0.1, 0.2);
	app(3, 0.7, 0.2);
	CHECK_EQ(td_balance_compact(&td_balance_default, apps, count, 4, moves), 2);
	CHECK(apps[0].gpu == 0 && apps[1].gpu == 0 && apps[2].gpu == 0 && apps[3].gpu == 3);
	CHECK(moves[0].app == 2 && moves[0].to == 0); /* it went by way of 1: once, to the end */
	CHECK_EQ(td_balance_compact(&td_balance_default, apps, count, 4, moves), 0);
}

TEST(what_cannot_move_does_not)
{
	count = 0;
	app(0, 0.3, 0.2);
	app(1, 0.2, 0.2);
	apps[1].movable = false;
	CHECK_EQ(td_balance_compact(&td_balance_default, apps, count, 2, moves), 1);
	CHECK(moves[0].app == 0 && moves[0].to == 1);
	app(0, 0.2, 0.2);
	apps[2].movable = false;
	CHECK_EQ(td_balance_compact(&td_balance_default, apps, count, 2, moves), 0);
}

TEST(random_loads_are_balanced_without_harm)
{
	uint64_t seed = 53;

	for (int run = 0; run < 20000; run++) {
		uint32_t gpus = 1 + random_below(&seed, 8), moved;
		double core[8] = {0}, memory[8] = {0}, before[8] = {0}, memory_before[8] = {0};
		uint8_t seen[APPS] = {0};

		count = 0;
		while (count < 1 + (uint32_t)run % APPS)
			app(random_below(&seed, gpus), 0.7 * random_unit(&seed),
				0.5 * random_unit(&seed));
		for (uint32_t i = 0; i < count; i++) {
			apps[i].movable = random_below(&seed, 5);
			before[apps[i].gpu] += apps[i].core;
			memory_before[apps[i].gpu] += apps[i].memory;
		}
		moved = run & 1 ? balance(gpus)
				: td_balance_compact(&td_balance_default, apps, count, gpus, moves);
		for (uint32_t i = 0; i < count; i++) {
			core[apps[i].gpu] += apps[i].core;
			memory[apps[i].gpu] += apps[i].memory;
		}
		for (uint32_t m = 0; m < moved; m++) {
			CHECK(apps[moves[m].app].movable && !seen[moves[m].app]++);
			CHECK(apps[moves[m].app].gpu == moves[m].to);
		}
		for (uint32_t g = 0; g < gpus; g++) {
			CHECK(core[g] <= before[g] + 1e-9 || core[g] < 1 + 1e-9);
			CHECK(memory[g] <= memory_before[g] + 1e-9 || memory[g] <= 1 ||
				memory_before[g] > 0.9);
		}
	}
}

TEST(groups_fill_the_gpu_and_share_time_equally)
{
	struct td_fair_member members[] = {
		{1, 0.2, 0, 0}, {0.05, 0.2, 0, 0}, {0.6, 0.2, 0, 0}, {0.5, 0.2, 0, 0}};

	/* 1 + 0.05, then 0.6 + 0.5 */
	CHECK_EQ(td_fair_groups(members, 4, 0.1, order), 2);
	CHECK(members[0].group == members[1].group && members[2].group == members[3].group);
	CHECK(members[0].group != members[2].group);
	CHECK(members[1].priority == 0 && members[0].priority == 1); /* the light one first */
	CHECK_EQ(td_fair_turn(2, 0), 0);
	CHECK_EQ(td_fair_turn(2, TD_SLICE_NS), 1);
	CHECK_EQ(td_fair_turn(2, 2 * TD_SLICE_NS), 0);
	CHECK_EQ(td_fair_turn(0, 5), 0);
}

TEST(a_gpu_that_is_not_overloaded_has_one_group)
{
	struct td_fair_member members[] = {{0.5, 0.5, 0, 0}, {0.5, 0.5, 0, 0}};

	CHECK_EQ(td_fair_groups(members, 2, 0.1, order), 1);
	CHECK_EQ(td_fair_groups(members, 0, 0.1, order), 0);
}

TEST(random_groups_keep_their_bounds)
{
	uint64_t seed = 59;

	for (int run = 0; run < 5000; run++) {
		struct td_fair_member members[APPS];
		double core[APPS] = {0}, memory[APPS] = {0}, all = 0, all_memory = 0;
		uint32_t n = 1 + random_below(&seed, APPS), size[APPS] = {0}, groups;

		for (uint32_t i = 0; i < n; i++) {
			members[i] = (struct td_fair_member){
				random_unit(&seed), random_unit(&seed), 77, 77};
			all += members[i].core;
			all_memory += members[i].memory;
		}
		groups = td_fair_groups(members, n, 0.1, order);
		CHECK(groups >= 1 && groups <= n && (all > 1 || all_memory > 1 || groups == 1));
		for (uint32_t i = 0; i < n; i++) {
			CHECK(members[i].group < groups);
			core[members[i].group] += members[i].core;
			memory[members[i].group] += members[i].memory;
			size[members[i].group]++;
		}
		for (uint32_t g = 0; g < groups; g++)
			CHECK(size[g] == 1 || (core[g] <= 1.1 + 1e-9 && memory[g] <= 1 + 1e-9));
	}
}
