/* Makes the kinds of jobs; see profiles.h. */
#include "sim/data/profiles.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "sim/base/csv.h"
#include "sim/data/pairs.h"

#define DEMAND_MIN 0.001

double td_profile_demand(const struct td_contender *contender)
{
	double slowness = 1 + contender->sensitivity * contender->pressure +
			  contender->host * contender->host;

	return fmin(1, fmax(0.05, slowness / 2));
}

static void put(struct td_profiles *profiles, const char *name, double g, double p, double h)
{
	struct td_sim_profile *profile = &profiles->profiles[profiles->count++];

	snprintf(profile->name, sizeof(profile->name), "%s", name);
	profile->contender = td_contender_neutral;
	profile->contender.sensitivity = g;
	profile->contender.pressure = p;
	profile->contender.host = h;
	profile->contender.demand = td_profile_demand(&profile->contender);
	profile->told_demand = profile->contender.demand;
}

void td_profiles_generic(struct td_profiles *ret)
{
	ret->count = 0;
	put(ret, "generic", sqrt(0.6), sqrt(0.6), sqrt(0.2 / 3));
}

/* Reads the demands of a row, where the file has such columns. */
static int take_demands(const struct td_csv *csv, int demand, int told,
	struct td_sim_profile *profile, struct td_err *err)
{
	double derived = profile->contender.demand;
	int r = td_csv_number_or(
		csv, demand, DEMAND_MIN, 1, derived, &profile->contender.demand, err);

	return r ? r
		 : td_csv_number_or(csv, told, DEMAND_MIN, 1, profile->contender.demand,
			   &profile->told_demand, err);
}

int td_profiles_read(const char *path, const char *gpu, struct td_profiles *ret, struct td_err *err)
{
	static const char *const columns[] = {"gpu", "job", "sensitivity", "pressure", "host"};
	double value[5];
	struct td_csv csv;
	int at[5], r = td_csv_open(&csv, path, err), demand, told;

	if (r)
		return r;
	ret->count = 0;
	r = td_csv_need(&csv, columns, 5, at, err);
	demand = td_csv_column(&csv, "demand");
	told = td_csv_column(&csv, "told_demand");
	while (!r && !(r = td_csv_next(&csv, err))) {
		if (strcmp(td_csv_text(&csv, at[0]), gpu))
			continue;
		for (int c = 2; !r && c < 5; c++)
			r = td_csv_number(&csv, at[c], 0, 1e6, &value[c], err);
		if (!r && ret->count == TD_PROFILES_MAX)
			r = td_csv_error(&csv, err,
				"the file has more than %u jobs, which is the most allowed",
				TD_PROFILES_MAX);
		if (!r)
			put(ret, td_csv_text(&csv, at[1]), value[2], value[3], value[4]);
		if (!r)
			r = take_demands(&csv, demand, told, &ret->profiles[ret->count - 1], err);
	}
	td_csv_close(&csv);
	if (r < 0)
		return r;
	if (!ret->count)
		return td_err_set(err, -ENOENT, "%.100s: no jobs of the GPU \"%.16s\"", path, gpu);
	return 0;
}

int td_profiles_fit(const char *data, const char *gpu, struct td_profiles *ret, struct td_err *err)
{
	struct td_numbers numbers[TD_PAIR_JOBS_MAX];
	td_auto_free struct td_pairs *pairs = NULL;
	char path[PATH_MAX];
	int r;

	snprintf(path, sizeof(path), "%s/colocation_gavel.csv", data);
	r = td_pairs_read(path, gpu, &pairs, err);
	if (r)
		return r;
	r = td_pairs_fit(pairs, NULL, numbers);
	if (r)
		return td_err_set(
			err, r, "the contention model could not be fitted to %.100s", path);
	ret->count = 0;
	for (uint32_t j = 0; j < pairs->job_count; j++)
		put(ret, pairs->jobs[j], numbers[j].g, numbers[j].p, numbers[j].h);
	return 0;
}

int td_profiles_find(const struct td_profiles *profiles, const char *name)
{
	for (uint32_t i = 0; i < profiles->count; i++)
		if (!strcmp(profiles->profiles[i].name, name))
			return (int)i;
	return -1;
}
