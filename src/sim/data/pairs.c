/* Reads and fits Gavel's measured pairs; see pairs.h. */
#include "sim/data/pairs.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "sim/base/csv.h"

enum { GPU, JOB_A, JOB_B, ALONE_A, ALONE_B, TOGETHER_A, TOGETHER_B, FEASIBLE, COLUMNS };

static const char *const columns[COLUMNS] = {
	"gpu_type", "job_a", "job_b", "alone_a", "alone_b", "together_a", "together_b", "feasible"};

int td_pairs_find(const struct td_pairs *pairs, const char *job)
{
	for (uint32_t j = 0; j < pairs->job_count; j++)
		if (!strcmp(pairs->jobs[j], job))
			return (int)j;
	return -1;
}

/* Tells whether two jobs are of one family, such as "ResNet-18" for "ResNet-18 (batch size 16)". */
static bool are_family(const char *a, const char *b)
{
	size_t n = strcspn(a, "(");

	return n == strcspn(b, "(") && !strncmp(a, b, n);
}

static int add_job(struct td_pairs *pairs, const char *name, double alone)
{
	int j = td_pairs_find(pairs, name);

	if (j >= 0)
		return j;
	if (pairs->job_count == TD_PAIR_JOBS_MAX || strlen(name) >= sizeof(pairs->jobs[0]))
		return -1;
	j = (int)pairs->job_count++;
	strcpy(pairs->jobs[j], name);
	pairs->alone[j] = alone;
	pairs->family[j] = (uint32_t)j;
	for (int k = 0; k < j; k++) {
		if (are_family(pairs->jobs[k], name)) {
			pairs->family[j] = pairs->family[k];
			break;
		}
	}
	pairs->family_count += pairs->family[j] == (uint32_t)j;
	return j;
}

static int take_row(struct td_csv *csv, const int *at, struct td_pairs *pairs, struct td_err *err)
{
	double value[COLUMNS];
	int a, b, r = 0;

	for (int c = ALONE_A; !r && c < COLUMNS; c++)
		r = td_csv_number(csv, at[c], 0, 1e12, &value[c], err);
	if (r)
		return r;
	if (!(value[ALONE_A] > 0 && value[ALONE_B] > 0))
		return td_csv_error(csv, err, "the speed alone is 0: expected more than 0");
	a = add_job(pairs, td_csv_text(csv, at[JOB_A]), value[ALONE_A]);
	b = add_job(pairs, td_csv_text(csv, at[JOB_B]), value[ALONE_B]);
	if (a < 0 || b < 0 || pairs->pair_count == sizeof(pairs->pairs) / sizeof(pairs->pairs[0]))
		return td_csv_error(csv, err,
			"the file has more than %u jobs, or this job's name is too long",
			TD_PAIR_JOBS_MAX);
	pairs->pairs[pairs->pair_count++] = (struct td_pair){.a = (uint32_t)a,
		.b = (uint32_t)b,
		.speed_a = value[TOGETHER_A] / value[ALONE_A],
		.speed_b = value[TOGETHER_B] / value[ALONE_B],
		.feasible = value[FEASIBLE] > 0 && value[TOGETHER_A] > 0 && value[TOGETHER_B] > 0};
	return 0;
}

int td_pairs_read(const char *path, const char *gpu, struct td_pairs **ret, struct td_err *err)
{
	td_auto_free struct td_pairs *pairs = calloc(1, sizeof(*pairs));
	int at[COLUMNS], r;
	struct td_csv csv;

	if (!pairs)
		return td_err_set(err, -ENOMEM, "out of memory");
	snprintf(pairs->gpu, sizeof(pairs->gpu), "%s", gpu);
	r = td_csv_open(&csv, path, err);
	if (r)
		return r;
	r = td_csv_need(&csv, columns, COLUMNS, at, err);
	while (!r && !(r = td_csv_next(&csv, err)))
		if (!strcmp(td_csv_text(&csv, at[GPU]), gpu))
			r = take_row(&csv, at, pairs, err);
	td_csv_close(&csv);
	if (r < 0)
		return r;
	if (!pairs->pair_count)
		return td_err_set(err, -ENOENT, "%.100s: no pairs of the GPU \"%s\"", path, gpu);
	*ret = td_steal(&pairs);
	return 0;
}

uint32_t td_pairs_observe(const struct td_pairs *pairs, const bool *use, struct td_observation *ret)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < pairs->pair_count; i++) {
		const struct td_pair *pair = &pairs->pairs[i];

		if (!pair->feasible || (use && !use[i]))
			continue;
		ret[count++] = (struct td_observation){pair->a, pair->b, pair->speed_a};
		if (pair->a != pair->b)
			ret[count++] = (struct td_observation){pair->b, pair->a, pair->speed_b};
	}
	return count;
}

struct td_numbers td_pairs_level(const struct td_observation *observations, uint32_t count)
{
	double sum = 0, level;

	for (uint32_t i = 0; i < count; i++)
		sum += log(fmax(0.02, 1 / observations[i].speed - 1));
	level = count ? exp(sum / count / 2) : 1;
	return (struct td_numbers){level, level, 0.3 * level};
}

int td_pairs_fit(const struct td_pairs *pairs, const bool *use, struct td_numbers *ret_numbers)
{
	td_auto_free struct td_observation *observations =
		calloc(2 * (size_t)pairs->pair_count, sizeof(*observations));
	struct td_numbers level;
	uint32_t count;

	if (!observations)
		return -ENOMEM;
	count = td_pairs_observe(pairs, use, observations);
	level = td_pairs_level(observations, count);
	for (uint32_t j = 0; j < pairs->job_count; j++)
		ret_numbers[j] = level;
	return td_fit_pairs(
		observations, count, pairs->job_count, NULL, NULL, &td_fit_default, ret_numbers);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double td_pairs_median_sum(const struct td_pairs *pairs)
{
	td_auto_free double *sums = calloc(pairs->pair_count, sizeof(*sums));
	uint32_t count = 0;

	if (!sums)
		return NAN;
	for (uint32_t i = 0; i < pairs->pair_count; i++)
		if (pairs->pairs[i].feasible)
			sums[count++] = pairs->pairs[i].speed_a + pairs->pairs[i].speed_b;
	qsort(sums, count, sizeof(*sums), compare);
	return count ? sums[count / 2] : NAN;
}
