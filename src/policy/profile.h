/*
 * What is known of a job before it runs: from its dry run, its model file or its earlier runs (src/learn keeps and trains it).
 * Whoever fills a view owns it and what it points to.
 */
#pragma once

#include "policy/mudi.h"

struct td_profile {
	uint64_t alone_step_ns; /* without company and with all of its memory; 0 unknown */
	const struct td_mudi_service *service; /* of a service: its latency curves; NULL unknown */
	double layers[TD_MUDI_LAYERS]; /* of a training job's network, as Mudi counts them */
};
