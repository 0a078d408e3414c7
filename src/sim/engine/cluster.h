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
	/* of the trace */
	uint64_t submit_ns;
	double work_s;
	uint32_t gpus, tenant, profile, trace_index;
	enum td_class class;
	uint64_t memory_bytes; /* on each GPU */
	double host_cost;      /* see td_spilled_speed() */
	/* of the run */
	enum td_sim_status status;
	bool guest, stale; /* stale: its end is to be put anew though its speed has not changed */
	uint32_t place;    /* first of its GPUs in cluster->places */
	uint32_t evictions, moves, suspensions;
	double left_s, speed;
	uint64_t since_ns, start_ns,
		end_ns; /* progress is settled up to since_ns; first start; end */
	uint32_t order; /* of its end's event, while it runs */
};

struct td_sim_gpu {
	uint32_t jobs[TD_SIM_OCCUPANTS];
	double speeds[TD_SIM_OCCUPANTS];
	uint32_t count;
	bool dirty, measured; /* measured: its load will be shown */
	uint64_t memory_bytes;
	uint32_t service; /* that has it, or TD_SERVICE_NONE */
};

struct td_costs {
	double restart_s;     /* added to a job's work when it starts again, or moves */
	double repartition_s; /* of a job, when the share of the service beside it changes */
	double link_bytes_s;  /* jobs' memory to and from the host beside services; 0: at once */
	/* the distance of checkpoints; an evicted job goes back to the last one */
	double checkpoint_s;
	bool kills; /* who is suspended has no time to save its state */
};

/*
 * Worlds that differ in the speeds on a GPU, under a scheduler that guards its holders, to measure
 * bounds.
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
	TD_WORLD_LEAST_DUTY, /* guests beside a holder never have more than the floor of the duty */
};

struct td_cluster_options {
	struct td_contention contention;
	struct td_costs costs;
	uint64_t seed;
	struct td_services *services; /* NULL: none */
	struct td_batch_table *table; /* of the services' queues; NULL: one of its own */
	enum td_sim_world world;
	const struct td_sim_knowledge
		*knowledge;                /* what a scheduler has learnt before; see sched.h */
	double until_s;                    /* 0: until the last job ends */
	const volatile sig_atomic_t *stop; /* NULL, or set from outside: what has been is kept */
	void (*progress)(double done, void *arg); /* NULL; done: of the jobs, 0 to 1 */
	void *progress_arg;
};

struct td_sim_sample {
	double at_s;
	uint32_t busy_gpus, queued, running;
};

struct td_cluster_counts {
	/* beside_starts: on a GPU with another job */
	uint64_t events, starts, beside_starts, evictions, upgrades, moves, suspensions;
	/* GPU-seconds: work done again, the costs of starting again, and of moving */
	double lost_s, restart_s, move_s, repartition_s;
	uint64_t repartitions, rounds; /* rounds: of tune */
	uint64_t swaps;                /* of jobs' memory beside services */
	double swapped_bytes, swap_s;
	uint64_t tunings, iterations,
		samplings;               /* Mudi's searches for a batch, and their samples */
	double busy_gpu_s, shared_gpu_s; /* with a job; with several */
	double arriving_busy_gpu_s,
		arriving_s; /* the first of these, and the time, until the last job has come */
	double work_gpu_s;  /* of progress */
	bool stopped;
};

#define TD_SETTLED_BITS 14

/* Speeds of a company of one holder and guests; key 0: none. */
struct td_settled {
	uint64_t key;
	double speeds[TD_SIM_OCCUPANTS];
};

struct td_cluster {
	const struct td_profiles *profiles;
	struct td_cluster_options options;
	const struct td_sched *sched;
	void *sched_state;
	struct td_services *services; /* options.services */
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
	struct td_settled *settled; /* 1 << TD_SETTLED_BITS */
	struct td_cluster_counts counts;
	struct td_sim_sample samples[TD_SIM_SAMPLES];
	uint32_t sample_count;
	uint64_t sample_every_ns;
};

/*
 * Returns why no scheduler can ever place the job on so many GPUs of such memory (0: unknown);
 * NULL: it can be placed.
 */
const char *td_cluster_misfit(
	const struct td_sim_job *job, uint32_t gpus, uint64_t gpu_memory_bytes);

/*
 * Prepares a run of a scheduler on nodes, for jobs that the caller has made, sorted by arrival. The
 * jobs stay the caller's; their run fields are reset. Returns 0; -EINVAL: a job that
 * td_cluster_misfit() names, or of a profile that does not exist; -ENOMEM; or the scheduler's
 * error.
 */
int td_cluster_init(struct td_cluster *cluster, const struct td_cluster_options *options,
	const struct td_profiles *profiles, const uint32_t *node_gpus, uint32_t nodes,
	uint64_t gpu_memory_bytes, struct td_sim_job *jobs, uint32_t count,
	const struct td_sched *sched);
void td_cluster_run(struct td_cluster *cluster);
/*
 * Returns the part of the services' time in which P99 exceeded the objective, for a kind or
 * (TD_SERVICE_NONE) for all.
 */
double td_cluster_late(const struct td_cluster *cluster, uint32_t kind);
void td_cluster_deinit(struct td_cluster *cluster);

/* --- for schedulers --- */

/* gpus: as many as the job has asked for. */
void td_cluster_start(struct td_cluster *cluster, uint32_t job, const uint32_t *gpus, bool guest);
/* A guest becomes a holder where it is. */
void td_cluster_upgrade(struct td_cluster *cluster, uint32_t job);
/*
 * Moves a job to as many other GPUs, some of which it may have already, at a cost of so much more
 * work. No work is repeated.
 */
void td_cluster_move(struct td_cluster *cluster, uint32_t job, const uint32_t *gpus, double cost_s);
/* Puts the job back into the queue, with its progress up to its last checkpoint. */
void td_cluster_evict(struct td_cluster *cluster, uint32_t job);
/*
 * Puts the job back into the queue after it has saved its state: no work is repeated, and starting
 * again costs restart_s. Where options.costs.kills, it is evicted.
 */
void td_cluster_suspend(struct td_cluster *cluster, uint32_t job);
/* Marks a job that this scheduler can never run: it counts as not done; see metrics.h. */
void td_cluster_fail(struct td_cluster *cluster, uint32_t job);

/* Utilisation of a GPU as a monitor shows it. */
double td_cluster_load(const struct td_cluster *cluster, uint32_t gpu);

/* --- internal: cluster_rates.c --- */

void td_cluster_speeds(struct td_cluster *cluster, struct td_sim_gpu *gpu);

/*
 * Steps the duty's controller for the one job that is no guest until it has settled, and returns
 * the mean speeds from then on. rounds: steps, of which the first third does not count. The engine
 * takes 12,000; a test shows that more of them change little.
 */
void td_duty_settle(const struct td_contention *contention, const struct td_contender *jobs,
	const bool *guest, uint32_t count, const struct td_duty_params *params, uint32_t rounds,
	double *ret_speeds);
