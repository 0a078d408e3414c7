/* See campaign.h. */
#include "learn/campaign.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "policy/algo/fit/curve.h"

#define POINTS_MAX 100000u

/* The models are learnt from it: a row per curve. */
struct table {
	uint32_t count;
	double *x; /* count x TD_MUDI_INPUTS */
	double *y[TD_PROFILE_MODELS];
	uint32_t *groups; /* neighbours */
};

static int compare_doubles(const double *a, const double *b, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (a[i] < b[i] || a[i] > b[i])
			return a[i] < b[i] ? -1 : 1;
	return 0;
}

/* By neighbour, then batch, then share: the points of a curve are together and ascend. */
static int compare(const void *left, const void *right)
{
	const struct td_campaign_point *a = left, *b = right;
	int r = compare_doubles(a->layers, b->layers, TD_MUDI_LAYERS);

	if (r)
		return r;
	if (a->batch != b->batch)
		return a->batch < b->batch ? -1 : 1;
	r = compare_doubles(&a->share, &b->share, 1);
	return r ? r : compare_doubles(&a->latency_s, &b->latency_s, 1);
}

static bool is_good(const struct td_campaign_point *point)
{
	for (uint32_t k = 0; k < TD_MUDI_LAYERS; k++)
		if (!isfinite(point->layers[k]))
			return false;
	return point->batch && point->batch <= TD_PROFILE_BATCH_MAX && point->share > 0 &&
	       point->share <= 1 && isfinite(point->latency_s) && point->latency_s > 0;
}

static bool has_same_curve(const struct td_campaign_point *a, const struct td_campaign_point *b)
{
	return a->batch == b->batch && !compare_doubles(a->layers, b->layers, TD_MUDI_LAYERS);
}

/* A share that was measured several times counts by the mean. Returns the number of shares. */
static uint32_t average(
	const struct td_campaign_point *points, uint32_t count, double *shares, double *latencies)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < count;) {
		uint32_t same = 0;
		double sum = 0;

		for (; i + same < count && !(points[i + same].share > points[i].share); same++)
			sum += points[i + same].latency_s;
		shares[n] = points[i].share;
		latencies[n++] = sum / same;
		i += same;
	}
	return n;
}

static void add_row(
	struct table *table, const struct td_campaign_point *first, const struct td_curve *curve)
{
	uint32_t row = table->count++;
	double *x = table->x + (size_t)row * TD_MUDI_INPUTS;

	memcpy(x, first->layers, sizeof(first->layers));
	x[TD_MUDI_LAYERS] = log2(first->batch);
	table->y[TD_PROFILE_LEFT_SLOPE][row] = curve->left_slope;
	table->y[TD_PROFILE_RIGHT_SLOPE][row] = curve->right_slope;
	table->y[TD_PROFILE_KNEE_SHARE][row] = curve->knee_x;
	table->y[TD_PROFILE_KNEE_LATENCY][row] = curve->knee_y;
	/* Rows of a neighbour are together. */
	table->groups[row] = row && !compare_doubles(x, x - TD_MUDI_INPUTS, TD_MUDI_LAYERS)
				     ? table->groups[row - 1]
				     : row;
}

static int fit_curves(const struct td_campaign_point *points, uint32_t count, double *shares,
	double *latencies, struct table *table, struct td_err *err)
{
	for (uint32_t i = 0, n; i < count; i += n) {
		struct td_curve curve;
		uint32_t measured;

		for (n = 1; i + n < count && has_same_curve(&points[i], &points[i + n]);)
			n++;
		measured = average(points + i, n, shares, latencies);
		if (td_curve_fit_piecewise(shares, latencies, measured, &curve))
			return td_err_set(err, -EINVAL,
				"batch %u beside a neighbour was measured with %u shares: expected "
				"three or more",
				points[i].batch, measured);
		add_row(table, &points[i], &curve);
	}
	return 0;
}

static int learn_models(const struct table *table, const struct td_learn_options *options,
	struct td_service_profile *profile, struct td_err *err)
{
	for (unsigned m = 0; m < TD_PROFILE_MODELS; m++) {
		const struct td_dataset data = {
			table->x, table->y[m], table->count, TD_MUDI_INPUTS};
		struct td_learn_report report;
		int r = td_learn_best(&data, table->groups, options, &profile->models[m], &report);

		if (r == -EINVAL)
			return td_err_set(err, r,
				"%u curves are too few: models are judged by neighbours left out, "
				"so two neighbours and two batches are needed",
				table->count);
		if (r)
			return td_err_set(err, r, "%s", strerror(-r));
		profile->error[m] = report.error[report.chosen];
	}
	return 0;
}

static int allocate(struct table *table, uint32_t count)
{
	table->x = malloc((size_t)count * TD_MUDI_INPUTS * sizeof(*table->x));
	table->groups = malloc(count * sizeof(*table->groups));
	for (unsigned m = 0; m < TD_PROFILE_MODELS; m++)
		table->y[m] = malloc(count * sizeof(*table->y[m]));
	for (unsigned m = 0; m < TD_PROFILE_MODELS; m++)
		if (!table->y[m])
			return -ENOMEM;
	return table->x && table->groups ? 0 : -ENOMEM;
}

static void release(struct table *table)
{
	free(table->x);
	free(table->groups);
	for (unsigned m = 0; m < TD_PROFILE_MODELS; m++)
		free(table->y[m]);
}

static int check(const struct td_campaign_point *points, uint32_t count, struct td_err *err)
{
	if (!count || count > POINTS_MAX)
		return td_err_set(err, -EINVAL, "%u points were measured: expected 1 to %u", count,
			POINTS_MAX);
	for (uint32_t i = 0; i < count; i++)
		if (!is_good(&points[i]))
			return td_err_set(err, -EINVAL,
				"point %u (batch %u, share %g, latency %g s) is not valid", i + 1,
				points[i].batch, points[i].share, points[i].latency_s);
	return 0;
}

int td_campaign_learn(const struct td_campaign_point *points, uint32_t count, const char *gpu,
	const struct td_learn_options *options, struct td_service_profile *ret_profile,
	struct td_err *err)
{
	struct td_service_profile profile = {.batch_min = TD_PROFILE_BATCH_MAX};
	td_auto_free struct td_campaign_point *sorted = NULL;
	td_auto_free double *shares = NULL;
	td_auto_free double *latencies = NULL;
	struct table table = {0};
	int r = check(points, count, err);

	if (r)
		return r;
	sorted = malloc(count * sizeof(*sorted));
	shares = malloc(count * sizeof(*shares));
	latencies = malloc(count * sizeof(*latencies));
	r = sorted && shares && latencies ? allocate(&table, count) : -ENOMEM;
	if (r) {
		release(&table);
		return td_err_set(err, r, "%s", strerror(-r));
	}
	memcpy(sorted, points, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), compare);
	r = fit_curves(sorted, count, shares, latencies, &table, err);
	if (!r)
		r = learn_models(&table, options, &profile, err);
	for (uint32_t i = 0; i < count; i++) {
		profile.batch_min =
			points[i].batch < profile.batch_min ? points[i].batch : profile.batch_min;
		profile.batch_max =
			points[i].batch > profile.batch_max ? points[i].batch : profile.batch_max;
	}
	profile.curve_count = table.count;
	snprintf(profile.gpu, sizeof(profile.gpu), "%s", gpu);
	release(&table);
	if (r)
		td_service_profile_deinit(&profile);
	else
		*ret_profile = profile;
	return r;
}
