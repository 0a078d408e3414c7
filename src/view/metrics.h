/*
 * Writes a snapshot as metrics in Prometheus's text format, version 0.0.4 (metrics.def). Pure,
 * apart from the memory of the text.
 *
 * The label gpu is the UUID, as in the metrics of NVIDIA's exporter. Only processes that exist now
 * have series of their own, at most TD_METRICS_JOBS_MAX rows of them. tandem_jobs_left_out is the
 * number of rows without series.
 */
#pragma once

#include "base/text.h"
#include "view/snapshot.h"

#define TD_METRICS_JOBS_MAX 500

/* Appends all metrics. An empty snapshot means that the daemon does not answer. */
void td_metrics_write(struct td_text *text, const struct td_snapshot *snapshot);

/* Writes "GPU-..." or "MIG-...", TD_UUID_TEXT bytes. Returns buf. */
char *td_gpu_uuid(char *buf, const struct td_msg_gpu *gpu);
