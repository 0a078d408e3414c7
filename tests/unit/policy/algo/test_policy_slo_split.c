/*
 * tandem's share of a service: holds a feasible objective, gives away what is not needed, and
 * learns from what it saw.
 */
#include "test.h"

#include <math.h>

#include "policy/algo/fit/slo_split.h"

static const uint32_t batches[] = {16, 64};
/* A batch of 16 takes 10 ms, one of 64 30 ms, three quarters of it by the share. */
static const struct td_curve curves[] = {
	{.form = TD_CURVE_HYPERBOLA, .a = 0.0025, .b = 0.0075},
	{.form = TD_CURVE_HYPERBOLA, .a = 0.0075, .b = 0.0225},
};

/* Returns the service's true P99, `worse` times that of the curve. */
static double p99(const struct td_slo_split *split, double rate, double worse)
{
	double batch_s = td_curve_at(split->curve, split->share) * worse;

	return rate * batch_s / split->batch > 0.95 ? INFINITY
						    : (split->batch - 1) / rate + 1.2 * batch_s;
}

static double busy(const struct td_slo_split *split, double rate, double worse)
{
	return fmin(1, rate * td_curve_at(split->curve, split->share) * worse / split->batch);
}

static uint32_t tune(struct td_slo_split *split, double rate, double worse, double factor)
{
	uint32_t rounds = 0;

	td_slo_split_begin(split, curves, batches, 2, 0.1, rate, factor);
	while (td_slo_split_observe(split, p99(split, rate, worse), busy(split, rate, worse)))
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

/*
 * Settles a service that jobs do not slow within the objective, or one that holds it under its cap
 * alone.
 */
static struct td_slo_split settle_capped(bool needs_cap)
{
	struct td_slo_split split;

	td_slo_split_begin(&split, curves, batches, 2, 0.1, 300, 1.2);
	CHECK(split.share < 0.75 && !(split.room > 0));
	while (td_slo_split_observe(&split, needs_cap && split.share >= 1 ? 0.2 : 0.08, 0.5))
		CHECK(!split.paused);
	return split;
}

TEST(a_service_is_not_capped_where_that_wins_nothing)
{
	struct td_slo_split split = settle_capped(false);

	CHECK(split.share >= 1);
	CHECK(split.guest_share * split.duty > 0.9); /* P99 does not mind, so they have all */
}

TEST(a_service_that_needs_its_cap_is_capped_again)
{
	struct td_slo_split split = settle_capped(true);

	CHECK(split.share < 0.75);
	CHECK(fabs(split.guest_share - (1 - split.share)) < 1e-12);
	CHECK(split.duty >= 1 && split.room <= 0 && !split.paused);
	CHECK(fabs(split.share - split.capped) < 1e-12);
}

/*
 * When the cap goes it has no less than under the cap, so that the trial takes nothing from the
 * jobs.
 */
TEST(trying_without_a_cap_takes_nothing_from_the_jobs)
{
	struct td_slo_split split;
	double before = 0;

	td_slo_split_begin(&split, curves, batches, 2, 0.1, 300, 1.2);
	do {
		if (split.room > 0)
			CHECK(split.guest_share * split.duty >= before - 1e-12);
		before = split.guest_share * split.duty;
	} while (td_slo_split_observe(&split, 0.08, 0.5));
	CHECK(split.room > 0);
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
	CHECK(!td_slo_split_observe(&split, 1, 1));
}

/* Beside jobs it takes three times as long in the part of the time in which they run. */
TEST(where_no_share_is_enough_the_jobs_run_in_a_part_of_the_time)
{
	struct td_slo_split split;

	td_slo_split_begin(&split, curves, batches, 2, 0.1, 1500, 3);
	CHECK(!split.paused);
	CHECK(split.share >= 1 && split.duty < 1);
	while (td_slo_split_observe(&split, p99(&split, 1500, 1 + 2 * split.duty),
		busy(&split, 1500, 1 + 2 * split.duty)))
		CHECK(split.guest_share > 0);
	CHECK(!split.paused);
	CHECK(split.duty >= 0.02 && split.duty < 0.5);
	CHECK(p99(&split, 1500, 1 + 2 * split.duty) <= 0.1);
}

/*
 * Returns the mean latency, relative to alone, of a service that is busy for `load` alone and takes
 * `slower` as long beside jobs.
 */
static double strain(double load, double slower)
{
	return load * slower >= 1 ? INFINITY
				  : slower * (1 + load * slower / (2 * (1 - load * slower))) /
					    (1 + load / (2 * (1 - load)));
}

/* The slowdown by jobs in that room grows more than in proportion. */
static double slower_by(double press, double room)
{
	return 1 + press * room * sqrt(room);
}

/* The objective is so many times the latency alone, 95 % of it are held. */
/* How often the objective was missed on the way up; on the way down it is until something holds. */
static uint32_t check_room(double load, double press, double times)
{
	static const struct td_curve curve = {.form = TD_CURVE_HYPERBOLA, .a = 0.006, .b = 0.004};
	static const uint32_t one = 1;
	const double alone_s = 0.01 * (1 + load / (2 * (1 - load)));
	double slower, most = 1, held = 0.95 * times;
	struct td_slo_split split;
	uint32_t missed = 0;

	td_slo_split_begin(&split, &curve, &one, 1, times * alone_s, load / 0.01, 3 * times);
	CHECK(split.room > 0 && split.share >= 1);
	do {
		CHECK(fabs(split.guest_share * split.duty - split.room) < 1e-12);
		slower = slower_by(press, split.room);
		missed += split.held.room > 0 && strain(load, slower) > times;
	} while (td_slo_split_observe(
		&split, alone_s * strain(load, slower), fmin(1, load * slower)));
	if (split.paused) {
		CHECK(strain(load, slower_by(press, 0.01)) > held);
		return missed;
	}
	CHECK(strain(load, slower_by(press, split.room)) <= held);
	while (strain(load, slower_by(press, most)) > held)
		most *= 0.99;
	CHECK(split.room >= 0.8 * most);
	return missed;
}

TEST(jobs_beside_an_uncapped_service_have_what_its_objective_leaves)
{
	uint32_t missed = 0, cases = 0;

	for (double load = 0.05; load < 0.8; load += 0.05) {
		for (double press = 0; press < 6; press += 0.1) {
			CHECK(check_room(load, press, 1.25) == 0);
			missed += check_room(load, press, 2);
			cases++;
		}
	}
	CHECK(missed * 20 < cases); /* a queue may rise more than twice as much as it did */
}

/*
 * A batch of 64 in 30 ms at most; the objective is so far away that P99 shows nothing until the
 * queue has no end.
 */
TEST(a_share_does_not_shrink_until_the_queue_has_no_end)
{
	for (double rate = 200; rate < 1500; rate += 50) {
		struct td_slo_split split;

		td_slo_split_begin(&split, curves, batches, 2, 3, rate, 3);
		while (td_slo_split_observe(&split, p99(&split, rate, 1), busy(&split, rate, 1)))
			CHECK(busy(&split, rate, 1) <= 0.8 + 1e-9);
	}
}

TEST(a_miss_grows_by_what_it_lacks)
{
	struct td_slo_split split;
	double before;

	td_slo_split_begin(&split, curves, batches, 2, 0.1, 400, 1);
	before = split.share;
	CHECK(td_slo_split_observe(&split, 0.1 * 0.95 * 1.4, 0.5));
	CHECK(fabs(split.share / before - 1.4) < 1e-9);
}

/* 85 % of the time at work without anybody beside it, and still within its objective. */
TEST(a_busy_service_that_holds_alone_has_jobs_in_the_least_room_first)
{
	static const struct td_curve curve = {.form = TD_CURVE_HYPERBOLA, .a = 0.006, .b = 0.004};
	static const uint32_t one = 1;
	struct td_slo_split split;

	td_slo_split_begin(&split, &curve, &one, 1, 0.05, 85, 1.2);
	CHECK(!split.paused);
	CHECK(split.share >= 1 && split.duty <= 0.02 + 1e-9);
	CHECK(td_slo_split_observe(&split, 0.06, 0.86));
	CHECK(split.paused);
}

TEST(an_idle_service_gives_nearly_everything_away)
{
	struct td_slo_split split;

	tune(&split, 220, 1, 1);
	CHECK(split.guest_share * split.duty > 0.4);
}
