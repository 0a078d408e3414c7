/*
 * The kinds of jobs: three fitted numbers each, and the part of a GPU that a job uses alone. They
 * come from a coefficient file (tools/fit-model) or are fitted on the spot. This is ground truth:
 * the engine computes speeds with it; a scheduler sees only what its paper lets it see.
 */
#pragma once

#include <stdint.h>

#include "model/contention.h"

struct td_err;

#define TD_PROFILES_MAX 256u

struct td_sim_profile {
	char name[64];
	/* Share and duty are 1. */
	struct td_contender contender;
	/*
	 * The part of a GPU's time that the job needs, as schedulers are told: the user declares
	 * it, or a dry run shows it. Normally it equals contender.demand. Tests set other values,
	 * and one row of experiments/antman-trace is about a wrong value.
	 */
	double told_demand;
};

struct td_profiles {
	uint32_t count;
	struct td_sim_profile profiles[TD_PROFILES_MAX];
};

/*
 * Makes one generic kind for users without measurements. Two jobs of it together do 1.2 times the
 * work of one.
 */
void td_profiles_generic(struct td_profiles *ret);

/*
 * Reads the rows of one GPU type from a file with gpu, job, sensitivity, pressure and host.
 * Optional are demand (otherwise td_profile_demand()) and told_demand (otherwise the demand).
 */
int td_profiles_read(
	const char *path, const char *gpu, struct td_profiles *ret, struct td_err *err);

/* Fits all pairs of one GPU type in the folder's colocation_gavel.csv. */
int td_profiles_fit(const char *data, const char *gpu, struct td_profiles *ret, struct td_err *err);

/* Returns the index of a kind by its name, or -1. */
int td_profiles_find(const struct td_profiles *profiles, const char *name);

/*
 * Returns the part of the GPU's time that a job uses alone, derived so that taking turns with a job
 * of its kind gives the fitted speed: both models then agree about a job beside itself. It is not
 * measured for these jobs, and it tells a scheduler what two of the kind lose together.
 */
double td_profile_demand(const struct td_contender *contender);
