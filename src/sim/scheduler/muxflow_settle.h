/*
 * MuxFlow's control of a GPU for simulators: the figures of its monitor, and the duty at which its
 * PID settles.
 *
 * The controller works in milliseconds, the simulators in minutes. It is stepped until its duty
 * stands still, and then sleeps until something changes. A cold start takes about 120 steps; a test
 * compares this with stepping throughout.
 */
#pragma once

#include "policy/system/muxflow.h"

/*
 * The SM activity per GPU time used, as a monitor shows them. Measured on three clusters: 16 of 26
 * % before sharing on MuxFlow's own (7.5), 41.5 of 66.1 % and 38.5 of 62.0 % on Acme's two (means
 * of cluster_gpu_util_cdf.csv). Services and jobs have the same ratio.
 */
#define TD_MUXFLOW_ACTIVITY 0.62

#define TD_MUXFLOW_STEP_NS 10000000ull

struct td_muxflow_load {
	double busy;     /* part of the GPU's time that the service uses */
	double job;      /* that the job beside it would use with a duty of 1, under its share */
	double activity; /* SM activity of the use */
};

/* Settles the controller on a T4 from now on and returns its final output. */
struct td_muxflow_output td_muxflow_settle(
	struct td_muxflow_gpu *gpu, const struct td_muxflow_load *load, uint64_t now_ns);
