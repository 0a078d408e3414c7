/*
 * P99 of batch queues (batch_queue.h) in bulk: the exact figure costs milliseconds, and a cluster
 * needs it millions of times.
 *
 * In units of b / W, the time in which a batch fills, the percentile depends smoothly on the batch
 * and the load alone. It is computed exactly at the points of a grid (half powers of two by steps
 * of 4 % of load), at first use, and is linear between points. By test it is within 4 % of the
 * exact figure for batches of 16 and more, and within 8 % below.
 */
#pragma once

#include "model/batch_queue.h"

#define TD_BATCH_TABLE_BATCHES 19u /* 1, 1.4, 2, ... 512 */
#define TD_BATCH_TABLE_LOADS   25u /* 0.02, 0.06, ... 0.98 */

/* Zeroed: nothing is known yet. */
struct td_batch_table {
	double fills[TD_BATCH_TABLE_BATCHES][TD_BATCH_TABLE_LOADS]; /* 0: not computed */
	struct td_batch_queue_work work;
};

/*
 * Returns P99 in seconds. INFINITY: a load of 0.95 or more, at which nobody would run a service, or
 * a batch beyond 512.
 */
double td_batch_table_p99_s(struct td_batch_table *table, const struct td_batch_queue *queue);
