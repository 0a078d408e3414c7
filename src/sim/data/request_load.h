/*
 * The load of a file of requests on one GPU that serves nothing else: how many requests come, how
 * unevenly, how long they take, and how much slower jobs beside it may make a batch before the
 * objective is missed.
 *
 * Every request is simulated, one by one. A free server takes all that wait, `batch` at most, and
 * never waits for more. A batch of n takes (1 + n) / 2 times as long as one request alone, times
 * the slowdown. The experiments have another server (batch_queue.h), which fills batches and is
 * computed from a rate, because a file has its own gaps.
 */
#pragma once

#include <stdint.h>

struct td_server {
	double one_s; /* time of a request alone; above 0 */
	uint32_t batch;
	double slowdown; /* 1 or more */
};

struct td_request_load {
	uint32_t requests;
	double span_s;     /* from the first arrival to the last */
	double mean_per_s; /* 0 if span_s is 0 */
	double peak_per_s; /* the most in a window; windows begin at the first arrival */
	/*
	 * Standard deviation of the gaps over their mean. 1: random arrivals; 0: fewer than three
	 * requests.
	 */
	double variation;
	/* Part of the time until the last answer in which the server is busy. */
	double busy;
	double p50_s, p99_s; /* without jobs beside it */
	/*
	 * The largest slowdown with P99 within the objective, to 1 %. 0: P99 exceeds it even alone;
	 * TD_ROOM_MOST: that much or more.
	 */
	double room;
};

#define TD_ROOM_MOST 64.

/*
 * Simulates the server. Writes the latencies in order of arrival to ret_s. Returns the seconds in
 * which the server was busy. arrivals are ascending; count is above 0.
 */
double td_serve(
	const double *arrivals, uint32_t count, const struct td_server *server, double *ret_s);

/* Computes the load. server->slowdown is 1; scratch has `count` doubles; count is above 0. */
struct td_request_load td_request_load_of(const double *arrivals, uint32_t count,
	const struct td_server *server, double objective_s, double window_s, double *scratch);
