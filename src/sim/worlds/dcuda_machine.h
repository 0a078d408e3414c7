/*
 * The machine of DCUDA's experiments: four GPUs of one node, applications that come one after the other, stepped every 100 ms, DCUDA's own slice.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/contention.h"

#define TD_DCUDA_MACHINE_GPUS 4u
#define TD_DCUDA_MACHINE_APPS 40u

struct td_dcuda_machine_app {
	double arrive_s, work_s, core, memory_gib;
	struct td_contender contender;
	/* of the run */
	uint32_t gpu;
	double left_s, end_s, paused_until_s;
};

/* Least-loaded: by demands, or by the number of applications; or DCUDA with some of its parts. */
struct td_dcuda_how {
	bool dcuda, memory, compact, slices, by_count;
	bool in_place; /* a bound: who runs in a slice finds its memory on the GPU at no cost, and only their own is too much or not */
	bool own_pages; /* a world: who waits for its slice brings nothing in, so that a slice pages for its own part of the memory alone */
	bool fit_is_free; /* a world, the paper's premise (III-D2): who ask for no more than the GPU's cores together do not slow each other down */
	bool stack; /* not DCUDA's: who comes where no GPU has the memory goes to the one with the most in it, and not by load */
	double worst_thrash; /* 0: as calibrated */
	double group_slack;  /* 0: DCUDA's as it is */
	bool tandem;         /* tandem_cluster.h places, and an application may wait */
	bool truth; /* a bound: at every moment placed, and moved at no cost, where the truth finds all of them fastest together, under DCUDA's slices if these are set */
};

struct td_dcuda_outcome {
	double overloaded[TD_DCUDA_MACHINE_GPUS], memory_overloaded[TD_DCUDA_MACHINE_GPUS],
		imbalance; /* parts of the time */
	double slowdown, jain, utilisation, total_s, qos;
	double active_s, busy_s,
		idle_s; /* GPU-seconds: with an application, of utilisation, without */
	uint32_t migrations;
	uint32_t
		without_room; /* applications that came when no GPU had the memory for them, 90 % of its own at most */
};

/* gpu_gib: 0: memory does not matter. Applications by time of arrival. */
struct td_dcuda_outcome td_dcuda_simulate(struct td_dcuda_how how,
	const struct td_contention *contention, double gpu_gib, struct td_dcuda_machine_app *apps,
	uint32_t count);
