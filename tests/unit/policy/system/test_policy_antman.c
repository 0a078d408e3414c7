/*
 * AntMan's global scheduler: the sentences of its section 3.3 one by one, then random events
 * against its invariants.
 */
#include "test.h"

#include <errno.h>

#include "policy/cluster/antman_cluster.h"
#include "policy_random.h"

#define S       1000000000ull
#define JOBS    400
#define ACTIONS 64

static struct td_antman_cluster cluster;
static struct td_antman_action actions[ACTIONS];
static void *memory;
static uint64_t now;

static void start_cluster(
	const uint32_t *nodes, uint32_t n, const uint32_t *quotas, uint32_t tenants)
{
	uint32_t gpus = 0;
	size_t bytes;

	for (uint32_t i = 0; i < n; i++)
		gpus += nodes[i];
	bytes = td_antman_bytes(n, gpus, JOBS);
	free(memory);
	memory = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
	CHECK(memory);
	memset(memory, 0x5a, bytes);
	now = 1000 * S;
	CHECK_EQ(td_antman_init(&cluster, memory, bytes, &td_antman_default, nodes, n, quotas,
			 tenants, JOBS),
		0);
}

/* Two nodes of four GPUs; tenant 0 owns all, tenant 1 nothing. */
static void start(void)
{
	start_cluster((const uint32_t[]){4, 4}, 2, (const uint32_t[]){8, 0}, 2);
}

static void submit(
	uint32_t job, uint32_t tenant, uint32_t gpus, enum td_job_kind kind, bool same_node)
{
	struct td_antman_request request = {tenant, gpus, kind, same_node, TD_ANYWHERE};

	CHECK_EQ(td_antman_submit(&cluster, job, &request, now), 0);
}

static uint32_t step(void)
{
	return td_antman_step(&cluster, now += S, actions, ACTIONS);
}

/* The monitor's word on all GPUs, none of which is used much. */
static void monitor(void)
{
	for (uint32_t g = 0; g < cluster.gpus.gpu_count; g++)
		td_antman_set_load(&cluster, g, 0);
}

static uint32_t gpu_of(uint32_t job)
{
	uint32_t gpus[TD_GANG_MAX];

	CHECK(td_antman_gpus(&cluster, job, gpus) > 0);
	return gpus[0];
}

TEST(a_guaranteed_job_gets_free_gpus_of_one_node)
{
	uint32_t gpus[TD_GANG_MAX];

	start();
	submit(0, 0, 1, TD_JOB_GUARANTEED, true);
	submit(1, 0, 4, TD_JOB_GUARANTEED, true);
	CHECK_EQ(step(), 2);
	CHECK_EQ(actions[1].verb, TD_ANTMAN_START);
	CHECK_EQ(td_antman_gpus(&cluster, 1, gpus), 4);
	for (int k = 0; k < 4; k++)
		CHECK(gpus[k] / 4 != gpu_of(0) / 4);
	submit(2, 0, 3, TD_JOB_GUARANTEED, true); /* beside the first: best fit */
	CHECK_EQ(step(), 1);
	CHECK_EQ(gpu_of(2) / 4, gpu_of(0) / 4);
}

TEST(a_guaranteed_job_goes_where_there_is_no_guest)
{
	uint32_t gpus[TD_GANG_MAX];

	for (int same_node = 0; same_node < 2; same_node++) {
		start();
		submit(0, 1, 1, TD_JOB_OPPORTUNISTIC, false);
		CHECK_EQ(step(), 1);
		submit(1, 0, 3, TD_JOB_GUARANTEED, same_node);
		CHECK_EQ(step(), 1);
		CHECK_EQ(td_antman_gpus(&cluster, 1, gpus), 3);
		for (int k = 0; k < 3; k++)
			CHECK(gpus[k] != gpu_of(0));
		submit(2, 0, 5, TD_JOB_GUARANTEED, false); /* no other GPU is left */
		CHECK_EQ(step(), 1);
	}
}

TEST(a_job_that_fits_in_part_reserves_and_others_may_not_take_that)
{
	start();
	submit(0, 0, 3, TD_JOB_GUARANTEED, true);
	submit(1, 0, 3, TD_JOB_GUARANTEED, true);
	CHECK_EQ(step(), 2);
	submit(2, 0, 2, TD_JOB_GUARANTEED, true); /* one is left on either node */
	CHECK_EQ(step(), 0);
	submit(3, 0, 1, TD_JOB_GUARANTEED, true); /* it does not overtake */
	CHECK_EQ(step(), 0);
	td_antman_finish(&cluster, 0, now);
	CHECK_EQ(step(), 2);
	CHECK_EQ(actions[0].job, 2);
	CHECK_EQ(actions[1].job, 3);
}

TEST(reserved_gpus_are_used_by_opportunistic_jobs)
{
	uint32_t reserved = 0;

	start_cluster((const uint32_t[]){4}, 1, (const uint32_t[]){3, 0}, 2);
	submit(0, 0, 1, TD_JOB_GUARANTEED, true);
	submit(1, 0, 3, TD_JOB_GUARANTEED,
		true); /* three GPUs, a quota of two: waits, reserves two */
	CHECK_EQ(step(), 1);
	for (uint32_t g = 0; g < 4; g++)
		reserved += cluster.gpus.reserved[g] == 1;
	CHECK_EQ(reserved, 2);
	monitor();
	submit(2, 1, 4, TD_JOB_OPPORTUNISTIC, false);
	CHECK_EQ(step(), 1);
	CHECK_EQ(actions[0].verb, TD_ANTMAN_START_OPPORTUNISTIC);
}

TEST(opportunistic_jobs_go_where_the_load_is_least_and_below_80_percent)
{
	start();
	for (uint32_t g = 0; g < 8; g++)
		td_antman_set_load(&cluster, g, 900000 - g * 50000);
	submit(0, 1, 1, TD_JOB_OPPORTUNISTIC, false);
	CHECK_EQ(step(), 1);
	CHECK_EQ(gpu_of(0), 7);
	for (uint32_t g = 0; g < 8; g++)
		td_antman_set_load(&cluster, g, g == 3 ? 799999 : 800000);
	submit(1, 1, 1, TD_JOB_OPPORTUNISTIC, false);
	CHECK_EQ(step(), 1);
	CHECK_EQ(gpu_of(1), 3);
	submit(2, 1, 1, TD_JOB_OPPORTUNISTIC, false);
	CHECK_EQ(step(), 0);
}

TEST(a_burst_spreads_out_before_the_monitor_has_seen_it)
{
	uint32_t seen = 0;

	start();
	for (uint32_t j = 0; j < 8; j++)
		submit(j, 1, 1, TD_JOB_OPPORTUNISTIC, false);
	CHECK_EQ(step(), 8);
	for (uint32_t j = 0; j < 8; j++)
		seen |= 1u << gpu_of(j);
	CHECK_EQ(seen, 0xff);
}

/*
 * The monitor does not show a job that has just been placed; "the freest candidates" are GPUs that
 * no job has.
 */
TEST(a_guest_of_a_burst_goes_to_an_idle_gpu_and_not_beside_a_job_of_the_same_moment)
{
	start();
	submit(0, 0, 3, TD_JOB_GUARANTEED, true);
	for (uint32_t j = 1; j < 6; j++)
		submit(j, 1, 1, TD_JOB_OPPORTUNISTIC, false);
	CHECK_EQ(step(), 6);
	for (uint32_t j = 1; j < 6; j++)
		CHECK(cluster.gpus.holder[gpu_of(j)] == TD_NO_JOB);
}

/* Until the monitor shows that there is room; and who has left is no load any more. */
TEST(a_guest_waits_for_the_monitors_word_on_who_has_just_come)
{
	start();
	submit(0, 0, 8, TD_JOB_GUARANTEED, false);
	submit(1, 1, 1, TD_JOB_OPPORTUNISTIC, false);
	CHECK_EQ(step(), 1);
	td_antman_set_load(&cluster, 5, 300000);
	CHECK_EQ(step(), 1);
	CHECK_EQ(gpu_of(1), 5);
	td_antman_finish(&cluster, 0, now);
	submit(2, 1, 1, TD_JOB_OPPORTUNISTIC, false);
	CHECK_EQ(step(), 1);
	CHECK_EQ(gpu_of(2), 0);
}

/*
 * GPU 0 has a job that the monitor has seen and a guest that it has not: when the job leaves, the
 * guest counts as before.
 */
TEST(who_leaves_takes_nobody_elses_assumed_load)
{
	start();
	submit(0, 0, 1, TD_JOB_GUARANTEED, false);
	CHECK_EQ(step(), 1);
	CHECK_EQ(gpu_of(0), 0);
	for (uint32_t g = 0; g < 8; g++)
		td_antman_set_load(&cluster, g, g ? 500000 : 200000);
	submit(1, 1, 1, TD_JOB_OPPORTUNISTIC, false);
	CHECK_EQ(step(), 1);
	CHECK_EQ(gpu_of(1), 0);
	td_antman_finish(&cluster, 0, now);
	submit(2, 1, 1, TD_JOB_OPPORTUNISTIC, false);
	CHECK_EQ(step(), 1);
	CHECK_EQ(gpu_of(2), 1);
	/* When the guest leaves instead, nothing is assumed any more. */
	td_antman_finish(&cluster, 1, now);
	submit(3, 1, 1, TD_JOB_OPPORTUNISTIC, false);
	CHECK_EQ(step(), 1);
	CHECK_EQ(gpu_of(3), 0);
}

TEST(without_quota_a_job_starts_opportunistically_at_once)
{
	start();
	submit(0, 1, 2, TD_JOB_AUTO, true);
	CHECK_EQ(step(), 1);
	CHECK_EQ(actions[0].verb, TD_ANTMAN_START_OPPORTUNISTIC);
}

/* 8 GPUs were freed in the 100 s since the first arrival: 4 take 50 s, which is patience. */
TEST(a_short_estimated_wait_is_waited_for)
{
	start();
	submit(0, 0, 8, TD_JOB_GUARANTEED, false);
	CHECK_EQ(step(), 1);
	submit(1, 0, 4, TD_JOB_AUTO, true);
	CHECK(td_antman_estimate_ns(&cluster, 1) == UINT64_MAX);
	td_antman_finish(&cluster, 1, now);
	now += 100 * S; /* wherever the clock began */
	td_antman_finish(&cluster, 0, now);
	submit(2, 0, 8, TD_JOB_GUARANTEED, false);
	CHECK_EQ(step(), 1);
	monitor();
	submit(1, 0, 4, TD_JOB_AUTO, true);
	CHECK(td_antman_estimate_ns(&cluster, 1) / S == 49 ||
		td_antman_estimate_ns(&cluster, 1) / S == 50);
	CHECK_EQ(step(), 0);
	submit(3, 0, 1, TD_JOB_OPPORTUNISTIC, false); /* who wants no turn has its place at once */
	CHECK_EQ(step(), 1);
	CHECK_EQ(actions[0].job, 3);
	td_antman_finish(&cluster, 3, now);
	cluster.params.patience_ns = 10 * S;
	CHECK_EQ(step(), 1);
	CHECK_EQ(actions[0].verb, TD_ANTMAN_START_OPPORTUNISTIC);
}

/*
 * 6 GPUs were freed in 100 s: 3 take 50 s. A job of more GPUs than the quota is before it in the
 * queue, but never takes any of the quota.
 */
TEST(a_job_beyond_the_quota_is_not_waited_for)
{
	start();
	cluster.tenants[0].quota = 6;
	submit(0, 0, 6, TD_JOB_GUARANTEED, false);
	CHECK_EQ(step(), 1);
	now += 100 * S;
	td_antman_finish(&cluster, 0, now);
	submit(2, 0, 6, TD_JOB_GUARANTEED, false);
	CHECK_EQ(step(), 1);
	submit(3, 0, 8, TD_JOB_AUTO, false);
	submit(1, 0, 3, TD_JOB_AUTO, true);
	CHECK(td_antman_estimate_ns(&cluster, 3) == UINT64_MAX);
	CHECK(td_antman_estimate_ns(&cluster, 1) / S == 49 ||
		td_antman_estimate_ns(&cluster, 1) / S == 50);
}

TEST(an_opportunistic_job_is_upgraded_when_quota_frees)
{
	start();
	submit(0, 0, 8, TD_JOB_GUARANTEED, false);
	CHECK_EQ(step(), 1);
	monitor();
	submit(1, 0, 2, TD_JOB_AUTO, false); /* nothing is known of waits */
	CHECK_EQ(step(), 1);
	submit(2, 0, 6, TD_JOB_GUARANTEED, false);
	CHECK_EQ(step(), 0);
	td_antman_finish(&cluster, 0, now);
	CHECK_EQ(step(), 2);
	CHECK(actions[0].verb == TD_ANTMAN_UPGRADE && actions[0].job == 1);
	CHECK(actions[1].verb == TD_ANTMAN_START && actions[1].job == 2);
	CHECK_EQ(cluster.tenants[0].used, 8);
}

TEST(a_partial_upgrade_is_none)
{
	uint32_t gpus[TD_GANG_MAX];

	start();
	submit(0, 0, 8, TD_JOB_GUARANTEED, false);
	CHECK_EQ(step(), 1);
	monitor();
	submit(1, 0, 2, TD_JOB_AUTO, false);
	CHECK_EQ(step(), 1);
	CHECK_EQ(td_antman_gpus(&cluster, 1, gpus), 2);
	td_antman_finish(&cluster, 0, now);
	td_inventory_hold(&cluster.gpus, gpus[1], 99); /* somebody else has one of the two */
	CHECK_EQ(step(), 0);
	td_inventory_hold(&cluster.gpus, gpus[1], TD_NO_JOB);
	CHECK_EQ(step(), 1);
	CHECK_EQ(actions[0].verb, TD_ANTMAN_UPGRADE);
}

/* One of them at random, if any runs. */
static bool finish_somebody(uint32_t count, uint64_t *seed)
{
	uint32_t running = 0, chosen = TD_NO_JOB;

	for (uint32_t id = 0; id < count; id++)
		if (cluster.jobs[id].state == TD_JOB_RUNNING && random_below(seed, ++running) == 0)
			chosen = id;
	if (chosen != TD_NO_JOB)
		td_antman_finish(&cluster, chosen, now);
	return running;
}

/* Each holds a part of what the other lacks. */
TEST(gangs_of_tenants_whose_quotas_overlap_all_run)
{
	for (uint64_t seed = 1; seed <= 300; seed++) {
		uint64_t random = seed;
		uint32_t left = 0;

		start_cluster((const uint32_t[]){4, 4}, 2, (const uint32_t[]){8, 8, 8}, 3);
		for (uint32_t id = 0; id < 12; id++) {
			submit(id, random_below(&random, 3), 1 + random_below(&random, 8),
				TD_JOB_GUARANTEED, false);
			if (random_below(&random, 2))
				(void)step();
		}
		do
			while (step())
				;
		while (finish_somebody(12, &random));
		for (uint32_t id = 0; id < 12; id++)
			left += cluster.jobs[id].state != TD_JOB_ABSENT;
		CHECK_EQ(left, 0);
	}
}

TEST(what_can_never_run_is_refused)
{
	const struct td_antman_request over = {1, 1, TD_JOB_GUARANTEED, false, TD_ANYWHERE},
				       huge = {0, 9, TD_JOB_AUTO, false, TD_ANYWHERE},
				       none = {0, 0, TD_JOB_AUTO, false, TD_ANYWHERE},
				       stranger = {7, 1, TD_JOB_AUTO, false, TD_ANYWHERE};

	start();
	CHECK_EQ(td_antman_submit(&cluster, 0, &over, now), -EDQUOT);
	CHECK_EQ(td_antman_submit(&cluster, 0, &huge, now), -EINVAL);
	CHECK_EQ(td_antman_submit(&cluster, 0, &none, now), -EINVAL);
	CHECK_EQ(td_antman_submit(&cluster, 0, &stranger, now), -EINVAL);
	CHECK_EQ(td_antman_submit(&cluster, JOBS, &over, now), -EINVAL);
}

static void check_job(uint32_t id, uint32_t *held)
{
	const struct td_antman_job *job = &cluster.jobs[id];
	uint32_t gpus[TD_GANG_MAX], n = td_antman_gpus(&cluster, id, gpus);

	if (job->state != TD_JOB_RUNNING && job->state != TD_JOB_OPPORTUNISTIC_RUNNING) {
		CHECK_EQ(n, 0);
		return;
	}
	CHECK_EQ(n, job->gpus); /* whole or not at all */
	for (uint32_t k = 0; k < n; k++) {
		for (uint32_t l = 0; l < k; l++)
			CHECK(gpus[l] != gpus[k]);
		if (job->state == TD_JOB_RUNNING) {
			CHECK_EQ(cluster.gpus.holder[gpus[k]], id);
			CHECK(cluster.gpus.reserved[gpus[k]] == TD_NO_JOB);
			held[job->tenant]++;
		}
	}
}

/* By which a step leaves queues: the GPUs below M. */
static void check_below(void)
{
	uint32_t found[64];

	CHECK_EQ(cluster.gpus.below, td_inventory_find_least_loaded(&cluster.gpus, 64,
					     cluster.params.load_limit_ppm, found));
}

static bool has_upgrade(uint32_t count)
{
	for (uint32_t a = 0; a < count; a++)
		if (actions[a].verb == TD_ANTMAN_UPGRADE)
			return true;
	return false;
}

static bool is_on_one_node(const struct td_antman_job *job)
{
	return job->same_node && job->gpus > 1;
}

/*
 * Nobody is left who could start beside others; an upgrade makes room that the next step sees. A
 * gang that has to be on one node also waits while only several nodes together have the GPUs.
 */
static void check_nobody_is_missed(uint32_t count)
{
	if (has_upgrade(count))
		return;
	for (uint32_t id = 0; id < JOBS; id++) {
		const struct td_antman_job *job = &cluster.jobs[id];
		uint32_t found[TD_NODE_GPUS_MAX];

		CHECK(job->state != TD_JOB_QUEUED || job->kind != TD_JOB_OPPORTUNISTIC ||
			job->gpus > cluster.gpus.below ||
			(is_on_one_node(job) &&
				!td_inventory_find_least_loaded_on_one(&cluster.gpus, job->gpus,
					cluster.params.load_limit_ppm, TD_ANYWHERE, found)));
	}
}

/*
 * Two jobs of one queue wait for GPUs: the first is served before one that asks for as much, but
 * not beside upgrades. A gang that has to be on one node may be overtaken by one that has not.
 */
static void check_turns(uint32_t count)
{
	if (has_upgrade(count))
		return;
	for (uint32_t a = 0; a < count; a++) {
		const struct td_antman_job *job = &cluster.jobs[actions[a].job];

		for (uint32_t id = 0; id < JOBS && job->kind == TD_JOB_OPPORTUNISTIC; id++) {
			const struct td_antman_job *other = &cluster.jobs[id];

			CHECK(!(other->state == TD_JOB_QUEUED && other->tenant == job->tenant &&
				other->kind == TD_JOB_OPPORTUNISTIC && other->gpus <= job->gpus &&
				other->order < job->order &&
				(!is_on_one_node(other) || is_on_one_node(job))));
		}
	}
}

static void check_invariants(void)
{
	uint32_t held[TD_TENANTS_MAX] = {0}, reserved[TD_TENANTS_MAX] = {0}, holders = 0;
	const struct td_inventory *v = &cluster.gpus;

	for (uint32_t id = 0; id < JOBS; id++)
		check_job(id, held);
	for (uint32_t g = 0; g < v->gpu_count; g++) {
		holders += v->holder[g] != TD_NO_JOB;
		CHECK(!(v->unseen[g] >> TD_GUESTS) || v->holder[g] != TD_NO_JOB);
		CHECK(!((v->unseen[g] & ((1u << TD_GUESTS) - 1)) >> v->guest_count[g]));
		if (v->reserved[g] == TD_NO_JOB)
			continue;
		CHECK(v->holder[g] == TD_NO_JOB);
		reserved[cluster.jobs[v->reserved[g]].tenant]++;
	}
	for (uint32_t t = 0; t < cluster.tenant_count; t++) {
		CHECK_EQ(held[t], cluster.tenants[t].used);
		CHECK(held[t] + reserved[t] <= cluster.tenants[t].quota);
		holders -= held[t];
	}
	CHECK_EQ(holders, 0);
	check_below();
	for (uint32_t n = 0; n < v->node_count; n++) {
		uint32_t count = 0;

		for (uint32_t g = v->first_gpu[n]; g < v->first_gpu[n + 1]; g++)
			count += v->holder[g] == TD_NO_JOB && v->reserved[g] == TD_NO_JOB;
		CHECK_EQ(count, v->free_count[n]);
	}
}

/* Nobody who could start, starts later than somebody behind it in the same queue. */
static void check_order(uint32_t count)
{
	for (uint32_t a = 0; a < count; a++) {
		const struct td_antman_job *job = &cluster.jobs[actions[a].job];

		if (actions[a].verb == TD_ANTMAN_START_OPPORTUNISTIC)
			continue;
		for (uint32_t id = 0; id < JOBS; id++) {
			const struct td_antman_job *other = &cluster.jobs[id];

			CHECK(!(other->state == TD_JOB_QUEUED && other->tenant == job->tenant &&
				other->kind == TD_JOB_GUARANTEED &&
				other->submit_ns < job->submit_ns));
		}
	}
}

TEST(random_events_never_break_an_invariant)
{
	uint64_t seed = 47;

	for (int run = 0; run < 30; run++) {
		const uint32_t nodes[] = {8, 8, 4, 2, 16, 1, 8}, quotas[] = {20, 12, 10, 0};

		start_cluster(nodes, 7, quotas, 4);
		for (int event = 0; event < 1500; event++) {
			uint32_t job = random_below(&seed, JOBS), count;
			bool upgraded;
			struct td_antman_request request = {
				.tenant = random_below(&seed, 4),
				.gpus = random_below(&seed, 4) ? 1 + random_below(&seed, 4)
							       : 1 + random_below(&seed, 24),
				.kind = (enum td_job_kind)random_below(&seed, TD_JOB_KIND_N),
				.same_node = random_below(&seed, 2),
			};

			now += random_below(&seed, 100) * S;
			if (random_below(&seed, 3))
				(void)td_antman_submit(&cluster, job, &request, now);
			else
				td_antman_finish(&cluster, job, now);
			td_antman_set_load(
				&cluster, random_below(&seed, 47), random_below(&seed, 1000001));
			/* With room for one action the queue is not looked through to its end. */
			count = td_antman_step(&cluster, now += S, actions, 1);
			check_order(count);
			check_turns(count);
			check_invariants();
			count = step();
			CHECK(count < ACTIONS);
			check_order(count);
			check_turns(count);
			check_nobody_is_missed(count);
			check_invariants();
			/*
			 * A reservation that a later tenant gives up lets an earlier one's guest be
			 * upgraded, and an upgrade frees room for a guest. Nothing more follows.
			 */
			upgraded = has_upgrade(count);
			count = td_antman_step(&cluster, now, actions, ACTIONS);
			CHECK(count == 0 || upgraded || actions[0].verb == TD_ANTMAN_UPGRADE);
			check_invariants();
			if (count)
				CHECK_EQ(td_antman_step(&cluster, now, actions, ACTIONS), 0);
		}
	}
}
