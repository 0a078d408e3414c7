/*
 * P99 of batch queues (batch_queue.h) in bulk: the exact figure costs milliseconds, a cluster asks for it millions of times.
 *
 * In units of b / W, the time in which a batch fills, the percentile depends on the batch and on the load alone, and smoothly. It is computed exactly where somebody
 * first asks near a point of a grid (half powers of two by steps of 4 % of load), and is linear between points. Within 4 % of the exact figure for
 * batches of 16 and more, 8 % below, by test.
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

/* P99 in seconds; INFINITY: a load of 0.95 or more, where nobody would run a service, or a batch beyond 512. */
double td_batch_table_p99_s(struct td_batch_table *table, const struct td_batch_queue *queue);
