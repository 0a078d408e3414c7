/* The exchange of besteffort jobs between the GPUs of a node (policy/cluster/exchange.h). */
#include "test.h"

#include "policy/cluster/exchange.h"
#include "policy_random.h"

#define MIN  60000000000ull
#define GIB  (1ull << 30)
#define BOTH 3ull

static const double zeros[TD_MUXFLOW_INPUTS];
static const double ones[TD_MUXFLOW_INPUTS] = {1, 1, 1, 1, 1, 1, 1, 1};
/* The speed is 1.2 less the SM activities of both. */
static const double sums[TD_MUXFLOW_INPUTS + 1] = {0, -1, 0, 0, -1, 0, 0, 0, 1.2};
static const struct td_predictor speeds = {.form = TD_PREDICTOR_LINEAR,
	.inputs = TD_MUXFLOW_INPUTS,
	.shift = zeros,
	.scale = ones,
	.target_scale = 1,
	.coefficients = sums,
	.coefficient_count = TD_MUXFLOW_INPUTS + 1};
static const struct td_muxflow_profile light = {.sm_activity = 0.1}, heavy = {.sm_activity = 0.6},
				       quiet = {.sm_activity = 0.1}, busy = {.sm_activity = 0.6};

static struct td_exchange exchange;
static struct td_exchange_move moves[TD_EXCHANGE_JOBS];

static struct td_exchange_gpu beside(const struct td_muxflow_profile *service)
{
	return (struct td_exchange_gpu){.speeds = &speeds,
		.online = true,
		.profile = service,
		.accepts = true,
		.room_bytes = GIB};
}

static struct td_exchange_job job(uint32_t gpu, const struct td_muxflow_profile *profile)
{
	return (struct td_exchange_job){
		.gpu = gpu, .runs = true, .goes = BOTH, .bytes = GIB, .profile = profile};
}

static uint32_t solve(const struct td_exchange_gpu *gpus, uint32_t gpu_count,
	const struct td_exchange_job *jobs, uint32_t job_count)
{
	const struct td_exchange_problem problem = {
		gpus, jobs, gpu_count, job_count, &td_dynamic_sm_default, 15 * MIN, MIN};

	return td_exchange_solve(&exchange, &problem, moves);
}

TEST(a_job_goes_where_it_is_faster)
{
	const struct td_exchange_gpu gpus[] = {beside(&busy), beside(&quiet)};
	const struct td_exchange_job one = job(0, &light);

	CHECK_EQ(solve(gpus, 2, &one, 1), 1);
	CHECK(moves[0].job == 0 && moves[0].gpu == 1);
	CHECK((moves[0].from_ppm + 5) / 10 == 50000 && (moves[0].to_ppm + 5) / 10 == 100000);
}

TEST(nobody_is_exchanged_without_a_gain)
{
	const struct td_exchange_gpu gpus[] = {beside(&busy), beside(&quiet)};
	const struct td_exchange_job jobs[] = {job(0, &light), job(1, &heavy)};

	CHECK_EQ(solve(gpus, 2, jobs, 2), 0);
}

TEST(two_jobs_change_places)
{
	/* The job without activity has its whole speed in both places, the heavy one has not. */
	const struct td_muxflow_profile idle = {.sm_activity = 0}, some = {.sm_activity = 0.2};
	const struct td_exchange_gpu gpus[] = {beside(&some), beside(&idle)};
	const struct td_exchange_job jobs[] = {job(0, &heavy), job(1, &idle)};
	const struct td_exchange_problem dear = {
		gpus, jobs, 2, 2, &td_dynamic_sm_default, 15 * MIN, 3 * MIN};

	CHECK_EQ(solve(gpus, 2, jobs, 2), 2);
	CHECK(moves[0].gpu != moves[1].gpu && moves[0].job != moves[1].job);
	CHECK(moves[0].gpu != jobs[moves[0].job].gpu);
	/* 0.4 + 1 becomes 0.6 + 1, and two restarts of 3 of 15 minutes cost 0.32 of that. */
	CHECK_EQ(td_exchange_solve(&exchange, &dear, moves), 0);
}

TEST(a_move_must_be_worth_its_restart)
{
	const struct td_muxflow_profile some = {.sm_activity = 0.55};
	const struct td_exchange_gpu gpus[] = {beside(&busy), beside(&some)};
	const struct td_exchange_job one = job(0, &light);
	struct td_exchange_problem problem = {
		gpus, &one, 2, 1, &td_dynamic_sm_default, 15 * MIN, 0};

	CHECK_EQ(td_exchange_solve(&exchange, &problem, moves), 1); /* 0.55 instead of 0.5 */
	problem.cost_ns = 2 * MIN;                                  /* 0.55 x 13 / 15 = 0.48 */
	CHECK_EQ(td_exchange_solve(&exchange, &problem, moves), 0);
	problem.cost_ns = 20 * MIN; /* longer than the period: never */
	CHECK_EQ(td_exchange_solve(&exchange, &problem, moves), 0);
}

TEST(nobody_moves_where_something_is_not_known_or_not_allowed)
{
	struct td_exchange_gpu gpus[] = {beside(&busy), beside(&quiet)};
	struct td_exchange_job jobs[] = {job(0, &light), job(1, &heavy)};

	jobs[0].profile = NULL;
	CHECK_EQ(solve(gpus, 2, jobs, 1), 0);
	jobs[0] = job(0, &light);
	jobs[0].goes = 0; /* nobody can start it again */
	CHECK_EQ(solve(gpus, 2, jobs, 1), 0);
	jobs[0].goes = 1; /* only where it is */
	CHECK_EQ(solve(gpus, 2, jobs, 1), 0);
	jobs[0] = job(0, &light);
	gpus[1].profile = NULL;
	CHECK_EQ(solve(gpus, 2, jobs, 1), 0);
	gpus[1] = beside(&quiet);
	gpus[1].speeds = NULL; /* another kind of GPU */
	CHECK_EQ(solve(gpus, 2, jobs, 1), 0);
	gpus[1] = beside(&quiet);
	gpus[1].accepts = false;
	CHECK_EQ(solve(gpus, 2, jobs, 1), 0);
	gpus[1].accepts = true;
	gpus[1].room_bytes = GIB - 1;
	CHECK_EQ(solve(gpus, 2, jobs, 1), 0);
	gpus[1] = beside(&quiet);
	jobs[1].goes = 0; /* it holds the quiet GPU, and cannot leave */
	CHECK_EQ(solve(gpus, 2, jobs, 2), 0);
	jobs[1].runs = false; /* it gets the GPU when that is free */
	CHECK_EQ(solve(gpus, 2, jobs, 2), 0);
}

TEST(a_job_that_waits_gets_a_free_gpu)
{
	struct td_exchange_gpu gpus[] = {beside(&quiet), {.speeds = &speeds, .accepts = true}};
	struct td_exchange_job jobs[] = {job(0, &heavy), job(0, &light)};

	gpus[1].room_bytes = GIB;
	jobs[1].runs = false;
	CHECK_EQ(solve(gpus, 2, jobs, 2), 1);
	CHECK_EQ(moves[0].gpu, 1);
	CHECK_EQ(moves[0].to_ppm, 1000000); /* alone there */
	/* The one that runs is the one to go: the other one then has its place. */
	CHECK_EQ(moves[0].job, 0);
}

TEST(an_exchange_is_due_once_in_a_period)
{
	struct td_exchange *e = &exchange;
	uint64_t now = 1000 * MIN;

	e->due_ns = 0;
	CHECK(!td_exchange_is_due(e, 15 * MIN, true, now));
	CHECK(!td_exchange_is_due(e, 15 * MIN, true, now += 15 * MIN - 1));
	CHECK(td_exchange_is_due(e, 15 * MIN, true, ++now));
	CHECK(!td_exchange_is_due(e, 15 * MIN, true, now));
	CHECK_EQ(e->due_ns, now + 15 * MIN);
	CHECK(!td_exchange_is_due(e, MIN, true, now)); /* a shorter period, by hand */
	CHECK_EQ(e->due_ns, now + MIN);
	CHECK(!td_exchange_is_due(e, 15 * MIN, false, now += 2 * MIN));
	CHECK_EQ(e->due_ns, 0);
	CHECK(!td_exchange_is_due(e, 0, true, now));
	CHECK_EQ(e->due_ns, 0);
}

/* The invariants of exchange.h on random nodes, the largest ones too. */
TEST(no_gpu_gets_two_jobs)
{
	uint64_t random = 4711;

	for (int round = 0; round < 400; round++) {
		static struct td_exchange_gpu gpus[TD_GPU_MAX];
		static struct td_exchange_job jobs[TD_EXCHANGE_JOBS];
		static struct td_muxflow_profile services[TD_GPU_MAX], works[TD_EXCHANGE_JOBS];
		uint32_t gpu_count = round % 20 ? 1 + random_below(&random, 8) : TD_GPU_MAX,
			 job_count = round % 20 ? random_below(&random, 12) : TD_EXCHANGE_JOBS,
			 count;
		uint32_t users[TD_GPU_MAX] = {0}, before[TD_GPU_MAX] = {0};

		for (uint32_t g = 0; g < gpu_count; g++) {
			services[g].sm_activity = random_unit(&random);
			gpus[g] = beside(&services[g]);
			gpus[g].online = random_below(&random, 4) > 0;
			gpus[g].accepts = random_below(&random, 4) > 0;
		}
		for (uint32_t j = 0; j < job_count; j++) {
			works[j].sm_activity = random_unit(&random);
			jobs[j] = job(random_below(&random, gpu_count), &works[j]);
			jobs[j].goes = random_below(&random, 3) ? UINT64_MAX : 0;
			jobs[j].runs = !before[jobs[j].gpu]++;
		}
		count = solve(gpus, gpu_count, jobs, job_count);
		for (uint32_t j = 0; j < job_count; j++)
			users[jobs[j].gpu] += jobs[j].runs;
		for (uint32_t m = 0; m < count; m++)
			users[jobs[moves[m].job].gpu] -= jobs[moves[m].job].runs;
		for (uint32_t m = 0; m < count; m++) {
			CHECK(gpus[moves[m].gpu].accepts && jobs[moves[m].job].goes);
			CHECK(moves[m].gpu != jobs[moves[m].job].gpu);
			CHECK_EQ(++users[moves[m].gpu], 1);
		}
	}
}
