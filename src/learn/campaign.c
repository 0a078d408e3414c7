/* Learns a service's profile from a campaign's measurements; see campaign.h. */
#include "learn/campaign.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "learn/curve_model.h"
#include "policy/algo/fit/curve.h"

#define POINTS_MAX 100000u

/* The input of the learners: a row per curve. */
struct table {
	uint32_t count;
	double *x; /* count x TD_MUDI_INPUTS numbers */
	double *y[TD_PROFILE_MODELS];
	uint32_t *groups; /* number of the neighbour of each row */
};

static int compare_doubles(const double *a, const double *b, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (a[i] < b[i] || a[i] > b[i])
			return a[i] < b[i] ? -1 : 1;
	return 0;
}

/*
 * Orders by neighbour, then batch, then share, so that the points of a curve are together and
 * ascend.
 */
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

/*
 * Writes the shares of a curve with the mean latency of each, as a share may have been measured
 * several times. Returns the number of shares.
 */
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
	/* The rows of a neighbour are next to each other. */
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
				"batch %u beside a neighbour was measured with only %u shares of "
				"the SMs: expected three or more",
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
		int r = td_curve_model_learn(
			&data, table->groups, options, &profile->models[m], &profile->error[m]);

		if (r == -EINVAL)
			return td_err_set(err, r,
				"%u curves are too few: expected two neighbours and two batches at "
				"least, "
				"because a model is judged by a neighbour that it was not trained "
				"with",
				table->count);
		if (r)
			return td_err_set(err, r, "%s", strerror(-r));
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

/* Sorts the points and fits the curves. The caller releases the table. */
static int tabulate(const struct td_campaign_point *points, uint32_t count, struct table *table,
	struct td_err *err)
{
	td_auto_free struct td_campaign_point *sorted = NULL;
	td_auto_free double *shares = NULL;
	td_auto_free double *latencies = NULL;
	int r = check(points, count, err);

	if (r)
		return r;
	sorted = malloc(count * sizeof(*sorted));
	shares = malloc(count * sizeof(*shares));
	latencies = malloc(count * sizeof(*latencies));
	r = sorted && shares && latencies ? allocate(table, count) : -ENOMEM;
	if (r)
		return td_err_set(err, r, "%s", strerror(-r));
	memcpy(sorted, points, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), compare);
	return fit_curves(sorted, count, shares, latencies, table, err);
}

int td_campaign_learn(const struct td_campaign_point *points, uint32_t count, const char *gpu,
	const struct td_learn_options *options, struct td_service_profile *ret_profile,
	struct td_err *err)
{
	struct td_service_profile profile = {.batch_min = TD_PROFILE_BATCH_MAX};
	struct table table = {0};
	int r = tabulate(points, count, &table, err);

	r = r ? r : learn_models(&table, options, &profile, err);
	for (uint32_t i = 0; i < count && !r; i++) {
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

/* -- judging -- */

static const double *row_of(const struct table *table, uint32_t row)
{
	return table->x + (size_t)row * TD_MUDI_INPUTS;
}

static bool is_alone(const struct table *table, uint32_t row)
{
	const double none[TD_MUDI_LAYERS] = {0};

	return !compare_doubles(row_of(table, row), none, TD_MUDI_LAYERS);
}

static bool has_batch_of(const struct table *table, uint32_t a, uint32_t b)
{
	return !compare_doubles(
		row_of(table, a) + TD_MUDI_LAYERS, row_of(table, b) + TD_MUDI_LAYERS, 1);
}

/* Copies all rows that are not of a neighbour. */
static void copy_others(const struct table *table, uint32_t group, struct table *ret)
{
	ret->count = 0;
	for (uint32_t row = 0; row < table->count; row++) {
		uint32_t to = ret->count;

		if (table->groups[row] == group)
			continue;
		memcpy(ret->x + (size_t)to * TD_MUDI_INPUTS, row_of(table, row),
			TD_MUDI_INPUTS * sizeof(double));
		for (unsigned m = 0; m < TD_PROFILE_MODELS; m++)
			ret->y[m][to] = table->y[m][row];
		ret->groups[to] = table->groups[row];
		ret->count++;
	}
}

/* Returns the mean over the other neighbours' rows with the batch of a row; NAN: there is none. */
static double mean_of_others(const struct table *table, uint32_t row, unsigned m)
{
	double sum = 0;
	uint32_t n = 0;

	for (uint32_t other = 0; other < table->count; other++) {
		if (table->groups[other] == table->groups[row] || is_alone(table, other) ||
			!has_batch_of(table, row, other))
			continue;
		sum += table->y[m][other];
		n++;
	}
	return n ? sum / n : NAN;
}

struct sums {
	double off, mean_off, magnitude;
};

/* Leaves out one neighbour, whose rows are `first` to the end of its group, and predicts them. */
static int judge_one(const struct table *table, uint32_t first, struct table *others,
	const struct td_learn_options *options, struct sums *sums, struct td_err *err)
{
	struct td_service_profile profile = {0};
	int r;

	copy_others(table, table->groups[first], others);
	r = learn_models(others, options, &profile, err);
	for (uint32_t row = first;
		!r && row < table->count && table->groups[row] == table->groups[first]; row++)
		for (unsigned m = 0; m < TD_PROFILE_MODELS; m++) {
			double is = table->y[m][row], mean = mean_of_others(table, row, m);

			if (!isfinite(mean))
				continue;
			sums[m].off += fabs(
				td_predict(&profile.models[m].predictor, row_of(table, row)) - is);
			sums[m].mean_off += fabs(mean - is);
			sums[m].magnitude += fabs(is);
		}
	td_service_profile_deinit(&profile);
	return r;
}

static int judge_all(const struct table *table, struct table *others,
	const struct td_learn_options *options, struct td_campaign_judged *ret, struct td_err *err)
{
	struct sums sums[TD_PROFILE_MODELS] = {0};
	struct td_campaign_judged judged = {0};
	int r = 0;

	for (uint32_t row = 0; row < table->count; row++) {
		if (is_alone(table, row))
			continue;
		judged.curves++;
		judged.neighbours += !row || table->groups[row] != table->groups[row - 1];
	}
	if (judged.neighbours < 3)
		return td_err_set(err, -EINVAL,
			"only %u programs beside the service were measured: expected three or "
			"more, so that "
			"each prediction can be tested on one that was left out",
			judged.neighbours);
	for (uint32_t row = 0; row < table->count && !r; row++)
		if (!is_alone(table, row) && (!row || table->groups[row] != table->groups[row - 1]))
			r = judge_one(table, row, others, options, sums, err);
	for (unsigned m = 0; m < TD_PROFILE_MODELS && !r; m++) {
		judged.error[m] = sums[m].off / fmax(sums[m].magnitude, 1e-12);
		judged.of_mean[m] = sums[m].mean_off / fmax(sums[m].magnitude, 1e-12);
	}
	if (!r)
		*ret = judged;
	return r;
}

int td_campaign_judge(const struct td_campaign_point *points, uint32_t count,
	const struct td_learn_options *options, struct td_campaign_judged *ret, struct td_err *err)
{
	struct table table = {0}, others = {0};
	int r = tabulate(points, count, &table, err);

	if (!r && allocate(&others, table.count))
		r = td_err_set(err, -ENOMEM, "%s", strerror(ENOMEM));
	r = r ? r : judge_all(&table, &others, options, ret, err);
	release(&others);
	release(&table);
	return r;
}
