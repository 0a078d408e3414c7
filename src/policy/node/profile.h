/*
 * Knowledge of a job before it runs: from its dry run, its model file or its earlier runs
 * (src/learn keeps and trains it).
 *
 * Purpose. AntMan judges a step time better when it knows the job's step time alone. Mudi cannot
 * decide without the learnt curves of a service and the layers of a task. The caller that fills a
 * view looks both up once, when a job comes. The simulator takes them from its predictors' training
 * data, never from the truth that scores them. The daemon reads files of services
 * (daemon/model/services/profiles.h) and asks the programs that train for their layers.
 *
 * Invariants: the caller that fills a view owns the profile and what it points to, and keeps both
 * as long as a view names them. The predictors have passed td_predictor_check(). 0 and NULL mean
 * unknown, never zero.
 */
#pragma once

#include <stdint.h>

#include "policy/algo/fit/mudi_curve.h"

struct td_muxflow_profile;

struct td_profile {
	uint64_t alone_step_ns; /* step time without other jobs and with all memory; 0: unknown */
	const struct td_mudi_service *service; /* a service's latency curves; NULL: unknown */
	/* Counts of the layers of a training job's network, as in mudi_curve.h. */
	double layers[TD_MUDI_LAYERS];
	/* Its figures of a run alone on such a GPU (cluster/muxflow_cluster.h); NULL: unknown. */
	const struct td_muxflow_profile *alone;
};
