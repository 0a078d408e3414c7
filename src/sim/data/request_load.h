/*
 * What a file of requests asks of one GPU that serves nothing else: how many come, how unevenly, how long they take, and how much slower a batch may become, by jobs beside it, before the objective is missed.
 *
 * Every request is simulated, one by one. A server that is free takes whoever waits, `batch` at most, and never waits for more to come; a batch of n takes (1 + n) / 2 times what one takes alone, times the slowdown. This is
 * another server than that of experiments (batch_queue.h), which fills batches and is computed from a rate: a file has its own gaps.
 */
#pragma once

#include <stdint.h>

struct td_server {
	double one_s; /* a request alone, above 0 */
	uint32_t batch;
	double slowdown; /* 1 and more */
};

struct td_request_load {
	uint32_t requests;
	double span_s;     /* first arrival to last */
	double mean_per_s; /* 0 without a span */
	double peak_per_s; /* most in a window, from the first arrival on */
	double variation; /* of gaps: standard deviation over mean; 1: at random; 0 of fewer than three */
	double busy;         /* part of the time until the last answer */
	double p50_s, p99_s; /* alone */
	double room; /* the largest slowdown with P99 within the objective, to 1 %; 0: not even alone; TD_ROOM_MOST: as much or more */
};

#define TD_ROOM_MOST 64.

/* Latencies in order of arrival to ret_s; returns the seconds in which the server was busy. arrivals: ascending, count above 0. */
double td_serve(
	const double *arrivals, uint32_t count, const struct td_server *server, double *ret_s);

/* server->slowdown: 1. scratch: count doubles. count above 0. */
struct td_request_load td_request_load_of(const double *arrivals, uint32_t count,
	const struct td_server *server, double objective_s, double window_s, double *scratch);
