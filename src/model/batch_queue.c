/*
 * Computes latencies of the queue E_b/D/1; see batch_queue.h.
 *
 * Time is counted in cells of a width that divides D, so that V + D is a shift. The grid covers the
 * exponential tail of V down to 1e-6; its rate theta solves exp(theta D) = (1 + theta / W)^b.
 */
#include "model/batch_queue.h"

#include <math.h>
#include <stdbool.h>

#define TAIL   14.  /* -ln of the part of the tail that is cut off */
#define ROUNDS 4000 /* maximum number of rounds of the recursion */

double td_batch_queue_load(const struct td_batch_queue *queue)
{
	return queue->rate_per_s * queue->batch_s / queue->batch;
}

/*
 * Returns P(Erlang(k, rate) <= t), the chance of k or more arrivals. The sum begins with its
 * largest term, and terms are computed by logarithms, so that k may be in the thousands.
 */
static double erlang_cdf(uint32_t k, double rate, double t)
{
	double mean = rate * t, term, sum = 0;
	bool few = false;
	uint32_t n;

	if (k == 0)
		return t >= 0 ? 1 : 0;
	if (t <= 0)
		return 0;
	/* Sum P(N >= k) or 1 - P(N < k), whichever has fewer terms. */
	few = mean < k;
	n = few ? k : k - 1;
	term = exp(n * log(mean) - mean - lgamma_r(n + 1., &(int){0}));
	while (term > 1e-17 * sum && term > 1e-300) {
		sum += term;
		if (few) {
			n++;
			term *= mean / n;
		} else {
			if (!n)
				break;
			term *= n / mean;
			n--;
		}
	}
	return few ? fmin(1, sum) : fmax(0, 1 - sum);
}

/* Returns the rate of the exponential tail of the waiting time. The load must be below 1. */
static double tail_rate(const struct td_batch_queue *queue)
{
	double low = 0, high = queue->rate_per_s;

	while (high * queue->batch_s < queue->batch * log1p(high / queue->rate_per_s))
		high *= 2;
	for (int i = 0; i < 100; i++) {
		double middle = (low + high) / 2;

		if (middle * queue->batch_s < queue->batch * log1p(middle / queue->rate_per_s))
			low = middle;
		else
			high = middle;
	}
	return (low + high) / 2;
}

struct grid {
	double width;            /* width of a cell, in seconds */
	uint32_t cells, service; /* service: D in cells */
};

static struct grid make_grid(const struct td_batch_queue *queue)
{
	double reach = TAIL / tail_rate(queue) + queue->batch_s;
	double most = reach / queue->batch_s; /* `reach` in units of D, the time of a batch */
	struct grid grid;

	grid.service = (uint32_t)fmax(1, floor((TD_BATCH_QUEUE_CELLS - 1) / (most + 1)));
	if (grid.service > 128)
		grid.service = 128;
	grid.width = queue->batch_s / grid.service;
	grid.cells = (uint32_t)fmin(TD_BATCH_QUEUE_CELLS, ceil(reach / grid.width) + 1);
	return grid;
}

/*
 * Solves the fixed point of V <- max(0, V + D - A) as P(V <= x) at the cells' edges: P(V' <= x) =
 * sum over gaps of P(V <= x - D + A). It starts from an empty queue, so every round is a lower
 * bound of the waiting time, and ends when a round changes nothing.
 */
static void solve(const struct td_batch_queue *queue, const struct grid *grid,
	struct td_batch_queue_work *work)
{
	uint32_t n = grid->cells, gaps = 0, first = 0;
	double before = 0, beyond;

	/*
	 * gap[k] is the chance that A is within half a cell of k cells. Cells beyond n + service do
	 * not matter.
	 */
	for (uint32_t k = 0; k < TD_BATCH_QUEUE_CELLS; k++) {
		double cdf = erlang_cdf(queue->batch, queue->rate_per_s, (k + 0.5) * grid->width);

		work->gap[k] = cdf - before;
		before = cdf;
		gaps = k + 1;
		if (cdf < 1e-12)
			first = k;
		if (cdf > 1 - 1e-12)
			break;
	}
	beyond = 1 - before;
	for (uint32_t x = 0; x < n; x++)
		work->waiting[x] = 1;
	for (int round = 0; round < ROUNDS; round++) {
		double change = 0;

		for (uint32_t x = 0; x < n; x++) {
			double sum = beyond;

			for (uint32_t k = first; k < gaps; k++) {
				int64_t at = (int64_t)x - grid->service + k;

				if (at >= (int64_t)n)
					sum += work->gap[k];
				else if (at >= 0)
					sum += work->gap[k] * work->waiting[at];
			}
			work->next[x] = sum;
			change = fmax(change, fabs(sum - work->waiting[x]));
		}
		for (uint32_t x = 0; x < n; x++)
			work->waiting[x] = work->next[x];
		if (change < 1e-9)
			return;
	}
}

/* Returns P(V <= x), linear between the edges of cells. */
static double waiting_cdf(
	const struct grid *grid, const struct td_batch_queue_work *work, double x_s)
{
	double at = x_s / grid->width;
	uint32_t cell;

	if (at < 0)
		return 0;
	if (at >= grid->cells - 1)
		return 1;
	cell = (uint32_t)at;
	return work->waiting[cell] + (at - cell) * (work->waiting[cell + 1] - work->waiting[cell]);
}

/*
 * Returns a position within a batch: every position of a small batch, evenly sampled ones of a
 * large batch, where neighbours differ little.
 */
static uint32_t position(const struct td_batch_queue *queue, uint32_t stratum, uint32_t strata)
{
	return 1 + (uint32_t)((stratum + 0.5) * queue->batch / strata);
}

static uint32_t strata_of(const struct td_batch_queue *queue)
{
	return queue->batch < TD_BATCH_QUEUE_POSITIONS ? queue->batch : TD_BATCH_QUEUE_POSITIONS;
}

/*
 * Fills the distribution of T for each position. Cell k has the chance that T is within half a cell
 * of k cells; the last cell also has everything beyond it.
 */
static void spread_arrivals(const struct td_batch_queue *queue, const struct grid *grid,
	struct td_batch_queue_work *work)
{
	for (uint32_t s = 0; s < strata_of(queue); s++) {
		uint32_t i = position(queue, s, strata_of(queue));
		double before = 0;

		for (uint32_t k = 0; k < TD_BATCH_QUEUE_CELLS; k++) {
			double cdf =
				k + 1 == TD_BATCH_QUEUE_CELLS || before >= 1 - 1e-12
					? 1
					: erlang_cdf(i, queue->rate_per_s, (k + 0.5) * grid->width);

			work->arrival[s][k] = cdf - before;
			before = cdf;
		}
	}
}

/* Returns P(V - T <= x). */
static double delayed_cdf(const struct grid *grid, const struct td_batch_queue_work *work,
	uint32_t stratum, double x_s)
{
	double sum = 0;

	for (uint32_t k = 0; k < TD_BATCH_QUEUE_CELLS; k++)
		if (work->arrival[stratum][k] > 0)
			sum += work->arrival[stratum][k] *
			       waiting_cdf(grid, work, x_s + k * grid->width);
	return sum;
}

static double latency_cdf(const struct td_batch_queue *queue, const struct grid *grid,
	const struct td_batch_queue_work *work, double t_s)
{
	uint32_t strata = strata_of(queue);
	double sum = 0;

	if (t_s < queue->batch_s)
		return 0;
	for (uint32_t s = 0; s < strata; s++) {
		uint32_t follow = queue->batch - position(queue, s, strata);
		double filled = erlang_cdf(follow, queue->rate_per_s, t_s - queue->batch_s);

		if (filled > 0)
			sum += filled * delayed_cdf(grid, work, s, t_s - 2 * queue->batch_s);
	}
	return sum / strata;
}

double td_batch_queue_latency_s(
	const struct td_batch_queue *queue, double quantile, struct td_batch_queue_work *work)
{
	double low = queue->batch_s, high = 2 * queue->batch_s + queue->batch / queue->rate_per_s;
	struct grid grid;

	if (td_batch_queue_load(queue) >= 0.999)
		return INFINITY;
	grid = make_grid(queue);
	solve(queue, &grid, work);
	spread_arrivals(queue, &grid, work);
	while (latency_cdf(queue, &grid, work, high) < quantile)
		high *= 1.5;
	for (int i = 0; i < 40; i++) {
		double middle = (low + high) / 2;

		if (latency_cdf(queue, &grid, work, middle) < quantile)
			low = middle;
		else
			high = middle;
	}
	return (low + high) / 2;
}

double td_batch_queue_late(
	const struct td_batch_queue *queue, double limit_s, struct td_batch_queue_work *work)
{
	struct grid grid;

	if (td_batch_queue_load(queue) >= 0.999)
		return 1;
	grid = make_grid(queue);
	solve(queue, &grid, work);
	spread_arrivals(queue, &grid, work);
	return 1 - latency_cdf(queue, &grid, work, limit_s);
}
