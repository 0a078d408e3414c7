/*
 * Services in the engine: their time is counted, tandem holds feasible objectives, and schedulers
 * that need knowledge refuse without.
 */
#include "test.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "base/time.h"
#include "sim/base/random.h"
#include "sim/scheduler/schedulers.h"

#define JOBS      60u
#define SERVICES  4u
#define INTERVALS 6u

static struct td_profiles profiles;
static struct td_sim_job jobs[JOBS];
static struct td_cluster cluster;
static struct td_service list[SERVICES];
static float rates[SERVICES * INTERVALS];
static struct td_service_kind kinds[1];
static struct td_curve hyperbolas[1][TD_SELECTOR_BATCHES], pieces[1][TD_SELECTOR_BATCHES];
static struct td_services services;
static struct td_sim_knowledge knowledge;
static const uint32_t nodes[] = {4, 4};
/* A figure of a queue is the same for all, and costs milliseconds. */
static struct td_batch_table table;

/* The number of allocations so far, and that of the one that fails. */
static unsigned allocations, failing = UINT_MAX;

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
	return allocations++ == failing ? NULL : __real_calloc(count, size);
}

static void begin(double rate)
{
	static const double shares[] = {0.1, 0.25, 0.4, 0.55, 0.75, 0.9};

	td_profiles_generic(&profiles);
	kinds[0] = (struct td_service_kind){.name = "one",
		.contender = td_contender_neutral,
		.least_s = 0.004,
		.fixed_s = 0.002,
		.each_s = 0.0003,
		.objective_s = 0.12};
	kinds[0].contender.serial = 0.3;
	kinds[0].contender.sensitivity = 0.5;
	kinds[0].contender.pressure = 0.5;
	for (uint32_t b = 0; b < TD_SELECTOR_BATCHES; b++) {
		double y[6];

		for (int s = 0; s < 6; s++)
			y[s] = td_service_batch_s(&kinds[0], td_selector_batches[b]) *
			       (0.3 + 0.7 / shares[s]);
		CHECK_EQ(td_curve_fit_hyperbola(shares, y, 6, &hyperbolas[0][b]), 0);
		CHECK_EQ(td_curve_fit_piecewise(shares, y, 6, &pieces[0][b]), 0);
	}
	for (uint32_t s = 0; s < SERVICES; s++) {
		list[s] = (struct td_service){.gpu = 2 * s};
		for (uint32_t i = 0; i < INTERVALS; i++)
			rates[s * INTERVALS + i] =
				(float)(rate * (1 + 0.2 * ((s + i) % INTERVALS)));
	}
	services =
		(struct td_services){kinds, 1, list, SERVICES, rates, INTERVALS, 600 * TD_NS_PER_S};
	knowledge = (struct td_sim_knowledge){
		.hyperbolas = (const struct td_curve(*)[TD_SELECTOR_BATCHES])hyperbolas,
		.pieces = (const struct td_curve(*)[TD_SELECTOR_BATCHES])pieces};
	for (uint32_t i = 0; i < JOBS; i++)
		jobs[i] = (struct td_sim_job){.submit_ns = i * 60 * TD_NS_PER_S,
			.work_s = 2000,
			.gpus = 1,
			.class = TD_CLASS_BESTEFFORT};
}

static int start_some(const struct td_sched *sched, const uint32_t *on, uint32_t count)
{
	const struct td_cluster_options options = {.contention = {.capped_pressure = 1},
		.costs = {.restart_s = 30, .repartition_s = 5},
		.services = &services,
		.table = &table,
		.knowledge = &knowledge};

	return td_cluster_init(
		&cluster, &options, &profiles, on, 2, 16ull << 30, jobs, count, sched);
}

static int start(const struct td_sched *sched)
{
	return start_some(sched, nodes, JOBS);
}

static double sum_ct(void)
{
	double sum = 0;

	for (uint32_t i = 0; i < JOBS; i++) {
		CHECK_EQ(jobs[i].status, TD_SIM_DONE);
		sum += (double)(jobs[i].end_ns - jobs[i].submit_ns) * 1e-9;
	}
	return sum;
}

TEST(all_time_of_a_service_is_counted_and_work_is_conserved)
{
	static const struct td_sched *const all[] = {&td_sched_fifo, &td_sched_antman,
		&td_sched_tandem, &td_sched_gslice, &td_sched_gpulets, &td_sched_bound,
		&td_sched_nvshare, &td_sched_dcuda};

	for (int s = 0; s < 8; s++) {
		double work = JOBS * 2000., lasted;

		begin(200);
		CHECK_EQ(start(all[s]), 0);
		td_cluster_run(&cluster);
		(void)sum_ct();
		/* Nobody works again for nothing: each stop costs its restart, and that alone. */
		CHECK(fabs(cluster.counts.restart_s - 30. * (double)cluster.counts.suspensions) <
			1e-6);
		CHECK((all[s] == &td_sched_tandem) == (cluster.counts.suspensions > 0));
		work += cluster.counts.move_s + cluster.counts.repartition_s +
			cluster.counts.restart_s;
		if (!(fabs(cluster.counts.work_gpu_s / work - 1) < 1e-6))
			test_fail(__FILE__, __LINE__, "%s: %g GPU-seconds, expected %g",
				all[s]->name, cluster.counts.work_gpu_s, work);
		lasted = (double)(cluster.now_ns - cluster.first_ns) * 1e-9;
		for (uint32_t k = 0; k < SERVICES; k++) {
			/* Rounds of a tuning come on top. */
			CHECK(list[k].total_s >= lasted * (1 - 1e-9));
			CHECK(list[k].total_s <= lasted + (double)cluster.counts.rounds);
			CHECK(list[k].late_s <= list[k].total_s);
		}
		td_cluster_deinit(&cluster);
	}
}

/*
 * Rates are constant, and a guest slows a service more than is expected of a company never seen: a
 * GPU with a guest leaves less than an empty one seems to.
 */
TEST(tandem_does_not_send_guests_from_one_empty_place_to_the_next)
{
	const uint32_t three_free[] = {4, 3};

	begin(1400);
	kinds[0].contender.sensitivity = 1;
	for (uint32_t i = 0; i < SERVICES * INTERVALS; i++)
		rates[i] = 1400;
	for (uint32_t i = 0; i < 6; i++)
		jobs[i].work_s = 20000;
	CHECK_EQ(start_some(&td_sched_tandem, three_free, 6), 0);
	td_cluster_run(&cluster);
	for (uint32_t i = 0; i < 6; i++)
		CHECK_EQ(jobs[i].status, TD_SIM_DONE);
	CHECK(cluster.counts.moves <= 2 * 6);
	td_cluster_deinit(&cluster);
}

static double none[TD_MUDI_INPUTS], ones[TD_MUDI_INPUTS], slope[TD_MUDI_INPUTS + 1];
static const double layers[TD_PROFILES_MAX][TD_MUDI_LAYERS];
static const struct td_predictor model = {.form = TD_PREDICTOR_LINEAR,
	.inputs = TD_MUDI_INPUTS,
	.shift = none,
	.scale = ones,
	.target_scale = 1,
	.coefficients = slope,
	.coefficient_count = TD_MUDI_INPUTS + 1};
static const struct td_mudi_service known = {&model, &model, &model, &model, 0, 0, 0, NULL, 0};

static void begin_mudi(double rate)
{
	for (uint32_t i = 0; i < TD_MUDI_INPUTS; i++)
		ones[i] = 1;
	slope[TD_MUDI_INPUTS] = -0.05;
	begin(rate);
	knowledge.mudi = &known;
	knowledge.layers = layers;
	knowledge.profiled = profiles.count;
}

/*
 * P99 is longer than a batch's filling and its time, which is all that Mudi's curves know: the
 * monitor's figure has to change the tuning.
 */
TEST(mudi_is_tuned_again_until_the_objective_is_held)
{
	begin_mudi(300);
	CHECK_EQ(start(&td_sched_mudi), 0);
	td_cluster_run(&cluster);
	(void)sum_ct();
	CHECK(td_cluster_late(&cluster, TD_SERVICE_NONE) < 0.005);
	td_cluster_deinit(&cluster);
}

TEST(a_start_that_lacks_memory_says_so_whichever_allocation_fails)
{
	unsigned needed;

	begin_mudi(300);
	allocations = 0;
	CHECK_EQ(start(&td_sched_mudi), 0);
	needed = allocations;
	td_cluster_deinit(&cluster);
	CHECK(needed > SERVICES);
	for (unsigned i = 0; i < needed; i++) {
		allocations = 0;
		failing = i;
		CHECK_EQ(start(&td_sched_mudi), -ENOMEM);
		failing = UINT_MAX;
	}
}

static uint32_t most_beside, jobs_over;
static const struct td_sched *watched;

/* Does what the scheduler would, and counts the jobs beside a service. */
static void decide_and_count(struct td_cluster *of)
{
	watched->decide(of);
	for (uint32_t s = 0; s < SERVICES; s++) {
		uint32_t count = of->gpus[list[s].gpu].count;

		most_beside = count > most_beside ? count : most_beside;
		jobs_over += count > TD_SELECTOR_TASKS_MAX;
	}
}

TEST(mudi_has_one_task_beside_a_service_or_three_when_it_may)
{
	static const struct {
		const struct td_sched *sched;
		uint32_t most;
	} cases[] = {{&td_sched_mudi, 1}, {&td_sched_mudi_more, 3}, {&td_sched_mudi_more_exact, 3},
		{&td_sched_even, 3}};

	for (int c = 0; c < 4; c++) {
		struct td_sched sched = *cases[c].sched;

		begin_mudi(200);
		for (uint32_t i = 0; i < JOBS; i++)
			jobs[i].submit_ns = i * TD_NS_PER_S;
		watched = cases[c].sched;
		sched.decide = decide_and_count;
		most_beside = jobs_over = 0;
		CHECK_EQ(start(&sched), 0);
		td_cluster_run(&cluster);
		(void)sum_ct();
		CHECK_EQ(most_beside, cases[c].most);
		CHECK_EQ(jobs_over, 0);
		if (cases[c].sched != &td_sched_even)
			CHECK(td_cluster_late(&cluster, TD_SERVICE_NONE) < 0.005);
		td_cluster_deinit(&cluster);
	}
}

/*
 * Batches grow with the rate, and with them the service's memory; the jobs beside it have 12 of the
 * 16 GiB.
 */
TEST(memory_moves_to_the_host_when_the_service_needs_it_and_that_takes_its_time)
{
	struct td_cluster_options options = {.contention = {.capped_pressure = 1},
		.costs = {.repartition_s = 0, .link_bytes_s = 1e9},
		.services = &services,
		.knowledge = &knowledge};
	double work = 0, swapped = 0, ct[2];

	for (int slow = 0; slow < 2; slow++) {
		begin(100);
		kinds[0].memory_bytes = 2ull << 30;
		kinds[0].batch_bytes = 64ull << 20;
		for (uint32_t s = 0; s < SERVICES * INTERVALS; s++)
			rates[s] = s % 2 ? 100 : 1500;
		for (uint32_t i = 0; i < JOBS; i++)
			jobs[i].memory_bytes = 12ull << 30;
		options.costs.link_bytes_s = slow ? 1e8 : 1e12;
		CHECK_EQ(td_cluster_init(&cluster, &options, &profiles, nodes, 2, 16ull << 30, jobs,
				 JOBS, &td_sched_gslice),
			0);
		td_cluster_run(&cluster);
		ct[slow] = sum_ct();
		work = JOBS * 2000. + cluster.counts.swap_s;
		CHECK(fabs(cluster.counts.work_gpu_s / work - 1) < 1e-6);
		CHECK(cluster.counts.swaps > 10);
		CHECK(fabs(cluster.counts.swap_s * options.costs.link_bytes_s /
				      cluster.counts.swapped_bytes -
			      1) < 1e-6);
		for (uint32_t s = 0; s < SERVICES; s++) {
			swapped += list[s].swapped_s;
			CHECK(list[s].swapped_s <= list[s].guest_s);
		}
		td_cluster_deinit(&cluster);
	}
	CHECK(swapped > 0);
	CHECK(ct[1] > ct[0]);
}

TEST(a_service_has_its_gpu_and_fifo_leaves_it_alone)
{
	begin(200);
	CHECK_EQ(start(&td_sched_fifo), 0);
	td_cluster_run(&cluster);
	CHECK(td_cluster_late(&cluster, TD_SERVICE_NONE) <= 0);
	for (uint32_t i = 0; i < JOBS; i++)
		CHECK(cluster.places[jobs[i].place] % 2 == 1);
	td_cluster_deinit(&cluster);
}

TEST(a_service_that_cannot_keep_up_is_late_all_the_time)
{
	begin(20000);
	CHECK_EQ(start(&td_sched_fifo), 0);
	td_cluster_run(&cluster);
	CHECK(td_cluster_late(&cluster, TD_SERVICE_NONE) >= 1 - 1e-9);
	td_cluster_deinit(&cluster);
}

/*
 * A bound of a policy has the truth as predictions and the policy's own rules, so it lies between
 * the policy and the bound of all.
 */
TEST(mudis_rules_by_the_truth_keep_mudis_two_conditions)
{
	double truth, bound;

	for (double until_s = 900; until_s < 3600; until_s += 1300) {
		uint32_t shared = 0;

		begin(300);
		CHECK_EQ(start(&td_sched_mudi_truth), 0);
		cluster.options.until_s = until_s;
		td_cluster_run(&cluster);
		for (uint32_t s = 0; s < SERVICES; s++) {
			const struct td_split *split = &list[s].split;
			double rate = list[s].seen.rate_per_s,
			       batch_s = list[s].seen.slowdown *
					 td_service_batch_s(&kinds[0], split->batch);

			if (!cluster.gpus[list[s].gpu].count || split->paused)
				continue;
			shared++;
			CHECK((split->batch - 1) / rate + batch_s <= kinds[0].objective_s);
			CHECK(rate * batch_s / split->batch <= 0.8);
		}
		CHECK(shared > 0);
		td_cluster_deinit(&cluster);
	}
	begin(300);
	CHECK_EQ(start(&td_sched_mudi_truth), 0);
	td_cluster_run(&cluster);
	truth = sum_ct();
	td_cluster_deinit(&cluster);
	begin(300);
	CHECK_EQ(start(&td_sched_bound), 0);
	td_cluster_run(&cluster);
	bound = sum_ct();
	td_cluster_deinit(&cluster);
	CHECK(truth > 0.9 * bound);
}

/* Returns the sum of the completion times of jobs that are all alike. */
static double run_alike(const struct td_sched *sched, double work_s, double late_max)
{
	double sum;

	begin(300);
	for (uint32_t i = 0; i < JOBS; i++) {
		jobs[i].work_s = work_s;
		jobs[i].submit_ns = (uint64_t)(i * work_s * 0.03 * TD_NS_PER_S);
	}
	CHECK_EQ(start(sched), 0);
	td_cluster_run(&cluster);
	sum = sum_ct();
	CHECK(td_cluster_late(&cluster, TD_SERVICE_NONE) <= late_max);
	return sum;
}

/*
 * The bound serves jobs in their order. tandem does so among jobs of a level of attained service:
 * those that end within the first one (300 s here) stop nobody. Jobs that are longer and all alike
 * are the worst case of serving the least attained service first: they wait for each other by turns
 * and end late together. That costs less than half as much again, and each job is stopped at most
 * once for each level that it reaches, which are three.
 */
TEST(tandem_holds_the_objective_and_is_nearly_as_fast_as_the_bound)
{
	double tandem, bound, turns;

	tandem = run_alike(&td_sched_tandem, 100, 0.01);
	CHECK(cluster.counts.beside_starts > 0);
	CHECK_EQ(cluster.counts.suspensions, 0);
	td_cluster_deinit(&cluster);
	bound = run_alike(&td_sched_bound, 100, 0);
	td_cluster_deinit(&cluster);
	CHECK(tandem < 1.1 * bound);
	tandem = run_alike(&td_sched_tandem, 2000, 0.01);
	CHECK(cluster.counts.beside_starts > 0);
	for (uint32_t i = 0; i < JOBS; i++)
		CHECK(jobs[i].suspensions <= 3);
	td_cluster_deinit(&cluster);
	bound = run_alike(&td_sched_bound, 2000, 0);
	td_cluster_deinit(&cluster);
	CHECK(tandem < 1.5 * bound);
	begin(300);
	CHECK_EQ(start(&td_sched_nvshare), 0);
	td_cluster_run(&cluster);
	turns = td_cluster_late(&cluster, TD_SERVICE_NONE);
	CHECK(turns > 0.5);
	td_cluster_deinit(&cluster);
}

TEST(a_changed_share_costs_the_job_beside_it)
{
	begin(300);
	CHECK_EQ(start(&td_sched_gslice), 0);
	td_cluster_run(&cluster);
	CHECK(cluster.counts.repartitions > 0);
	CHECK(cluster.counts.repartition_s >= 5);
	td_cluster_deinit(&cluster);
}

TEST(who_needs_to_know_more_refuses)
{
	begin(200);
	knowledge.hyperbolas = NULL;
	knowledge.pieces = NULL;
	CHECK_EQ(start(&td_sched_tandem), -ENODATA);
	CHECK_EQ(start(&td_sched_gpulets), -ENODATA);
	CHECK_EQ(start(&td_sched_mudi), -ENODATA);
	CHECK_EQ(start(&td_sched_muxflow), -ENODATA);
	list[0].gpu = 77;
	CHECK_EQ(start(&td_sched_fifo), -EINVAL);
}

/*
 * The effect of a service and a kind of job that never met decides nothing: with other numbers
 * behind the same profiles the first choice is the same.
 */
TEST(what_a_service_would_suffer_changes_no_first_decision)
{
	static const struct td_sched *const all[] = {&td_sched_antman, &td_sched_tandem,
		&td_sched_gslice, &td_sched_gpulets, &td_sched_nvshare, &td_sched_dcuda};

	for (int s = 0; s < 6; s++) {
		uint32_t places[2];

		for (int strong = 0; strong < 2; strong++) {
			begin(200);
			profiles.profiles[0].contender.pressure = strong ? 3 : 0.1;
			profiles.profiles[0].contender.sensitivity = strong ? 0.1 : 3;
			kinds[0].contender.sensitivity = strong ? 2 : 0.1;
			jobs[1].submit_ns = 3600 * TD_NS_PER_S;
			for (uint32_t i = 2; i < JOBS; i++)
				jobs[i].submit_ns = jobs[1].submit_ns;
			CHECK_EQ(start(all[s]), 0);
			cluster.options.until_s = 1;
			td_cluster_run(&cluster);
			CHECK_EQ(jobs[0].status, TD_SIM_RUNNING);
			places[strong] = cluster.places[jobs[0].place];
			td_cluster_deinit(&cluster);
		}
		CHECK_EQ(places[0], places[1]);
	}
}

TEST(a_batch_takes_longer_beside_others_and_under_a_smaller_share)
{
	const struct td_contention contention = {.capped_pressure = 1};
	struct td_split split = {32, 1, 1, 1, false};
	struct td_service_seen alone, beside, capped;
	struct td_contender guest;
	double speed;

	begin(200);
	guest = profiles.profiles[0].contender;
	td_service_truth(&contention, kinds, &split, 300, &guest, 0, &table, &speed, &alone);
	CHECK(fabs(alone.slowdown - 1) < 1e-9);
	td_service_truth(&contention, kinds, &split, 300, &guest, 1, &table, &speed, &beside);
	CHECK(beside.slowdown > 1.3 && beside.p99_s > alone.p99_s && speed < 1);
	split.service_share = split.guest_share = 0.5;
	td_service_truth(&contention, kinds, &split, 300, &guest, 1, &table, &speed, &capped);
	CHECK(capped.slowdown > 1.7);
	split.paused = true;
	td_service_truth(&contention, kinds, &split, 300, &guest, 1, &table, &speed, &capped);
	CHECK(fabs(capped.slowdown - (0.3 + 0.7 / 0.5)) < 1e-9 && speed <= 0);
}
