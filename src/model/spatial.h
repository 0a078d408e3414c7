/*
 * The speeds of kernels that run on one GPU at the same time, each on a part of its SMs.
 *
 * Purpose. Under MPS the kernels of several processes run side by side instead of by turns. This
 * file says how fast each of them goes; timeline.h moves them on in time.
 *
 * A kernel needs a share of the SMs: as much as its blocks can occupy, or as much as its
 * instructions take of the issue rate, whichever is more. Its process may have a cap
 * (CUDA_MPS_ACTIVE_THREAD_PERCENTAGE or an SM affinity). It wants the smaller of both. Wants that
 * sum up to 1 at most are all met; beyond that the SMs are shared max-min fairly. The speed is the
 * share that it got, divided by the share that it needs: 1 is the speed alone on the whole GPU.
 *
 * Then the memory bandwidth is shared in the same way: a kernel that takes a part of it when it is
 * alone asks for that part times its speed. Kernels that together ask for more than there is get
 * max-min fair parts and are slowed down in proportion.
 *
 * contention.h has another model of the same: it is fitted to measured pairs of jobs, and needs
 * their fitted figures. This one needs only what is known of a kernel. Neither shows what caches
 * and the order of blocks do.
 *
 * Invariants
 *  - speeds are in [0, 1], and 1 for a kernel that is alone and not capped below its need;
 *  - the SMs that are given out, and the bandwidth, sum up to at most 1;
 *  - another kernel, or a smaller cap, never makes anybody faster, but for what a slower neighbour
 *    leaves of the bandwidth.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_gpu_spec;

#define TD_SPATIAL_MAX 256u

struct td_spatial_user {
	double need;      /* the share of the SMs that the kernel can use, 0 to 1 */
	double cap;       /* share of the SMs that it may use, above 0 to 1 */
	double bandwidth; /* part of the memory bandwidth that it uses alone, 0 to 1 */
};

/*
 * Computes max-min fair parts of 1. ret_parts[i] is at most demands[i], and the sum of the parts is
 * the smaller of 1 and the sum of the demands.
 */
void td_fair_parts(const double *demands, uint32_t count, double *ret_parts);

/* Computes the speed of each of at most TD_SPATIAL_MAX kernels that run at the same time. */
void td_spatial_speeds(const struct td_spatial_user *users, uint32_t count, double *ret_speeds);

/*
 * Returns the speed of one more kernel if it got only the SMs that the others leave unused, so that
 * it slows none of them down.
 */
double td_spatial_spare_speed(
	const struct td_spatial_user *others, uint32_t count, const struct td_spatial_user *user);

/*
 * Return the number of SMs of a share. An active thread percentage is rounded down to whole units
 * of the hardware, an SM affinity up. The result is at least one unit and at most the GPU.
 */
uint32_t td_spatial_sms_of_percentage(const struct td_gpu_spec *spec, double percentage);
uint32_t td_spatial_sms_of_affinity(const struct td_gpu_spec *spec, uint32_t sm_count);
