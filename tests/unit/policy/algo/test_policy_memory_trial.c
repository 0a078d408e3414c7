/*
 * Memory by trial and error, against exhaustive search over made-up sensitivities in the manner of
 * AntMan's Fig. 10.
 */
#include "test.h"

#include <errno.h>
#include <math.h>

#include "policy/algo/fit/memory_trial.h"
#include "policy_random.h"

#define GIB (1ull << 30)
#define MIB (1ull << 20)

static const struct td_memory_trial_params params = {.chunk_min_bytes = 128 * MIB, .margin = 0.002};

/*
 * Speed at a share of the demand: SR loses 25 % at a tenth, VGG nothing down to a half, ResNet 60 %
 * at nine tenths.
 */
static double speed(int kind, double share)
{
	switch (kind) {
	case 0: return 1 - 0.28 * (1 - share);
	case 1: return share > 0.5 ? 1 : 2 * share;
	default: return share >= 0.999 ? 1 : 0.4 * share / 0.9;
	}
}

static uint64_t sum(const struct td_memory_trial *trial)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < trial->count; i++)
		bytes += trial->limit_bytes[i];
	return bytes;
}

static int settle(struct td_memory_trial *trial, struct td_memory_trial_job *jobs, uint32_t n,
	uint64_t capacity)
{
	int windows = 0;

	do {
		CHECK_EQ(td_memory_trial_step(trial, &params, capacity, jobs, n), 0);
		CHECK(sum(trial) <= capacity);
		for (uint32_t i = 0; i < n; i++)
			jobs[i].speed = speed((int)i % 3,
				(double)trial->limit_bytes[i] / (double)jobs[i].demand_bytes);
	} while (!trial->settled && ++windows < 2000);
	return windows;
}

TEST(where_everything_fits_nothing_is_tried)
{
	struct td_memory_trial trial = {0};
	struct td_memory_trial_job jobs[2] = {{1, 6 * GIB, GIB, -1}, {2, 10 * GIB, GIB, -1}};

	CHECK_EQ(td_memory_trial_step(&trial, &params, 16 * GIB, jobs, 2), 0);
	CHECK(trial.settled);
	CHECK_EQ(trial.limit_bytes[0], 6 * GIB);
	CHECK_EQ(trial.limit_bytes[1], 10 * GIB);
}

TEST(the_first_limits_are_in_proportion_above_the_floors)
{
	struct td_memory_trial trial = {0};
	struct td_memory_trial_job jobs[2] = {{1, 9 * GIB, GIB, -1}, {2, 17 * GIB, GIB, -1}};

	/* 12 above the floors of 2, shared 8 : 16 */
	CHECK_EQ(td_memory_trial_step(&trial, &params, 14 * GIB, jobs, 2), 0);
	CHECK(llabs((long long)(trial.limit_bytes[0] - 5 * GIB)) < 1 << 14);
	CHECK(llabs((long long)(trial.limit_bytes[1] - 9 * GIB)) < 1 << 14);
}

TEST(it_comes_within_five_percent_of_exhaustive_search)
{
	struct td_memory_trial trial = {0};
	struct td_memory_trial_job jobs[3] = {{1, 8 * GIB, 512 * MIB, -1},
		{2, 10 * GIB, 512 * MIB, -1}, {3, 12 * GIB, 512 * MIB, -1}};
	double best = 0, found = 0;
	uint64_t capacity = 18 * GIB;
	int windows;

	for (uint64_t a = GIB / 2; a <= 8 * GIB; a += GIB / 4)
		for (uint64_t b = GIB / 2; b <= 10 * GIB && a + b < capacity; b += GIB / 4) {
			uint64_t c = capacity - a - b;
			double s;

			if (c < GIB / 2)
				continue;
			c = c < 12 * GIB ? c : 12 * GIB;
			s = speed(0, (double)a / (8. * GIB)) + speed(1, (double)b / (10. * GIB)) +
			    speed(2, (double)c / (12. * GIB));
			best = s > best ? s : best;
		}
	windows = settle(&trial, jobs, 3, capacity);
	for (uint32_t i = 0; i < 3; i++)
		found += jobs[i].speed;
	CHECK(trial.settled && windows < 150);
	CHECK(found > 0.95 * best);
}

TEST(a_failed_trial_is_undone_in_the_next_step)
{
	struct td_memory_trial trial = {0};
	struct td_memory_trial_job jobs[2] = {{1, 8 * GIB, 0, -1}, {2, 8 * GIB, 0, -1}};
	uint64_t before;

	(void)td_memory_trial_step(&trial, &params, 8 * GIB, jobs, 2);
	before = trial.limit_bytes[0];
	jobs[0].speed = jobs[1].speed = 0.5;
	(void)td_memory_trial_step(&trial, &params, 8 * GIB, jobs, 2);
	CHECK_EQ(trial.limit_bytes[0], 8 * GIB); /* filled */
	jobs[1].speed = 0.1;
	(void)td_memory_trial_step(&trial, &params, 8 * GIB, jobs, 2);
	CHECK_EQ(trial.limit_bytes[0], before + GIB); /* undone, and a chunk is tried */
	(void)td_memory_trial_step(&trial, &params, 8 * GIB, jobs, 2);
	CHECK_EQ(trial.limit_bytes[1], 8 * GIB - before + GIB); /* the other way */
}

TEST(a_lost_window_is_waited_for)
{
	struct td_memory_trial trial = {0}, before;
	struct td_memory_trial_job jobs[2] = {{1, 8 * GIB, 0, -1}, {2, 8 * GIB, 0, 0.5}};

	(void)td_memory_trial_step(&trial, &params, 8 * GIB, jobs, 2);
	before = trial;
	(void)td_memory_trial_step(&trial, &params, 8 * GIB, jobs, 2);
	CHECK(!memcmp(&before, &trial, sizeof(trial)));
}

TEST(floors_that_do_not_fit_are_scaled_down)
{
	struct td_memory_trial trial = {0};
	struct td_memory_trial_job jobs[2] = {
		{1, 12 * GIB, 10 * GIB, -1}, {2, 12 * GIB, 10 * GIB, -1}};

	(void)td_memory_trial_step(&trial, &params, 8 * GIB, jobs, 2);
	CHECK(sum(&trial) <= 8 * GIB && trial.limit_bytes[0] > 3 * GIB);
}

TEST(too_many_jobs_are_refused)
{
	struct td_memory_trial trial = {0};
	struct td_memory_trial_job jobs[TD_MEMORY_TRIAL_JOBS_MAX + 1] = {{0}};

	CHECK_EQ(td_memory_trial_step(&trial, &params, GIB, jobs, TD_MEMORY_TRIAL_JOBS_MAX + 1),
		-EINVAL);
}

TEST(limits_never_exceed_capacity_or_demand_and_the_search_ends)
{
	uint64_t seed = 23;

	for (int run = 0; run < 100; run++) {
		struct td_memory_trial trial = {0};
		struct td_memory_trial_job jobs[TD_MEMORY_TRIAL_JOBS_MAX];
		uint32_t n = 1 + random_below(&seed, 6);
		uint64_t capacity = (4 + random_below(&seed, 60)) * GIB;

		for (uint32_t i = 0; i < n; i++)
			jobs[i] = (struct td_memory_trial_job){i + 1,
				(1 + random_below(&seed, 40)) * GIB,
				random_below(&seed, 3) * GIB / 2, -1};
		(void)settle(&trial, jobs, n, capacity);
		CHECK(trial.settled || n < 2);
		for (uint32_t i = 0; i < n; i++)
			CHECK(trial.limit_bytes[i] <= jobs[i].demand_bytes);
	}
}
