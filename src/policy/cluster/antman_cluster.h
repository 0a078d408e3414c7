/*
 * AntMan's global scheduler: Algorithm 1 with tenants, gangs, reservations, queueing estimates and
 * upgrades (3.3).
 *
 * Purpose. "Multi-tenant fairness is our primary goal, and the second priority is to improve the
 * cluster efficiency": guaranteed jobs get whole GPUs within their tenant's quota. All others run
 * on GPUs with load to spare, and antman.h protects the guaranteed jobs there.
 *
 *   scheduleJob(job):
 *     nodes0 <- findNodes(job.gpu, topology)      GPUs that no other guaranteed job holds or has
 *                                                 reserved
 *     nodes1 <- findNodes(job.gpu, load < M)      M = 80 % over the last ten seconds
 *     nodes2 <- minLoadNodes(nodes1, job.gpu)
 *     if job is guaranteed:
 *       if all of it fits in nodes0: run there; else reserve nodes0 and wait
 *     else: run on nodes2
 *
 * Around it:
 * - tenants own quotas in GPUs; a guaranteed job consumes its tenant's. Jobs of a tenant start in
 *   the order of their arrival, and none overtakes one that waits for guaranteed resources. Across
 *   tenants the earliest arrival goes first;
 * - one job per tenant, the first that waits, has a reservation of as many GPUs as its tenant's
 *   quota leaves, "three GPUs left while there is a request for four". Only opportunistic jobs may
 *   use them, and a job that came earlier: where quotas exceed the cluster together (not in the
 *   paper), two gangs would otherwise wait for each other;
 * - by default (TD_JOB_AUTO) "the global scheduler will estimate the queuing time for jobs without
 *   GPU quota granted. Those jobs that suffer long queuing delay will be automatically executed as
 *   opportunistic jobs". The paper leaves the estimate open. Here it is the GPUs that must come
 *   free before the job's turn, over the rate at which the tenant's jobs have freed GPUs
 *   (exponentially weighted). A job of more GPUs than the quota has no turn, and none waits for it.
 *   Until a first job has ended, the wait counts as long;
 * - a job placed since the monitor's last report counts as a load of assumed_ppm, as a guest or a
 *   holder: the utilisation of the past ten seconds does not show it;
 * - upgrade: an opportunistic job of the tenant's queue becomes a guaranteed one where it runs,
 *   when its turn and the quota permit, and all of its GPUs are free of guaranteed jobs and of
 *   others' reservations. This goes before launching a new one.
 *
 * Invariants
 * - a gang starts whole or not at all; a GPU has one guaranteed job at most, and a reserved GPU
 *   none but its owner;
 * - a tenant's guaranteed jobs hold no more GPUs than its quota, reservations included;
 * - opportunistic jobs start only on GPUs with a load below M, each job on distinct GPUs;
 * - same calls, same placements.
 *
 * The caller provides all memory. Jobs are numbered by the caller, 0 to jobs_max - 1.
 */
#pragma once

#include "policy/cluster/inventory.h"

#define TD_TENANTS_MAX 64u
#define TD_GANG_MAX    512u

enum td_job_kind {
	TD_JOB_AUTO,
	TD_JOB_GUARANTEED,
	TD_JOB_OPPORTUNISTIC,
	TD_JOB_KIND_N,
};

enum td_job_state {
	TD_JOB_ABSENT,
	TD_JOB_QUEUED,
	TD_JOB_RUNNING, /* runs with guaranteed resources */
	TD_JOB_OPPORTUNISTIC_RUNNING,
	TD_JOB_STATE_N,
};

struct td_antman_job {
	enum td_job_kind kind;
	enum td_job_state state;
	uint32_t tenant, gpus;
	bool same_node;
	uint32_t pool;
	uint64_t submit_ns;
	uint32_t next, previous; /* neighbours in its tenant's queue */
	uint64_t order;          /* position in the queue: later jobs have larger numbers */
	bool queued;             /* waits for guaranteed resources, or to start at all */
	uint32_t place;          /* index of the first cell of its GPUs, while it runs */
};

/* While at most this many GPUs are below M, skip() finds jobs by first_small[], not by a search. */
#define TD_ANTMAN_SMALL 8u

struct td_antman_tenant {
	uint32_t quota, used;
	uint32_t head, tail;  /* ends of the queue */
	uint32_t first_claim; /* no job before this one wants guaranteed resources */
	uint32_t first_small
		/*
		 * Entry n - 1: no job before this one waits to start opportunistically on n GPUs.
		 */
		[TD_ANTMAN_SMALL];
	uint32_t reserving; /* the job that has the reservation, or TD_NO_JOB */
	uint32_t reserved[TD_GANG_MAX], reserved_count;
	double freed_per_s; /* GPUs freed per second; 0: none yet */
	uint64_t freed_ns;  /* when GPUs were last freed; at first, when a job arrived */
	bool has_come;
};

struct td_antman_params {
	uint32_t load_limit_ppm; /* M */
	uint64_t patience_ns;    /* a job whose estimated wait is longer starts opportunistically */
	uint32_t assumed_ppm;    /* the load that a job counts as before it is measured */
};

/*
 * M is 80 %, the patience 10 min, the assumed load 100 %. The paper does not give the last one:
 * with a smaller one a whole burst would go to the one GPU that looked idle, and nothing moves away
 * again.
 */
extern const struct td_antman_params td_antman_default;

struct td_antman_cluster {
	struct td_antman_params params;
	struct td_inventory gpus;
	struct td_antman_tenant tenants[TD_TENANTS_MAX];
	uint32_t tenant_count, jobs_max;
	struct td_antman_job *jobs;
	struct td_antman_place {
		uint32_t gpu, next;
	} * places; /* each job's GPUs are a linked list of these */
	uint32_t free_place;
	uint64_t joined;             /* number of jobs that ever joined a queue */
	uint32_t found[TD_GANG_MAX]; /* scratch */
};

enum td_antman_verb {
	TD_ANTMAN_START, /* start with guaranteed resources */
	TD_ANTMAN_START_OPPORTUNISTIC,
	TD_ANTMAN_UPGRADE,
	TD_ANTMAN_N,
};

struct td_antman_action {
	enum td_antman_verb verb;
	uint32_t job;
};

size_t td_antman_bytes(uint32_t nodes, uint32_t gpus, uint32_t jobs_max);

/*
 * Makes an empty cluster; quotas[t] is in GPUs. Returns 0; -EINVAL: no nodes, a node of 0 or more
 * than TD_NODE_GPUS_MAX GPUs, no tenants or too many; -ENOMEM.
 */
int td_antman_init(struct td_antman_cluster *cluster, void *memory, size_t bytes,
	const struct td_antman_params *params, const uint32_t *node_gpus, uint32_t nodes,
	const uint32_t *quotas, uint32_t tenants, uint32_t jobs_max);

struct td_antman_request {
	uint32_t tenant, gpus;
	enum td_job_kind kind;
	bool same_node;
	uint32_t pool; /* the nodes where it may run; see inventory.h */
};

/*
 * Queues a job. Returns 0; -EINVAL: job in use or out of range, no such tenant, or no GPUs, more
 * than TD_GANG_MAX or more than the cluster has; -EDQUOT: a guaranteed job of more GPUs than its
 * tenant's quota, which could never run.
 */
int td_antman_submit(struct td_antman_cluster *cluster, uint32_t job,
	const struct td_antman_request *request, uint64_t now_ns);

/*
 * Frees the GPUs and the queue entry of a job that has ended or was cancelled. Ignored for a job
 * that is not there.
 */
void td_antman_finish(struct td_antman_cluster *cluster, uint32_t job, uint64_t now_ns);

/*
 * Takes a GPU without jobs out of the cluster, or into it again; all are in it at first. Returns 0;
 * -EINVAL: there is no such GPU; -EBUSY: a job is on it.
 */
int td_antman_gpu_down(struct td_antman_cluster *cluster, uint32_t gpu);
int td_antman_gpu_up(struct td_antman_cluster *cluster, uint32_t gpu);

/*
 * Takes over a job that already runs on these request->gpus GPUs, as a guest or with guaranteed
 * resources. No action is returned for it. The errors are those of td_antman_submit(); -EBUSY: a
 * GPU is named twice, is down, or has a job beside which this one may not run.
 */
int td_antman_adopt(struct td_antman_cluster *cluster, uint32_t job,
	const struct td_antman_request *request, const uint32_t *gpus, bool guest, uint64_t now_ns);

void td_antman_set_load(struct td_antman_cluster *cluster, uint32_t gpu, uint32_t load_ppm);

/*
 * Makes the decisions that are possible now, at most `room` actions, which are in force when it
 * returns. Call it after each arrival, end and change of load, again while it fills the room, and
 * at least once per patience.
 */
uint32_t td_antman_step(struct td_antman_cluster *cluster, uint64_t now_ns,
	struct td_antman_action *ret_actions, uint32_t room);

/* Writes the job's GPUs in the order of its workers. Returns their number, 0 unless it runs. */
uint32_t td_antman_gpus(const struct td_antman_cluster *cluster, uint32_t job, uint32_t *ret_gpus);

/* Returns the estimated wait of a queued job for guaranteed resources; UINT64_MAX: unknown. */
uint64_t td_antman_estimate_ns(const struct td_antman_cluster *cluster, uint32_t job);
