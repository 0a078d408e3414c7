/* The papers' claims, judged over rows, seeds, variants and guards. */
#include "test.h"

#include <string.h>

#include "sim/report/experiment.h"

/* MUXFLOW_GAINS wants all four variants, ANTMAN_JCT two, NVSHARE_CELLS none. */
#define FOUR TD_CLAIM_MUXFLOW_GAINS
#define TWO  TD_CLAIM_ANTMAN_JCT
#define ONE  TD_CLAIM_NVSHARE_CELLS

static struct td_row rows[16];
static struct td_experiment_run run;
static struct td_claim_found found;
static char text[640];

static void begin(void)
{
	memset(rows, 0, sizeof(rows));
	run = (struct td_experiment_run){.rows = rows, .row_room = 16};
}

/* A row of five seeds: so many lost, of these so many by the guard, and forbidden. */
static void put(enum td_claim claim, enum td_variant variant, uint32_t lost, uint32_t unguarded,
	uint32_t forbidden)
{
	struct td_seeds seeds = {0};

	for (uint32_t s = 0; s < 5; s++) {
		bool is_lost = s < lost;

		td_seed_add_guarded(&seeds, !is_lost || s < unguarded, !is_lost || s >= unguarded,
			s < forbidden);
	}
	run.last = &rows[run.row_count++];
	snprintf(run.last->metric, sizeof(run.last->metric), "row %u", run.row_count);
	snprintf(run.last->ours, sizeof(run.last->ours), "%u.5x", run.row_count);
	td_row_claim(&run, claim, variant, &seeds);
}

static enum td_verdict fold(enum td_claim claim)
{
	CHECK(td_claim_fold(rows, run.row_count, claim, &found));
	td_claim_why(&found, claim, text, sizeof(text));
	return found.verdict;
}

TEST(a_claim_that_holds_in_every_seed_of_every_variant_is_reproduced)
{
	begin();
	for (int v = 0; v < TD_VARIANT_N; v++)
		put(FOUR, (enum td_variant)v, 0, 0, 0);
	CHECK_EQ(fold(FOUR), TD_REPRODUCED);
	CHECK_STR(text, "holds in fitted, proportional, doubled, halved");
}

TEST(an_order_that_holds_in_three_of_four_variants_is_not_reproduced)
{
	begin();
	for (int v = 0; v < TD_VARIANT_N; v++)
		put(FOUR, (enum td_variant)v, v == TD_DOUBLED ? 5 : 0, 0, 0);
	CHECK_EQ(fold(FOUR), TD_NOT_REPRODUCED);
	CHECK_STR(text, "in doubled 5 of 5 checks fail, bounds forbid 0; holds in fitted, "
			"proportional, halved; not forbidden: 1 row, the first: row 3: 3.5x");
}

TEST(variants_that_fail_alike_are_named_together)
{
	begin();
	for (int v = 0; v < TD_VARIANT_N; v++)
		put(FOUR, (enum td_variant)v, v == TD_PROPORTIONAL ? 1 : 3, 0, 1);
	fold(FOUR);
	CHECK(!strncmp(text,
		"in fitted, doubled, halved 3 of 5 checks fail, bounds forbid 1; in proportional 1 "
		"of 5 checks fails, forbidden by bounds; not forbidden: 3 rows",
		strlen("in fitted, doubled, halved 3 of 5 checks fail, bounds forbid 1; in "
		       "proportional 1 of 5 checks fails, forbidden by bounds; not forbidden: 3 "
		       "rows")));
}

TEST(one_seed_of_one_row_is_enough_to_lose_a_claim)
{
	begin();
	put(TWO, TD_FITTED, 0, 0, 0);
	put(TWO, TD_FITTED, 1, 0, 0);
	put(TWO, TD_PROPORTIONAL, 0, 0, 0);
	CHECK_EQ(fold(TWO), TD_NOT_REPRODUCED);
	CHECK_STR(text,
		"in fitted 1 of 10 checks fails, bounds forbid 0; holds in proportional; not "
		"forbidden: 1 row, the first: row 2: 2.5x");
}

TEST(an_order_whose_guard_fails_does_not_count)
{
	struct td_seeds seeds = {0};
	char note[96] = "";

	td_seed_add_guarded(&seeds, true, false, false);
	CHECK_EQ(td_seeds_verdict(&seeds), TD_NOT_REPRODUCED);
	td_seeds_put(&seeds, note, sizeof(note));
	CHECK_STR(note, "; in 1 the order holds, but not the guard; a bound forbids 0 of the 1 "
			"seeds that lose");

	begin();
	put(TWO, TD_FITTED, 4, 4, 0);
	put(TWO, TD_PROPORTIONAL, 0, 0, 0);
	CHECK_EQ(rows[0].verdict, TD_NOT_REPRODUCED);
	CHECK_EQ(fold(TWO), TD_NOT_REPRODUCED);
	CHECK_STR(text,
		"in fitted 4 of 5 checks fail, 4 by the guard alone, bounds forbid 0; holds "
		"in proportional; not forbidden: 1 row, the first: row 1: 1.5x");
}

/* A bound of one row excuses nothing in another. */
TEST(a_claim_is_bounded_when_every_check_that_fails_is_forbidden)
{
	begin();
	put(TWO, TD_FITTED, 3, 0, 3);
	put(TWO, TD_PROPORTIONAL, 2, 1, 2);
	CHECK_EQ(rows[0].verdict, TD_BOUNDED);
	CHECK_EQ(fold(TWO), TD_BOUNDED);
	CHECK_STR(text, "in fitted 3 of 5 checks fail, forbidden by bounds; in proportional 2 of 5 "
			"checks fail, 1 by the guard alone, forbidden by bounds");
	put(TWO, TD_FITTED, 1, 0, 0);
	CHECK_EQ(fold(TWO), TD_NOT_REPRODUCED);
	CHECK_EQ(found.open, 1);
	CHECK(found.first_open == &rows[2]);
	put(TWO, TD_PROPORTIONAL, 1, 0, 0);
	CHECK_EQ(fold(TWO), TD_NOT_REPRODUCED);
	CHECK_EQ(found.open, 2);
	CHECK(found.first_open == &rows[2]);
}

/* Five forbidden seeds where the claim holds do not make up for one that loses. */
TEST(a_bound_where_nothing_is_lost_excuses_nothing)
{
	begin();
	put(ONE, TD_FITTED, 0, 0, 5);
	put(ONE, TD_FITTED, 1, 0, 0);
	CHECK_EQ(fold(ONE), TD_NOT_REPRODUCED);
	CHECK_EQ(found.seeds.forbidden, 0);
}

TEST(a_variant_that_was_not_run_is_none_in_which_the_order_holds)
{
	begin();
	put(TWO, TD_FITTED, 0, 0, 0);
	CHECK_EQ(fold(TWO), TD_NOT_REPRODUCED);
	CHECK_STR(text, "holds in fitted; not run in proportional");
	rows[0].variant = TD_PROPORTIONAL;
	CHECK_EQ(fold(TWO), TD_NOT_REPRODUCED);
	put(TWO, TD_FITTED, 2, 0, 2);
	CHECK_EQ(fold(TWO), TD_BOUNDED);
	begin();
	put(TWO, TD_FITTED, 2, 0, 2); /* the missing one might lose for no bound's sake */
	CHECK_EQ(fold(TWO), TD_NOT_REPRODUCED);
}

TEST(a_claim_without_variants_needs_none)
{
	begin();
	put(ONE, TD_FITTED, 0, 0, 0);
	put(ONE, TD_FITTED, 0, 0, 0);
	CHECK_EQ(fold(ONE), TD_REPRODUCED);
	CHECK_STR(text, "all 10 checks hold");
	put(ONE, TD_FITTED, 1, 0, 1);
	CHECK_EQ(fold(ONE), TD_BOUNDED);
	CHECK_STR(text, "1 of 15 checks fails, forbidden by bounds");
}

static void put_plain(
	enum td_claim claim, enum td_verdict verdict, const char *paper, const char *ours)
{
	run.last = &rows[run.row_count++];
	run.last->verdict = verdict;
	snprintf(run.last->paper, sizeof(run.last->paper), "%s", paper);
	snprintf(run.last->ours, sizeof(run.last->ours), "%s", ours);
	td_row_claim(&run, claim, TD_FITTED, NULL);
}

TEST(a_row_of_a_mean_is_one_check)
{
	begin();
	put_plain(ONE, TD_REPRODUCED, "", "");
	CHECK_EQ(fold(ONE), TD_REPRODUCED);
	put_plain(ONE, TD_BOUNDED, "", "");
	CHECK_EQ(fold(ONE), TD_BOUNDED);
	put_plain(ONE, TD_NOT_REPRODUCED, "", "");
	CHECK_EQ(fold(ONE), TD_NOT_REPRODUCED);
	CHECK_EQ(found.seeds.count, 3);
	CHECK_EQ(found.seeds.lost, 2);
}

TEST(what_is_only_printed_is_shown)
{
	begin();
	put_plain(TD_CLAIM_MUDI_PREDICTION, TD_SHOWN, "0.23", "0.31");
	CHECK_EQ(fold(TD_CLAIM_MUDI_PREDICTION), TD_SHOWN);
	CHECK_STR(text, "no rule to hold: printed in 1 row");
	/* where an order is claimed, printing it is no run of a variant */
	begin();
	put_plain(TWO, TD_SHOWN, "", "");
	put_plain(TWO, TD_SHOWN, "", "");
	rows[1].variant = TD_PROPORTIONAL;
	CHECK_EQ(fold(TWO), TD_NOT_REPRODUCED);
}

TEST(a_claim_without_rows_is_not_judged)
{
	begin();
	put(ONE, TD_FITTED, 0, 0, 0);
	CHECK(!td_claim_fold(rows, run.row_count, TWO, &found));
	CHECK(!td_claim_fold(rows, 0, ONE, &found));
	run.last = NULL; /* there was no memory for the row */
	td_row_claim(&run, TWO, TD_FITTED, NULL);
	CHECK(!td_claim_fold(rows, run.row_count, TWO, &found));
}

static const char *ours(enum td_claim claim)
{
	td_claim_ours(rows, run.row_count, claim, text, sizeof(text));
	return text;
}

TEST(what_came_out_stands_by_the_papers_figures)
{
	begin();
	CHECK_STR(ours(ONE), "");
	put_plain(ONE, TD_SHOWN, "2x", "1.27x");
	CHECK_STR(ours(ONE), "1.27x");
	put_plain(ONE, TD_SHOWN, "-42 %", "mean +20.1 %");
	put_plain(ONE, TD_SHOWN, "2x", "1.09x");
	put_plain(ONE, TD_SHOWN, "-42 %", "mean -4.3 %");
	put_plain(ONE, TD_SHOWN, "2x", "1.1x");
	CHECK_STR(ours(ONE), "1.09x to 1.27x; mean -4.3 % to mean +20.1 %");
	put_plain(ONE, TD_SHOWN, "OOM", "OOM");
	put_plain(ONE, TD_SHOWN, "-6 / -3 %", "-6.1 / -3.3 %");
	put_plain(ONE, TD_SHOWN, "-6 / -3 %", "-9.1 / +3.3 %");
	put_plain(ONE, TD_SHOWN, "-6 / -3 %", "-6.1 / -3.3 %");
	CHECK_STR(ours(ONE), "1.09x to 1.27x; mean -4.3 % to mean +20.1 %; OOM; -6.1 / -3.3 % and "
			     "-9.1 / +3.3 %");
	for (int k = 0; k < 3; k++)
		put_plain(ONE, TD_SHOWN, "-6 / -3 %", "-9.1 / +3.3 %");
	CHECK_STR(ours(ONE), "1.09x to 1.27x; mean -4.3 % to mean +20.1 %; OOM; see the 6 rows");
	put_plain(ONE, TD_SHOWN, "5x", "1x");
	CHECK_STR(ours(ONE), "see the rows");
	td_claim_ours(rows, 5, ONE, text, 8);
	CHECK(!strncmp(text, "1.09x ", 6) && strlen(text) < 8); /* cut where it does not fit */
}

TEST(a_few_rows_of_many_figures_are_not_read_in_one_cell)
{
	begin();
	for (int k = 0; k < 2; k++)
		put_plain(ONE, TD_SHOWN, "rise",
			k ? "0.0052, 2.4, 6.4931, 0.0030 points" : "1, 2, 3");
	CHECK_STR(ours(ONE), "1, 2, 3 and 0.0052, 2.4, 6.4931, 0.0030 points");
	put_plain(ONE, TD_SHOWN, "rise", "0.0034, 0.0000, 15.8138, 0.0055 points more");
	CHECK_STR(ours(ONE), "see the 3 rows");
}

TEST(every_claim_has_its_experiment_and_rule)
{
	for (int c = TD_CLAIM_NONE + 1; c < TD_CLAIM_N; c++) {
		CHECK(*td_claims[c].experiment && *td_claims[c].metric && *td_claims[c].rule);
		CHECK(td_claims[c].variants < 1u << TD_VARIANT_N);
	}
	CHECK_EQ(td_claims[FOUR].variants, 15);
	CHECK_EQ(td_claims[TWO].variants, 3);
	CHECK_EQ(td_claims[ONE].variants, 0);
}

/* It cannot come out otherwise, so it is no evidence. */
TEST(what_holds_by_construction_is_not_called_reproduced)
{
	begin();
	put_plain(ONE, TD_BY_CONSTRUCTION, "OOM", "OOM");
	CHECK_EQ(fold(ONE), TD_BY_CONSTRUCTION);
	CHECK_STR(text, "1 row holds by construction");
	put_plain(ONE, TD_REPRODUCED, "2x", "2x");
	CHECK_EQ(fold(ONE), TD_REPRODUCED);
	CHECK_EQ(found.seeds.count, 1);
	CHECK_STR(text, "the one check holds; 1 row holds by construction");
	put_plain(ONE, TD_NOT_REPRODUCED, "2x", "3x");
	CHECK_EQ(fold(ONE), TD_NOT_REPRODUCED);
}

TEST(by_construction_is_a_run_of_its_variant)
{
	begin();
	put_plain(TWO, TD_BY_CONSTRUCTION, "none", "0");
	CHECK_EQ(fold(TWO), TD_NOT_REPRODUCED);
	put_plain(TWO, TD_BY_CONSTRUCTION, "none", "0");
	rows[1].variant = TD_PROPORTIONAL;
	CHECK_EQ(fold(TWO), TD_BY_CONSTRUCTION);
	CHECK_STR(text, "2 rows hold by construction");
}

static enum td_verdict beside(const double *values, uint32_t count, bool guard)
{
	begin();
	CHECK(td_row_add(&run, TD_SHOWN));
	td_row_beside(&run, values, count, 1, guard);
	return rows[0].verdict;
}

TEST(better_is_said_only_when_the_interval_excludes_no_difference)
{
	static const double more[7] = {1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7},
			    less[7] = {0.9, 0.8, 0.9, 0.7, 0.9, 0.8, 0.9},
			    most[7] = {1.3, 0.9, 1.2, 0.8, 1.1, 0.9, 1.4};

	CHECK_EQ(beside(more, 7, true), TD_BETTER);
	CHECK_STR(rows[0].interval, "1.2 to 1.6");
	CHECK_EQ(beside(less, 7, true), TD_LOSS);
	/* Four of seven are better, and the median is: that may be chance. */
	CHECK_EQ(beside(most, 7, true), TD_NO_DIFFERENCE);
	/* Without its guard no gain counts. */
	CHECK_EQ(beside(more, 7, false), TD_LOSS);
	CHECK_EQ(beside(more, 5, true), TD_NO_DIFFERENCE);
	CHECK_STR(rows[0].interval, "too few seeds");
}
