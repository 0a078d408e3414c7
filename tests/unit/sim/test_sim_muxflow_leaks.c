/*
 * The world of MuxFlow's experiments tells no policy how long jobs will take, which will come, or
 * how fast unseen companies are: when these differ, the same jobs are on the same GPUs.
 */
#include "unit/sim/leaks_world.h"

#include <math.h>

#include "match/match.h"
#include "sim/base/random.h"
#include "sim/worlds/muxflow_world.h"

#define JOBS    1500u
#define UNTIL_S 7200.

static struct td_mux_world world;
static struct td_mux_matching matching;
static uint32_t places[2][TD_MUX_GPUS];

/* The last of them. */
#define LAST (TD_MUX_SERVICES + TD_MUX_OFFLINE - 1)

/* Half of the jobs come while it is looked at. */
static void begin(bool other_companies)
{
	static double coefficients[LEAKS_INPUTS_MAX];
	uint64_t seed = 3;

	memset(&world, 0, sizeof(world));
	world.contention.capped_pressure = 1;
	/* by demands, the service's activity and the share */
	world.model.predictor = leaks_predictor(coefficients, TD_MUXFLOW_INPUTS, 2, 0.3, -0.4);
	for (uint32_t s = 0; s < TD_MUX_SERVICES; s++) {
		world.services[s] = leaks_contender(s, LAST, other_companies);
		world.service_s[s] = 0.002 + 0.001 * s;
		world.told_services[s] = leaks_demand(s);
	}
	for (uint32_t k = 0; k < TD_MUX_OFFLINE; k++) {
		world.offline[k] = leaks_contender(TD_MUX_SERVICES + k, LAST, other_companies);
		world.told_offline[k] = leaks_demand(TD_MUX_SERVICES + k);
	}
	for (uint32_t g = 0; g < TD_MUX_GPUS; g++)
		world.phases[g] = td_random_unit(&seed);
	for (world.count = 0; world.count < JOBS; world.count++)
		world.jobs[world.count] =
			(struct td_mux_job){.arrive_s = 2 * UNTIL_S * world.count / JOBS,
				.work_s = 3 * UNTIL_S + world.count,
				.kind = td_random_below(&seed, TD_MUX_OFFLINE)};
}

static void run(enum td_mux_how how, double until_s, uint32_t *ret_on)
{
	struct td_mux_outcome outcome;
	uint32_t running = 0;

	matching.bytes = (td_match_bytes(64, TD_MUX_OFFLINE, TD_MUX_OFFLINE * TD_MUX_GPUS) + 63) &
			 ~(size_t)63;
	if (!matching.memory)
		matching.memory = aligned_alloc(64, matching.bytes);
	CHECK(matching.memory);
	world.until_s = until_s;
	CHECK_EQ(td_mux_simulate(&world, &matching, how, &outcome), 0);
	memcpy(ret_on, world.on, sizeof(world.on));
	for (uint32_t g = 0; g < TD_MUX_GPUS; g++)
		running += world.on[g] != UINT32_MAX;
	CHECK(running > (until_s < UNTIL_S ? 0 : JOBS / 4));
}

static void check_same(int how)
{
	for (uint32_t g = 0; g < TD_MUX_GPUS; g++)
		if (places[0][g] != places[1][g])
			test_fail(__FILE__, __LINE__, "policy %d puts job %u on GPU %u, then %u",
				how, places[0][g], g, places[1][g]);
}

TEST(how_long_jobs_will_take_changes_no_place)
{
	for (int how = 0; how < TD_MUX_HOWS; how++) {
		begin(false);
		run(how, UNTIL_S, places[0]);
		begin(false);
		for (uint32_t i = 0; i < JOBS; i++)
			world.jobs[i].work_s = 3 * UNTIL_S + 10 * ((i * 7 + 3) % JOBS);
		run(how, UNTIL_S, places[1]);
		check_same(how);
	}
}

TEST(who_is_going_to_come_changes_no_place_before)
{
	for (int how = 0; how < TD_MUX_HOWS; how++) {
		begin(false);
		run(how, UNTIL_S, places[0]);
		begin(false);
		for (uint32_t i = 0; i < JOBS; i++) {
			if (world.jobs[i].arrive_s < UNTIL_S)
				continue;
			world.jobs[i].arrive_s += 10 * UNTIL_S;
			world.jobs[i].work_s = 600;
			world.jobs[i].kind = 0;
		}
		run(how, UNTIL_S, places[1]);
		check_same(how);
	}
}

static void place_first(int how)
{
	for (int other = 0; other < 2; other++) {
		begin(other);
		for (uint32_t i = 0; i < JOBS; i++)
			world.jobs[i].arrive_s = 0;
		run(how, 1, places[other]);
	}
}

/* The first matching: nobody has been beside anybody. */
TEST(companies_that_nobody_has_seen_change_no_first_place)
{
	for (int how = 0; how < TD_MUX_TRUTH; how++) {
		place_first(how);
		check_same(how);
	}
}

/* This case shows that the test above can see a leak. */
TEST(who_is_told_the_truth_places_by_it)
{
	place_first(TD_MUX_TRUTH);
	CHECK(memcmp(places[0], places[1], sizeof(places[0])) != 0);
}

static double least_cost(const double (*costs)[TD_MUX_OFFLINE], uint32_t gpus,
	const uint32_t *counts, uint32_t rounds)
{
	struct td_mux_choice choices[TD_MUX_GPUS];
	double prices[TD_MUX_OFFLINE] = {0};

	return td_mux_least_cost(costs, gpus, counts, prices, rounds, choices);
}

/*
 * Where kind 0 costs nothing and kind 1 costs 1, two of the first and one of the second cost 1
 * wherever they are, which only prices show; and one job takes its cheapest GPU.
 */
TEST(the_bound_of_a_matching_is_its_cost_by_hand)
{
	static const double costs[3][TD_MUX_OFFLINE] = {{0, 1}, {0, 1}, {0, 1}};
	static const double others[3][TD_MUX_OFFLINE] = {{7, 4}, {2, 1}, {9, 3}};
	static const uint32_t both[TD_MUX_OFFLINE] = {2, 1}, one[TD_MUX_OFFLINE] = {0, 1};
	double bound = least_cost(costs, 3, both, 200);

	CHECK(bound <= 1 + 1e-9 && bound > 0.9);
	CHECK(fabs(least_cost(others, 3, one, 1) - 1) < 1e-9);
}

/* All assignments of three jobs to five GPUs are tried. */
TEST(no_matching_costs_less_than_the_bound)
{
	static const uint32_t counts[TD_MUX_OFFLINE] = {1, 1, 0, 1};
	uint64_t state = 7;

	for (int round = 0; round < 200; round++) {
		double costs[5][TD_MUX_OFFLINE], least = INFINITY, bound;

		for (int g = 0; g < 5; g++)
			for (int k = 0; k < TD_MUX_OFFLINE; k++)
				costs[g][k] = td_random_unit(&state) - 0.3;
		for (int a = 0; a < 5; a++)
			for (int b = 0; b < 5; b++)
				for (int c = 0; c < 5; c++)
					if (a != b && b != c && a != c)
						least = fmin(least,
							costs[a][0] + costs[b][1] + costs[c][3]);
		bound = least_cost(
			(const double(*)[TD_MUX_OFFLINE])costs, 5, counts, 1 + round % 20);
		CHECK(bound <= least + 1e-9);
		CHECK(round % 20 < 10 || bound > least - 0.5);
	}
}

static double oversold(enum td_mux_how how)
{
	struct td_mux_outcome outcome;

	begin(false);
	world.contention.proportional = true;
	for (uint32_t i = 0; i < JOBS; i++)
		world.jobs[i].work_s = 600 + i;
	world.until_s = 0;
	CHECK_EQ(td_mux_simulate(&world, &matching, how, &outcome), 0);
	CHECK(outcome.unfinished < 0.5);
	return outcome.oversold;
}

/*
 * By turns, 40 % are 40 % beside everybody: a policy that moves no job reaches the bound, and one
 * that moves a job is below it.
 */
TEST(no_placement_under_a_fixed_share_sells_more_than_its_bound)
{
	double without = oversold(TD_MUX_NO_BOTH), matched = oversold(TD_MUX_NO_SHARE);
	double most = td_mux_most_fixed(&world);

	CHECK(fabs(without / most - 1) < 1e-9);
	CHECK(matched < most * (1 + 1e-9));
	world.contention.proportional = false;
	CHECK(td_mux_most_fixed(&world) > 0);
}
