/*
 * Schedulers of a cluster that choose the GPUs of guests by what is known of the jobs: DCUDA's
 * start, MuxFlow's matching and Mudi's device selector.
 *
 * Purpose. The papers say on which GPU a job begins; the rest is the same and is here. All jobs are
 * served first come first served, and none is stopped for others.
 *
 * - Guaranteed and online jobs are holders: each has whole GPUs within its tenant's quota, at most
 *   one on a GPU. GPUs without guests come first. The first of a tenant that finds no place holds
 *   up those of its tenant.
 * - All others are guests, chosen by the rule:
 *     dcuda    the least loaded GPU by the jobs' demands, among those whose memory stays below the
 *              watermark with the newcomer (balance.h); up to TD_GUESTS on a GPU. The first that
 *              finds no place holds up those behind it.
 *     muxflow  every match_ns. Guests that run are exchanged where that gains more than their
 *              restarts cost (guest_exchange.c). Jobs of several GPUs start in order of arrival, on
 *              GPUs by chance. Then jobs of one GPU are matched with GPUs by predicted speed
 *              (muxflow_cluster.h). One guest on a GPU.
 *     mudi     the GPU whose service has the least predicted slope beside it (selector.h). A GPU
 *              without a holder has the score 0. One guest on a GPU. Who finds no place is
 *              overtaken by jobs of other kinds.
 *
 * Knowledge. MuxFlow's needs the dry runs of both programs and the predictor, for the kind of the
 * GPU; Mudi's the service's curves there and the layers of the guest's network. A guest of one GPU
 * of which that is not known gets a GPU that nobody holds, after those of which it is. A GPU whose
 * holder is not known gets no guests of one GPU.
 *
 * Memory has to be free; a job's pool and its memory may forbid it the GPU that the matching chose
 * for its kind. Such jobs are looked at one by one after the matching.
 *
 * Cost: a guest's place by dcuda or mudi takes a look at a few numbers of each GPU; by mudi also a
 * prediction for each pair that is open and that its kind has not met.
 *
 * Invariants
 * - a GPU has one holder at most; a tenant's guaranteed jobs hold no more GPUs than its quota;
 * - a gang starts whole, on distinct GPUs, where its memory is free;
 * - same calls, same decisions. The caller provides all memory.
 */
#pragma once

#include "policy/algo/control/balance.h"
#include "policy/algo/fit/mudi_curve.h"
#include "policy/algo/fit/selector.h"
#include "policy/cluster/antman_cluster.h"
#include "policy/cluster/muxflow_cluster.h"

enum td_guest_rule {
	TD_GUEST_DCUDA,
	TD_GUEST_MUXFLOW,
	TD_GUEST_MUDI,
};

#define TD_GUEST_GPU_KINDS 8u
/* The pairs of a kind of GPU and the kind of its holder, or nobody. */
#define TD_GUEST_PAIRS(kinds) (TD_GUEST_GPU_KINDS * ((kinds) + 1))

/* Knowledge of a kind of jobs on a kind of GPU. It must live as long as the cluster has it. */
struct td_guest_known {
	const struct td_predictor *speeds; /* MuxFlow's, of this kind of GPU; NULL: not known */
	bool is_measured;
	struct td_muxflow_profile alone; /* if is_measured */
	bool has_curves;
	struct td_mudi_service curves; /* if has_curves */
	bool has_layers;
	double layers[TD_MUDI_LAYERS]; /* if has_layers */
};

struct td_guest_params {
	enum td_guest_rule rule;
	uint64_t match_ns; /* muxflow: between two matchings */
	uint64_t move_ns;  /* muxflow: what a restart costs; from match_ns on nobody is moved */
	uint64_t seed;     /* muxflow: of the places by chance; not 0 */
};

struct td_guest_request {
	uint32_t tenant, gpus, kind;
	bool holds; /* it has whole GPUs */
	bool same_node;
	uint64_t bytes; /* memory needed on each GPU; 0: unknown */
	uint32_t pool;  /* the nodes where it may run (inventory.h) */
	bool stays;     /* it is never moved */
};

struct td_guest_job {
	struct td_guest_request is; /* is.gpus 0: there is no such job */
	bool runs;
	uint32_t place, next, previous; /* places, or the queue while it waits */
};

struct td_guest_queue {
	uint32_t first, last;
};

enum td_guest_wait {
	TD_GUEST_WAITS_FOR_PLACE,
	TD_GUEST_WAITS_FOR_PROFILE,
	TD_GUEST_WAITS_FOR_MATCHING,
};

struct td_guest_started {
	uint32_t job;
	bool moves; /* it ran before, and goes to the GPU that it has now */
};

#define TD_GUEST_EXCHANGED 256u
/* Memory of the matching; td_match_bytes() of the largest one is less. */
#define TD_GUEST_EXCHANGE_BYTES (1u << 20)

/* Scratch of guest_exchange.c, but for the cursor. */
struct td_guest_exchange {
	uint32_t cursor; /* the GPU where the next round begins */
	uint32_t rows, columns;
	uint32_t gpu[2 * TD_GUEST_EXCHANGED], matched[2 * TD_GUEST_EXCHANGED]; /* of each row */
	/* For each column: the guest, and the rows of its GPU now and then. */
	uint32_t job[TD_GUEST_EXCHANGED], own[TD_GUEST_EXCHANGED], to[TD_GUEST_EXCHANGED];
	float weights[2 * TD_GUEST_EXCHANGED * TD_GUEST_EXCHANGED];
	_Alignas(64) char memory[TD_GUEST_EXCHANGE_BYTES];
};

struct td_guest_cluster {
	struct td_guest_params params;
	struct td_inventory gpus;
	uint32_t quota[TD_TENANTS_MAX], used[TD_TENANTS_MAX], tenant_count;
	uint32_t jobs_max, kinds;
	uint64_t gpu_bytes; /* memory of each GPU; 0: memory is not counted */
	struct td_guest_job *jobs;
	struct td_guest_queue holders, guests;
	struct td_antman_place *places;
	uint32_t free_place;
	double *demands;   /* of each kind: use of a GPU alone */
	uint8_t *gpu_kind; /* of each GPU */
	/* These follow what is on each GPU; td_guest_touch(). */
	uint64_t *bytes;
	bool *is_open; /* it takes one more guest */
	uint32_t open_count;
	double *core, *memory;              /* dcuda: demand, INFINITY if it is not open; part */
	struct td_selector_device *devices; /* mudi */
	uint32_t *open_of;                  /* mudi: of each pair: its open GPUs */
	double *scores;               /* mudi: kinds of guests x TD_GUEST_PAIRS; NAN: not known */
	struct td_guest_known *known; /* kinds of GPUs x kinds */
	/* Jobs that have been started and were not returned yet. */
	struct td_guest_started *started;
	uint32_t started_count, started_next;
	struct td_guest_exchange *exchange; /* muxflow */
	uint64_t matched_ns, random;
	bool has_matched, changed;
	/* Scratch from here on. */
	uint32_t found[TD_GANG_MAX];
	uint32_t *open, *open_on;                  /* GPUs; the number of open ones on each node */
	bool *failed;                              /* of each kind */
	double *listed_core, *listed_memory;       /* dcuda: of the GPUs in `open` */
	struct td_selector_device *listed_devices; /* mudi: likewise */
	/* muxflow: rows are GPUs with the same pair, columns are kinds of guests. */
	uint32_t *row_of, *row_counts, *row_pair, *columns, *column_counts, *matched;
	uint32_t column_count;
	float *weights;
	void *match_memory;
	size_t match_bytes;
};

/* The caller's memory: td_guest_cluster_init() needs so many bytes. */
size_t td_guest_cluster_bytes(
	uint32_t nodes, uint32_t gpus, uint32_t jobs_max, uint32_t kinds, enum td_guest_rule rule);
/* memory is aligned to 64 bytes. Returns 0; -EINVAL; -ENOMEM: too few bytes. */
int td_guest_cluster_init(struct td_guest_cluster *cluster, void *memory, size_t bytes,
	const struct td_guest_params *params, const uint32_t *node_gpus, uint32_t nodes,
	uint64_t gpu_bytes, const uint32_t *quotas, uint32_t tenants, uint32_t jobs_max,
	uint32_t kinds);

/* These are as those of tandem_cluster.h, with the same errors. */
int td_guest_cluster_submit(
	struct td_guest_cluster *cluster, uint32_t job, const struct td_guest_request *request);
int td_guest_cluster_adopt(struct td_guest_cluster *cluster, uint32_t job,
	const struct td_guest_request *request, const uint32_t *gpus);
void td_guest_cluster_finish(struct td_guest_cluster *cluster, uint32_t job);
/* Makes a running job wait again, behind all others. */
void td_guest_cluster_requeue(struct td_guest_cluster *cluster, uint32_t job);
int td_guest_cluster_gpu_down(struct td_guest_cluster *cluster, uint32_t gpu);
int td_guest_cluster_gpu_up(struct td_guest_cluster *cluster, uint32_t gpu);
void td_guest_cluster_bar(
	struct td_guest_cluster *cluster, uint32_t gpu, enum td_inventory_bar bar);
uint32_t td_guest_cluster_gpus(
	const struct td_guest_cluster *cluster, uint32_t job, uint32_t *ret_gpus);

/* Sets the part of a GPU that a kind of jobs uses alone; 1 before. */
void td_guest_cluster_demand(struct td_guest_cluster *cluster, uint32_t kind, double demand);
/* Sets the kind of a GPU, below TD_GUEST_GPU_KINDS; 0 before. */
void td_guest_cluster_gpu_kind(struct td_guest_cluster *cluster, uint32_t gpu, uint32_t gpu_kind);
/* Sets what is known of a kind of jobs on a kind of GPU. */
void td_guest_cluster_know(struct td_guest_cluster *cluster, uint32_t gpu_kind, uint32_t kind,
	const struct td_guest_known *known);
/* Tells the cluster that pools have changed: jobs that found no place may find one. */
void td_guest_cluster_look_again(struct td_guest_cluster *cluster);

/*
 * Starts and moves what can be now. Returns the number of jobs in ret_jobs, at most `room`; while
 * it is `room`, there may be more.
 */
uint32_t td_guest_cluster_step(struct td_guest_cluster *cluster, uint64_t now_ns,
	struct td_guest_started *ret_jobs, uint32_t room);
/* Returns what a waiting job waits for. */
enum td_guest_wait td_guest_cluster_waits(const struct td_guest_cluster *cluster, uint32_t job);

/* --- shared by guest_cluster.c, guest_rules.c and guest_exchange.c --- */

/* Brings the arrays up to date with a GPU on which something has changed. */
void td_guest_touch(struct td_guest_cluster *cluster, uint32_t gpu);
/* Tells whether the GPU is in the job's pool and has memory for it. */
bool td_guest_may_use(
	const struct td_guest_cluster *cluster, const struct td_guest_job *job, uint32_t gpu);
/* Tells whether the GPUs that are up are enough for the job alone. If not, it holds up nobody. */
bool td_guest_could_start(const struct td_guest_cluster *cluster, const struct td_guest_job *job);
/* Returns the number of the GPU's pair: its own kind and its holder's. */
uint32_t td_guest_pair(const struct td_guest_cluster *cluster, uint32_t gpu);
/*
 * MuxFlow: returns the predicted speed of a kind of guests on the GPUs of a pair; 0: it may not go
 * there, or its speed is not known.
 */
float td_guest_weight(const struct td_guest_cluster *cluster, uint32_t pair, uint32_t kind);
void td_guest_exchange_guests(struct td_guest_cluster *cluster);

/* Starts a job on the GPUs of cluster->found. */
void td_guest_start(struct td_guest_cluster *cluster, uint32_t job);
/* Starts guests by the rule. */
void td_guest_start_guests(struct td_guest_cluster *cluster, uint64_t now_ns);
/* Tells whether the rule knows of a kind of guests what it needs, on some kind of GPU. */
bool td_guest_is_known(const struct td_guest_cluster *cluster, uint32_t kind);
