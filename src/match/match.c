/* Solves a problem by levels and scaling; see match.h. */
#include "match/match.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "match/auction.h"
#include "match/carve.h"
#include "match/collapse.h"
#include "match/scan.h"
#include "match/sort.h"

#define COARSE_FROM      200u /* problems smaller than this have no coarse level */
#define COARSENING       3u   /* a coarse level has one of so many rows and columns */
#define KEY_SAMPLES      64u  /* entries that are read to estimate a row's mean */
#define SCALE            5    /* epsilon shrinks by at most this factor from phase to phase */
#define FIRST_SHARE      0.125f
#define COARSE_TOLERANCE 2 /* tolerance of a coarse level relative to the level above */
/* Bids per unit and phase; more of them are a price war, and epsilon rises. */
#define WAR_BIDS   10u
#define PHASES_MAX 100u

const struct td_match_options td_match_default = {.tolerance = 1e-4};

struct td_match {
	struct td_match_options options;
	struct td_match_problem problem;
	struct td_collapse collapse;
	struct td_auction auction;
	bool collapsed;
	float eps; /* epsilon of the last phase */
	struct td_match_result result;
	void *memory; /* memory for the coarse levels */
	size_t bytes;
};

/*
 * Returns the bytes for the coarse levels of a problem with these unit counts, without the auction
 * itself.
 */
static size_t coarse_bytes(uint32_t rows, uint32_t columns)
{
	struct td_carve c = {0};
	uint32_t r = rows / COARSENING, k = columns / COARSENING;

	if (rows < COARSE_FROM || columns < COARSE_FROM)
		return 0;
	(void)TD_CARVE(&c, uint64_t, rows > columns ? rows : columns);
	(void)TD_CARVE(&c, uint32_t, r);
	(void)TD_CARVE(&c, uint32_t, k);
	(void)TD_CARVE(&c, float, columns);
	(void)TD_CARVE(&c, float, (size_t)r *k);
	return c.used + td_auction_bytes(r, k, r > k ? r : k) + coarse_bytes(r, k);
}

size_t td_match_bytes(uint32_t rows, uint32_t columns, uint32_t units)
{
	struct td_collapse collapse;
	struct td_carve c = {0};

	(void)td_carve(&c, sizeof(struct td_match));
	td_collapse_carve(&collapse, &c, rows, columns);
	return c.used + td_auction_bytes(rows, columns, units) + coarse_bytes(rows, columns);
}

/* Returns an integer that is ordered like the float. */
static uint32_t ordered(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits >> 31 ? ~bits : bits | 0x80000000u;
}

/*
 * Sorts rows or columns by the mean of a few of their entries, and picks every COARSENING-th one.
 */
static void pick_lines(
	const struct td_match_problem *p, bool rows, uint64_t *keys, uint32_t *picked)
{
	uint32_t n = rows ? p->rows : p->columns, across = rows ? p->columns : p->rows;
	uint32_t samples = across < KEY_SAMPLES ? across : KEY_SAMPLES;

	for (uint32_t i = 0; i < n; i++) {
		float sum = 0;

		for (uint32_t s = 0; s < samples; s++) {
			size_t at = (size_t)((uint64_t)s * across / samples);

			sum += td_scan_weight(rows ? p->weights[i * p->stride + at]
						   : p->weights[at * p->stride + i]);
		}
		keys[i] = (uint64_t)ordered(sum) << 32 | i;
	}
	td_sort_u64(keys, n);
	for (uint32_t k = 0; k < n / COARSENING; k++)
		picked[k] = (uint32_t)keys[k * COARSENING + COARSENING / 2];
}

static void gather(const struct td_match_problem *p, const uint32_t *rows, uint32_t row_count,
	const uint32_t *columns, uint32_t column_count, float *weights)
{
	for (uint32_t i = 0; i < row_count; i++) {
		const float *row = p->weights + rows[i] * p->stride;

		for (uint32_t j = 0; j < column_count; j++)
			weights[(size_t)i * column_count + j] = row[columns[j]];
	}
}

/*
 * Returns the mean of the best values at price 0 over every `every`-th row. *ret_max is the largest
 * weight among them.
 */
static float mean_best(struct td_auction *a, uint32_t every, float *ret_max)
{
	double sum = 0;
	uint32_t n = 0;

	*ret_max = 0;
	for (uint32_t i = 0; i < a->rows; i += every, n++) {
		float best = td_scan_maxima(
			a->weights + i * a->stride, a->zeros, a->columns, a->maxima, a->avx2);

		*ret_max = best > *ret_max ? best : *ret_max;
		sum += best;
	}
	return (float)(sum / n);
}

static bool is_within(const struct td_auction *a, double tolerance)
{
	return a->dual - a->primal <= tolerance * a->dual;
}

/* Runs phases from eps on until the tolerance is proved. Returns 0; 1: it could not be proved. */
static int scale_down(struct td_match *m, struct td_auction *a, double tolerance, float eps)
{
	for (uint32_t phases = 0; phases < PHASES_MAX; phases++) {
		bool whole = td_auction_phase(a, eps, (uint64_t)WAR_BIDS * a->units);
		double share;

		m->result.phases++;
		m->eps = eps;
		if (!whole) {
			eps *= SCALE;
			continue;
		}
		td_auction_evaluate(a);
		if (is_within(a, tolerance))
			return 0;
		share = 0.7 * tolerance * a->dual / (a->dual - a->primal);
		share = share > 0.7 ? 0.7 : share < 1. / SCALE ? 1. / SCALE : share;
		eps = (float)(eps * share);
		if (!(eps > 1e-7 * a->dual / a->units))
			return 1;
	}
	return 1;
}

static int solve_level(struct td_match *m, struct td_auction *a, const struct td_match_problem *p,
	double tolerance, struct td_carve memory);

/*
 * Sets prices that a coarse level has found, if they are better than prices of 0. Returns the mean
 * gap per unit to expect from them; negative: none were set.
 */
static double coarse_prices(struct td_match *m, struct td_auction *a,
	const struct td_match_problem *p, double tolerance, struct td_carve memory, float mean_at_0)
{
	struct td_match_problem small = {
		.rows = p->rows / COARSENING, .columns = p->columns / COARSENING};
	uint32_t most = p->rows > p->columns ? p->rows : p->columns;
	uint64_t *keys = TD_CARVE(&memory, uint64_t, most);
	uint32_t *rows = TD_CARVE(&memory, uint32_t, small.rows);
	uint32_t *columns = TD_CARVE(&memory, uint32_t, small.columns);
	float *prices = TD_CARVE(&memory, float, p->columns);
	float *weights = TD_CARVE(&memory, float, (size_t)small.rows *small.columns);
	struct td_auction coarse;
	double optimum;

	pick_lines(p, true, keys, rows);
	pick_lines(p, false, keys, columns);
	gather(p, rows, small.rows, columns, small.columns, weights);
	small.weights = weights;
	small.stride = small.columns;
	(void)solve_level(m, &coarse, &small, tolerance * COARSE_TOLERANCE, memory);
	m->result.levels++;
	for (uint32_t j = 0; j < p->columns; j++)
		prices[j] = coarse.dummy_units ? 0 : -INFINITY;
	for (uint32_t i = 0; i < small.rows; i++)
		td_scan_raise(p->weights + rows[i] * p->stride, td_auction_best(&coarse, i),
			p->columns, prices, a->avx2);
	td_auction_set_prices(a, prices);
	td_auction_evaluate(a);
	optimum = coarse.primal / coarse.units * a->units;
	if (a->dual / a->units >= (double)mean_at_0 * p->rows / a->units) {
		memset(prices, 0, p->columns * sizeof(*prices));
		td_auction_set_prices(a, prices);
		return fmax((double)mean_at_0 * p->rows - optimum, 0) / a->units;
	}
	return fmax(a->dual - optimum, 0) / a->units;
}

static int solve_level(struct td_match *m, struct td_auction *a, const struct td_match_problem *p,
	double tolerance, struct td_carve memory)
{
	uint32_t most = p->rows > p->columns ? p->rows : p->columns;
	float max, mean, eps;

	td_auction_init(a, memory.memory + memory.used, p,
		m->options.portable ? false : td_scan_has_avx2());
	(void)td_carve(&memory, td_auction_bytes(p->rows, p->columns, a->units));
	mean = mean_best(a, 8, &max);
	if (!(max > 0))
		mean = mean_best(a, 1, &max);
	if (!(max > 0)) { /* no pair is feasible: the optimum is 0, and so is its bound */
		td_auction_evaluate(a);
		return 0;
	}
	eps = max * FIRST_SHARE;
	if (!m->options.flat && !p->row_counts && !p->column_counts && p->rows >= COARSE_FROM &&
		p->columns >= COARSE_FROM && most == a->units) {
		double gap = coarse_prices(m, a, p, tolerance, memory, mean);

		eps = (float)fmin(fmax(gap, tolerance * mean), eps);
	}
	return scale_down(m, a, tolerance, eps);
}

/* Returns the unit's column; NONE if it has none or the pair is infeasible. */
static uint32_t column_of(const struct td_auction *a, uint32_t unit)
{
	uint32_t slot = a->unit_slot[unit], column;

	if (slot == TD_AUCTION_NONE || a->unit_row[unit] == a->rows)
		return TD_MATCH_NONE;
	column = a->slot_column[slot];
	if (column == a->columns || !(a->weights[a->unit_row[unit] * a->stride + column] > 0))
		return TD_MATCH_NONE;
	return column;
}

static void put_result(struct td_match *m, uint32_t *ret_column, struct td_match_result *ret_result)
{
	struct td_auction *a = &m->auction;
	struct td_collapse *c = &m->collapse;
	uint32_t units = a->units - a->dummy_units;

	if (m->collapsed) {
		uint32_t at = 0;

		for (uint32_t k = 0; k < c->column_kinds; k++) {
			c->first[k] = at;
			at += c->column_counts[k];
		}
	}
	for (uint32_t u = 0; u < units; u++) {
		uint32_t column = column_of(a, u);

		if (!m->collapsed)
			ret_column[u] = column;
		else
			ret_column[c->row_order[u]] = column == TD_MATCH_NONE
							      ? column
							      : c->column_order[c->first[column]++];
	}
	m->result.weight = a->primal;
	m->result.bound = a->dual;
	m->result.bids += a->bids;
	m->result.scans += a->scans;
	m->result.searched += a->searched;
	*ret_result = m->result;
}

static bool is_problem(const struct td_match_problem *p, const struct td_match_options *options)
{
	return p->rows && p->columns && p->stride >= p->columns && options->tolerance > 0 &&
	       p->rows < TD_MATCH_NONE / 2 && p->columns < TD_MATCH_NONE / 2;
}

static uint64_t units_of(const struct td_match_problem *p)
{
	uint64_t units = 0, slots = 0;

	for (uint32_t i = 0; i < p->rows; i++)
		units += p->row_counts ? p->row_counts[i] : 1;
	for (uint32_t j = 0; j < p->columns; j++)
		slots += p->column_counts ? p->column_counts[j] : 1;
	return units > slots ? units : slots;
}

int td_match_solve(const struct td_match_problem *problem, const struct td_match_options *options,
	void *memory, size_t bytes, uint32_t *ret_column, struct td_match_result *ret_result,
	struct td_match **ret_match)
{
	struct td_carve carve = {.memory = memory};
	struct td_match_problem p = *problem;
	struct td_match *m;
	uint64_t units;
	int r;

	if (!is_problem(problem, options))
		return -EINVAL;
	units = units_of(problem);
	if (!units || units >= TD_MATCH_NONE / 2)
		return -EINVAL;
	if (bytes < td_match_bytes(p.rows, p.columns, (uint32_t)units))
		return -ENOMEM;
	m = td_carve(&carve, sizeof(*m));
	*m = (struct td_match){.options = *options, .problem = p};
	td_collapse_carve(&m->collapse, &carve, p.rows, p.columns);
	if (!options->keep_kinds_apart && !p.row_counts && !p.column_counts &&
		td_collapse_find(&m->collapse, &p)) {
		m->collapsed = true;
		p.weights = m->collapse.weights;
		p.stride = p.columns = m->collapse.column_kinds;
		p.rows = m->collapse.row_kinds;
		p.row_counts = m->collapse.row_counts;
		p.column_counts = m->collapse.column_counts;
	}
	m->result.row_kinds = p.rows;
	m->result.column_kinds = p.columns;
	r = solve_level(m, &m->auction, &p, options->tolerance, carve);
	put_result(m, ret_column, ret_result);
	m->memory = memory;
	m->bytes = bytes;
	*ret_match = m;
	return r;
}

int td_match_again(struct td_match *m, const uint32_t *changed, uint32_t count,
	uint32_t *ret_column, struct td_match_result *ret_result)
{
	struct td_match *ignored;
	int r;

	for (uint32_t k = 0; k < count; k++)
		if (changed[k] >= m->problem.rows)
			return -EINVAL;
	if (m->collapsed) {
		struct td_match_problem problem = m->problem;
		struct td_match_options options = m->options;

		return td_match_solve(
			&problem, &options, m->memory, m->bytes, ret_column, ret_result, &ignored);
	}
	td_auction_rebase(&m->auction);
	for (uint32_t k = 0; k < count; k++)
		td_auction_forget(&m->auction, changed[k]);
	m->auction.bids = m->auction.scans = m->auction.searched = 0;
	m->result = (struct td_match_result){
		.row_kinds = m->result.row_kinds, .column_kinds = m->result.column_kinds};
	r = scale_down(m, &m->auction, m->options.tolerance, m->eps);
	put_result(m, ret_column, ret_result);
	return r;
}
