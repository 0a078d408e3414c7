/*
 * The machine of DCUDA's experiments: one node with four GPUs, on which applications arrive one
 * after the other. It is simulated in steps of 100 ms, the slice that DCUDA uses.
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
	/* State of the run. */
	uint32_t gpu;
	double left_s, end_s, paused_until_s;
};

/*
 * The system to simulate: least-loaded (by demands, or with by_count by the number of
 * applications), or DCUDA with some of its parts.
 */
struct td_dcuda_how {
	bool dcuda, memory, compact, slices, by_count;
	/*
	 * A bound: applications that run in a slice find their memory on the GPU at no cost, and
	 * only their own memory may exceed it.
	 */
	bool in_place;
	/*
	 * A variant of the world: an application that waits for its slice brings in none of its
	 * pages, so only the application in its slice does.
	 */
	bool own_pages;
	/*
	 * A variant of the world, the paper's premise (III-D2): applications whose demands fit the
	 * GPU's cores together do not slow each other down.
	 */
	bool fit_is_free;
	/*
	 * A change of DCUDA: if no GPU has enough memory, a new application goes to the GPU with
	 * the most memory in use, instead of by load.
	 */
	bool stack;
	double worst_thrash; /* 0: the calibrated value */
	double group_slack;  /* 0: DCUDA's own value */
	bool tandem;         /* tandem_cluster.h places the applications, and some may wait */
	/*
	 * A bound: at every moment applications are placed by the true speeds so that all together
	 * are fastest, and move at no cost. With `slices` under DCUDA's slices.
	 */
	bool truth;
};

struct td_dcuda_outcome {
	double overloaded[TD_DCUDA_MACHINE_GPUS], memory_overloaded[TD_DCUDA_MACHINE_GPUS],
		imbalance; /* these three are shares of the time */
	double slowdown, jain, utilisation, total_s, qos;
	double active_s, busy_s,
		/*
		 * GPU-seconds with an application; used GPU time; GPU-seconds without an
		 * application.
		 */
		idle_s;
	uint32_t migrations;
	/*
	 * The number of applications that arrived when no GPU had room for their memory within 90 %
	 * of its own.
	 */
	uint32_t without_room;
};

/* Simulates the machine. gpu_gib 0: memory is not limited. Applications are sorted by arrival. */
struct td_dcuda_outcome td_dcuda_simulate(struct td_dcuda_how how,
	const struct td_contention *contention, double gpu_gib, struct td_dcuda_machine_app *apps,
	uint32_t count);
