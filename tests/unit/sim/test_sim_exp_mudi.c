/* Verdicts of mudi-sim, by outcomes that are made up. */
#include "test.h"

#include "sim/worlds/mudi_world.h"

static struct td_mudi_outcome low[2], high[2];

/* Violations at load 1 and 4 of GSLICE, gpulets, MuxFlow, Mudi; all take as long at both. */
static void make(uint32_t seed, const double at_low[4], const double at_high[4])
{
	low[seed] = high[seed] = (struct td_mudi_outcome){.iterations = 0};
	for (int p = 0; p < TD_MUDI_POLICIES; p++)
		low[seed].ct_s[p] = high[seed].ct_s[p] = 1;
	for (int p = 0; p < 4; p++) {
		low[seed].late[p] = at_low[p];
		high[seed].late[p] = at_high[p];
	}
}

static struct td_row put(void)
{
	struct td_experiment_run run = {.seeds = 2, .name = "mudi-sim"};
	struct td_row row;

	td_mudi_put_loads(&run, TD_FITTED, low, high);
	CHECK_EQ(run.row_count, 2);
	row = run.rows[0];
	free(run.rows);
	return row;
}

TEST(violations_rise_slowest_in_every_seed_or_the_order_is_lost)
{
	static const double none[4] = {0, 0, 0, 0}, slow[4] = {2, 2, 9, 1},
			    fast[4] = {2, 1, 9, 1.5};
	struct td_row row;

	make(0, none, slow);
	make(1, none, slow);
	row = put();
	CHECK_EQ(row.verdict, TD_REPRODUCED);
	CHECK_STR(row.spread, "1 to 1");
	/* In the mean Mudi's is the slowest still: 1.25 beside gpulets' 1.5. */
	make(1, none, fast);
	row = put();
	CHECK_EQ(row.verdict, TD_NOT_REPRODUCED);
	CHECK_EQ(row.seeds.lost, 1);
	CHECK_STR(row.ours, "2.0000, 1.5000, 9.0000, 1.2500; 0.0000");
}

/* The rise counts, not the end: a policy that rises as much is no faster. */
TEST(who_begins_with_more_may_rise_less)
{
	static const double some[4] = {1, 0, 0, 3}, later[4] = {3, 2, 2, 4},
			    alike[4] = {2, 2, 2, 4};

	make(0, some, later);
	make(1, some, later);
	CHECK_EQ(put().verdict, TD_REPRODUCED);
	make(1, some, alike);
	CHECK_EQ(put().verdict, TD_NOT_REPRODUCED);
}
