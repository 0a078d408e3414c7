/* The results of the experiment dcuda (exp_dcuda.c), from which exp_dcuda_rows.c makes rows. */
#pragma once

#include <stdio.h>

#include "sim/report/experiment.h"
#include "sim/worlds/dcuda_seeds.h"

#define TD_DCUDA_ORDERS_MAX (TD_DCUDA_SEEDS_MAX * TD_DCUDA_SEED_ORDERS)

/*
 * DCUDA with some of its parts, and all of it with groups that may exceed a GPU by more than a
 * tenth ("slightly", III-D3).
 */
enum {
	TD_DCUDA_BALANCE,
	TD_DCUDA_SLICES,
	TD_DCUDA_COMPACTION,
	TD_DCUDA_LARGE,
	TD_DCUDA_LARGER,
	TD_DCUDA_PARTS
};

/* The figures of one order of arrivals, or the sums over ten orders. */
struct td_dcuda_part {
	double slowdown[2], overloaded[2], jain[2], utilisation[2], active[2], busy[2], idle[2];
};

/* Two systems with the same orders of arrivals: index 0 and index 1. */
struct td_dcuda_study {
	struct td_dcuda_part orders[TD_DCUDA_ORDERS_MAX];
	double overloaded[2], slowdown[2], jain[2], utilisation[2], active[2], busy[2], idle[2];
	double least_overloaded, most_overloaded, imbalance, migrations;
	double best;     /* largest reduction of the execution time in an order */
	uint32_t better; /* number of orders in which DCUDA is better */
	/*
	 * Number of orders in which Least-Loaded slows no application, so no policy can be faster.
	 */
	uint32_t alone;
};

/*
 * DCUDA, its parts, tandem, and placements by the truth with DCUDA's slices, all against
 * Least-Loaded. At the medium load also placements by the truth without slices.
 */
struct td_dcuda_world {
	const char *name;
	enum td_variant variant;
	struct td_dcuda_study dcuda[TD_DCUDA_LOADS], sliced[TD_DCUDA_LOADS],
		part[TD_DCUDA_PARTS][TD_DCUDA_LOADS], tandem[TD_DCUDA_LOADS], truth;
};

/* Adds all rows of a world. premise: the same world where DCUDA's premise holds, or NULL. */
void td_dcuda_put_world(struct td_experiment_run *run, const struct td_dcuda_world *w,
	const struct td_dcuda_world *premise, uint32_t orders);

/* Shows DCUDA where its premise holds. The rules do not count this as a contention variant. */
void td_dcuda_put_premise(
	struct td_experiment_run *run, const struct td_dcuda_world *w, uint32_t orders);

/* Write sentences of the report: the execution time of DCUDA and of its parts, and why it loses. */
void td_dcuda_put_losses(FILE *out, const struct td_dcuda_world *w, uint32_t orders);
void td_dcuda_put_reasons(FILE *out, const struct td_dcuda_world *premise, uint32_t orders);
