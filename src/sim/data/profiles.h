/*
 * What kinds of jobs there are: their three fitted numbers and how much of a GPU they use alone. From a coefficient file (tools/fit-model), or fitted on
 * the spot. This is ground truth: the engine computes speeds with it; a scheduler sees only what its paper lets it see.
 */
#pragma once

#include <stdint.h>

#include "model/contention.h"

struct td_err;

#define TD_PROFILES_MAX 256u

struct td_sim_profile {
	char name[64];
	struct td_contender contender; /* share 1, duty 1; demand: see td_profile_demand() */
	/*
	 * All that schedulers are told of it: what its user declares, or a dry run alone shows, that it uses of a GPU's time. Here without error, contender.demand; a test gives them different ones, and
	 * experiments/antman-trace has a row in which it is wrong.
	 */
	double told_demand;
};

struct td_profiles {
	uint32_t count;
	struct td_sim_profile profiles[TD_PROFILES_MAX];
};

/* One kind, for those who have no measurements: two of it together do 1.2 times the work of one. */
void td_profiles_generic(struct td_profiles *ret);

/* Rows of one GPU type of a file with gpu, job, sensitivity, pressure, host. */
int td_profiles_read(
	const char *path, const char *gpu, struct td_profiles *ret, struct td_err *err);

/* Fits all pairs of a GPU type of colocation_gavel.csv in the folder. */
int td_profiles_fit(const char *data, const char *gpu, struct td_profiles *ret, struct td_err *err);

/* Index, or -1. */
int td_profiles_find(const struct td_profiles *profiles, const char *name);

/*
 * The part of the GPU's time that a job uses alone, so that taking turns with its like gives the speed that the fit gives: the models agree about a job beside itself.
 * There is no measurement of it for these jobs; who is told this number knows what two of the kind lose together.
 */
double td_profile_demand(const struct td_contender *contender);
