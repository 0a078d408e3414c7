/*
 * Speeds of jobs that share a GPU: side by side, by turns, and with less memory than they need.
 *
 * Purpose. The effect of two jobs on each other decides whether sharing pays. The simulator and the
 * software GPU use the same formulas, so both show the same world.
 *
 * Side by side (MPS). A job v beside jobs a, with a share x of the SMs, has the speed s_v (where 1
 * is alone on the whole GPU):
 *
 *   1 / s_v = alpha_v + (1 - alpha_v) / x_v + sum_a (g_v p_a + h_v h_a)
 *
 * g is the sensitivity, p the pressure, h the symmetric contention on the host. These three numbers
 * are FITTED per job to measured pairs; they are not properties of the job. alpha is the serial
 * part of the share curve. tools/fit-model fits and judges them. Measured tables have pairs, or
 * shares, never both: the effect of a cap on a job's pressure is an assumption. Here a capped job
 * presses in proportion to the speed that its share leaves it, times capped_pressure, which any
 * comparison of policies has to vary.
 *
 * By turns (proportional). Jobs demand parts of the GPU's time. As long as the sum is within 1 all
 * get their demand; beyond it max-min fairness applies: equal turns for all that can use them.
 *
 * Source: measured pairs (Gavel), shares (MISO, ParvaGPU) and kernels (Orion),
 * docs/results/contention.md.
 *
 * Invariants
 * - speeds are in (0, 1] for duties above 0;
 * - one more co-runner, or a smaller share, never makes a job faster;
 * - no job on its own with all SMs is slower than 1;
 * - parts of turns sum up to at most 1, and a job that demands less than its equal part gets its
 *   demand.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/spatial.h"

struct td_contender {
	double sensitivity, pressure, host; /* g, p and h; 0 or more */
	double serial;                      /* alpha; 0 to 1 */
	double share;                       /* x; above 0, at most 1 */
	/* Part of the time in which it may run; above 0, at most 1. */
	double duty;
	/* Used by turns only: part of the GPU's time that it uses alone; above 0, at most 1. */
	double demand;
};

/* A job that has the whole GPU, and neither slows others down nor is slowed down. */
extern const struct td_contender td_contender_neutral;

struct td_contention {
	bool proportional;      /* true: by turns; false: side by side */
	double capped_pressure; /* 1: a capped job presses in proportion to its speed, as above */
};

#define TD_CONTENDERS_MAX TD_SPATIAL_MAX

/* Computes the speed of each of the jobs that share one GPU, at most TD_CONTENDERS_MAX. */
void td_contention_speeds(const struct td_contention *contention, const struct td_contender *jobs,
	uint32_t count, double *ret_speeds);

/* Returns the speed of one job alone under its share. */
double td_contention_solo(const struct td_contender *job);

/*
 * Returns the speed of a job with some of its bytes on the host (AntMan's universal memory).
 * host_cost is fitted: by how much a step is longer with all bytes there, where 1 is the step
 * itself.
 */
double td_spilled_speed(uint64_t demanded_bytes, uint64_t resident_bytes, double host_cost);

/*
 * Returns the factor by which all jobs of a GPU become slower when they page their working sets in
 * by turns (managed memory): nvshare's thrashing. It is 1 while the sets fit, and grows linearly
 * with the missing bytes. It is `worst`, which is fitted, when as many bytes are missing as the GPU
 * has.
 */
double td_thrash_slowdown(uint64_t demanded_bytes, uint64_t capacity_bytes, double worst);
