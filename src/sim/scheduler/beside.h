/*
 * Code shared by the schedulers that know services: GSLICE, gpulets, MuxFlow, Mudi, and a bound.
 * See sched_beside.c.
 */
#pragma once

#include "policy/cluster/baselines.h"
#include "policy/cluster/muxflow_cluster.h"
#include "policy/system/mudi.h"
#include "policy/system/muxflow.h"
#include "sim/scheduler/schedulers.h"

#define TD_BESIDE_MATCH_NS   900000000000ull
#define TD_BESIDE_BINS       8u /* classes of a service's activity, for the matching */
#define TD_BESIDE_ROWS       (TD_SERVICE_KINDS_MAX * TD_BESIDE_BINS + 1)
#define TD_BESIDE_CACHE_BITS 12

enum td_beside_variant {
	TD_BESIDE_GSLICE,
	TD_BESIDE_GPULETS,
	TD_BESIDE_MUXFLOW,
	TD_BESIDE_MUDI,
	TD_BESIDE_EVEN,
	TD_BESIDE_OPTIMUM,
	TD_BESIDE_MUDI_TRUTH,
};

/* A cached result: the split for a kind of service at a rate, beside a kind of job. */
struct td_beside_found {
	uint64_t key; /* 0: the entry is empty */
	uint32_t batch;
	double share, speed, margin; /* margin: the one of mudi.h */
	bool paused;
};

/*
 * Mudi's samples of a service beside a task that it was not trained for (7.3: "Mudi samples the
 * inference latency under this new co-location"): the four numbers of the curve over log2 of the
 * batch. They are stored as trees of steps, so that they are read like the trained ones.
 */
#define TD_BESIDE_STEPS 32u /* the batches are 16 to 512 */

struct td_beside_sampled {
	bool there;
	struct td_mudi_service view;
	struct td_predictor predictors[4];
	struct td_tree_node nodes[4][2 * TD_BESIDE_STEPS - 1];
	uint32_t root;
	double shift[TD_MUDI_INPUTS], scale[TD_MUDI_INPUTS];
};

/* The kinds of tasks beside a service, ascending, and the sums of their layers. */
struct td_beside_company {
	uint32_t kinds[TD_SELECTOR_TASKS_MAX], count;
	double layers[TD_MUDI_LAYERS];
};

#define TD_BESIDE_NOBODY UINT32_MAX

struct td_beside {
	enum td_beside_variant variant;
	bool exact; /* true: Mudi knows the curves of all pairs exactly */
	/* Maximum number of tasks beside a service; only Mudi has more than one. */
	uint32_t tasks_max;
	struct td_beside_company *companies;
	uint32_t company_count, companies_max;
	struct td_beside_sampled *sampled; /* Mudi's samples for each kind of service and company */
	uint32_t *queue, head, tail;
	uint8_t *taken; /* number of jobs on each GPU */
	uint64_t random, matched_ns;
	bool changed;
	struct td_beside_service {
		struct td_gslice gslice;
		struct td_muxflow_gpu monitor;
		struct td_mudi_device *mudi;
		uint32_t job; /* the job that the split was tuned for, and its company */
		uint64_t key;
		bool grown, watches, paused;
	} * services;
	struct td_beside_found *cache;
	struct td_beside_fit {
		uint64_t key;
		bool fits;
	} * fits; /* Mudi's cache: does the service hold its objective beside the job? */
	double (*margins)[TD_SERVICE_KINDS_MAX]; /* margin for each company, as last learnt */
	bool stuck; /* a job has been paused since the last search for GPUs */
	/* Mudi's scores for each company; NAN: not computed yet. */
	double (*scores)[TD_SERVICE_KINDS_MAX];
	struct td_selector_device *devices;
	double *gpu_scores;
	uint32_t *place;
	/* Memory that the matching works in, kept for the next one. */
	void *memory;
	size_t bytes;
	float *weights;
	uint32_t *kinds;
};

const struct td_service_kind *td_beside_kind(const struct td_cluster *cluster, uint32_t service);
/* Returns the part of the time in which a service would be busy alone, with its usual batch. */
double td_beside_activity(const struct td_cluster *cluster, uint32_t service);
/*
 * Returns the cache entry of a service's kind and rate beside a kind of job. Its key is 0 unless
 * the split was found before.
 */
struct td_beside_found *td_beside_look_up(
	struct td_cluster *cluster, uint32_t service, uint32_t profile);
/* Returns the index among 1 << TD_BESIDE_CACHE_BITS entries. */
uint32_t td_beside_slot(uint64_t key);

/* Tells whether the GPU has room for one more job. */
bool td_beside_is_open(const struct td_cluster *cluster, uint32_t gpu);
/* Returns one of the open GPUs at random; UINT32_MAX: there is none. */
uint32_t td_beside_choose_any(struct td_cluster *cluster);
/*
 * Starts the job on the first `found` GPUs of state->place. Returns false if those are too few;
 * then they are open again.
 */
bool td_beside_start(struct td_cluster *cluster, uint32_t index, uint32_t found);

/* Starts a job on GPUs that the variant's rule chooses. Returns false if there are none. */
bool td_beside_place(struct td_cluster *cluster, uint32_t index);

/*
 * beside_baselines.c has these functions. They set the split of one service with a job, like
 * td_sched.tune.
 */
bool td_beside_tune_gslice(struct td_beside_service *own, const struct td_service_kind *kind,
	struct td_service *service, uint32_t round);
void td_beside_tune_gpulets(const struct td_cluster *cluster, struct td_service *service);
uint32_t td_beside_choose_optimum(struct td_cluster *cluster, uint32_t profile);
void td_beside_tune_optimum(struct td_cluster *cluster, uint32_t index, uint32_t profile);

/* beside_muxflow.c has these functions. */
void td_beside_decide_muxflow(struct td_cluster *cluster);
void td_beside_tune_muxflow(const struct td_cluster *cluster, struct td_beside_service *own,
	uint32_t index, double demand);

/* --- beside_company.c --- */
/*
 * Returns the company of the tasks on a GPU, plus one task of kind `newcomer` unless that is
 * TD_BESIDE_NOBODY.
 */
uint32_t td_beside_company_of(struct td_cluster *cluster, uint32_t gpu, uint32_t newcomer);
/* Returns the number of possible companies of so many kinds, with up to `tasks` on a GPU. */
uint32_t td_beside_companies_max(uint32_t kinds, uint32_t tasks);
void td_beside_companies_init(struct td_cluster *cluster);

/* beside_mudi.c has these functions. */
void td_beside_decide_mudi(struct td_cluster *cluster);
uint32_t td_beside_choose_mudi(struct td_cluster *cluster, uint32_t profile);
bool td_beside_tune_mudi(
	struct td_cluster *cluster, struct td_beside_service *own, uint32_t index, uint32_t round);
