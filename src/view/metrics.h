/*
 * A snapshot as metrics in Prometheus's text format, version 0.0.4. Pure, but for the memory of the
 * text. What metrics there are: metrics.def.
 *
 * Labels: gpu is the UUID, as in the metrics of NVIDIA's exporter. Only processes that live have
 * series of their own, and no more rows of them than TD_METRICS_JOBS_MAX: tandem_jobs_left_out says
 * how many have none.
 */
#pragma once

#include "base/text.h"
#include "view/snapshot.h"

#define TD_METRICS_JOBS_MAX 500

/* Appends all metrics. An empty snapshot is a daemon that does not answer. */
void td_metrics_write(struct td_text *text, const struct td_snapshot *snapshot);

/* "GPU-..." or "MIG-...": TD_UUID_TEXT bytes. Returns buf. */
char *td_gpu_uuid(char *buf, const struct td_msg_gpu *gpu);
