/*
 * The brain and the simulator's own scheduler get the same jobs in the same engine, and order the
 * same at the same times: which job, to start, stop, move or upgrade, on which GPUs.
 */
#include "test.h"

#include "base/time.h"
#include "cluster/brain/brain.h"
#include "sim/base/random.h"
#include "sim/scheduler/schedulers.h"

#define JOBS  500u
#define NODES 6u
#define GPUS  4u
#define ROOM  8192u

static struct td_profiles profiles;
static struct td_sim_job jobs[JOBS];
static struct td_cluster cluster;
static struct td_cluster_options options;
static struct td_brain *brain;
static const struct td_sched *like; /* the scheduler that is compared with */
static bool changed;
static uint64_t decided_ns, seen_hash, stops, moves, upgrades;

/* --- what both did, as a number --- */

static void mix(uint64_t value)
{
	seen_hash = (seen_hash ^ value) * 0x100000001b3ull;
}

/* All places at this time. */
static void note(const struct td_cluster *c)
{
	mix(c->now_ns);
	for (uint32_t g = 0; g < c->gpu_count; g++)
		for (uint32_t i = 0; i < c->gpus[g].count; i++)
			mix((uint64_t)g << 32 | c->gpus[g].jobs[i] << 1 |
				c->jobs[c->gpus[g].jobs[i]].guest);
	stops = c->counts.suspensions;
	moves = c->counts.moves;
	upgrades = c->counts.upgrades;
}

static void decide_as_before(struct td_cluster *c)
{
	like->decide(c);
	note(c);
}

/* --- the brain as a scheduler of the simulator --- */

static int brain_begin(struct td_cluster *c)
{
	struct td_brain_params params = td_brain_default;

	params.policy = td_brain_policy_find(like->name);
	params.shape = (struct td_brain_shape){.nodes_max = NODES,
		.node_gpus_max = GPUS,
		.jobs_max = JOBS,
		.kinds_max = 32,
		.gpu_bytes = c->gpus[0].memory_bytes,
		.restart_ns = 30 * TD_NS_PER_S};
	for (uint32_t t = 0; t < TD_TENANTS_MAX; t++) {
		snprintf(params.tenants[t].name, TD_NAME_MAX, "%u", t);
		params.tenants[t].quota = c->gpu_count;
	}
	params.tenant_count = TD_TENANTS_MAX;
	params.silent_ns = 0;
	brain = td_brain_new(&params);
	CHECK(brain);
	/* The simulator has its first node first in each list; here the last one to come is. */
	for (uint32_t n = NODES; n--;) {
		struct td_brain_node node = {.gpus = GPUS};

		snprintf(node.name, sizeof(node.name), "%u", n);
		CHECK_EQ(td_brain_node_seen(brain, &node, 0), 0);
	}
	td_brain_lead(brain, 1);
	c->sched_state = brain;
	return 0;
}

static void brain_end(struct td_cluster *c)
{
	(void)c;
	td_brain_free(brain);
}

static void brain_arrive(struct td_cluster *c, uint32_t index)
{
	const struct td_sim_job *job = &c->jobs[index];
	const struct td_profiles *known = c->profiles;
	struct td_brain_request request = {.gpus = job->gpus,
		.share_ppm = (uint32_t)(known->profiles[job->profile].told_demand * 1e6 + 0.5),
		.guaranteed = job->class == TD_CLASS_GUARANTEED,
		.bytes = job->memory_bytes};

	snprintf(request.id, sizeof(request.id), "%u", index);
	snprintf(request.tenant, sizeof(request.tenant), "%u", job->tenant % TD_TENANTS_MAX);
	snprintf(request.kind, sizeof(request.kind), "%u", job->profile);
	CHECK_EQ(td_brain_submit(brain, &request, c->now_ns), 0);
	changed = true;
}

static void brain_finish(struct td_cluster *c, uint32_t index)
{
	char id[TD_NAME_MAX];

	snprintf(id, sizeof(id), "%u", index);
	td_brain_ended(brain, id, c->now_ns);
	changed = true;
}

static void tell_speed(
	const struct td_sim_gpu *gpu, uint32_t at, uint32_t other, bool held, double speed)
{
	char id[TD_NAME_MAX], beside[TD_NAME_MAX];

	snprintf(id, sizeof(id), "%u", gpu->jobs[at]);
	snprintf(beside, sizeof(beside), "%u", gpu->jobs[other]);
	td_brain_speed(brain, id, beside, held, speed);
}

static void tell_load(struct td_cluster *c, uint32_t at)
{
	uint32_t load[GPUS], node = at / GPUS;
	struct td_brain_node seen = {.gpus = GPUS, .load_ppm = load};

	/* The scheduler hears of one GPU alone, so the brain does, too. */
	for (uint32_t k = 0; k < GPUS; k++)
		load[k] = node * GPUS + k == at ? (uint32_t)(td_cluster_load(c, at) * TD_PPM)
						: TD_BRAIN_LOAD_UNKNOWN;
	snprintf(seen.name, sizeof(seen.name), "%u", node);
	CHECK_EQ(td_brain_node_seen(brain, &seen, c->now_ns), 0);
}

/* Tells the brain the load, like sched_tandem.c and sched_antman.c tell their policies. */
static void brain_load(struct td_cluster *c, uint32_t at)
{
	const struct td_sim_gpu *gpu = &c->gpus[at];
	uint32_t holder = TD_NO_JOB;

	tell_load(c, at);
	changed = true;
	for (uint32_t i = 0; i < gpu->count; i++)
		if (!c->jobs[gpu->jobs[i]].guest)
			holder = i;
	for (uint32_t i = 0; i < gpu->count; i++) {
		if (!c->jobs[gpu->jobs[i]].guest || (holder == TD_NO_JOB && gpu->count != 2))
			continue;
		if (holder != TD_NO_JOB) {
			double speed = gpu->speeds[i] * (gpu->count - 1);

			tell_speed(gpu, i, holder, true, speed < 1 ? speed : 1);
		} else {
			tell_speed(gpu, i, !i, false, gpu->speeds[i]);
		}
	}
}

static void carry_out(struct td_cluster *c, const struct td_brain_order *order, uint32_t *moved)
{
	struct td_brain_place places[TD_GANG_MAX];
	uint32_t gpus[TD_GANG_MAX], index = (uint32_t)atoi(order->id), count;

	td_brain_done(brain, order);
	if (order->verb == TD_ORDER_REQUEUE) {
		if (order->why == TD_WHY_MOVED)
			*moved = index;
		else
			td_cluster_suspend(c, index);
		return;
	}
	if (order->verb == TD_ORDER_UPGRADE) {
		td_cluster_upgrade(c, index);
		return;
	}
	CHECK_EQ(order->verb, TD_ORDER_PLACE);
	td_brain_ran(brain, order->id, order->epoch, c->now_ns);
	count = td_brain_places(brain, order->job, places);
	CHECK_EQ(count, c->jobs[index].gpus);
	for (uint32_t k = 0; k < count; k++)
		gpus[k] = (uint32_t)atoi(places[k].node) * GPUS + places[k].gpu;
	if (*moved == index)
		td_cluster_move(c, index, gpus, options.costs.restart_s);
	else
		td_cluster_start(c, index, gpus, order->guest);
	*moved = TD_NO_JOB;
}

static void brain_decide(struct td_cluster *c)
{
	static struct td_brain_order orders[ROOM];
	uint32_t moved = TD_NO_JOB, count;

	if (!changed && c->now_ns - decided_ns < c->sched->tick_ns) {
		note(c);
		return;
	}
	changed = false;
	decided_ns = c->now_ns;
	count = td_brain_step(brain, c->now_ns, orders, ROOM);
	CHECK(count < ROOM);
	for (uint32_t k = 0; k < count; k++)
		carry_out(c, &orders[k], &moved);
	note(c);
}

/* --- the comparison --- */

/* Four kinds, whose use of a GPU is the same number for both. */
static void make_profiles(void)
{
	td_profiles_generic(&profiles);
	for (uint32_t k = 1; k < 4; k++)
		profiles.profiles[k] = profiles.profiles[0];
	profiles.count = 4;
	for (uint32_t k = 0; k < 4; k++)
		profiles.profiles[k].told_demand = (double)(200000 + 200000 * k) / 1e6;
}

static void make_jobs(uint64_t seed)
{
	uint64_t at_ns = 0;

	for (uint32_t k = 0; k < JOBS; k++) {
		uint64_t draw = td_random_bits(&seed);

		at_ns += td_random_bits(&seed) % (400 * TD_NS_PER_S);
		jobs[k] = (struct td_sim_job){.submit_ns = at_ns,
			.work_s = (double)(60 + td_random_bits(&seed) % 12000),
			.gpus = 1u << draw % 4,
			.profile = (uint32_t)(draw >> 8) % profiles.count,
			.tenant = (uint32_t)(draw >> 16) % 5,
			.memory_bytes = (draw >> 24) % 12 << 30,
			.class = draw >> 32 & 1 ? TD_CLASS_GUARANTEED : TD_CLASS_BESTEFFORT};
	}
}

static uint64_t run(const struct td_sched *sched, uint64_t seed, uint32_t *ret_done)
{
	static const uint32_t nodes[NODES] = {GPUS, GPUS, GPUS, GPUS, GPUS, GPUS};

	make_jobs(seed);
	changed = false;
	decided_ns = 0;
	seen_hash = 0xcbf29ce484222325ull;
	options = (struct td_cluster_options){.contention = {.capped_pressure = 1},
		.costs = {.restart_s = 30, .checkpoint_s = 600}};
	CHECK_EQ(td_cluster_init(&cluster, &options, &profiles, nodes, NODES, 16ull << 30, jobs,
			 JOBS, sched),
		0);
	td_cluster_run(&cluster);
	*ret_done = cluster.ended;
	td_cluster_deinit(&cluster);
	return seen_hash;
}

static void compare(const struct td_sched *sched, uint64_t seed)
{
	struct td_sched before = *sched, with_brain = *sched;
	uint64_t expected, stopped, moved, upgraded;
	uint32_t done, done_too;

	like = sched;
	before.decide = decide_as_before;
	expected = run(&before, seed, &done);
	stopped = stops;
	moved = moves;
	upgraded = upgrades;
	with_brain.init = brain_begin;
	with_brain.deinit = brain_end;
	with_brain.arrive = brain_arrive;
	with_brain.finish = brain_finish;
	with_brain.load = brain_load;
	with_brain.decide = brain_decide;
	CHECK(run(&with_brain, seed, &done_too) == expected);
	CHECK_EQ(done, JOBS);
	CHECK_EQ(done_too, JOBS);
	CHECK_EQ(stops, stopped);
	CHECK_EQ(moves, moved);
	CHECK_EQ(upgrades, upgraded);
	printf("# %s, seed %u: %u stops, %u moves, %u upgrades\n", sched->name, (unsigned)seed,
		(unsigned)stops, (unsigned)moves, (unsigned)upgrades);
}

TEST(the_brain_orders_what_the_simulator_does)
{
	make_profiles();
	for (uint64_t seed = 1; seed <= 3; seed++)
		compare(&td_sched_tandem, seed);
	CHECK(stops > 0);
}

/* At events alone, because the simulator's tells of a change by what only AntMan's policy knows. */
TEST(the_same_with_antman)
{
	struct td_sched antman = td_sched_antman;

	make_profiles();
	antman.tick_ns = 0;
	for (uint64_t seed = 1; seed <= 3; seed++)
		compare(&antman, seed);
}
