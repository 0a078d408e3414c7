/* A campaign's points become a profile that predicts what was measured, and what was not. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

#include "base/err.h"
#include "learn/campaign.h"

#define NEIGHBOURS 5
#define SHARES     6

static const uint32_t batches[] = {2, 4, 8, 16, 32};
static const double shares[SHARES] = {0.1, 0.2, 0.4, 0.6, 0.8, 0.9};
static struct td_campaign_point points[NEIGHBOURS * 5 * SHARES];
static struct td_err err;

/* Two lines that meet at a share of 40 %; the more layers beside it and the larger, the longer. */
static double latency_s(double layers, double batch, double share)
{
	double knee = 0.01 + 0.002 * log2(batch) + 0.001 * layers;

	return knee + (share < 0.4 ? 0.2 : 0.005) * (0.4 - share);
}

static uint32_t measure(uint32_t neighbours)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < neighbours; i++)
		for (uint32_t b = 0; b < 5; b++)
			for (uint32_t s = 0; s < SHARES; s++)
				points[n++] = (struct td_campaign_point){.layers = {3 * i, i},
					.batch = batches[b],
					.share = shares[s],
					.latency_s = latency_s(3 * i, batches[b], shares[s])};
	return n;
}

static int learn(uint32_t count, struct td_service_profile *ret)
{
	struct td_learn_options options = td_learn_default;

	options.epochs = 20;
	err = (struct td_err){0};
	return td_campaign_learn(points, count, "Software GPU", &options, ret, &err);
}

TEST(a_profile_predicts_curves_of_neighbours_that_were_never_measured)
{
	struct td_service_profile profile;
	struct td_mudi_service curves;
	const double between[TD_MUDI_LAYERS] = {7.5, 2.5};

	CHECK_EQ(learn(measure(NEIGHBOURS), &profile), 0);
	CHECK(profile.batch_min == 2 && profile.batch_max == 32);
	CHECK_EQ(profile.curve_count, NEIGHBOURS * 5);
	CHECK(!strcmp(profile.gpu, "Software GPU"));
	curves = td_service_profile_curves(&profile);
	for (uint32_t s = 0; s < SHARES; s++) {
		struct td_curve curve = td_mudi_curve(&curves, between, 12);
		double truth = latency_s(7.5, 12, shares[s]);

		CHECK(fabs(td_curve_at(&curve, shares[s]) / truth - 1) < 0.02);
	}
	for (unsigned m = 0; m < TD_PROFILE_MODELS; m++)
		CHECK(profile.error[m] >= 0 && profile.error[m] < 0.01);
	td_service_profile_deinit(&profile);
}

TEST(the_order_of_the_points_changes_nothing)
{
	uint32_t count = measure(NEIGHBOURS);
	struct td_service_profile profile;
	void *first, *second;
	size_t size, size_second;

	CHECK_EQ(learn(count, &profile), 0);
	CHECK_EQ(td_service_profile_to_bytes(&profile, &first, &size), 0);
	td_service_profile_deinit(&profile);
	for (uint32_t i = 0; i < count / 2; i++) {
		struct td_campaign_point other = points[i];

		points[i] = points[count - 1 - i];
		points[count - 1 - i] = other;
	}
	CHECK_EQ(learn(count, &profile), 0);
	CHECK_EQ(td_service_profile_to_bytes(&profile, &second, &size_second), 0);
	CHECK(size == size_second && !memcmp(first, second, size));
	free(first);
	free(second);
	td_service_profile_deinit(&profile);
}

TEST(what_cannot_be_learnt_from_is_said)
{
	struct td_service_profile profile;

	CHECK_EQ(learn(measure(1), &profile), -EINVAL);
	CHECK(strstr(err.msg, "5 curves are too few"));
	(void)measure(NEIGHBOURS);
	CHECK_EQ(learn(2, &profile), -EINVAL);
	CHECK(strstr(err.msg, "batch 2 beside a neighbour was measured with only 2 shares"));
	points[7].latency_s = -1;
	CHECK_EQ(learn(20, &profile), -EINVAL);
	CHECK(strstr(err.msg, "point 8 (batch 4, share 0.2, latency -1 s) is not valid"));
	CHECK_EQ(learn(0, &profile), -EINVAL);
}

TEST(a_neighbour_that_is_left_out_is_predicted_better_than_by_the_mean_of_all)
{
	struct td_learn_options options = td_learn_default;
	struct td_campaign_judged judged;
	uint32_t count = measure(NEIGHBOURS);

	options.epochs = 20;
	CHECK_EQ(td_campaign_judge(points, count, &options, &judged, &err), 0);
	/* The first one has no layers: it is nobody. */
	CHECK_EQ(judged.neighbours, NEIGHBOURS - 1);
	CHECK_EQ(judged.curves, (NEIGHBOURS - 1) * 5);
	CHECK(judged.of_mean[TD_PROFILE_KNEE_LATENCY] > 0.1);
	CHECK(judged.error[TD_PROFILE_KNEE_LATENCY] <
		0.1 * judged.of_mean[TD_PROFILE_KNEE_LATENCY]);
	/* All knees are at one share. */
	CHECK(judged.of_mean[TD_PROFILE_KNEE_SHARE] < 1e-9);
	CHECK_EQ(td_campaign_judge(points, measure(3), &options, &judged, &err), -EINVAL);
	CHECK(strstr(err.msg, "only 2 programs beside the service"));
}
