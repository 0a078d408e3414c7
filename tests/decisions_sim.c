/* The models' figures and what the simulator's schedulers do with them; see decisions.c. */

#include "decisions.h"
#include "model/batch_queue.h"
#include "model/contention.h"
#include "sim/base/random.h"
#include "sim/engine/metrics.h"
#include "sim/scheduler/schedulers.h"

#define KINDS    3u
#define JOBS     80u
#define SERVED   3u
#define RATES    8u
#define HOUR_NS  3600000000000ull
#define SERVICES 2u

static struct td_profiles profiles;
static struct td_sim_job jobs[JOBS];
static struct td_cluster cluster;
static struct td_service_kind kinds[SERVICES];
static struct td_service list[SERVED];
static float rates[SERVED * RATES];
static struct td_curve hyperbolas[SERVICES][TD_SELECTOR_BATCHES];
static struct td_batch_table table;

static void make_kinds(void)
{
	static const double shares[] = {0.1, 0.25, 0.4, 0.55, 0.75, 0.9};

	profiles.count = KINDS;
	for (uint32_t k = 0; k < KINDS + SERVICES; k++) {
		struct td_contender *kind =
			k < KINDS ? &profiles.profiles[k].contender : &kinds[k - KINDS].contender;

		*kind = td_contender_neutral;
		kind->sensitivity = 0.2 + 0.3 * k;
		kind->pressure = 1.4 - 0.25 * k;
		kind->host = 0.05 * k;
		kind->serial = 0.3 + 0.1 * k;
		kind->demand = 0.25 + 0.12 * k;
	}
	for (uint32_t k = 0; k < KINDS; k++)
		profiles.profiles[k].told_demand = profiles.profiles[k].contender.demand;
	for (uint32_t k = 0; k < SERVICES; k++) {
		struct td_service_kind *kind = &kinds[k];

		kind->told_demand = kind->contender.demand;
		kind->least_s = 0.004;
		kind->fixed_s = 0.002;
		kind->each_s = 0.0003 * (1 + k);
		kind->objective_s = 0.3;
		for (uint32_t b = 0; b < TD_SELECTOR_BATCHES; b++) {
			double y[6];

			for (int s = 0; s < 6; s++)
				y[s] = td_service_batch_s(kind, td_selector_batches[b]) *
				       (0.3 + 0.7 / shares[s]);
			(void)td_curve_fit_hyperbola(shares, y, 6, &hyperbolas[k][b]);
		}
	}
}

static void make_jobs(uint32_t most_gpus)
{
	uint64_t random = 11, at_ns = 0;

	for (uint32_t i = 0; i < JOBS; i++) {
		struct td_sim_job *job = &jobs[i];

		*job = (struct td_sim_job){.host_cost = 4};
		at_ns += td_random_below(&random, 240) * 1000000000ull;
		job->submit_ns = at_ns;
		job->work_s = 30 + td_random_below(&random, 3000);
		job->gpus = 1u << td_random_below(&random, 3);
		job->gpus = job->gpus < most_gpus ? job->gpus : most_gpus;
		job->profile = td_random_below(&random, KINDS);
		job->class =
			td_random_below(&random, 2) ? TD_CLASS_GUARANTEED : TD_CLASS_BESTEFFORT;
		job->tenant = td_random_below(&random, 3);
		job->memory_bytes = (uint64_t)(1 + td_random_below(&random, 14)) << 30;
	}
}

static void run_sched(const struct td_sched *sched, bool serves, bool proportional)
{
	static const uint32_t nodes[] = {4, 4};
	const struct td_sim_knowledge knowledge = {
		.hyperbolas = (const struct td_curve(*)[TD_SELECTOR_BATCHES])hyperbolas};
	struct td_services services = {kinds, SERVICES, list, SERVED, rates, RATES, HOUR_NS};
	const struct td_cluster_options options = {
		.contention = {.proportional = proportional, .capped_pressure = 1},
		.costs = {.restart_s = 30, .repartition_s = 5, .checkpoint_s = 600},
		.services = serves ? &services : NULL,
		.table = &table,
		.knowledge = &knowledge,
		.until_s = 36000};
	double metrics[TD_METRIC_N];
	char name[64];
	int r;

	make_jobs(serves ? 2 : 4);
	for (uint32_t s = 0; s < SERVED; s++) {
		list[s] = (struct td_service){.gpu = 3 * s, .kind = s % SERVICES};
		for (uint32_t i = 0; i < RATES; i++)
			rates[s * RATES + i] = (float)(100 + 40 * ((s + i) % 2));
	}
	hash_begin();
	r = td_cluster_init(
		&cluster, &options, &profiles, nodes, 2, 16ull << 30, jobs, JOBS, sched);
	PUT(r);
	if (!r) {
		td_cluster_run(&cluster);
		(void)td_metrics_of(&cluster, metrics, NULL);
		for (uint32_t i = 0; i < JOBS; i++) {
			PUT(jobs[i].status);
			PUT(jobs[i].start_ns);
			PUT(jobs[i].end_ns);
			PUT(jobs[i].evictions);
			PUT(jobs[i].moves);
		}
		for (int m = 0; m < TD_METRIC_N; m++)
			PUT(metrics[m]);
		for (uint32_t s = 0; serves && s < SERVED; s++)
			PUT(list[s].late_s);
		td_cluster_deinit(&cluster);
	}
	snprintf(name, sizeof(name), "sim/%s%s%s", sched->name, serves ? "/services" : "",
		proportional ? "/proportional" : "");
	end(name);
}

static void run_models(void)
{
	static struct td_batch_queue_work work;
	const struct td_contention contention = {.capped_pressure = 0.7};
	double speeds[KINDS];
	struct td_contender company[KINDS];

	hash_begin();
	for (uint32_t batch = 1; batch <= 64; batch *= 8) {
		for (double rate = 20; rate < 500; rate *= 2.3) {
			const struct td_batch_queue queue = {rate, batch, 0.003 + 0.0011 * batch};

			PUT(td_batch_queue_latency_s(&queue, 0.99, &work));
			PUT(td_batch_queue_late(&queue, 0.1, &work));
		}
	}
	end("model/batch_queue");
	hash_begin();
	for (int round = 0; round < 400; round++) {
		for (uint32_t k = 0; k < KINDS; k++) {
			company[k] = profiles.profiles[k].contender;
			company[k].share = 0.1 + 0.9 * (round % (k + 3)) / (k + 3);
			company[k].duty = 0.05 + 0.95 * (round % (k + 5)) / (k + 5);
		}
		td_contention_speeds(&contention, company, KINDS, speeds);
		for (uint32_t k = 0; k < KINDS; k++)
			PUT(speeds[k]);
		PUT(td_spilled_speed(1000, (uint64_t)round * 2, 0.4));
		PUT(td_thrash_slowdown(1000 + (uint64_t)round * 7, 1700, 8));
	}
	end("model/contention");
}

void decide_simulations(void)
{
	static const struct td_sched *const alone[] = {&td_sched_fifo, &td_sched_preempt,
		&td_sched_gandiva, &td_sched_antman, &td_sched_tandem, &td_sched_round_robin,
		&td_sched_nvshare, &td_sched_dcuda, &td_sched_optimum};
	static const struct td_sched *const beside[] = {&td_sched_antman, &td_sched_tandem,
		&td_sched_gslice, &td_sched_gpulets, &td_sched_even};

	make_kinds();
	run_models();
	for (size_t s = 0; s < sizeof(alone) / sizeof(alone[0]); s++)
		for (int proportional = 0; proportional < 2; proportional++)
			run_sched(alone[s], false, proportional);
	for (size_t s = 0; s < sizeof(beside) / sizeof(beside[0]); s++)
		run_sched(beside[s], true, false);
}
