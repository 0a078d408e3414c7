/* Simulates the requests of a file; see request_load.h. */
#include "sim/data/request_load.h"

#include <math.h>
#include <stdlib.h>

double td_serve(
	const double *arrivals, uint32_t count, const struct td_server *server, double *ret_s)
{
	double free_s = arrivals[0], busy_s = 0;

	for (uint32_t next = 0; next < count;) {
		double start_s = fmax(free_s, arrivals[next]), batch_s;
		uint32_t first = next;

		while (next < count && next - first < server->batch && arrivals[next] <= start_s)
			next++;
		batch_s = server->one_s * (1 + next - first) / 2 * server->slowdown;
		free_s = start_s + batch_s;
		busy_s += batch_s;
		for (uint32_t i = first; i < next; i++)
			ret_s[i] = free_s - arrivals[i];
	}
	return busy_s;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Returns a percentile of sorted values by nearest rank. */
static double rank(const double *sorted, uint32_t count, double part)
{
	uint32_t at = (uint32_t)ceil(part * count);

	return sorted[at ? at - 1 : 0];
}

static double p99_at(const double *arrivals, uint32_t count, struct td_server server,
	double slowdown, double *scratch)
{
	server.slowdown = slowdown;
	(void)td_serve(arrivals, count, &server, scratch);
	qsort(scratch, count, sizeof(*scratch), compare);
	return rank(scratch, count, 0.99);
}

/*
 * Finds the largest slowdown with which P99 holds, by bisection. P99 grows with the slowdown,
 * except where requests share other batches. So the result holds, and a slightly larger slowdown
 * does not.
 */
static double find_room(const double *arrivals, uint32_t count, const struct td_server *server,
	double objective_s, double *scratch)
{
	double holds = 1, misses = TD_ROOM_MOST;

	if (p99_at(arrivals, count, *server, holds, scratch) > objective_s)
		return 0;
	if (p99_at(arrivals, count, *server, misses, scratch) <= objective_s)
		return TD_ROOM_MOST;
	while (misses / holds > 1.01) {
		double middle = sqrt(holds * misses);

		if (p99_at(arrivals, count, *server, middle, scratch) <= objective_s)
			holds = middle;
		else
			misses = middle;
	}
	return holds;
}

/*
 * Returns the most requests per second in a window. It is never below the mean, although windows
 * that end after the last arrival are only partly filled.
 */
static double peak_of(const double *arrivals, uint32_t count, double window_s)
{
	double span_s = arrivals[count - 1] - arrivals[0];
	uint32_t most = 0;

	for (uint32_t i = 0; i < count;) {
		double turn = floor((arrivals[i] - arrivals[0]) / window_s);
		uint32_t first = i;

		while (i < count && floor((arrivals[i] - arrivals[0]) / window_s) <= turn)
			i++;
		most = i - first > most ? i - first : most;
	}
	return fmax(most / window_s, span_s > 0 ? count / span_s : 0);
}

static double variation_of(const double *arrivals, uint32_t count)
{
	double mean = (arrivals[count - 1] - arrivals[0]) / fmax(1, count - 1.), sum = 0;

	if (count < 3 || !(mean > 0))
		return 0;
	for (uint32_t i = 1; i < count; i++)
		sum += pow(arrivals[i] - arrivals[i - 1] - mean, 2);
	return sqrt(sum / (count - 1)) / mean;
}

struct td_request_load td_request_load_of(const double *arrivals, uint32_t count,
	const struct td_server *server, double objective_s, double window_s, double *scratch)
{
	double span_s = arrivals[count - 1] - arrivals[0];
	double busy_s = td_serve(arrivals, count, server, scratch), whole_s;
	struct td_request_load load = {.requests = count,
		.span_s = span_s,
		.mean_per_s = span_s > 0 ? count / span_s : 0,
		.peak_per_s = peak_of(arrivals, count, window_s),
		.variation = variation_of(arrivals, count)};

	whole_s = span_s + scratch[count - 1];
	load.busy = busy_s / whole_s;
	qsort(scratch, count, sizeof(*scratch), compare);
	load.p50_s = rank(scratch, count, 0.5);
	load.p99_s = rank(scratch, count, 0.99);
	load.room = find_room(arrivals, count, server, objective_s, scratch);
	return load;
}
