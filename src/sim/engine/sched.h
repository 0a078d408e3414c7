/*
 * The operations that the engine asks of a scheduler, as one table. A scheduler sees what its paper
 * lets it see, which is no speed of a pair that has not run.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/engine/cluster.h"

struct td_sched {
	const char *name, *summary;
	bool guards;        /* guests run under a duty that protects the holder */
	uint32_t slack_ppm; /* of that duty; 0: as by default */
	uint64_t tick_ns;   /* decide at least so often; 0: on events alone */
	int (*init)(struct td_cluster *cluster);
	void (*deinit)(struct td_cluster *cluster);
	void (*arrive)(struct td_cluster *cluster, uint32_t job);
	void (*finish)(struct td_cluster *cluster, uint32_t job);
	void (*load)(struct td_cluster *cluster,
		uint32_t gpu); /* NULL; what a monitor shows of a GPU, ten seconds after a change */
	void (*decide)(struct td_cluster *cluster);
	/*
	 * NULL: every service has its usual batch and shares the GPU without a split. Otherwise
	 * sets services->list[service].split by what was seen. In round 0 the rate or the company
	 * has changed, and p99_s is from before. Returns true to see the effect and go on.
	 */
	bool (*tune)(struct td_cluster *cluster, uint32_t service, uint32_t round);
	double round_s;   /* how long a round of tune lasts that is not the last */
	bool turns;       /* who is on a GPU takes turns of seconds; there are no holders */
	bool knows_truth; /* a bound, no system */
};
