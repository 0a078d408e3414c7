/* tandem's share of a service: holds the objective that can be held, gives away what is not needed, learns from what it saw. */
#include "test.h"

#include <math.h>

#include "policy/slo_split.h"

static const uint32_t batches[] = {16, 64};
/* A batch of 16 takes 10 ms, one of 64 30 ms, three quarters of it by the share. */
static const struct td_curve curves[] = {
	{.form = TD_CURVE_HYPERBOLA, .a = 0.0025, .b = 0.0075},
	{.form = TD_CURVE_HYPERBOLA, .a = 0.0075, .b = 0.0225},
};

/* What the service really takes, `worse` times what the curve says. */
static double p99(const struct td_slo_split *split, double rate, double worse)
{
	double batch_s = td_curve_at(split->curve, split->share) * worse;

	return rate * batch_s / split->batch > 0.95 ? INFINITY
						    : (split->batch - 1) / rate + 1.2 * batch_s;
}

static uint32_t tune(struct td_slo_split *split, double rate, double worse, double factor)
{
	uint32_t rounds = 0;

	td_slo_split_begin(split, curves, batches, 2, 0.1, rate, factor);
	while (td_slo_split_observe(split, p99(split, rate, worse)))
		rounds++;
	return rounds;
}

TEST(an_objective_that_can_be_held_is_held_whatever_the_model_thought)
{
	for (double rate = 200; rate < 900; rate += 100) {
		for (double worse = 0.7; worse < 1.6; worse += 0.1) {
			struct td_slo_split split;

			CHECK(tune(&split, rate, worse, 1.2) <= TD_SLO_SPLIT_ROUNDS);
			CHECK(!split.paused);
			CHECK(p99(&split, rate, worse) <= 0.1);
			CHECK(split.share >= 0.05 && split.share <= 1);
		}
	}
}

TEST(what_it_has_learnt_saves_rounds)
{
	struct td_slo_split split;
	uint32_t first = tune(&split, 600, 1.8, 1), again = tune(&split, 600, 1.8, split.factor);

	CHECK(first >= 2);
	CHECK(again < first);
}

TEST(an_objective_that_cannot_be_held_pauses_the_jobs)
{
	struct td_slo_split split;

	tune(&split, 600, 20, 1);
	CHECK(split.paused);
	CHECK(split.share >= 1);
	CHECK(split.duty <= 0.02);
	td_slo_split_begin(&split, curves, batches, 2, 0.0001, 600, 1);
	CHECK(split.paused);
	CHECK(!td_slo_split_observe(&split, 1));
}

/* Beside jobs it takes three times as long in the part of the time in which they run. */
TEST(where_no_share_is_enough_the_jobs_run_in_a_part_of_the_time)
{
	struct td_slo_split split;

	td_slo_split_begin(&split, curves, batches, 2, 0.1, 1500, 3);
	CHECK(!split.paused);
	CHECK(split.share >= 1 && split.duty < 1);
	while (td_slo_split_observe(&split, p99(&split, 1500, 1 + 2 * split.duty)))
		CHECK(split.guest_share > 0);
	CHECK(!split.paused);
	CHECK(split.duty >= 0.02 && split.duty < 0.5);
	CHECK(p99(&split, 1500, 1 + 2 * split.duty) <= 0.1);
}

TEST(an_idle_service_gives_nearly_everything_away)
{
	struct td_slo_split split;

	tune(&split, 220, 1, 1);
	CHECK(split.share < 0.6);
}
