/*
 * The world of the experiment mudi-sim: 1,000 services, 5,000 training tasks, and a simulation of
 * them under each of the compared systems.
 *
 * Truth, services and tasks are zoo.h's. The schedulers' knowledge is knowledge.h's: five of nine
 * tasks are profiled, four are never seen. Arrivals are 5,000 consecutive ones of pooled Philly. A
 * task has a kind by Table 3 and the duration of a Philly job of one GPU in the same class, at most
 * 200 h. Each service's rate walks between 0.67 and 1.33 of 15 % of its greatest throughput.
 *
 * Costs are equal for all: a changed share costs the task beside it 5 s (a process with another
 * share has to be started), a move 60 s. No table has the memory of tasks and services. It is
 * without limit except for Fig. 17 and Table 4, where sizes are declared and training memory is
 * swapped. GSLICE and gpulets give training what is left of the GPU, as Mudi sets them up.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/sim.h"
#include "sim/data/trace.h"
#include "sim/report/experiment.h"
#include "sim/scheduler/knowledge.h"

#define TD_MUDI_GPUS      1000u
#define TD_MUDI_TASKS     5000u
#define TD_MUDI_SEEDS_MAX 50u
#define TD_MUDI_CLASSES   4
#define TD_MUDI_VARIANTS  4

enum {
	TD_MUDI_GSLICE,
	TD_MUDI_GPULETS,
	TD_MUDI_MUXFLOW,
	TD_MUDI_ITSELF,
	TD_MUDI_BOUND,
	TD_MUDI_TANDEM,
	TD_MUDI_TRUTH,
	TD_MUDI_EXACT,
	TD_MUDI_POLICIES,
	TD_MUDI_MORE = TD_MUDI_POLICIES,
	TD_MUDI_EVEN,
	TD_MUDI_MORE_EXACT,
	TD_MUDI_ALL
};

struct td_mudi_variant {
	const char *name;
	struct td_contention contention;
};
extern const struct td_mudi_variant td_mudi_variants[TD_MUDI_VARIANTS];

struct td_mudi_world {
	struct td_zoo zoo;
	struct td_knowledge knowledge;
	struct td_cluster cluster;
	struct td_batch_table table;
	struct td_service services[TD_MUDI_GPUS];
	float rates[TD_MUDI_GPUS * TD_ZOO_INTERVALS];
	struct td_sim_job tasks[TD_MUDI_TASKS];
	uint32_t task_count;
	const struct td_trace *trace;
	/* The trace's jobs by class. */
	uint32_t *pools[TD_MUDI_CLASSES], pool_counts[TD_MUDI_CLASSES];
};

struct td_mudi_setting {
	int variant;
	double load, crowd; /* factors on the services' rates and on the arrivals */
	bool memory;        /* GPUs have 40 GiB, and tasks and services need memory */
	bool unbounded;     /* does not run the bounds */
};

/* The results of a run, for each policy. */
struct td_mudi_outcome {
	double ct_s[TD_MUDI_ALL]; /* mean completion time */
	/* Part of the services' time in which P99 exceeded the objective, in %. */
	double late[TD_MUDI_ALL];
	double late_s[TD_MUDI_ALL],
		/* in seconds of a service; as a part of the time with tasks, in % */
		late_beside[TD_MUDI_ALL];
	double together[TD_MUDI_ALL]; /* mean number of tasks on a GPU that has any */
	double makespan_s[TD_MUDI_ALL];
	/*
	 * Training memory on the host. swapped: part of the time with tasks, in %; by_kind: the
	 * same beside each kind of service; swaps_per_h: per task and hour; transfer_ms: mean of a
	 * transfer.
	 */
	double swapped[TD_MUDI_ALL], by_kind[TD_MUDI_ALL][TD_ZOO_SERVICES];
	double swaps_per_h[TD_MUDI_ALL], transfer_ms[TD_MUDI_ALL];
	double iterations;          /* Mudi's iterations per tuning */
	double moves, repartitions; /* counts of tandem */
	double unfinished;
};

/* Sorts the trace's jobs of one GPU by class. Returns 0; -ENOENT: a class has none. */
int td_mudi_pools(struct td_mudi_world *w, struct td_err *err);

/*
 * Runs one setting under all of TD_MUDI_POLICIES, or with `unbounded` under the systems alone. ret
 * has an entry for each seed.
 */
int td_mudi_run(struct td_experiment_run *run, struct td_mudi_world *w,
	const struct td_mudi_setting *setting, struct td_mudi_outcome *ret, struct td_err *err);

/* Runs the three systems of Fig. 17, with memory. */
int td_mudi_run_more(struct td_experiment_run *run, struct td_mudi_world *w, int variant,
	struct td_mudi_outcome *ret, struct td_err *err);

/*
 * Adds the row of Fig. 15 from two loads and all seeds: whether Mudi's violations grow least in
 * every seed.
 */
void td_mudi_put_loads(struct td_experiment_run *run, enum td_variant variant,
	const struct td_mudi_outcome *low, const struct td_mudi_outcome *high);
