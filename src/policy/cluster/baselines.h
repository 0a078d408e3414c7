/*
 * The baselines of the papers, as small placement rules on the inventory, and the exhaustive
 * optimum.
 *
 * Purpose. A gain counts only against the same baseline on the same trace. The papers describe
 * theirs in a sentence or two, quoted here:
 *
 * - FIFO gang: Apache YARN's capacity scheduler as Philly uses it (AntMan 5.2): whole GPUs,
 *   strictly first come first served, a gang at a time. The head of the queue waits until all of
 *   its GPUs are free. With preemption a job of a tenant with quota may take GPUs from jobs
 *   without, the latest started first.
 * - Gandiva packing: "greedily schedules jobs to the GPUs with lowest GPU utilization and
 *   sufficient GPU memory", by profiles.
 * - least-loaded, round-robin, random: DCUDA's related work and its baseline.
 * - GSLICE (as Mudi describes it): "allocating GPU partitions based on feedback regarding inference
 *   latency and throughput": a partition grows by a step when the objective is missed, shrinks by
 *   one when there is slack, and otherwise stays.
 * - gpulets (as Mudi describes it): virtual GPUs of a few fixed sizes. The most cost-effective one
 *   is the smallest whose profiled latency holds the objective at the present rate.
 * - optimum: the least sum of costs over all assignments of a few tasks to a few devices, each with
 *   room for several. Exponential; for tests and small cases.
 *
 * Invariants: a rule answers with distinct GPUs that satisfy its condition, or with none; same
 * input, same answer (random's state is the caller's).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/algo/fit/slo_share.h"
#include "policy/cluster/inventory.h"

/*
 * Finds the GPUs for the job at the head of the queue. Returns false if it has to wait, and with it
 * all jobs behind it.
 */
bool td_fifo_gang(
	const struct td_inventory *inventory, uint32_t gpus, bool same_node, uint32_t *ret_gpus);

struct td_fifo_running {
	uint32_t gpus;
	bool preemptible; /* the job runs without quota */
	uint64_t started_ns;
};

/*
 * Chooses the jobs to preempt so that `lacking` more GPUs come free: the preemptible ones that
 * started last. Returns how many, with their indices in ret_victims; 0 where not even all of them
 * suffice.
 */
uint32_t td_fifo_preempt(const struct td_fifo_running *running, uint32_t count, uint32_t lacking,
	uint32_t *ret_victims);

struct td_pack_gpu {
	double utilisation; /* use of the GPU by its jobs' profiles; 1 is the whole GPU */
	uint64_t free_bytes;
};

/*
 * Gandiva: chooses the `wanted` GPUs of the lowest utilisation among those with enough memory.
 * Returns false if there are too few.
 */
bool td_gandiva_pack(const struct td_pack_gpu *gpus, uint32_t count, uint32_t wanted,
	uint64_t bytes, uint32_t *ret_gpus);

/* Returns the GPU of the lowest utilisation, the first among equals. count > 0. */
uint32_t td_least_loaded(const struct td_pack_gpu *gpus, uint32_t count);

/* Returns the GPUs in turn. *cursor is 0 before the first call. */
uint32_t td_round_robin(uint32_t *cursor, uint32_t count);

/* Returns a random GPU. *state is a seed other than 0 before the first call. */
uint32_t td_random_gpu(uint64_t *state, uint32_t count);

struct td_gslice {
	double share, step, share_min; /* usual values: step 0.05, share_min 0.1 */
	double slack;                  /* the share shrinks below this part of the objective: 0.8 */
};

/* Returns the next share, from the P99 latency under the present one. */
double td_gslice_step(struct td_gslice *gslice, double latency_s, double objective_s);

#define TD_GPULET_SIZES 6
extern const double td_gpulet_sizes[TD_GPULET_SIZES]; /* 0.2, 0.4, 0.5, 0.6, 0.8 and 1 */

/* Returns the size of the partition; 0: not even the whole GPU holds the objective. */
double td_gpulet_size(const struct td_slo *slo, const struct td_curve *curve);

#define TD_OPTIMUM_TASKS_MAX 10

/*
 * Finds the assignment with the least sum of costs[t * devices + d], INFINITY where infeasible,
 * with at most `places` tasks per device. Returns the sum and the device of each task; INFINITY if
 * there is no assignment.
 */
double td_optimum(const double *costs, uint32_t tasks, uint32_t devices, uint32_t places,
	uint32_t *ret_device);
