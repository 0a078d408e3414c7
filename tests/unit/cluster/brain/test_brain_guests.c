/*
 * With DCUDA's, MuxFlow's and Mudi's rules the brain orders what the simulator's schedulers do: the
 * same jobs get the same GPUs at the same times, beside the same services.
 */
#include "test.h"

#include <stdlib.h>

#include "base/time.h"
#include "cluster/brain/brain.h"
#include "sim/base/random.h"
#include "sim/scheduler/beside.h"
#include "sim/scheduler/muxflow_settle.h"

#define JOBS     120u
#define NODES    3u
#define GPUS     4u
#define SERVICES 8u
#define KINDS    4u
#define ROOM     4096u
#define SEED     7u
#define GIB      (1ull << 30)

static struct td_profiles profiles;
static struct td_sim_job jobs[JOBS];
static struct td_cluster cluster;
static struct td_service_kind kinds[2];
static struct td_service list[SERVICES];
static float rates[SERVICES];
static struct td_services services = {kinds, 2, list, SERVICES, rates, 1, 3600 * TD_NS_PER_S};
static struct td_batch_table table;
static struct td_brain *brain;
static const struct td_sched *like; /* the scheduler that is compared with */
static uint64_t seen_hash;
static uint32_t most_jobs, beside_services;

/* --- what the programs' profiles say --- */

#define MODEL_INPUTS 12u
static double zeros[MODEL_INPUTS], ones[MODEL_INPUTS];
static const double layers[KINDS][TD_MUDI_LAYERS] = {
	{1, 0, 2}, {0, 5, 1, 1}, {9, 0, 9, 0, 0, 0, 1, 9, 1}, {0, 3, 0, 1, 6, 6}};
static double perceptron[8 * 3 + 3 + 3 + 1], slopes[2][TD_MUDI_INPUTS + 1],
	share[TD_MUDI_INPUTS + 1], latency[TD_MUDI_INPUTS + 1];
static struct td_predictor speeds, slope_of[2], share_of, latency_of;
static struct td_mudi_service curves[2];
static struct td_sim_knowledge knowledge;

static struct td_predictor linear(const double *coefficients)
{
	return (struct td_predictor){.form = TD_PREDICTOR_LINEAR,
		.inputs = TD_MUDI_INPUTS,
		.shift = zeros,
		.scale = ones,
		.target_scale = 1,
		.coefficients = coefficients,
		.coefficient_count = TD_MUDI_INPUTS + 1};
}

static void make_knowledge(void)
{
	uint64_t random = SEED;

	for (uint32_t k = 0; k < MODEL_INPUTS; k++)
		ones[k] = 1;
	/* Speeds near a half, so that they are above 0; not sums of a part of each program. */
	for (uint32_t k = 0; k < 27; k++)
		perceptron[k] = td_random_unit(&random) - 0.5;
	perceptron[27] = 0.3;
	perceptron[28] = -0.2;
	perceptron[29] = 0.1;
	perceptron[30] = 0.5;
	speeds = (struct td_predictor){.form = TD_PREDICTOR_MLP,
		.inputs = TD_MUXFLOW_INPUTS,
		.shift = zeros,
		.scale = ones,
		.target_scale = 1,
		.coefficients = perceptron,
		.coefficient_count = 31,
		.layers = 2,
		.widths = {3, 1}};
	for (uint32_t s = 0; s < 2; s++) {
		/* The second kind is ten times as steep, as it is in truth. */
		slopes[s][0] = slopes[s][1] = slopes[s][4] = s ? -0.01 : -0.001;
		slopes[s][TD_MUDI_INPUTS] = s ? -1 : -0.1;
		slope_of[s] = linear(slopes[s]);
	}
	share[TD_MUDI_INPUTS] = 0.5;
	latency[TD_MUDI_INPUTS] = 0.01;
	share_of = linear(share);
	latency_of = linear(latency);
	for (uint32_t s = 0; s < 2; s++)
		curves[s] = (struct td_mudi_service){.left_slope = &slope_of[s],
			.right_slope = &slope_of[s],
			.knee_share = &share_of,
			.knee_latency = &latency_of};
	knowledge = (struct td_sim_knowledge){
		.mudi = curves, .layers = layers, .profiled = KINDS, .muxflow = &speeds};
}

static struct td_muxflow_profile profile_of(double demand, double activity, double alone_s)
{
	double used = demand * activity;

	return (struct td_muxflow_profile){used, TD_MUXFLOW_ACTIVITY * used, 0.5 * used, alone_s};
}

/* Programs are "service0", "service1" and "job0" to "job3". */
static void look(void *arg, const char *gpu, const char *program, struct td_guest_known *ret)
{
	uint32_t kind = (uint32_t)(program[strlen(program) - 1] - '0');

	(void)arg;
	CHECK_STR(gpu, "a GPU");
	ret->speeds = &speeds;
	ret->is_measured = true;
	if (*program == 's') {
		ret->alone = profile_of(kinds[kind].told_demand,
			td_beside_activity(&cluster, kind * SERVICES / 2), kinds[kind].each_s);
		ret->has_curves = true;
		ret->curves = curves[kind];
		return;
	}
	ret->alone = profile_of(profiles.profiles[kind].told_demand, 1, 0.1);
	ret->has_layers = true;
	memcpy(ret->layers, layers[kind], sizeof(ret->layers));
}

/* --- the brain as a scheduler of the simulator --- */

static void note(const struct td_cluster *c)
{
	for (uint32_t g = 0; g < c->gpu_count; g++)
		for (uint32_t i = 0; i < c->gpus[g].count; i++) {
			uint64_t what = (uint64_t)g << 32 | c->gpus[g].jobs[i];

			seen_hash = (seen_hash ^ what ^ c->now_ns << 8) * 0x100000001b3ull;
			beside_services += c->gpus[g].service != TD_SERVICE_NONE;
			most_jobs = c->gpus[g].count > most_jobs ? c->gpus[g].count : most_jobs;
		}
}

static void decide_as_before(struct td_cluster *c)
{
	like->decide(c);
	note(c);
}

static void submit(const char *kind, uint32_t number, uint32_t index, const struct td_sim_job *job)
{
	struct td_brain_request request = {.gpus = job ? job->gpus : 1,
		.guaranteed = !job,
		.bytes = job ? job->memory_bytes : 0,
		.share_ppm =
			job ? (uint32_t)(profiles.profiles[number].told_demand * 1e6 + 0.5) : 0};
	struct td_brain_place place = {.gpu = list[index % SERVICES].gpu % GPUS};
	char node[16];

	snprintf(request.id, sizeof(request.id), "%s%u", job ? "" : "s", index);
	snprintf(request.kind, sizeof(request.kind), "%s%u", kind, number);
	strcpy(request.program, request.kind);
	snprintf(node, sizeof(node), "%u", list[index % SERVICES].gpu / GPUS);
	place.node = node;
	if (job)
		CHECK_EQ(td_brain_submit(brain, &request, cluster.now_ns), 0);
	else
		CHECK_EQ(td_brain_adopt(brain, &request, false, &place, cluster.now_ns), 0);
}

static int brain_begin(struct td_cluster *c)
{
	static const struct td_sim_job none = {.gpus = 1};
	const struct td_brain_knowledge profiled = {.look = look};
	struct td_brain_params params = td_brain_default;

	params.policy = td_brain_policy_find(like->name);
	params.silent_ns = params.start_ns = 0;
	params.shape = (struct td_brain_shape){.nodes_max = NODES,
		.node_gpus_max = GPUS,
		.jobs_max = JOBS + SERVICES,
		.kinds_max = 16,
		.gpu_bytes = c->gpus[0].memory_bytes,
		/* So nobody is exchanged, because the simulator exchanges nobody. */
		.restart_ns = 3600 * TD_NS_PER_S,
		.seed = 2 * SEED + 1};
	brain = td_brain_new(&params);
	CHECK(brain);
	td_brain_know(brain, &profiled);
	for (uint32_t n = NODES; n--;) { /* the first one has the largest number */
		struct td_brain_node node = {.gpus = GPUS};

		snprintf(node.name, sizeof(node.name), "%u", n);
		CHECK_EQ(td_brain_node_seen(brain, &node, 0), 0);
		for (uint32_t g = 0; g < GPUS; g++)
			td_brain_gpu_is(brain, node.name, g, "a GPU");
	}
	for (uint32_t k = 0; k < KINDS; k++) { /* kinds of jobs have the simulator's order */
		submit("job", k, k, &none);
		td_brain_ended(brain, (char[]){(char)('0' + k), 0}, 0);
	}
	td_brain_lead(brain, 1);
	return like->init(c);
}

static void brain_end(struct td_cluster *c)
{
	like->deinit(c);
	td_brain_free(brain);
}

static void brain_arrive(struct td_cluster *c, uint32_t index)
{
	/* Services run as soon as the simulator has told their rates. */
	if (c->services && td_brain_find(brain, "s0") == TD_NO_NAME)
		for (uint32_t s = 0; s < SERVICES; s++)
			submit("service", list[s].kind, s, NULL);
	submit("job", c->jobs[index].profile, index, &c->jobs[index]);
}

static void brain_finish(struct td_cluster *c, uint32_t index)
{
	char id[TD_NAME_MAX];

	snprintf(id, sizeof(id), "%u", index);
	td_brain_ended(brain, id, c->now_ns);
}

static void brain_decide(struct td_cluster *c)
{
	static struct td_brain_order orders[ROOM];
	uint32_t count = c->arrived ? td_brain_step(brain, c->now_ns, orders, ROOM) : 0;

	for (uint32_t k = 0; k < count; k++) {
		struct td_brain_place places[TD_GANG_MAX];
		uint32_t gpus[TD_GANG_MAX], n = td_brain_places(brain, orders[k].job, places);

		CHECK_EQ(orders[k].verb, TD_ORDER_PLACE);
		CHECK(orders[k].guest);
		td_brain_ran(brain, orders[k].id, orders[k].epoch, c->now_ns);
		for (uint32_t g = 0; g < n; g++)
			gpus[g] = (uint32_t)atoi(places[g].node) * GPUS + places[g].gpu;
		td_cluster_start(c, (uint32_t)atoi(orders[k].id), gpus, true);
	}
	note(c);
}

/* --- the comparison --- */

static void make_world(uint64_t seed, uint64_t between_s)
{
	uint64_t at_ns = 0;

	td_profiles_generic(&profiles);
	profiles.count = KINDS;
	for (uint32_t k = 0; k < KINDS; k++) {
		profiles.profiles[k] = profiles.profiles[0];
		profiles.profiles[k].told_demand = 0.125 * (k + 1);
	}
	for (uint32_t s = 0; s < 2; s++) {
		kinds[s] = (struct td_service_kind){.contender = td_contender_neutral,
			.told_demand = s ? 0.5 : 0.25,
			.least_s = s ? 0.01 : 0.001,
			.fixed_s = s ? 0.01 : 0.001,
			.each_s = s ? 0.001 : 0.0001,
			.objective_s = 1000};
		kinds[s].contender.serial = 0.3;
	}
	for (uint32_t s = 0; s < SERVICES; s++) {
		list[s] = (struct td_service){.gpu = s + s / 2, .kind = s >= SERVICES / 2};
		rates[s] = s >= SERVICES / 2 ? 100 : 500;
	}
	for (uint32_t k = 0; k < JOBS; k++) {
		uint64_t draw = td_random_bits(&seed);

		at_ns += (1 + td_random_bits(&seed) % between_s) * TD_NS_PER_S;
		jobs[k] = (struct td_sim_job){.submit_ns = at_ns,
			.work_s = (double)(60 + td_random_bits(&seed) % 3000),
			.gpus = draw % 8 ? 1 : 2,
			.profile = (uint32_t)(draw >> 8) % KINDS,
			.memory_bytes = (draw >> 24) % 3 * GIB,
			.class = TD_CLASS_BESTEFFORT};
	}
}

static uint64_t run(const struct td_sched *sched, bool serves)
{
	static const uint32_t nodes[NODES] = {GPUS, GPUS, GPUS};
	const struct td_cluster_options options = {.contention = {.capped_pressure = 1},
		.costs = {.restart_s = 30},
		.services = serves ? &services : NULL,
		.table = &table,
		.knowledge = &knowledge,
		.seed = SEED};

	seen_hash = 0xcbf29ce484222325ull;
	most_jobs = beside_services = 0;
	CHECK_EQ(td_cluster_init(
			 &cluster, &options, &profiles, nodes, NODES, 16 * GIB, jobs, JOBS, sched),
		0);
	td_cluster_run(&cluster);
	CHECK_EQ(cluster.ended, JOBS);
	td_cluster_deinit(&cluster);
	return seen_hash;
}

static void compare(const struct td_sched *sched, uint64_t between_s, bool serves)
{
	for (uint64_t seed = 1; seed <= 3; seed++) {
		struct td_sched before = *sched, with_brain = *sched;
		uint64_t expected;

		like = sched;
		make_knowledge();
		make_world(seed, between_s);
		before.decide = decide_as_before;
		expected = run(&before, serves);
		CHECK(most_jobs <= TD_GUESTS); /* the brain has no more of them on a GPU */
		CHECK(!serves || beside_services);
		with_brain.init = brain_begin;
		with_brain.deinit = brain_end;
		with_brain.arrive = brain_arrive;
		with_brain.finish = brain_finish;
		with_brain.decide = brain_decide;
		CHECK(run(&with_brain, serves) == expected);
		printf("# %s, seed %u: up to %u jobs on a GPU\n", sched->name, (unsigned)seed,
			most_jobs);
	}
}

/* Without its moves between GPUs, which on a cluster are those of a node's own daemon. */
TEST(the_brain_places_as_the_simulators_dcuda)
{
	struct td_sched dcuda = td_sched_dcuda;

	dcuda.tick_ns = UINT64_MAX;
	compare(&dcuda, 450, false);
}

TEST(the_brain_matches_as_the_simulators_muxflow)
{
	compare(&td_sched_muxflow, 150, true);
}

TEST(the_brain_selects_as_the_simulators_mudi)
{
	compare(&td_sched_mudi, 150, true);
}
