/* A measurement of a running service makes its curves better where it meets the same again. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "test.h"

#include "base/err.h"
#include "learn/met.h"
#include "unit/profile/made_profile.h"

#define NEIGHBOURS 5

static const uint32_t batches[] = {1, 4, 16};
static const double shares[] = {0.2, 0.4, 0.6, 0.8};
static struct td_campaign_point campaign[NEIGHBOURS * 12], met[64];
static struct td_learn_options quick;
static struct td_err err;

static double latency_s(double slower, double batch, double share)
{
	return slower * (0.01 + 0.001 * batch + (share < 0.4 ? 0.05 : 0.001) * (0.4 - share));
}

/* The first neighbour is nobody; the others make the service slower by no rule. */
static uint32_t measure(void)
{
	static const double slower[NEIGHBOURS] = {1, 1.3, 1.1, 1.4, 1.2};
	uint32_t n = 0;

	for (uint32_t i = 0; i < NEIGHBOURS; i++)
		for (uint32_t b = 0; b < 3; b++)
			for (uint32_t s = 0; s < 4; s++)
				campaign[n++] = (struct td_campaign_point){.layers = {i * i % 7, i},
					.batch = batches[b],
					.share = shares[s],
					.latency_s = latency_s(slower[i], batches[b], shares[s])};
	quick = td_learn_default;
	quick.epochs = 20;
	err = (struct td_err){0};
	return n;
}

static void meet(struct td_campaign_point *at, double layers, double slower, uint32_t batch)
{
	*at = (struct td_campaign_point){.layers = {layers},
		.batch = batch,
		.share = 0.5,
		.latency_s = latency_s(slower, batch, 0.5)};
}

static double curve_at(
	const struct td_service_profile *profile, double conv, double linear, double batch)
{
	const struct td_mudi_service curves = td_service_profile_curves(profile);
	const double layers[TD_MUDI_LAYERS] = {conv, linear};
	const struct td_curve curve = td_mudi_curve(&curves, layers, batch);

	return td_curve_at(&curve, 0.3);
}

TEST(a_company_that_was_met_is_known_at_other_shares_and_batches)
{
	struct td_met_points points = {campaign, measure(), met, 2, 2, 1700000000};
	struct td_service_profile before, after;
	double truth = latency_s(2.5, 4, 0.3);

	meet(&met[0], 90, 2.5, 3);
	meet(&met[1], 90, 2.5, 9);
	CHECK_EQ(td_campaign_learn(campaign, points.campaign_count, "GPU", &quick, &before, &err),
		0);
	CHECK(fabs(curve_at(&before, 90, 0, 4) / truth - 1) > 0.3);
	CHECK_EQ(td_met_learn(&points, &before, "GPU", &quick, &after, &err), 0);
	CHECK(fabs(curve_at(&after, 90, 0, 4) / truth - 1) < 0.1);
	CHECK(after.met_count == 1 && after.met[0].points == 2);
	CHECK_EQ(after.met[0].time_s, 1700000000);
	/* It is a neighbour more, and the service alone is what it was. */
	CHECK_EQ(after.curve_count, before.curve_count + 3);
	CHECK(fabs(curve_at(&after, 0, 0, 4) / latency_s(1, 4, 0.3) - 1) < 0.05);
	td_service_profile_deinit(&before);
	td_service_profile_deinit(&after);
}

TEST(a_campaigns_neighbour_is_corrected_and_not_counted_twice)
{
	struct td_met_points points = {campaign, measure(), met, 1, 1, 5};
	struct td_service_profile after;

	memcpy(met[0].layers, campaign[13].layers, sizeof(met[0].layers));
	met[0].batch = 4;
	met[0].share = 0.5;
	met[0].latency_s = latency_s(2, 4, 0.5);
	/* Without a profile so far, the campaign's is learnt first. */
	CHECK_EQ(td_met_learn(&points, NULL, "GPU", &quick, &after, &err), 0);
	CHECK_EQ(after.curve_count, NEIGHBOURS * 3);
	CHECK(fabs(curve_at(&after, 1, 1, 4) / latency_s(2, 4, 0.3) - 1) < 0.05);
	td_service_profile_deinit(&after);
}

TEST(without_a_campaign_the_models_stay_and_the_factor_is_bounded)
{
	struct td_service_profile before = make_profile("GPU", 0.02), after, later;
	struct td_met_points points = {NULL, 0, met, 1, 1, 7};

	meet(&met[0], 3, 1000, 4);
	CHECK_EQ(td_met_learn(&points, &before, "GPU", &td_learn_default, &after, &err), 0);
	CHECK(after.met_count == 1 && after.met[0].factor > 7.99 && after.met[0].factor < 8.01);
	CHECK(fabs(curve_at(&after, 4, 0, 4) - curve_at(&before, 4, 0, 4)) < 1e-12);
	CHECK(fabs(curve_at(&after, 3, 0, 4) / curve_at(&before, 3, 0, 4) - 8) < 1e-9);
	/* Another one is met; the first keeps its time. */
	meet(&met[1], 5, 1, 4);
	points = (struct td_met_points){NULL, 0, met, 2, 1, 9};
	CHECK_EQ(td_met_learn(&points, &after, "GPU", &td_learn_default, &later, &err), 0);
	CHECK_EQ(later.met_count, 2);
	CHECK(later.met[0].time_s == 9 && later.met[0].layers[0] > 4);
	CHECK(later.met[1].time_s == 7 && later.met[1].factor > 7.99);
	td_service_profile_deinit(&after);
	td_service_profile_deinit(&later);
}

TEST(only_so_many_companies_are_kept_and_they_are_the_last)
{
	struct td_service_profile before = make_profile("GPU", 0.02), after;
	struct td_met_points points = {NULL, 0, met, 64, 64, 7};

	for (uint32_t i = 0; i < 64; i++)
		meet(&met[i], i + 1, 1, 4);
	CHECK_EQ(td_met_learn(&points, &before, "GPU", &td_learn_default, &after, &err), 0);
	CHECK_EQ(after.met_count, TD_PROFILE_MET_MAX);
	CHECK(after.met[0].layers[0] > 63 && after.met[31].layers[0] > 32);
	td_service_profile_deinit(&after);
}

TEST(bad_points_are_refused)
{
	struct td_service_profile before = make_profile("GPU", 0.02), after;
	struct td_met_points points = {NULL, 0, met, 1, 1, 7};

	meet(&met[0], 3, 1, 4);
	CHECK_EQ(td_met_learn(&points, NULL, "GPU", &td_learn_default, &after, &err), -EINVAL);
	met[0].latency_s = NAN;
	CHECK_EQ(td_met_learn(&points, &before, "GPU", &td_learn_default, &after, &err), -EINVAL);
	CHECK(strstr(err.msg, "measurement 1"));
}
