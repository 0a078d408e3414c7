/*
 * A table of the P99 latency of batch queues (batch_queue.h), for a cluster that needs millions of
 * them, where the exact figure takes milliseconds.
 *
 * In units of b / W, the time in which a batch fills, the percentile depends smoothly on the batch
 * and the load alone. It is computed exactly at the points of a grid (half powers of two by steps
 * of 4 % of load), at first use, and is linear between points. By test it is within 4 % of the
 * exact figure for batches of 16 and more, and within 8 % below.
 */
#pragma once

#include "model/batch_queue.h"

#define TD_BATCH_TABLE_BATCHES 19u /* batches 1, 1.4, 2, ... 512 */
#define TD_BATCH_TABLE_LOADS   25u /* loads 0.02, 0.06, ... 0.98 */

/* A zeroed table has no points yet; they are computed when they are needed. */
struct td_batch_table {
	double fills[TD_BATCH_TABLE_BATCHES][TD_BATCH_TABLE_LOADS]; /* 0: not computed yet */
	struct td_batch_queue_work work;
};

/*
 * Returns P99 in seconds; INFINITY for a load of 0.95 or more, at which nobody would run a service,
 * or for a batch beyond 512.
 */
double td_batch_table_p99_s(struct td_batch_table *table, const struct td_batch_queue *queue);
