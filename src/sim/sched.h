/*
 * Schedulers of the simulated cluster: thin adapters between the engine's events and the algorithms of src/policy. They see what their papers let them see: no speeds of pairs that
 * have not run.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/cluster.h"

struct td_sched {
	const char *name, *summary;
	bool guards;      /* guests run under a duty that protects the holder */
	uint64_t tick_ns; /* decide at least so often; 0: on events alone */
	int (*init)(struct td_cluster *cluster);
	void (*deinit)(struct td_cluster *cluster);
	void (*arrive)(struct td_cluster *cluster, uint32_t job);
	void (*finish)(struct td_cluster *cluster, uint32_t job);
	void (*load)(struct td_cluster *cluster,
		uint32_t gpu); /* NULL; what a monitor shows of a GPU, ten seconds after a change */
	void (*decide)(struct td_cluster *cluster);
};

extern const struct td_sched td_sched_fifo, td_sched_preempt, td_sched_gandiva, td_sched_antman,
	td_sched_tandem;

/* NULL-terminated. */
extern const struct td_sched *const td_scheds[];
const struct td_sched *td_sched_find(const char *name);
