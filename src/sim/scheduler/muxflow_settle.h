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
 * SM activity per used GPU time, as a monitor shows them. It was measured on three clusters: 16 of
 * 26 % before sharing on MuxFlow's own (7.5), 41.5 of 66.1 % and 38.5 of 62.0 % on Acme's two
 * (means of cluster_gpu_util_cdf.csv). It is used for services and jobs alike.
 */
#define TD_MUXFLOW_ACTIVITY 0.62

#define TD_MUXFLOW_STEP_NS 10000000ull

struct td_muxflow_load {
	double busy; /* part of the GPU's time that the service uses */
	/* GPU time that the job beside it would use with a duty of 1, under its share. */
	double job;
	double activity; /* SM activity per used GPU time */
};

/* Steps the controller on a T4 from now_ns until it has settled. Returns its last output. */
struct td_muxflow_output td_muxflow_settle(
	struct td_muxflow_gpu *gpu, const struct td_muxflow_load *load, uint64_t now_ns);
