/*
 * The operations of a scheduler, as a table that the engine calls. A scheduler sees only what its
 * paper lets it see. So it does not know the speeds of two jobs together before they have run.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/engine/cluster.h"

struct td_sched {
	const char *name, *summary;
	bool guards;        /* guests run under a duty that protects the holder */
	uint32_t slack_ppm; /* slack of that duty; 0: the default */
	uint64_t tick_ns;   /* longest time between two decisions; 0: it decides at events only */
	int (*init)(struct td_cluster *cluster);
	void (*deinit)(struct td_cluster *cluster);
	void (*arrive)(struct td_cluster *cluster, uint32_t job);
	void (*finish)(struct td_cluster *cluster, uint32_t job);
	void (*load)(struct td_cluster *cluster,
		/*
		 * May be NULL. Tells the utilisation of a GPU that a monitor shows, ten seconds
		 * after a change.
		 */
		uint32_t gpu);
	void (*decide)(struct td_cluster *cluster);
	/*
	 * Chooses the split of a service: sets services->list[service].split by what was observed.
	 * In round 0 the rate or the jobs have changed, and p99_s is from before. Returns true to
	 * see the effect and continue with the next round. NULL: every service has its usual batch
	 * and shares the GPU without a split.
	 */
	bool (*tune)(struct td_cluster *cluster, uint32_t service, uint32_t round);
	double round_s;   /* length of a round of tune, except the last one */
	bool turns;       /* jobs of a GPU take turns of seconds; there are no holders */
	bool knows_truth; /* the scheduler is a bound, not a system that could be built */
};
