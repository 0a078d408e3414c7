/*
 * Latency of a service that answers in batches: from arrival rate, batch and the time of one batch
 * to percentiles.
 *
 * Purpose. A service's clients see a percentile, which depends on the arrivals as much as on the
 * GPU. Simulating every request of a cluster's day (10^9 and more) is out of reach.
 *
 * Requests come as a Poisson process of rate W; b of them make a batch; batches queue for one
 * server that takes D for each: an E_b/D/1 queue. The i-th request of a batch waits for the b - i
 * that follow it (R), then for the batches before its own. With T the time from the last batch's
 * completion to the i-th arrival, and V the waiting time of the batch before,
 *
 *   latency = D + max(R, V + D - T)
 *   P(latency <= t) = 1/b sum_i P(R_i <= t - D) P(V - T_i <= t - 2D)
 *
 * R_i is Erlang(b - i), T_i is Erlang(i), V is independent of both, so the percentile is exact once
 * V's distribution is known. That is the fixed point of Lindley's recursion V <- max(0, V + D - A),
 * A Erlang(b), found on a grid.
 *
 * At cluster scale requests are not events: the percentile is evaluated per (service, batch, rate),
 * and a test compares it with a simulation of every request.
 *
 * Source. Lindley, "The theory of queues with a single server", 1952; the decay rate of the tail is
 * that of Cramer and Lundberg.
 *
 * Invariants
 * - a latency is at least D, never falls with the quantile, and is INFINITY exactly for a load of 1
 *   or more;
 * - td_batch_queue_late() of a limit falls as the limit rises, is in [0, 1], and agrees with the
 *   quantile;
 * - only the caller's scratch is written; same queue, same answer.
 */
#pragma once

#include <stdint.h>

struct td_batch_queue {
	double rate_per_s; /* W, the arrival rate; above 0 */
	uint32_t batch;    /* b, requests in a batch; 1 or more */
	double batch_s;    /* D, the time of one batch; above 0 */
};

/* Returns the part of the time in which the server is busy: W D / b. */
double td_batch_queue_load(const struct td_batch_queue *queue);

#define TD_BATCH_QUEUE_CELLS     1024u
#define TD_BATCH_QUEUE_POSITIONS 16u

/* Scratch memory of the caller, so that nothing large is on the stack. */
struct td_batch_queue_work {
	/* Entry k: P(V <= the edge of cell k). */
	double waiting[TD_BATCH_QUEUE_CELLS], next[TD_BATCH_QUEUE_CELLS];
	/* Distribution of A by cells. */
	double gap[TD_BATCH_QUEUE_CELLS + 1];
	/* Distributions of T by cells. */
	double arrival[TD_BATCH_QUEUE_POSITIONS][TD_BATCH_QUEUE_CELLS];
};

/*
 * Returns the latency that a share `quantile` of all requests does not exceed; INFINITY for a load
 * of 1 or more.
 */
double td_batch_queue_latency_s(
	const struct td_batch_queue *queue, double quantile, struct td_batch_queue_work *work);

/* Returns the part of the requests that take longer than limit_s; 1 for a load of 1 or more. */
double td_batch_queue_late(
	const struct td_batch_queue *queue, double limit_s, struct td_batch_queue_work *work);
