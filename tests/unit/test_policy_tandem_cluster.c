/* tandem's scheduler of a cluster: guests where it gains, moves with hysteresis, guaranteed jobs as by quota, nobody starves. */
#include "test.h"

#include <stdlib.h>

#include "policy/tandem_cluster.h"

#define S       1000000000ull
#define JOBS    256u
#define ACTIONS 64u

enum { HEAVY, LIGHT, KINDS };

static const double demands[KINDS] = {0.9, 0.2};
static struct td_tandem_cluster cluster;
static void *memory;
static struct td_tandem_action actions[ACTIONS];
static uint32_t count, gpus[TD_GANG_MAX];

static void start_cluster(const uint32_t *nodes, uint32_t n, uint64_t gpu_bytes, uint32_t quota)
{
	const uint32_t quotas[] = {quota, quota};
	uint32_t total = 0;
	size_t bytes;

	for (uint32_t i = 0; i < n; i++)
		total += nodes[i];
	bytes = td_tandem_cluster_bytes(n, total, JOBS, KINDS);
	free(memory);
	memory = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
	CHECK_EQ(td_tandem_cluster_init(&cluster, memory, bytes, &td_tandem_cluster_default, nodes,
			 n, gpu_bytes, quotas, 2, JOBS, demands, KINDS),
		0);
}

static int submit(uint32_t job, uint32_t n, uint32_t kind, bool guaranteed, uint64_t now)
{
	const struct td_tandem_request request = {
		.gpus = n, .kind = kind, .guaranteed = guaranteed, .bytes = 4};

	return td_tandem_cluster_submit(&cluster, job, &request, now);
}

static void step(uint64_t now)
{
	count = td_tandem_cluster_step(&cluster, now, actions, ACTIONS);
}

static uint32_t gpu_of(uint32_t job)
{
	return td_tandem_cluster_gpus(&cluster, job, gpus) ? gpus[0] : 999;
}

TEST(a_guest_goes_to_an_idle_gpu_and_beside_the_one_with_room_when_there_is_none)
{
	const uint32_t nodes[] = {3};

	start_cluster(nodes, 1, 0, 3);
	submit(0, 1, HEAVY, false, 0);
	submit(1, 1, LIGHT, false, 0);
	submit(2, 1, HEAVY, false, 0);
	step(0);
	CHECK_EQ(count, 3);
	CHECK(gpu_of(0) != gpu_of(1) && gpu_of(1) != gpu_of(2) && gpu_of(0) != gpu_of(2));
	submit(3, 1, LIGHT, false, S);
	step(S);
	CHECK_EQ(gpu_of(3), gpu_of(1));
}

TEST(memory_that_is_not_there_keeps_a_guest_away)
{
	const uint32_t nodes[] = {1};

	start_cluster(nodes, 1, 7, 1);
	submit(0, 1, LIGHT, false, 0);
	submit(1, 1, LIGHT, false, 0);
	step(0);
	CHECK_EQ(count, 1);
	td_tandem_cluster_finish(&cluster, 0, S);
	step(S);
	CHECK_EQ(count, 1);
	CHECK_EQ(actions[0].job, 1);
}

TEST(what_was_seen_of_a_pair_decides_from_then_on)
{
	const uint32_t nodes[] = {2};

	start_cluster(nodes, 1, 0, 2);
	submit(0, 1, LIGHT, false, 0);
	submit(1, 1, HEAVY, false, 0);
	step(0);
	/* By what they use a light one would go beside the light one; seen, that is the worse place. */
	td_tandem_cluster_observe(&cluster, LIGHT, LIGHT, false, 0.4);
	td_tandem_cluster_observe(&cluster, LIGHT, HEAVY, false, 0.95);
	td_tandem_cluster_observe(&cluster, HEAVY, LIGHT, false, 0.95);
	submit(2, 1, LIGHT, false, S);
	step(S);
	CHECK_EQ(gpu_of(2), gpu_of(1));
}

TEST(nobody_goes_beside_a_holder_that_leaves_nothing)
{
	const uint32_t nodes[] = {1};

	start_cluster(nodes, 1, 0, 1);
	submit(0, 1, HEAVY, true, 0);
	submit(1, 1, HEAVY, false, 0);
	step(0);
	CHECK_EQ(actions[0].verb, TD_TANDEM_START);
	td_tandem_cluster_observe(&cluster, HEAVY, HEAVY, true, 0.02);
	submit(2, 1, HEAVY, false, S);
	step(S);
	CHECK_EQ(gpu_of(2), 999);
}

TEST(a_service_holds_its_gpu)
{
	const uint32_t nodes[] = {2};

	start_cluster(nodes, 1, 0, 2);
	td_tandem_cluster_serve(&cluster, 0, LIGHT, 1);
	submit(0, 1, HEAVY, true, 0);
	submit(1, 1, HEAVY, true, 0);
	submit(2, 1, LIGHT, false, 0);
	step(0);
	CHECK_EQ(gpu_of(0), 1);
	CHECK_EQ(gpu_of(1), 999);
	CHECK_EQ(gpu_of(2), 0);
}

TEST(a_guest_moves_when_it_gains_and_not_at_once_again)
{
	const uint32_t nodes[] = {2};

	start_cluster(nodes, 1, 0, 2);
	submit(0, 1, HEAVY, true, 0);
	submit(1, 1, HEAVY, false, 0);
	submit(2, 1, HEAVY, false, 0);
	step(0);
	CHECK_EQ(gpu_of(1), gpu_of(2));
	td_tandem_cluster_finish(&cluster, 0, 100 * S);
	step(100 * S);
	CHECK_EQ(count, 0); /* it has just started */
	step(400 * S);
	CHECK_EQ(count, 1);
	CHECK_EQ(actions[0].verb, TD_TANDEM_MOVE);
	CHECK(gpu_of(1) != gpu_of(2));
	step(1000 * S);
	CHECK_EQ(count, 0);
}

TEST(who_has_waited_for_long_is_not_overtaken_on_idle_gpus)
{
	const uint32_t nodes[] = {2};

	start_cluster(nodes, 1, 0, 2);
	submit(0, 1, HEAVY, true, 0);
	step(0);
	td_tandem_cluster_observe(&cluster, HEAVY, HEAVY, true, 0.01);
	submit(1, 2, HEAVY, false, 0);
	submit(2, 1, HEAVY, false, S);
	step(S);
	CHECK_EQ(gpu_of(2), 1);
	td_tandem_cluster_finish(&cluster, 2, 2 * S);
	submit(3, 1, HEAVY, false, 3600 * S);
	step(3600 * S);
	CHECK_EQ(count, 0);
	td_tandem_cluster_finish(&cluster, 0, 3601 * S);
	step(3601 * S);
	CHECK_EQ(actions[0].job, 1);
}

static uint32_t random_below(uint64_t *seed, uint32_t n)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((*seed >> 33) % n);
}

static void check_invariants(void)
{
	const struct td_inventory *v = &cluster.antman.gpus;
	uint32_t guests[64] = {0}, total = 0;

	for (uint32_t id = 0; id < JOBS; id++) {
		uint32_t n = td_tandem_cluster_gpus(&cluster, id, gpus);

		CHECK(n == 0 || n == cluster.jobs[id].gpus);
		for (uint32_t k = 0; k < n; k++) {
			for (uint32_t m = 0; m < k; m++)
				CHECK(gpus[m] != gpus[k]);
			if (cluster.jobs[id].guest)
				guests[gpus[k]]++;
			else
				CHECK_EQ(v->holder[gpus[k]], id);
		}
		total += n && cluster.jobs[id].guest;
	}
	CHECK_EQ(total, cluster.running_count);
	for (uint32_t g = 0; g < v->gpu_count; g++) {
		uint64_t bytes = 0;

		CHECK_EQ(guests[g], v->guest_count[g]);
		CHECK(guests[g] <= td_tandem_cluster_default.together);
		for (uint32_t k = 0; k < v->guest_count[g]; k++)
			bytes += cluster.jobs[v->guest[g * TD_GUESTS + k]].bytes;
		CHECK(bytes <= 16);
	}
}

TEST(random_events_never_break_an_invariant)
{
	const uint32_t nodes[] = {4, 8, 2, 8, 1};
	uint64_t seed = 5, now = 0;

	for (int run = 0; run < 20; run++) {
		start_cluster(nodes, 5, 16, 20);
		td_tandem_cluster_serve(&cluster, 3, HEAVY, 2);
		for (int event = 0; event < 1000; event++) {
			uint32_t job = random_below(&seed, JOBS);

			now += random_below(&seed, 60) * S;
			if (random_below(&seed, 3))
				(void)submit(job, 1 + random_below(&seed, 6),
					random_below(&seed, KINDS), random_below(&seed, 3) == 0,
					now);
			else
				td_tandem_cluster_finish(&cluster, job, now);
			td_tandem_cluster_observe(&cluster, random_below(&seed, KINDS),
				random_below(&seed, KINDS), random_below(&seed, 2),
				random_below(&seed, 101) / 100.);
			step(now);
			CHECK(count < ACTIONS);
			check_invariants();
		}
		for (uint32_t id = 0; id < JOBS; id++)
			td_tandem_cluster_finish(&cluster, id, now);
		CHECK_EQ(cluster.running_count, 0);
		CHECK(cluster.head == UINT32_MAX && cluster.tail == UINT32_MAX);
		check_invariants();
	}
}
