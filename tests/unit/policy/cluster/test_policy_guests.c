/* Guests by DCUDA's, MuxFlow's and Mudi's rules: random events break no invariant. */
#include "test.h"

#include <errno.h>
#include <stdlib.h>

#include "policy/cluster/guests/guest_cluster.h"

#define NODES   5u
#define GPUS    16u
#define JOBS    40u
#define KINDS   5u
#define TENANTS 2u
#define STEPS   4000u
#define MINUTE  60000000000ull

static struct td_guest_cluster cluster;
static const uint32_t node_gpus[NODES] = {4, 4, 4, 2, 2}, quotas[TENANTS] = {6, 3};
static uint64_t random_state, now_ns;
static bool is_there[JOBS];

static uint32_t below(uint32_t n)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(random_state >> 33) % n;
}

static double number[4 * TD_MUDI_INPUTS + 1];
static struct td_predictor model;

static void begin(enum td_guest_rule rule, uint64_t seed)
{
	const struct td_guest_params params = {
		.rule = rule, .match_ns = 15 * MINUTE, .move_ns = MINUTE, .seed = seed};
	size_t bytes = td_guest_cluster_bytes(NODES, GPUS, JOBS, KINDS, rule);
	static void *memory;

	free(memory);
	memory = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
	CHECK(memory);
	CHECK_EQ(td_guest_cluster_init(&cluster, memory, bytes - 1, &params, node_gpus, NODES, 100,
			 quotas, TENANTS, JOBS, KINDS),
		-ENOMEM);
	CHECK_EQ(td_guest_cluster_init(&cluster, memory, bytes, &params, node_gpus, NODES, 100,
			 quotas, TENANTS, JOBS, KINDS),
		0);
	random_state = seed;
	now_ns = 0;
	memset(is_there, 0, sizeof(is_there));
	for (uint32_t k = 0; k < TD_MUDI_INPUTS; k++)
		number[TD_MUDI_INPUTS + k] = 1;
	number[2 * TD_MUDI_INPUTS] = -0.5;
	model = (struct td_predictor){.form = TD_PREDICTOR_LINEAR,
		.inputs = rule == TD_GUEST_MUDI ? TD_MUDI_INPUTS : TD_MUXFLOW_INPUTS,
		.shift = number,
		.scale = number + TD_MUDI_INPUTS,
		.target_scale = 1,
		.target_shift = 0.9,
		.coefficients = number + 2 * TD_MUDI_INPUTS,
		.coefficient_count =
			(rule == TD_GUEST_MUDI ? TD_MUDI_INPUTS : TD_MUXFLOW_INPUTS) + 1};
}

/* --- the invariants --- */

static uint64_t bytes_on(uint32_t gpu)
{
	uint32_t found[TD_GANG_MAX];
	uint64_t bytes = 0;

	for (uint32_t j = 0; j < JOBS; j++)
		for (uint32_t n = td_guest_cluster_gpus(&cluster, j, found); n--;)
			bytes += found[n] == gpu ? cluster.jobs[j].is.bytes : 0;
	return bytes;
}

static void check(void)
{
	uint32_t holders[GPUS] = {0}, guests[GPUS] = {0}, used[TENANTS] = {0};
	uint32_t found[TD_GANG_MAX];

	for (uint32_t j = 0; j < JOBS; j++) {
		const struct td_guest_request *is = &cluster.jobs[j].is;
		uint32_t n = td_guest_cluster_gpus(&cluster, j, found);

		CHECK(!n || n == is->gpus);
		used[is->tenant] += is->holds ? n : 0;
		for (uint32_t k = 0; k < n; k++) {
			for (uint32_t other = 0; other < k; other++)
				CHECK(found[other] != found[k]);
			CHECK(!is->same_node ||
				cluster.gpus.node[found[k]] == cluster.gpus.node[found[0]]);
			CHECK(td_inventory_is_in(&cluster.gpus, found[k], is->pool));
			CHECK(cluster.gpus.holder[found[k]] != TD_CLUSTER_ABSENT);
			(is->holds ? holders : guests)[found[k]]++;
		}
	}
	for (uint32_t g = 0; g < GPUS; g++) {
		CHECK(holders[g] <= 1);
		CHECK(guests[g] <= (cluster.params.rule == TD_GUEST_DCUDA ? TD_GUESTS : 1));
		CHECK_EQ(guests[g], cluster.gpus.guest_count[g]);
	}
	for (uint32_t t = 0; t < TENANTS; t++) {
		CHECK(used[t] <= quotas[t]);
		CHECK_EQ(used[t], cluster.used[t]);
	}
}

/* --- events --- */

static void submit(uint32_t job)
{
	const struct td_guest_request request = {.tenant = below(TENANTS),
		.gpus = below(4) ? 1 : 1 + below(4),
		.kind = below(KINDS),
		.holds = !below(3),
		.same_node = below(2),
		.bytes = below(60),
		.pool = below(4) ? TD_ANYWHERE : 1,
		.stays = !below(4)};
	int r = td_guest_cluster_submit(&cluster, job, &request);

	CHECK(!r || r == -EDQUOT);
	is_there[job] = !r;
}

static void learn(uint32_t gpu_kind, uint32_t kind)
{
	struct td_guest_known known = {.speeds = below(4) ? &model : NULL,
		.is_measured = below(4),
		.alone = {below(100) / 100., below(100) / 100., 0.5, 0.1},
		.has_curves = cluster.params.rule == TD_GUEST_MUDI && below(4),
		.has_layers = below(4),
		.layers = {below(9), below(9)}};

	known.curves = (struct td_mudi_service){.left_slope = &model,
		.right_slope = &model,
		.knee_share = &model,
		.knee_latency = &model};
	td_guest_cluster_know(&cluster, gpu_kind, kind, &known);
}

static void happen(void)
{
	uint32_t job = below(JOBS), gpu = below(GPUS);

	switch (below(10)) {
	case 0: learn(below(3), below(KINDS)); return;
	case 1:
		if (td_guest_cluster_gpu_down(&cluster, gpu))
			td_guest_cluster_bar(&cluster, gpu, (enum td_inventory_bar)below(3));
		return;
	case 2:
		CHECK_EQ(td_guest_cluster_gpu_up(&cluster, gpu), 0);
		td_guest_cluster_bar(&cluster, gpu, TD_BAR_NOTHING);
		return;
	case 3: td_guest_cluster_gpu_kind(&cluster, gpu, below(3)); return;
	case 4: td_guest_cluster_requeue(&cluster, job); return;
	case 5: td_guest_cluster_demand(&cluster, below(KINDS), (1 + below(10)) / 10.); return;
	default: break;
	}
	if (!is_there[job]) {
		submit(job);
		return;
	}
	if (below(3))
		return;
	td_guest_cluster_finish(&cluster, job);
	is_there[job] = false;
}

static uint32_t decide(uint32_t *moves)
{
	struct td_guest_started started[3];
	uint32_t count, all = 0;
	uint64_t before[GPUS];

	now_ns += MINUTE;
	for (uint32_t g = 0; g < GPUS; g++)
		before[g] = bytes_on(g);
	do {
		count = td_guest_cluster_step(&cluster, now_ns, started, 3);
		for (uint32_t k = 0; k < count; k++) {
			CHECK(cluster.jobs[started[k].job].runs);
			CHECK(!started[k].moves || !cluster.jobs[started[k].job].is.stays);
			*moves += started[k].moves;
		}
		all += count;
	} while (count == 3);
	for (uint32_t g = 0; g < GPUS; g++)
		CHECK(bytes_on(g) <= 100 || bytes_on(g) <= before[g]);
	return all;
}

static void run(enum td_guest_rule rule, uint32_t *ret_moves)
{
	uint32_t starts = 0;

	*ret_moves = 0;
	for (uint64_t seed = 1; seed <= 5; seed++) {
		begin(rule, seed);
		for (uint32_t n = 3; n < NODES; n++)
			td_inventory_set_pools(&cluster.gpus, n, ~2u);
		for (uint32_t s = 0; s < STEPS; s++) {
			happen();
			check();
			if (!below(3))
				starts += decide(ret_moves);
			check();
		}
	}
	printf("# %u starts, %u moves\n", starts, *ret_moves);
	CHECK(starts > 100);
}

TEST(dcuda_keeps_the_invariants)
{
	uint32_t moves;

	run(TD_GUEST_DCUDA, &moves);
	CHECK_EQ(moves, 0);
}

TEST(muxflow_keeps_the_invariants)
{
	uint32_t moves;

	run(TD_GUEST_MUXFLOW, &moves);
	CHECK(moves > 10);
}

TEST(mudi_keeps_the_invariants)
{
	uint32_t moves;

	run(TD_GUEST_MUDI, &moves);
	CHECK_EQ(moves, 0);
}

TEST(the_memory_of_an_exchange_is_enough)
{
	CHECK(td_match_bytes(2 * TD_GUEST_EXCHANGED, TD_GUEST_EXCHANGED, 2 * TD_GUEST_EXCHANGED) <=
		TD_GUEST_EXCHANGE_BYTES);
}

/* --- jobs that others do not wait for --- */

static bool runs_after_a_step(uint32_t job)
{
	struct td_guest_started started[JOBS];

	now_ns += 15 * MINUTE;
	(void)td_guest_cluster_step(&cluster, now_ns, started, JOBS);
	return cluster.jobs[job].runs;
}

TEST(a_tenant_above_its_quota_gets_no_more)
{
	const struct td_guest_request holder = {.tenant = 1, .gpus = 1, .holds = true};

	begin(TD_GUEST_DCUDA, 1);
	for (uint32_t k = 0; k < 4; k++) /* as a scheduler before had given it */
		CHECK_EQ(td_guest_cluster_adopt(&cluster, k, &holder, &k), 0);
	CHECK_EQ(cluster.used[1], 4);
	CHECK_EQ(td_guest_cluster_submit(&cluster, 4, &holder), 0);
	CHECK(!runs_after_a_step(4));
	td_guest_cluster_finish(&cluster, 0);
	CHECK(!runs_after_a_step(4));
	td_guest_cluster_finish(&cluster, 1);
	CHECK(runs_after_a_step(4));
}

TEST(a_job_that_can_never_start_holds_up_nobody)
{
	const struct td_guest_request never[] = {{.gpus = 3, .same_node = true, .pool = 1},
		{.gpus = 2, .bytes = 101}, {.gpus = 5, .pool = 1}};

	for (uint32_t rule = TD_GUEST_DCUDA; rule <= TD_GUEST_MUXFLOW; rule++)
		for (uint32_t k = 0; k < 6; k++) {
			struct td_guest_request first = never[k % 3], next = {.gpus = 2};

			begin((enum td_guest_rule)rule, 1);
			for (uint32_t n = 0; n < 3; n++)
				td_inventory_set_pools(&cluster.gpus, n, ~2u);
			first.holds = next.holds = k >= 3;
			CHECK_EQ(td_guest_cluster_submit(&cluster, 0, &first), 0);
			CHECK_EQ(td_guest_cluster_submit(&cluster, 1, &next), 0);
			CHECK(runs_after_a_step(1));
			CHECK(!cluster.jobs[0].runs);
		}
}

TEST(a_job_that_can_start_later_goes_first)
{
	const struct td_guest_request holder = {.gpus = 1, .holds = true, .bytes = 60},
				      large = {.gpus = 4, .same_node = true, .bytes = 90},
				      small = {.gpus = 2};

	begin(TD_GUEST_DCUDA, 1);
	for (uint32_t k = 0; k < 3; k++) {
		const uint32_t gpu = 4 * k;

		CHECK_EQ(td_guest_cluster_adopt(&cluster, k, &holder, &gpu), 0);
	}
	CHECK_EQ(td_guest_cluster_submit(&cluster, 3, &large), 0);
	CHECK_EQ(td_guest_cluster_submit(&cluster, 4, &small), 0);
	CHECK(!runs_after_a_step(4));
	td_guest_cluster_finish(&cluster, 0);
	CHECK(runs_after_a_step(4));
	CHECK(cluster.jobs[3].runs);
}

TEST(a_holder_is_beside_guests_that_leave_it_room)
{
	const struct td_guest_request guest = {.gpus = 1, .bytes = 70},
				      light = {.gpus = 1, .bytes = 10},
				      holder = {.gpus = 2,
					      .holds = true,
					      .same_node = true,
					      .bytes = 40};

	begin(TD_GUEST_DCUDA, 1);
	for (uint32_t k = 0; k < GPUS; k++)
		CHECK_EQ(td_guest_cluster_adopt(
				 &cluster, k, k == 5 || k == 8 || k == 10 ? &light : &guest, &k),
			0);
	CHECK_EQ(td_guest_cluster_submit(&cluster, GPUS, &holder), 0);
	CHECK(runs_after_a_step(GPUS));
	CHECK_EQ(cluster.gpus.holder[8], GPUS);
	CHECK_EQ(cluster.gpus.holder[10], GPUS);
	CHECK_EQ(td_guest_cluster_submit(&cluster, GPUS + 1, &holder), 0);
	CHECK(!runs_after_a_step(GPUS + 1));
	check();
}

/* A profile may come from any node. Its numbers are finite, and what they predict need not be. */
TEST(speeds_that_cannot_be_are_no_reason_to_move)
{
	static const double scales[] = {1e300, 1e38, 1e9, -1e300};

	for (uint32_t s = 0; s < sizeof(scales) / sizeof(*scales); s++) {
		begin(TD_GUEST_MUXFLOW, 1);
		model.target_scale = scales[s];
		for (uint32_t k = 0; k < KINDS; k++) {
			struct td_guest_known known = {.speeds = &model,
				.is_measured = true,
				.alone = {0.1 * k, 0.9 - 0.1 * k, 0.5, 0.1}};

			td_guest_cluster_know(&cluster, 0, k, &known);
		}
		for (uint32_t k = 0; k < quotas[0]; k++) {
			const struct td_guest_request is = {
				.gpus = 1, .kind = k % KINDS, .holds = true};

			CHECK_EQ(td_guest_cluster_adopt(&cluster, k, &is, &k), 0);
		}
		for (uint32_t k = GPUS; k < JOBS; k++) {
			const struct td_guest_request is = {.gpus = 1, .kind = k % KINDS};

			CHECK_EQ(td_guest_cluster_submit(&cluster, k, &is), 0);
		}
		CHECK(td_guest_weight(&cluster, td_guest_pair(&cluster, 0), 1) <= 16);
		(void)runs_after_a_step(GPUS);
		check();
		(void)runs_after_a_step(GPUS);
		check();
	}
}
