/*
 * The machine of DCUDA's experiments: four GPUs of one node, and applications that come one after
 * the other, stepped every 100 ms, DCUDA's own slice.
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
	/*
	 * A bound: applications that run in a slice find their memory on the GPU at no cost, and
	 * only their own may exceed it.
	 */
	bool in_place;
	/*
	 * A world: applications that wait for their slice bring nothing in, so a slice pages only
	 * for its own memory.
	 */
	bool own_pages;
	/*
	 * A world, the paper's premise (III-D2): applications that together fit the GPU's cores do
	 * not slow each other down.
	 */
	bool fit_is_free;
	/*
	 * An addition to DCUDA: where no GPU has the memory, a newcomer goes to the one with the
	 * most memory in use, and not by load.
	 */
	bool stack;
	double worst_thrash; /* 0: as calibrated */
	double group_slack;  /* 0: DCUDA's as it is */
	bool tandem;         /* tandem_cluster.h places, and an application may wait */
	/*
	 * A bound: at every moment the truth places, and moves at no cost, so that all are fastest
	 * together, under DCUDA's slices if these are set.
	 */
	bool truth;
};

struct td_dcuda_outcome {
	double overloaded[TD_DCUDA_MACHINE_GPUS], memory_overloaded[TD_DCUDA_MACHINE_GPUS],
		imbalance; /* parts of the time */
	double slowdown, jain, utilisation, total_s, qos;
	double active_s, busy_s,
		idle_s; /* GPU-seconds: with an application, of utilisation, without */
	uint32_t migrations;
	/* Applications that came when no GPU had the memory for them, within 90 % of its own. */
	uint32_t without_room;
};

/* gpu_gib: 0: memory does not matter. Applications by time of arrival. */
struct td_dcuda_outcome td_dcuda_simulate(struct td_dcuda_how how,
	const struct td_contention *contention, double gpu_gib, struct td_dcuda_machine_app *apps,
	uint32_t count);
