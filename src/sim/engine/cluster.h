/*
 * A cluster in virtual time: jobs arrive, a scheduler puts them on GPUs, jobs that share a GPU slow
 * each other down, and jobs end.
 *
 * Purpose. The engine knows the truth (profiles.h) and the time; a scheduler (sched.h) decides with
 * the code of src/policy. Between two events every job has one speed. When the company on one of
 * its GPUs changes, its progress is settled and its end is moved. A job of several GPUs goes as
 * fast as on the slowest of them.
 *
 * A GPU has up to TD_SIM_OCCUPANTS jobs. The scheduler may mark one as holder; the others are its
 * guests. Under a scheduler that guards its holders, guests run under the duty that td_duty_step()
 * finds by the holder's step times. The duty is stepped until it has settled, and its settled mean
 * is in force until the company changes.
 *
 * Memory: the holder has what it needs, and guests share the rest. A guest's missing memory is on
 * the host and costs it speed (a job's host_cost). A job of unknown memory needs none.
 *
 * Costs are those of struct td_costs, for every scheduler alike; the time that they took is
 * counted.
 *
 * Invariants
 * - work is conserved: a job ends when the integral of its speed over its time on GPUs is its
 *   duration plus its costs;
 * - a job runs on exactly as many GPUs as it asked for, all distinct, all at once;
 * - same trace, scheduler and seed: same events.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "policy/algo/control/duty.h"
#include "sim/base/future.h"
#include "sim/data/profiles.h"
#include "sim/data/trace.h"
#include "sim/engine/service.h"

#define TD_SIM_OCCUPANTS 5u
#define TD_SIM_SAMPLES   512u

struct td_sched;
struct td_sim_knowledge;

enum td_sim_status {
	TD_SIM_WAITING,
	TD_SIM_RUNNING,
	TD_SIM_DONE,
	TD_SIM_FAILED,
	TD_SIM_STATUS_N,
};

struct td_sim_job {
	/* These fields are from the trace. */
	uint64_t submit_ns;
	double work_s;
	uint32_t gpus, tenant, profile, trace_index;
	enum td_class class;
	uint64_t memory_bytes; /* needed on each GPU */
	double host_cost;      /* see td_spilled_speed() */
	/* These fields are the state of the run. */
	enum td_sim_status status;
	/* stale: its end has to be set anew although its speed has not changed. */
	bool guest, stale;
	uint32_t place; /* index of its first GPU in cluster->places */
	uint32_t evictions, moves, suspensions;
	double left_s, speed;
	uint64_t since_ns, start_ns,
		/*
		 * since_ns: progress is counted up to here; start_ns: of the first start; end_ns:
		 * of its end.
		 */
		end_ns;
	uint32_t order; /* the number of the job's END event, while it runs */
};

struct td_sim_gpu {
	uint32_t jobs[TD_SIM_OCCUPANTS];
	double speeds[TD_SIM_OCCUPANTS];
	uint32_t count;
	bool dirty, measured; /* measured: an event that shows its load is pending */
	uint64_t memory_bytes;
	uint32_t service; /* the service on it, or TD_SERVICE_NONE */
};

struct td_costs {
	double restart_s; /* work added to a job when it starts again or moves */
	/* Work added to a job when the share of the service beside it changes. */
	double repartition_s;
	/* Rate at which jobs' memory moves to and from the host beside services; 0: at once. */
	double link_bytes_s;
	/* Time between checkpoints. An evicted job goes back to its last one. */
	double checkpoint_s;
	bool kills; /* suspended jobs have no time to save their state */
};

/*
 * Variants of how fast jobs run on a GPU whose scheduler guards the holder. Results of the variants
 * are bounds for the true one.
 */
enum td_sim_world {
	TD_WORLD_TRUE,
	/*
	 * Guests beside a holder are as fast as the duty lets them be in that company; no other job
	 * is slowed.
	 */
	TD_WORLD_GUARD_ALONE,
	/* Guests without a slow holder slow each other down; no other job is slowed. */
	TD_WORLD_GUESTS_ALONE,
	TD_WORLD_LEAST_DUTY, /* guests beside a holder always have the duty's floor */
};

struct td_cluster_options {
	struct td_contention contention;
	struct td_costs costs;
	uint64_t seed;
	struct td_services *services; /* NULL: there are none */
	/* Latencies of the services' queues; NULL: the cluster makes its own table. */
	struct td_batch_table *table;
	enum td_sim_world world;
	const struct td_sim_knowledge *knowledge; /* knowledge from earlier runs; see sched.h */
	double until_s;                           /* end of the run; 0: when the last job ends */
	/* May be NULL; set from outside to stop the run and keep its results. */
	const volatile sig_atomic_t *stop;
	/* May be NULL; done: part of the jobs that have ended, 0 to 1. */
	void (*progress)(double done, void *arg);
	void *progress_arg;
};

struct td_sim_sample {
	double at_s;
	uint32_t busy_gpus, queued, running;
};

struct td_cluster_counts {
	/* beside_starts: starts on a GPU that had a job. */
	uint64_t events, starts, beside_starts, evictions, upgrades, moves, suspensions;
	/* The costs in GPU-seconds: work done again, restarts, moves and repartitions. */
	double lost_s, restart_s, move_s, repartition_s;
	uint64_t repartitions, rounds; /* rounds: calls of td_sched.tune */
	uint64_t swaps;                /* moves of jobs' memory beside services */
	double swapped_bytes, swap_s;
	uint64_t tunings, iterations,
		/* samplings: Mudi's searches for a batch; iterations: their samples. */
		samplings;
	double busy_gpu_s, shared_gpu_s; /* time with a job, and time with several */
	double arriving_busy_gpu_s,
		/*
		 * arriving_s: time until the last arrival; arriving_busy_gpu_s: busy_gpu_s in it.
		 */
		arriving_s;
	double work_gpu_s; /* progress of the jobs */
	bool stopped;
};

#define TD_SETTLED_BITS 14

/* A cached result: the speeds of one holder and its guests. key 0: the entry is empty. */
struct td_settled {
	uint64_t key;
	double speeds[TD_SIM_OCCUPANTS];
};

struct td_cluster {
	const struct td_profiles *profiles;
	struct td_cluster_options options;
	const struct td_sched *sched;
	void *sched_state;
	struct td_services *services; /* the same as options.services */
	struct td_batch_table *table, *own_table;
	struct td_sim_job *jobs;
	uint32_t job_count, arrived, ended, queued;
	struct td_sim_gpu *gpus;
	uint32_t gpu_count, node_count, busy_gpus, shared_gpus;
	uint32_t *node_gpus;
	uint32_t *places;
	uint32_t *dirty_gpus, dirty_count;
	struct td_future future;
	uint64_t now_ns, counted_ns, first_ns;
	struct td_settled *settled; /* 1 << TD_SETTLED_BITS entries */
	struct td_cluster_counts counts;
	struct td_sim_sample samples[TD_SIM_SAMPLES];
	uint32_t sample_count;
	uint64_t sample_every_ns;
};

/*
 * Returns the reason why no scheduler can ever place the job on so many GPUs with this memory (0:
 * unknown); NULL: it can be placed.
 */
const char *td_cluster_misfit(
	const struct td_sim_job *job, uint32_t gpus, uint64_t gpu_memory_bytes);

/*
 * Prepares a run of a scheduler on nodes. The jobs are made by the caller, who keeps them, and
 * sorted by arrival; their state of the run is reset. Returns 0; -EINVAL: a job that
 * td_cluster_misfit() names, or whose profile does not exist; -ENOMEM; or the scheduler's error.
 */
int td_cluster_init(struct td_cluster *cluster, const struct td_cluster_options *options,
	const struct td_profiles *profiles, const uint32_t *node_gpus, uint32_t nodes,
	uint64_t gpu_memory_bytes, struct td_sim_job *jobs, uint32_t count,
	const struct td_sched *sched);
void td_cluster_run(struct td_cluster *cluster);
/*
 * Returns the part of the services' time in which P99 exceeded the objective, for one kind, or for
 * all with TD_SERVICE_NONE.
 */
double td_cluster_late(const struct td_cluster *cluster, uint32_t kind);
void td_cluster_deinit(struct td_cluster *cluster);

/* --- for schedulers --- */

/* Starts a waiting job on as many GPUs as it asked for. */
void td_cluster_start(struct td_cluster *cluster, uint32_t job, const uint32_t *gpus, bool guest);
/* Makes a guest the holder of its GPUs. */
void td_cluster_upgrade(struct td_cluster *cluster, uint32_t job);
/*
 * Moves a job to as many other GPUs, of which it may have some already. cost_s is added to its
 * work. No work is repeated.
 */
void td_cluster_move(struct td_cluster *cluster, uint32_t job, const uint32_t *gpus, double cost_s);
/* Puts the job back into the queue, with its progress up to its last checkpoint. */
void td_cluster_evict(struct td_cluster *cluster, uint32_t job);
/*
 * Puts the job back into the queue after it has saved its state. No work is repeated; starting
 * again costs restart_s. With options.costs.kills it is evicted instead.
 */
void td_cluster_suspend(struct td_cluster *cluster, uint32_t job);
/* Marks a job that this scheduler can never run. It counts as not done; see metrics.h. */
void td_cluster_fail(struct td_cluster *cluster, uint32_t job);

/* Returns the utilisation of a GPU as a monitor shows it. */
double td_cluster_load(const struct td_cluster *cluster, uint32_t gpu);

/* --- internal: cluster_rates.c --- */

void td_cluster_speeds(struct td_cluster *cluster, struct td_sim_gpu *gpu);

/*
 * Steps the duty's controller with the steps of the one job that is no guest, and returns mean
 * speeds once it has settled. rounds: number of steps; the first third does not count. The engine
 * uses 12,000, and a test shows that more change little.
 */
void td_duty_settle(const struct td_contention *contention, const struct td_contender *jobs,
	const bool *guest, uint32_t count, const struct td_duty_params *params, uint32_t rounds,
	double *ret_speeds);
