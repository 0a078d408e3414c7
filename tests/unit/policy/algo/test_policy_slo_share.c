/* Shares under an objective, by hand and against both of its conditions. */
#include "test.h"

#include <math.h>

#include "policy/algo/fit/slo_share.h"
#include "policy_random.h"

static const struct td_slo slo = {
	.objective_s = 0.1,
	.rate_per_s = 200,
	.batch = 16,
	.load_max = 0.8,
	.headroom = 0.1,
	.share_min = 0.01,
};
static const struct td_curve curve = {.form = TD_CURVE_HYPERBOLA, .a = 0.005, .b = 0.004};

static int near(double a, double b)
{
	return fabs(a - b) < 1e-12;
}

TEST(waiting_for_a_full_batch_counts)
{
	/* 15 / 200 = 75 ms of the 100 are gone; stability allows 0.8 x 16 / 200 = 64 ms */
	CHECK(near(td_slo_latency_limit_s(&slo), 0.025));
}

TEST(a_service_must_keep_up_with_its_requests)
{
	struct td_slo fast = slo;

	/* 15 / 2000 = 7.5 ms; 0.8 x 16 / 2000 = 6.4 ms */
	fast.rate_per_s = 2000;
	CHECK(near(td_slo_latency_limit_s(&fast), 0.0064));
}

TEST(the_smallest_share_gets_a_tenth_more)
{
	double share;

	/* 5 + 4 / x = 25 ms: x = 0.2 */
	CHECK_EQ(td_slo_smallest_share(&slo, &curve, &share), 0);
	CHECK(near(share, 0.22));
}

TEST(an_objective_that_the_whole_gpu_cannot_hold_is_reported)
{
	struct td_slo tight = slo;
	double share;

	tight.objective_s = 0.083;
	CHECK_EQ(td_slo_smallest_share(&tight, &curve, &share), 1); /* 8 ms, and 9 at best */
	CHECK(near(share, 1));
	tight.objective_s = 0.0841;
	CHECK_EQ(td_slo_smallest_share(&tight, &curve, &share), 0);
	CHECK(near(share, 1));    /* 0.976 and a tenth: no more than all */
	tight.objective_s = 0.07; /* less than the batch takes to fill */
	CHECK_EQ(td_slo_smallest_share(&tight, &curve, &share), 1);
}

TEST(without_requests_only_the_objective_counts)
{
	struct td_slo idle = slo;
	double share;

	idle.rate_per_s = 0;
	CHECK(near(td_slo_latency_limit_s(&idle), 0.1));
	CHECK_EQ(td_slo_smallest_share(&idle, &curve, &share), 0);
	CHECK(near(share, 0.004 / 0.095 * 1.1));
}

TEST(the_share_holds_both_conditions_whenever_it_says_so)
{
	uint64_t seed = 77;
	int held = 0;

	for (int i = 0; i < 20000; i++) {
		struct td_slo any = slo;
		struct td_curve c = {.form = TD_CURVE_HYPERBOLA,
			.a = 0.02 * random_unit(&seed),
			.b = 0.02 * random_unit(&seed)};
		double share, latency;

		any.objective_s = 0.01 + 0.2 * random_unit(&seed);
		any.rate_per_s = 1000 * random_unit(&seed);
		any.batch = 1 + random_below(&seed, 64);
		if (td_slo_smallest_share(&any, &c, &share))
			continue;
		held++;
		latency = td_curve_at(&c, share);
		CHECK(share > 0 && share <= 1);
		CHECK((any.batch - 1) / any.rate_per_s + latency <= any.objective_s + 1e-9);
		CHECK(any.rate_per_s * latency / any.batch <= 0.8 + 1e-9);
	}
	CHECK(held > 1000);
}

TEST(a_rate_that_moved_by_half_calls_for_tuning)
{
	CHECK(!td_slo_must_retune(200, 300));
	CHECK(!td_slo_must_retune(200, 100));
	CHECK(td_slo_must_retune(200, 301));
	CHECK(td_slo_must_retune(200, 99));
	CHECK(td_slo_must_retune(0, 1));
}

TEST(offline_work_gets_the_sms_that_the_service_leaves)
{
	/* The paper's figure 8: A uses 20 %, B 80 %. */
	CHECK_EQ(td_dynamic_sm_ppm(&td_dynamic_sm_default, 200000), 800000);
	CHECK_EQ(td_dynamic_sm_ppm(&td_dynamic_sm_default, 800000), 200000);
	CHECK_EQ(td_dynamic_sm_ppm(&td_dynamic_sm_default, 204999), 790000);
	CHECK_EQ(td_dynamic_sm_ppm(&td_dynamic_sm_default, 950000), 100000);
	CHECK_EQ(td_dynamic_sm_ppm(&td_dynamic_sm_default, UINT32_MAX), 100000);
	CHECK_EQ(td_dynamic_sm_ppm(&td_dynamic_sm_default, 0), 1000000);
}

TEST(a_reserve_is_kept_for_bursts)
{
	struct td_dynamic_sm params = td_dynamic_sm_default;

	params.reserve_ppm = 150000;
	params.ceiling_ppm = 700000;
	CHECK_EQ(td_dynamic_sm_ppm(&params, 200000), 650000);
	CHECK_EQ(td_dynamic_sm_ppm(&params, 0), 700000);
}
