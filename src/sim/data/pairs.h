/*
 * Measured pairs of jobs on one GPU (colocation_gavel.csv), and fitting the contention model to
 * them.
 *
 * This is the ground truth of the simulator: only the engine and tools/fit-model may include it;
 * predictors and policies may not.
 */
#pragma once

#include "sim/base/fit.h"

#define TD_PAIR_JOBS_MAX 64u

struct td_err;

struct td_pair {
	uint32_t a, b;
	double speed_a, speed_b; /* the speed of each job beside the other; 1: as fast as alone */
	bool feasible;
};

struct td_pairs {
	char gpu[16];
	uint32_t job_count, pair_count, family_count;
	char jobs[TD_PAIR_JOBS_MAX][64];
	uint32_t family[TD_PAIR_JOBS_MAX]; /* index of the first job of the same model */
	double alone[TD_PAIR_JOBS_MAX];    /* steps/s alone */
	struct td_pair pairs[TD_PAIR_JOBS_MAX * (TD_PAIR_JOBS_MAX + 1) / 2];
};

/*
 * Reads the pairs of one type of GPU, such as "p100". The caller frees *ret. An error names the bad
 * line.
 */
int td_pairs_read(const char *path, const char *gpu, struct td_pairs **ret, struct td_err *err);

/* Returns the index of a job by its name, or -1. */
int td_pairs_find(const struct td_pairs *pairs, const char *job);

/*
 * Writes both sides of the feasible pairs with use[i] true (NULL: all). Returns their number. ret
 * has room for 2 x pair_count.
 */
uint32_t td_pairs_observe(
	const struct td_pairs *pairs, const bool *use, struct td_observation *ret);

/* Returns numbers to start the fit from: g p at the level of the observations, and h h small. */
struct td_numbers td_pairs_level(const struct td_observation *observations, uint32_t count);

/* Fits the numbers of all jobs to the pairs with use[i] true. */
int td_pairs_fit(const struct td_pairs *pairs, const bool *use, struct td_numbers *ret_numbers);

/*
 * Returns the median of speed_a + speed_b over the feasible pairs, which is the usual joint speed
 * of a pair.
 */
double td_pairs_median_sum(const struct td_pairs *pairs);
