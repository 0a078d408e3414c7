/* The baselines, by hand and by trying everything. */
#include "test.h"

#include <math.h>

#include "policy/cluster/baselines.h"
#include "policy_random.h"

static char memory[4096] __attribute__((aligned(64)));
static struct td_inventory inventory;
static uint32_t gpus[32];

static void start(void)
{
	CHECK(td_inventory_bytes(3, 12) <= sizeof(memory));
	CHECK_EQ(td_inventory_init(&inventory, memory, (const uint32_t[]){4, 4, 4}, 3, 100000), 0);
}

TEST(a_gang_starts_whole_or_waits)
{
	start();
	CHECK(td_fifo_gang(&inventory, 4, true, gpus));
	for (int k = 0; k < 3; k++)
		td_inventory_hold(&inventory, (uint32_t)k * 4, 1);
	CHECK(!td_fifo_gang(&inventory, 4, true, gpus));
	CHECK(td_fifo_gang(&inventory, 9, false, gpus));
	CHECK(!td_fifo_gang(&inventory, 10, false, gpus));
}

TEST(a_fragment_is_used_before_a_whole_node)
{
	start();
	td_inventory_hold(&inventory, 5, 1);
	CHECK(td_fifo_gang(&inventory, 3, true, gpus));
	CHECK_EQ(gpus[0] / 4, 1);
	CHECK(td_fifo_gang(&inventory, 1, false, gpus));
	CHECK_EQ(gpus[0] / 4, 1);
}

TEST(more_gpus_than_a_node_has_are_whole_nodes)
{
	CHECK(td_inventory_bytes(3, 40) <= sizeof(memory));
	CHECK_EQ(
		td_inventory_init(&inventory, memory, (const uint32_t[]){16, 8, 16}, 3, 100000), 0);
	CHECK(td_fifo_gang(&inventory, 24, true, gpus));
	for (int k = 0; k < 24; k++)
		for (int l = 0; l < k; l++)
			CHECK(gpus[k] != gpus[l]);
}

TEST(a_gang_larger_than_any_node_takes_several)
{
	start(); /* nodes of 4 */
	CHECK(td_fifo_gang(&inventory, 6, true, gpus));
	CHECK(td_fifo_gang(&inventory, 12, true, gpus));
	td_inventory_hold(&inventory, 0, 1);
	CHECK(td_fifo_gang(&inventory, 8, true, gpus));
	for (int k = 0; k < 8; k++)
		CHECK(gpus[k] >= 4);
}

TEST(the_latest_without_quota_are_preempted_only_if_that_helps)
{
	const struct td_fifo_running running[] = {
		{4, true, 10}, {2, false, 40}, {1, true, 30}, {2, true, 20}};
	uint32_t victims[4];

	CHECK_EQ(td_fifo_preempt(running, 4, 3, victims), 2);
	CHECK(victims[0] == 2 && victims[1] == 3);
	CHECK_EQ(td_fifo_preempt(running, 4, 7, victims), 3);
	CHECK_EQ(td_fifo_preempt(running, 4, 8, victims), 0);
}

TEST(packing_takes_the_least_utilised_with_memory)
{
	const struct td_pack_gpu pack[] = {{0.5, 10}, {0.1, 2}, {0.3, 10}, {0.2, 10}};

	CHECK(td_gandiva_pack(pack, 4, 2, 5, gpus));
	CHECK(gpus[0] == 3 && gpus[1] == 2);
	CHECK(!td_gandiva_pack(pack, 4, 4, 5, gpus));
	CHECK_EQ(td_least_loaded(pack, 4), 1);
}

TEST(round_robin_goes_round_and_random_is_even)
{
	uint32_t cursor = 0, hits[5] = {0};
	uint64_t state = 3;

	for (uint32_t k = 0; k < 12; k++)
		CHECK_EQ(td_round_robin(&cursor, 5), k % 5);
	for (int k = 0; k < 50000; k++)
		hits[td_random_gpu(&state, 5)]++;
	for (int g = 0; g < 5; g++)
		CHECK(hits[g] > 9500 && hits[g] < 10500);
}

TEST(gslice_follows_the_latency)
{
	struct td_gslice gslice = {.share = 0.5, .step = 0.1, .share_min = 0.1, .slack = 0.8};

	CHECK(fabs(td_gslice_step(&gslice, 0.12, 0.1) - 0.6) < 1e-12);
	CHECK(fabs(td_gslice_step(&gslice, 0.09, 0.1) - 0.6) < 1e-12);
	CHECK(fabs(td_gslice_step(&gslice, 0.07, 0.1) - 0.5) < 1e-12);
	for (int k = 0; k < 20; k++)
		(void)td_gslice_step(&gslice, 0.01, 0.1);
	CHECK(fabs(gslice.share - 0.1) < 1e-12);
	for (int k = 0; k < 20; k++)
		(void)td_gslice_step(&gslice, 1, 0.1);
	CHECK(fabs(gslice.share - 1) < 1e-12);
}

TEST(a_gpulet_is_the_smallest_size_that_holds_the_objective)
{
	struct td_slo slo = {.objective_s = 0.1, .batch = 1, .load_max = 0.8};
	struct td_curve curve = {.form = TD_CURVE_HYPERBOLA, .a = 0.02, .b = 0.035};

	CHECK(fabs(td_gpulet_size(&slo, &curve) - 0.5) < 1e-12); /* 0.09; 0.1075 at 0.4 */
	slo.objective_s = 0.05;
	CHECK(!(td_gpulet_size(&slo, &curve) > 0));
}

/* The same by counting through all assignments. */
static double count_through(const double *costs, uint32_t tasks, uint32_t devices, uint32_t places)
{
	uint32_t all = 1;
	double best = INFINITY;

	for (uint32_t t = 0; t < tasks; t++)
		all *= devices;
	for (uint32_t code = 0; code < all; code++) {
		uint32_t on[8] = {0}, c = code, most = 0;
		double sum = 0;

		for (uint32_t t = 0; t < tasks; t++, c /= devices) {
			sum += costs[t * devices + c % devices];
			most = ++on[c % devices] > most ? on[c % devices] : most;
		}
		if (most <= places)
			best = fmin(best, sum);
	}
	return best;
}

TEST(the_optimum_is_the_least_of_all)
{
	uint64_t seed = 61;

	for (int run = 0; run < 300; run++) {
		uint32_t tasks = 1 + random_below(&seed, 5), devices = 1 + random_below(&seed, 4);
		uint32_t places = 1 + random_below(&seed, 3), device[8];
		double costs[40], best, sum = 0;

		for (uint32_t k = 0; k < tasks * devices; k++)
			costs[k] = random_below(&seed, 9) ? random_unit(&seed) : INFINITY;
		best = td_optimum(costs, tasks, devices, places, device);
		if (!(count_through(costs, tasks, devices, places) < INFINITY)) {
			CHECK(!(best < INFINITY));
			continue;
		}
		CHECK(fabs(best - count_through(costs, tasks, devices, places)) < 1e-12);
		for (uint32_t t = 0; t < tasks; t++)
			sum += costs[t * devices + device[t]];
		CHECK(fabs(sum - best) < 1e-12);
	}
}

/* All GPUs are equally idle again, so the first one is the least loaded. */
TEST(the_load_that_is_assumed_of_a_guest_goes_with_it)
{
	start();
	td_inventory_add_guest(&inventory, 0, 7);
	td_inventory_add_guest(&inventory, 0, 8);
	CHECK_EQ(td_inventory_find_least_loaded(&inventory, 1, 900000, gpus), 1);
	CHECK_EQ(gpus[0], 1);
	td_inventory_remove_guest(&inventory, 0, 7);
	td_inventory_remove_guest(&inventory, 0, 8);
	CHECK_EQ(td_inventory_find_least_loaded(&inventory, 1, 900000, gpus), 1);
	CHECK_EQ(gpus[0], 0);
}
