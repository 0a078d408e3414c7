/* This file implements slices.h. */
#include "kubernetes/slices.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"

void td_slice_write(char *ret, const char *uuid, uint32_t number)
{
	snprintf(ret, TD_SLICE_TEXT, "%.*s:%02u", TD_UUID_TEXT - 1, uuid,
		number % TD_SLICES_PER_GPU);
}

static int refuse(const char *name, struct td_err *err)
{
	return td_err_expected(err, -EINVAL, name, "the UUID of a GPU, a colon and 00 to 99");
}

int td_slice_parse(const char *name, char *ret_uuid, uint32_t *ret_number, struct td_err *err)
{
	const char *colon = strchr(name, ':');
	size_t len = colon ? (size_t)(colon - name) : 0;
	uint8_t uuid[16];

	if (!len || len >= TD_UUID_TEXT || strlen(colon) != 3)
		return refuse(name, err);
	for (int i = 1; i <= 2; i++)
		if (colon[i] < '0' || colon[i] > '9')
			return refuse(name, err);
	memcpy(ret_uuid, name, len);
	ret_uuid[len] = 0;
	if (td_uuid_parse(ret_uuid, uuid))
		return refuse(name, err);
	*ret_number = (uint32_t)(colon[1] - '0') * 10 + (uint32_t)(colon[2] - '0');
	return 0;
}

/* -- choosing slices -- */

/* A slice that may be chosen. */
struct choice {
	const char *name;
	uint32_t gpu; /* its GPU: an index into the arrays of struct choices */
	bool taken;
};

struct choices {
	struct choice *all;
	size_t count;
	char uuid[TD_SLICES_GPUS][TD_UUID_TEXT];
	size_t free[TD_SLICES_GPUS]; /* how many of the GPU's slices are not taken */
	bool used[TD_SLICES_GPUS];   /* whether a slice of the GPU is taken */
	bool wanted[TD_SLICES_GPUS]; /* by a scheduler */
	uint32_t gpu_count;
};

static int gpu_of(struct choices *c, const char *uuid, uint32_t *ret, struct td_err *err)
{
	for (*ret = 0; *ret < c->gpu_count; (*ret)++)
		if (!strcmp(c->uuid[*ret], uuid))
			return 0;
	if (c->gpu_count == TD_SLICES_GPUS)
		return td_err_set(err, -EINVAL,
			"slices of more than %u GPUs: a node has fewer of them", TD_SLICES_GPUS);
	strcpy(c->uuid[c->gpu_count++], uuid);
	return 0;
}

static int add(struct choices *c, const char *name, struct td_err *err)
{
	struct choice *choice = &c->all[c->count];
	char uuid[TD_UUID_TEXT];
	uint32_t number;
	int r = td_slice_parse(name, uuid, &number, err);

	r = r ? r : gpu_of(c, uuid, &choice->gpu, err);
	if (r)
		return r;
	choice->name = name;
	c->free[choice->gpu]++;
	c->count++;
	return 0;
}

static void take(struct choices *c, struct choice *choice, const char **ret, size_t *taken)
{
	choice->taken = true;
	c->free[choice->gpu]--;
	c->used[choice->gpu] = true;
	ret[(*taken)++] = choice->name;
}

static int take_must(
	struct choices *c, const char *name, const char **ret, size_t *taken, struct td_err *err)
{
	for (size_t i = 0; i < c->count; i++) {
		if (strcmp(c->all[i].name, name))
			continue;
		if (!c->all[i].taken)
			take(c, &c->all[i], ret, taken);
		return 0;
	}
	return td_err_set(
		err, -EINVAL, "\"%.64s\" must be included, but is not among the free ones", name);
}

static void want(struct choices *c, const struct td_slices_wanted *wanted)
{
	for (uint32_t k = 0; wanted && k < wanted->count; k++)
		for (uint32_t g = 0; g < c->gpu_count; g++)
			c->wanted[g] |= !strcmp(c->uuid[g], wanted->uuid[k]);
}

static uint32_t rank_of(const struct choices *c, uint32_t gpu)
{
	return (c->wanted[gpu] ? 2 : 0) + (c->used[gpu] ? 1 : 0);
}

/*
 * Returns the GPU to take the next slice from: first one that a scheduler has chosen, then one that
 * the container uses already, then the one with most free slices. There must be a free slice.
 */
static uint32_t best_gpu(const struct choices *c)
{
	uint32_t best = UINT32_MAX;

	for (uint32_t g = 0; g < c->gpu_count; g++) {
		if (!c->free[g])
			continue;
		if (best == UINT32_MAX || rank_of(c, g) > rank_of(c, best) ||
			(rank_of(c, g) == rank_of(c, best) && c->free[g] > c->free[best]))
			best = g;
	}
	return best;
}

int td_slices_prefer(char *const *free, size_t count, char *const *must, size_t must_count,
	size_t size, const struct td_slices_wanted *wanted, const char **ret, struct td_err *err)
{
	struct choices c = {.all = NULL};
	td_auto_free struct choice *all = calloc(count ? count : 1, sizeof(*all));
	size_t taken = 0;
	int r = 0;

	if (!all)
		return td_err_set(err, -ENOMEM, "out of memory");
	c.all = all;
	if (size > count || must_count > size)
		return td_err_set(err, -EINVAL,
			"%zu slices were asked for, of which %zu must be included: expected at "
			"most the %zu that are free",
			size, must_count, count);
	for (size_t i = 0; i < count && !r; i++)
		r = add(&c, free[i], err);
	for (size_t i = 0; i < must_count && !r; i++)
		r = take_must(&c, must[i], ret, &taken, err);
	want(&c, wanted);
	while (!r && taken < size) {
		uint32_t gpu = best_gpu(&c);

		for (size_t i = 0; i < count && taken < size; i++)
			if (c.all[i].gpu == gpu && !c.all[i].taken)
				take(&c, &c.all[i], ret, &taken);
	}
	return r;
}

/* -- the grant of a container -- */

struct tally {
	uint32_t slices, first;
	bool has[TD_SLICES_PER_GPU];
};

static int count_slice(
	struct td_grant *grant, struct tally *tallies, const char *name, struct td_err *err)
{
	char uuid[TD_UUID_TEXT];
	uint32_t number, g = 0;
	int r = td_slice_parse(name, uuid, &number, err);

	if (r)
		return r;
	while (g < grant->candidate_count && strcmp(grant->candidates[g], uuid))
		g++;
	if (g == TD_SLICES_GPUS)
		return td_err_set(err, -EINVAL, "slices of more than %u GPUs", TD_SLICES_GPUS);
	if (g == grant->candidate_count) {
		strcpy(grant->candidates[grant->candidate_count++], uuid);
		tallies[g].first = number;
	}
	if (tallies[g].has[number])
		return td_err_set(err, -EINVAL, "\"%.64s\" is named twice", name);
	tallies[g].has[number] = true;
	tallies[g].slices++;
	if (number < tallies[g].first)
		tallies[g].first = number;
	grant->hundredths++;
	return 0;
}

/* Sorts the GPUs by their slices, most first; among equals the order of the request stays. */
static void sort(struct td_grant *grant, struct tally *tallies)
{
	for (uint32_t i = 1; i < grant->candidate_count; i++) {
		for (uint32_t k = i; k && tallies[k].slices > tallies[k - 1].slices; k--) {
			struct tally tally = tallies[k];
			char uuid[TD_UUID_TEXT];

			tallies[k] = tallies[k - 1];
			tallies[k - 1] = tally;
			strcpy(uuid, grant->candidates[k]);
			strcpy(grant->candidates[k], grant->candidates[k - 1]);
			strcpy(grant->candidates[k - 1], uuid);
		}
	}
}

int td_slices_grant(char *const *names, size_t count, struct td_grant *ret, struct td_err *err)
{
	struct tally tallies[TD_SLICES_GPUS] = {{0}};
	struct td_grant grant = {0};
	int r = 0;

	if (!count)
		return td_err_set(err, -EINVAL, "no slice was asked for");
	for (size_t i = 0; i < count && !r; i++)
		r = count_slice(&grant, tallies, names[i], err);
	if (r)
		return r;
	if (count > TD_SLICES_PER_GPU && count % TD_SLICES_PER_GPU)
		return td_err_set(err, -EINVAL,
			"%zu hundredths of a GPU: expected up to %u, or a multiple of %u", count,
			TD_SLICES_PER_GPU, TD_SLICES_PER_GPU);
	grant.gpus = count > TD_SLICES_PER_GPU ? (uint32_t)count / TD_SLICES_PER_GPU : 1;
	sort(&grant, tallies);
	snprintf(grant.job, sizeof(grant.job), "k8s.%.8s.%02u.%u", grant.candidates[0] + 4,
		tallies[0].first, grant.hundredths);
	*ret = grant;
	return 0;
}

void td_grant_candidates(const struct td_grant *grant, char *ret)
{
	char *at = ret;

	for (uint32_t g = 0; g < grant->candidate_count; g++)
		at = stpcpy(stpcpy(at, g ? "," : ""), grant->candidates[g]);
}

const char *td_grant_variable(const struct td_grant *grant, uint32_t at, char *ret)
{
	bool is_part = grant->hundredths < TD_SLICES_PER_GPU;

	switch (at) {
	case 0: snprintf(ret, TD_GRANT_VALUE, "%s", grant->job); return "TANDEM_JOB";
	case 1: td_grant_candidates(grant, ret); return "TANDEM_GPUS";
	case 2: snprintf(ret, TD_GRANT_VALUE, "%u", grant->gpus); return "TANDEM_GPU_COUNT";
	case 3:
		snprintf(ret, TD_GRANT_VALUE, "%u%%", grant->hundredths);
		return is_part ? "TANDEM_MEM" : NULL;
	case 4:
		snprintf(ret, TD_GRANT_VALUE, "%u", grant->hundredths);
		return is_part ? "TANDEM_WEIGHT" : NULL;
	default: return NULL;
	}
}
