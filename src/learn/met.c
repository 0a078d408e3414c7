/* Extends a profile by what was measured while the service ran; see met.h. */
#include "learn/met.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "policy/algo/fit/curve.h"

/* The shares at which the curve of a company is put among the campaign's points. */
static const double shares[] = {0.1, 0.25, 0.4, 0.55, 0.7, 0.85};

#define SHARES (sizeof(shares) / sizeof(*shares))

static bool is_same(const double *a, const double *b)
{
	for (uint32_t k = 0; k < TD_MUDI_LAYERS; k++)
		if (a[k] < b[k] || a[k] > b[k])
			return false;
	return true;
}

static int check(const struct td_met_points *points, struct td_err *err)
{
	for (uint32_t i = 0; i < points->met_count; i++) {
		const struct td_campaign_point *at = &points->met[i];
		bool good = at->batch && at->batch <= TD_PROFILE_BATCH_MAX && at->share > 0 &&
			    at->share <= 1 && isfinite(at->latency_s) && at->latency_s > 0;

		for (uint32_t k = 0; k < TD_MUDI_LAYERS; k++)
			good = good && isfinite(at->layers[k]) && at->layers[k] >= 0;
		if (!good)
			return td_err_set(err, -EINVAL,
				"measurement %u of the running service is not valid", i + 1);
	}
	return 0;
}

/* Finds the companies, those measured last first, up to as many as a profile keeps. */
static uint32_t list_companies(const struct td_met_points *points, struct td_mudi_met *ret)
{
	uint32_t count = 0;

	for (uint32_t i = points->met_count; i-- > 0;) {
		const double *layers = points->met[i].layers;
		uint32_t c = 0;

		while (c < count && !is_same(ret[c].layers, layers))
			c++;
		if (c == TD_PROFILE_MET_MAX)
			continue;
		if (c == count) {
			ret[count] = (struct td_mudi_met){0};
			memcpy(ret[count++].layers, layers, sizeof(ret->layers));
		}
		ret[c].points++;
		if (i >= points->met_count - points->new_count)
			ret[c].time_s = points->time_s;
	}
	return count;
}

/* Returns by what a company's measurements differ from the curves. */
static double factor_of(const struct td_met_points *points, const double *layers,
	const struct td_mudi_service *curves)
{
	double sum = 0, n = 0;

	for (uint32_t i = 0; i < points->met_count; i++) {
		const struct td_campaign_point *at = &points->met[i];
		struct td_curve curve;
		double known;

		if (!is_same(at->layers, layers))
			continue;
		curve = td_mudi_curve(curves, layers, at->batch);
		known = td_curve_at(&curve, at->share);
		/* A curve that is not above 0 tells nothing. */
		if (!(known > 0))
			continue;
		sum += log(at->latency_s / known);
		n++;
	}
	return fmin(
		fmax(n > 0 ? exp(sum / n) : 1, 1 / TD_PROFILE_FACTOR_MAX), TD_PROFILE_FACTOR_MAX);
}

static bool has_company(const struct td_met_points *points, const double *layers)
{
	for (uint32_t i = 0; i < points->campaign_count; i++)
		if (is_same(points->campaign[i].layers, layers))
			return true;
	return false;
}

/* Is a point the first of the campaign's that has its batch? */
static bool leads(const struct td_campaign_point *campaign, uint32_t i)
{
	for (uint32_t k = 0; k < i; k++)
		if (campaign[k].batch == campaign[i].batch)
			return false;
	return true;
}

/* Adds a company's curves at the campaign's batches, as if the campaign had measured them. */
static uint32_t add_curves(const struct td_met_points *points, const double *layers,
	const struct td_mudi_service *curves, struct td_campaign_point *ret)
{
	double factor = factor_of(points, layers, curves);
	uint32_t n = 0;

	for (uint32_t i = 0; i < points->campaign_count; i++) {
		struct td_curve curve;

		if (!leads(points->campaign, i))
			continue;
		curve = td_mudi_curve(curves, layers, points->campaign[i].batch);
		for (uint32_t s = 0; s < SHARES; s++) {
			struct td_campaign_point point = {
				.batch = points->campaign[i].batch, .share = shares[s]};

			memcpy(point.layers, layers, sizeof(point.layers));
			point.latency_s = factor * fmax(td_curve_at(&curve, shares[s]), 1e-9);
			ret[n++] = point;
		}
	}
	return n;
}

static uint32_t count_batches(const struct td_met_points *points)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < points->campaign_count; i++)
		n += leads(points->campaign, i);
	return n;
}

/* Trains the models with the companies as neighbours. */
static int train_with(const struct td_met_points *points, const struct td_mudi_met *companies,
	uint32_t count, const struct td_mudi_service *curves, const char *gpu,
	const struct td_learn_options *options, struct td_service_profile *ret, struct td_err *err)
{
	td_auto_free struct td_campaign_point *all = NULL;
	uint32_t n = points->campaign_count;

	all = calloc(n + count * count_batches(points) * SHARES, sizeof(*all));
	if (!all)
		return td_err_set(err, -ENOMEM, "no memory for the points");
	memcpy(all, points->campaign, n * sizeof(*all));
	for (uint32_t c = 0; c < count; c++)
		if (!has_company(points, companies[c].layers))
			n += add_curves(points, companies[c].layers, curves, all + n);
	return td_campaign_learn(all, n, gpu, options, ret, err);
}

static int copy(
	const struct td_service_profile *from, struct td_service_profile *ret, struct td_err *err)
{
	td_auto_free void *bytes = NULL;
	size_t size;
	int r = td_service_profile_to_bytes(from, &bytes, &size);

	if (r)
		return td_err_set(err, r, "no memory for the profile");
	return td_service_profile_from_bytes(bytes, size, ret, err);
}

static int train(const struct td_met_points *points, const struct td_service_profile *before,
	const struct td_mudi_met *companies, uint32_t count, const char *gpu,
	const struct td_learn_options *options, struct td_service_profile *ret, struct td_err *err)
{
	struct td_service_profile first;
	struct td_mudi_service curves;
	int r;

	if (!points->campaign_count)
		return before ? copy(before, ret, err)
			      : td_err_set(err, -EINVAL,
					"there is no profile, and no campaign has measured the "
					"service");
	if (!count)
		return td_campaign_learn(
			points->campaign, points->campaign_count, gpu, options, ret, err);
	if (before) {
		curves = td_service_profile_curves(before);
		return train_with(points, companies, count, &curves, gpu, options, ret, err);
	}
	r = td_campaign_learn(points->campaign, points->campaign_count, gpu, options, &first, err);
	if (r)
		return r;
	curves = td_service_profile_curves(&first);
	r = train_with(points, companies, count, &curves, gpu, options, ret, err);
	td_service_profile_deinit(&first);
	return r;
}

/* A company that was not measured now keeps the time of its last measurement. */
static void keep_time(const struct td_service_profile *before, struct td_mudi_met *company)
{
	for (uint32_t i = 0; before && i < before->met_count && !company->time_s; i++)
		if (is_same(before->met[i].layers, company->layers))
			company->time_s = before->met[i].time_s;
}

int td_met_learn(const struct td_met_points *points, const struct td_service_profile *before,
	const char *gpu, const struct td_learn_options *options, struct td_service_profile *ret,
	struct td_err *err)
{
	struct td_mudi_met companies[TD_PROFILE_MET_MAX];
	struct td_service_profile profile;
	struct td_mudi_service curves;
	uint32_t count;
	int r = check(points, err);

	if (r)
		return r;
	count = list_companies(points, companies);
	r = train(points, before, companies, count, gpu, options, &profile, err);
	if (r)
		return r;
	profile.met_count = 0;
	curves = td_service_profile_curves(&profile);
	for (uint32_t c = 0; c < count; c++) {
		companies[c].factor = factor_of(points, companies[c].layers, &curves);
		keep_time(before, &companies[c]);
	}
	memcpy(profile.met, companies, count * sizeof(*companies));
	profile.met_count = count;
	*ret = profile;
	return 0;
}
