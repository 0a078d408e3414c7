/*
 * No scheduler uses what it could not know: how long jobs will take, which will come, how fast
 * companies are that were never seen. Each of these is varied with all else the same, and all
 * earlier decisions have to be the same. Three bounds know the companies: with them the test must
 * see the difference. And each gives back its memory.
 */
#include "unit/sim/leaks_world.h"

#include <stdlib.h>

#include "base/time.h"
#include "policy/cluster/muxflow_cluster.h"
#include "policy/system/muxflow.h"
#include "sim/base/random.h"
#include "sim/scheduler/schedulers.h"

#define JOBS      40u
#define GPUS      8u
#define SERVICES  5u
#define KINDS     2u
#define TASKS     3u
#define INTERVALS 12u
#define HORIZON   (7200 * TD_NS_PER_S)
#define HORIZON_S 7200.

static struct td_profiles profiles;
static struct td_sim_job jobs[JOBS];
static struct td_cluster cluster;
static struct td_service list[SERVICES];
static struct td_services services;
static struct td_service_kind kinds[KINDS];
static struct td_sim_knowledge knowledge;
static float rates[SERVICES * INTERVALS];
static struct td_curve hyperbolas[KINDS][TD_SELECTOR_BATCHES], pieces[KINDS][TD_SELECTOR_BATCHES];
static double layers[TASKS][TD_MUDI_LAYERS];
static const uint32_t nodes[] = {4, 4};

/* The decisions about a job and about a service. */
struct decision {
	enum td_sim_status status;
	bool guest;
	uint32_t evictions, moves, gpus[GPUS];
	uint64_t start_ns;
};

struct decisions {
	struct decision jobs[JOBS];
	struct td_split splits[SERVICES];
	uint32_t running;
};

/* All that are not in td_scheds. */
static const struct td_sched *const beside[] = {&td_sched_gslice, &td_sched_gpulets,
	&td_sched_muxflow, &td_sched_mudi, &td_sched_mudi_more, &td_sched_even,
	&td_sched_round_robin, &td_sched_nvshare, &td_sched_dcuda, &td_sched_bound,
	&td_sched_mudi_truth, &td_sched_mudi_exact, &td_sched_mudi_more_exact, &td_sched_optimum};

#define BESIDE (sizeof(beside) / sizeof(beside[0]))

/* All there are; NULL: no more. */
static const struct td_sched *sched_at(uint32_t at)
{
	uint32_t n = BESIDE;

	if (at < BESIDE)
		return beside[at];
	for (uint32_t s = 0; td_scheds[s]; s++)
		if (td_scheds[s] != &td_sched_optimum && n++ == at)
			return td_scheds[s];
	return NULL;
}

static bool knows_companies(const struct td_sched *sched)
{
	return sched == &td_sched_bound || sched == &td_sched_mudi_truth ||
	       sched == &td_sched_mudi_exact || sched == &td_sched_mudi_more_exact ||
	       sched == &td_sched_optimum;
}

/* --- what is known: made up, and the same whatever the truth is --- */

static const struct td_predictor *make_predictor(
	double *coefficients, uint32_t inputs, double bias, double first, double last)
{
	static struct td_predictor predictors[LEAKS_INPUTS_MAX];
	static uint32_t used;
	struct td_predictor *predictor = &predictors[used++ % LEAKS_INPUTS_MAX];

	*predictor = leaks_predictor(coefficients, inputs, bias, first, last);
	return predictor;
}

static void make_knowledge(void)
{
	static const double shares[] = {0.1, 0.25, 0.4, 0.55, 0.75, 0.9};
	static struct td_mudi_service mudi[KINDS];
	static double numbers[4 * KINDS + 1][LEAKS_INPUTS_MAX];

	for (uint32_t k = 0; k < KINDS; k++) {
		double(*own)[LEAKS_INPUTS_MAX] = numbers + 4 * k;

		mudi[k] = (struct td_mudi_service){
			make_predictor(own[0], TD_MUDI_INPUTS, -0.01, k ? -0.004 : -0.001, -0.002),
			make_predictor(own[1], TD_MUDI_INPUTS, -0.001, 0, -0.0002),
			make_predictor(own[2], TD_MUDI_INPUTS, 0.2, 0.02, 0.01),
			make_predictor(own[3], TD_MUDI_INPUTS, 0.004, 0.001, 0.002), 0, 0, 0, NULL,
			0};
		for (uint32_t b = 0; b < TD_SELECTOR_BATCHES; b++) {
			double y[6];

			for (int s = 0; s < 6; s++)
				y[s] = td_service_batch_s(&kinds[k], td_selector_batches[b]) *
				       (0.3 + 0.7 / shares[s]);
			CHECK_EQ(td_curve_fit_hyperbola(shares, y, 6, &hyperbolas[k][b]), 0);
			CHECK_EQ(td_curve_fit_piecewise(shares, y, 6, &pieces[k][b]), 0);
		}
	}
	for (uint32_t t = 0; t < TASKS; t++)
		layers[t][0] = 1 + t;
	knowledge = (struct td_sim_knowledge){.mudi = mudi,
		.layers = (const double(*)[TD_MUDI_LAYERS])layers,
		.profiled = TASKS,
		.muxflow = make_predictor(numbers[4 * KINDS], TD_MUXFLOW_INPUTS, 0.9, -0.4, 0.1),
		.hyperbolas = (const struct td_curve(*)[TD_SELECTOR_BATCHES])hyperbolas,
		.pieces = (const struct td_curve(*)[TD_SELECTOR_BATCHES])pieces};
}

/* --- the world --- */

static void begin(bool other_companies)
{
	uint64_t seed = 5;

	profiles.count = TASKS;
	for (uint32_t t = 0; t < TASKS; t++) {
		profiles.profiles[t].contender = leaks_contender(t, TASKS + KINDS, other_companies);
		profiles.profiles[t].told_demand = leaks_demand(t); /* whatever the truth is */
	}
	for (uint32_t k = 0; k < KINDS; k++)
		kinds[k] = (struct td_service_kind){.name = "kind",
			.contender = leaks_contender(TASKS + k, TASKS + KINDS, other_companies),
			.told_demand = leaks_demand(TASKS + k),
			.least_s = 0.004,
			.fixed_s = 0.002,
			.each_s = 0.0003 * (1 + k),
			.objective_s = 0.3};
	make_knowledge();
	for (uint32_t s = 0; s < SERVICES; s++) {
		list[s] = (struct td_service){.gpu = s, .kind = s % KINDS};
		for (uint32_t i = 0; i < INTERVALS; i++)
			rates[s * INTERVALS + i] = (float)(100 + 30 * ((s + i) % 5));
	}
	services = (struct td_services){
		kinds, KINDS, list, SERVICES, rates, INTERVALS, 600 * TD_NS_PER_S};
	for (uint32_t i = 0; i < JOBS; i++)
		jobs[i] = (struct td_sim_job){.submit_ns = i * 300 * TD_NS_PER_S,
			.work_s = 3 * HORIZON_S + 60 * i,
			.gpus = 1 + (td_random_below(&seed, 6) == 0),
			.profile = td_random_below(&seed, TASKS),
			.class = td_random_below(&seed, 3) ? TD_CLASS_BESTEFFORT
							   : TD_CLASS_GUARANTEED,
			.tenant = td_random_below(&seed, 2),
			.memory_bytes = (uint64_t)(1 + td_random_below(&seed, 9)) << 30,
			.host_cost =
				other_companies ? 8 : 2}; /* what its memory on the host costs it */
}

static struct td_batch_table table; /* of all runs: it is costly, and says the same always */

static void run(const struct td_sched *sched, double until_s, struct decisions *ret)
{
	const struct td_cluster_options options = {.contention = {.capped_pressure = 1},
		.costs = {.restart_s = 30, .repartition_s = 5, .checkpoint_s = 600},
		.services = &services,
		.table = &table,
		.knowledge = &knowledge,
		.until_s = until_s};

	memset(ret, 0, sizeof(*ret));
	CHECK_EQ(td_cluster_init(
			 &cluster, &options, &profiles, nodes, 2, 16ull << 30, jobs, JOBS, sched),
		0);
	td_cluster_run(&cluster);
	for (uint32_t i = 0; i < JOBS; i++) {
		struct decision *decision = &ret->jobs[i];

		decision->status = jobs[i].status;
		decision->start_ns = jobs[i].start_ns;
		decision->evictions = jobs[i].evictions;
		decision->moves = jobs[i].moves;
		if (jobs[i].status != TD_SIM_RUNNING)
			continue;
		decision->guest = jobs[i].guest;
		for (uint32_t k = 0; k < jobs[i].gpus; k++)
			decision->gpus[k] = 1 + cluster.places[jobs[i].place + k];
		ret->running++;
	}
	for (uint32_t s = 0; s < SERVICES; s++) {
		const struct td_split *split = &list[s].split;

		ret->splits[s].batch = split->batch;
		ret->splits[s].service_share = split->service_share;
		ret->splits[s].guest_share = split->guest_share;
		ret->splits[s].guest_duty = split->guest_duty;
		ret->splits[s].paused = split->paused;
	}
	td_cluster_deinit(&cluster);
}

static void check_same(const struct td_sched *sched, const struct decisions *a,
	const struct decisions *b, bool splits)
{
	if (a->running < 3)
		test_fail(__FILE__, __LINE__, "%s: only %u jobs run", sched->name, a->running);
	for (uint32_t i = 0; i < JOBS; i++)
		if (memcmp(&a->jobs[i], &b->jobs[i], sizeof(a->jobs[i])))
			test_fail(__FILE__, __LINE__, "%s decides otherwise of job %u", sched->name,
				i);
	for (uint32_t s = 0; splits && s < SERVICES; s++)
		if (memcmp(&a->splits[s], &b->splits[s], sizeof(a->splits[s])))
			test_fail(__FILE__, __LINE__, "%s divides the GPU of service %u otherwise",
				sched->name, s);
}

/* --- */

static struct decisions one, two;

/* Blocks that were allocated and not freed. The linker leads the calls here. */
static size_t blocks;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void __real_free(void *block);
void __wrap_free(void *block);

void *__wrap_malloc(size_t size)
{
	blocks++;
	return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	blocks++;
	return __real_calloc(count, size);
}

void *__wrap_realloc(void *block, size_t size)
{
	blocks += !block;
	return __real_realloc(block, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	blocks++;
	return __real_aligned_alloc(alignment, size);
}

void __wrap_free(void *block)
{
	blocks -= block != NULL;
	__real_free(block);
}

static void run_once(const struct td_sched *sched)
{
	begin(false);
	run(sched, HORIZON_S / 4, &one);
}

TEST(a_scheduler_gives_back_all_memory_that_it_took)
{
	const struct td_sched *sched;

	for (uint32_t at = 0; (sched = sched_at(at)); at++) {
		size_t before;

		run_once(sched); /* lists of the test's own world are there from now on */
		before = blocks;
		run_once(sched);
		if (before != blocks)
			printf("# %s keeps %zd blocks\n", sched->name, (ssize_t)(blocks - before));
		CHECK_EQ(before, blocks);
	}
}

TEST(how_long_jobs_will_take_changes_nothing_before_one_ends)
{
	const struct td_sched *sched;

	for (uint32_t at = 0; (sched = sched_at(at)); at++) {
		begin(false);
		run(sched, HORIZON_S, &one);
		begin(false);
		for (uint32_t i = 0; i < JOBS; i++)
			jobs[i].work_s = 3 * HORIZON_S + 1e4 * ((i * 7 + 3) % JOBS);
		run(sched, HORIZON_S, &two);
		check_same(sched, &one, &two, true);
	}
}

TEST(who_is_going_to_come_changes_nothing_before)
{
	const struct td_sched *sched;

	for (uint32_t at = 0; (sched = sched_at(at)); at++) {
		uint32_t later = 0;

		begin(false);
		run(sched, HORIZON_S, &one);
		begin(false);
		for (uint32_t i = 0; i < JOBS; i++) {
			if (jobs[i].submit_ns <= HORIZON)
				continue;
			jobs[i].submit_ns += 3 * HORIZON;
			jobs[i].work_s = 60;
			jobs[i].gpus = 4;
			jobs[i].profile = (jobs[i].profile + 1) % TASKS;
			jobs[i].class = TD_CLASS_GUARANTEED;
			jobs[i].memory_bytes = 1ull << 30;
			later++;
		}
		CHECK(later > 10);
		run(sched, HORIZON_S, &two);
		check_same(sched, &one, &two, true);
	}
}

/*
 * One job more than there are GPUs without a service: no pair has been seen yet. Later divisions of
 * GPUs follow what is seen.
 */
#define FIRST (GPUS - SERVICES + 1)

TEST(companies_that_nobody_has_seen_change_no_first_decision)
{
	const struct td_sched *sched;
	bool seen = false;

	for (uint32_t at = 0; (sched = sched_at(at)); at++) {
		for (uint32_t profiled = 1; profiled <= TASKS; profiled += TASKS - 1) {
			for (int other = 0; other < 2; other++) {
				begin(other);
				knowledge.profiled = profiled;
				for (uint32_t i = 0; i < JOBS; i++)
					jobs[i].submit_ns =
						i < FIRST || knows_companies(sched) ? 0 : HORIZON;
				run(sched, 0.01, other ? &two : &one);
			}
			if (!knows_companies(sched))
				check_same(sched, &one, &two, false);
			else
				seen |= memcmp(&one, &two, sizeof(one)) != 0;
		}
	}
	CHECK(seen);
}
