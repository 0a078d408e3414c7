/*
 * The metrics of a scheduler in Prometheus's text format, version 0.0.4 (sched_metrics.def). A
 * scheduler that does not lead knows nothing of jobs, so it has no sample of them.
 */
#pragma once

#include "cluster/brain/brain.h"

struct td_text;

/* Counts of one scheduler since it began. An order that is repeated is counted once. */
struct td_sched_counts {
	uint64_t orders[TD_ORDER_VERB_N];
	uint64_t steps, step_ns; /* decisions, and their time */
};

/* Adds all metrics. brain NULL: it does not lead. */
void td_sched_metrics_write(
	const struct td_sched_counts *count, const struct td_brain *brain, struct td_text *text);
