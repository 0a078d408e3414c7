/*
 * How fast work goes that shares a GPU: side by side, by turns, and with less memory than it needs.
 *
 * Purpose. What two jobs do to each other decides whether sharing pays; simulator and software GPU ask the same formulas, so that both show the same world.
 *
 * Side by side (MPS). A job v beside jobs a, with a share x of the SMs, has the speed s_v (of 1 = alone on the whole GPU):
 *
 *   1 / s_v = alpha_v + (1 - alpha_v) / x_v + sum_a (g_v p_a + h_v h_a)
 *
 * g sensitivity, p pressure, h symmetric contention on the host: three numbers FITTED per job to measured pairs, not properties of the job; alpha the
 * serial part of the share curve. Fitted and judged by tools/fit-model. Measured tables hold pairs, or shares, never both:
 * what a cap does to a job's pressure on others is an assumption. Here a capped job presses in proportion to the speed that its share
 * leaves it, times capped_pressure, which whoever compares policies has to vary.
 *
 * By turns (proportional). Jobs demand parts of the GPU's time; as long as the sum is within 1 all have what they ask for, beyond it
 * max-min fairness: equal turns for all who can use them.
 *
 * Source: facts of measured pairs (Gavel), shares (MISO, ParvaGPU) and kernels (Orion), docs/results/contention.md.
 *
 * Invariants
 *  - speeds are in (0, 1] for duties above 0;
 *  - a co-runner more, or a smaller share, never makes anybody faster;
 *  - no job on its own with all SMs is slower than 1;
 *  - parts of turns sum up to at most 1, and nobody who demands less than its equal part gets less than it demands.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_contender {
	double sensitivity, pressure, host; /* g, p, h; 0 and more */
	double serial;                      /* alpha, 0 to 1 */
	double share;                       /* x, above 0 to 1 */
	double duty;                        /* part of the time in which it may run, above 0 to 1 */
	double demand; /* of the GPU's time when alone, above 0 to 1: for turns */
};

/* A job that neither presses nor suffers, with the whole GPU. */
extern const struct td_contender td_contender_neutral;

struct td_contention {
	bool proportional;      /* by turns instead of side by side */
	double capped_pressure; /* 1: as above */
};

#define TD_CONTENDERS_MAX 256u

/* Speed of each of the jobs that share one GPU, TD_CONTENDERS_MAX at most. */
void td_contention_speeds(const struct td_contention *contention, const struct td_contender *jobs,
	uint32_t count, double *ret_speeds);

/* Of one job alone under its share. */
double td_contention_solo(const struct td_contender *job);

/*
 * Max-min fair parts of 1 for the demands: ret_parts[i] <= demands[i], and the sum is the smaller of 1 and the demands' sum.
 */
void td_fair_parts(const double *demands, uint32_t count, double *ret_parts);

/*
 * Speed of a job that finds so many of its bytes on the host. host_cost: how much longer a step takes with all of them there, of 1 = the
 * step; fitted. AntMan's universal memory.
 */
double td_spilled_speed(uint64_t demanded_bytes, uint64_t resident_bytes, double host_cost);

/*
 * Factor by which all jobs of a GPU become slower when they page their working sets in by turns (managed memory): 1 as long as the sets fit, and from there
 * linear in what is missing, up to `worst` where as much is missing as there is. `worst` is fitted. nvshare's thrashing.
 */
double td_thrash_slowdown(uint64_t demanded_bytes, uint64_t capacity_bytes, double worst);
