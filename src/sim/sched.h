/*
 * Schedulers of the simulated cluster: thin adapters between the engine's events and the algorithms of src/policy. They see what their papers let them see: no speeds of pairs that
 * have not run.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/system/mudi.h"
#include "sim/cluster.h"

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
	 * NULL: every service has its usual batch and the GPU is shared as it comes. Else sets services->list[service].split by what is seen (round 0: the rate and who is
	 * there have changed, p99_s is of before); true: it wants to see what comes of it and go on.
	 */
	bool (*tune)(struct td_cluster *cluster, uint32_t service, uint32_t round);
	double round_s;   /* how long a round of tune lasts that is not the last */
	bool turns;       /* who is on a GPU takes turns of seconds; there are no holders */
	bool knows_truth; /* a bound, no system */
};

/* What is learnt or profiled before a run, for the schedulers that need it; NULL: not there. */
struct td_sim_knowledge {
	const struct td_mudi_service *mudi;     /* of each kind of service */
	const double (*layers)[TD_MUDI_LAYERS]; /* of each profile */
	uint32_t profiled;                      /* of the profiles: the first ones were dry-run */
	const struct td_predictor *muxflow;
	/* of each kind of service alone, each of the selector's batches, over the share */
	const struct td_curve (*hyperbolas)[TD_SELECTOR_BATCHES], (*pieces)[TD_SELECTOR_BATCHES];
};

extern const struct td_sched td_sched_fifo, td_sched_preempt, td_sched_gandiva, td_sched_antman,
	td_sched_tandem, td_sched_round_robin, td_sched_nvshare, td_sched_dcuda, td_sched_optimum;
/* No system's: AntMan, but that its guests move, which its paper does not do. To see what staying costs it; not of tandem-sim run. */
extern const struct td_sched td_sched_antman_moving;
/* With services and what is known of them: not of tandem-sim run. -ENODATA from init without. */
extern const struct td_sched td_sched_gslice, td_sched_gpulets, td_sched_muxflow, td_sched_mudi,
	td_sched_mudi_more, td_sched_even, td_sched_bound, td_sched_mudi_truth, td_sched_mudi_exact,
	td_sched_mudi_more_exact;

/* NULL-terminated. */
extern const struct td_sched *const td_scheds[];
const struct td_sched *td_sched_find(const char *name);
