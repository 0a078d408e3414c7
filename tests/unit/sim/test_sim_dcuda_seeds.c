/* dcuda's claims about three loads go by every seed. */
#include "test.h"

#include "sim/worlds/dcuda_seeds.h"

TEST(the_best_load_is_the_medium_in_every_seed_or_that_is_lost)
{
	struct td_dcuda_seed seeds[2] = {{.slowdown = {{1.5, 1.4}, {2, 1}, {3, 2.9}}},
		{.slowdown = {{1.5, 1.4}, {2, 1}, {3, 2.9}}}};
	struct td_seeds of = td_dcuda_best_at_medium(seeds, 2);

	CHECK_EQ(td_seeds_verdict(&of), TD_REPRODUCED);
	/* The means are 1.43 / 1.5, 1.45 / 2 and 2.4 / 3: best at the medium load still. */
	seeds[1] = (struct td_dcuda_seed){.slowdown = {{1.5, 1.46}, {2, 1.9}, {3, 1.9}}};
	of = td_dcuda_best_at_medium(seeds, 2);
	CHECK_EQ(of.lost, 1);
	CHECK_EQ(td_seeds_verdict(&of), TD_NOT_REPRODUCED);
}

/*
 * A policy that slows nobody would be 5 % shorter at the medium load, and DCUDA is 10 % shorter at
 * the light one. Where it is 10 % longer there, nothing forbids the claim.
 */
TEST(where_there_is_less_to_gain_at_the_medium_load_a_bound_forbids_it)
{
	struct td_dcuda_seed seed = {.slowdown = {{1.2, 1.08}, {1 / 0.95, 1.05}, {1, 1}}};
	struct td_seeds of = td_dcuda_best_at_medium(&seed, 1);

	CHECK_EQ(td_seeds_verdict(&of), TD_BOUNDED);
	seed.slowdown[TD_DCUDA_LIGHT][1] = 1.32;
	seed.slowdown[TD_DCUDA_HEAVY][1] = 0.99;
	of = td_dcuda_best_at_medium(&seed, 1);
	CHECK_EQ(td_seeds_verdict(&of), TD_NOT_REPRODUCED);
}

TEST(energy_is_in_order_in_every_seed_or_that_is_lost)
{
	struct td_dcuda_seed seeds[2] = {{.energy = {-9, -5, -1}}, {.energy = {-8, -4, -2}}};
	struct td_seeds of = td_dcuda_saves_in_order(seeds, 2);

	CHECK_EQ(td_seeds_verdict(&of), TD_REPRODUCED);
	seeds[1].energy[TD_DCUDA_HEAVY] = 0.5;
	of = td_dcuda_saves_in_order(seeds, 2);
	CHECK_EQ(td_seeds_verdict(&of), TD_NOT_REPRODUCED);
	seeds[1] = (struct td_dcuda_seed){.energy = {-4, -5, -1}};
	of = td_dcuda_saves_in_order(seeds, 2);
	CHECK_EQ(td_seeds_verdict(&of), TD_NOT_REPRODUCED);
}
