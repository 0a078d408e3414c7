/* Keeps bids, lists and slots; see auction.h. */
#include "match/auction.h"

#include <math.h>
#include <string.h>

#include "match/augment.h"
#include "match/carve.h"
#include "match/scan.h"

#define DEPTH_AT_FIRST 0.01f
#define SEARCH_FIRST   4    /* columns that unsuccessful searches may reach at first, per column */
#define SEARCH_TAIL    256u /* searches begin when one unit in so many still waits */
#define SEARCH_EARNED  4    /* columns that a search may reach for each bid made */
/* So many free columns are compared one by one; if more are free, none is. */
#define FREE_FEW 128u

static uint64_t total(const uint32_t *counts, uint32_t n)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += counts ? counts[i] : 1;
	return sum;
}

static uint32_t list_room(uint32_t columns)
{
	return columns + 2 < TD_AUCTION_LIST ? td_scan_padded(columns + 2) : TD_AUCTION_LIST;
}

static void carve(struct td_auction *a, struct td_carve *c)
{
	size_t lists = (size_t)(a->rows + 1) * a->list_room;

	a->price = TD_CARVE(c, float, a->columns + 1 + TD_SCAN_BLOCK);
	a->first_slot = TD_CARVE(c, uint32_t, a->columns + 2);
	a->free_column = TD_CARVE(c, uint32_t, a->columns + 1);
	a->free_at = TD_CARVE(c, uint32_t, a->columns + 1);
	a->slot_price = TD_CARVE(c, float, a->units);
	a->slot_unit = TD_CARVE(c, uint32_t, a->units);
	a->slot_column = TD_CARVE(c, uint32_t, a->units);
	a->unit_row = TD_CARVE(c, uint32_t, a->units);
	a->unit_slot = TD_CARVE(c, uint32_t, a->units);
	a->queue = TD_CARVE(c, uint32_t, a->units);
	a->list_count = TD_CARVE(c, uint32_t, a->rows + 1);
	a->list_threshold = TD_CARVE(c, float, a->rows + 1);
	a->list_depth = TD_CARVE(c, float, a->rows + 1);
	a->list_column = TD_CARVE(c, uint32_t, lists);
	a->list_weight = TD_CARVE(c, float, lists);
	a->stamps = TD_CARVE(c, uint32_t, a->columns + 1);
	a->reached = TD_CARVE(c, uint32_t, a->columns + 1);
	a->reached_from = TD_CARVE(c, uint32_t, a->columns + 1);
	a->masked = TD_CARVE(c, float, a->columns + 1);
	a->hits = TD_CARVE(c, uint32_t, a->columns + 1);
	a->maxima = TD_CARVE(c, float, td_scan_blocks(a->columns));
	a->zeros = TD_CARVE(c, float, a->columns);
}

size_t td_auction_bytes(uint32_t rows, uint32_t columns, uint32_t units)
{
	struct td_auction shape = {
		.rows = rows, .columns = columns, .units = units, .list_room = list_room(columns)};
	struct td_carve c = {0};

	carve(&shape, &c);
	return c.used;
}

static void void_list(struct td_auction *a, uint32_t row)
{
	a->list_count[row] = 0;
	a->list_threshold[row] = INFINITY;
}

/* Keeps free_column up to date: notes whether the kind's cheapest slot is free. */
static void note_free(struct td_auction *a, uint32_t column)
{
	uint32_t first = a->first_slot[column], at = a->free_at[column];
	bool is_free = first < a->first_slot[column + 1] && a->slot_unit[first] == TD_AUCTION_NONE;

	if (is_free && at == TD_AUCTION_NONE) {
		a->free_at[column] = a->free_count;
		a->free_column[a->free_count++] = column;
	} else if (!is_free && at != TD_AUCTION_NONE) {
		uint32_t last = a->free_column[--a->free_count];

		a->free_column[at] = last;
		a->free_at[last] = at;
		a->free_at[column] = TD_AUCTION_NONE;
	}
}

static void lay_out_slots(struct td_auction *a, const uint32_t *counts)
{
	uint32_t slot = 0;

	for (uint32_t j = 0; j <= a->columns; j++) {
		uint32_t n = j == a->columns ? a->dummy_slots : counts ? counts[j] : 1;

		a->first_slot[j] = slot;
		for (uint32_t k = 0; k < n; k++)
			a->slot_column[slot++] = j;
	}
	a->first_slot[a->columns + 1] = slot;
}

static void lay_out_units(struct td_auction *a, const uint32_t *counts)
{
	uint32_t unit = 0;

	for (uint32_t i = 0; i <= a->rows; i++) {
		uint32_t n = i == a->rows ? a->dummy_units : counts ? counts[i] : 1;

		for (uint32_t k = 0; k < n; k++)
			a->unit_row[unit++] = i;
	}
}

void td_auction_init(
	struct td_auction *a, void *memory, const struct td_match_problem *problem, bool avx2)
{
	uint64_t units = total(problem->row_counts, problem->rows);
	uint64_t slots = total(problem->column_counts, problem->columns);
	struct td_carve c = {.memory = memory};

	*a = (struct td_auction){
		.weights = problem->weights,
		.stride = problem->stride,
		.rows = problem->rows,
		.columns = problem->columns,
		.units = (uint32_t)(units > slots ? units : slots),
		.dummy_units = (uint32_t)(slots > units ? slots - units : 0),
		.dummy_slots = (uint32_t)(units > slots ? units - slots : 0),
		.avx2 = avx2,
		.list_room = list_room(problem->columns),
	};
	carve(a, &c);
	lay_out_slots(a, problem->column_counts);
	lay_out_units(a, problem->row_counts);
	memset(a->price, 0, (a->columns + 1) * sizeof(float));
	memset(a->slot_price, 0, a->units * sizeof(float));
	memset(a->slot_unit, 0xff, a->units * sizeof(uint32_t));
	memset(a->unit_slot, 0xff, a->units * sizeof(uint32_t));
	memset(a->stamps, 0, (a->columns + 1) * sizeof(uint32_t));
	memset(a->zeros, 0, a->columns * sizeof(float));
	memset(a->free_at, 0xff, (a->columns + 1) * sizeof(uint32_t));
	a->single = true;
	for (uint32_t j = 0; j <= a->columns; j++) {
		a->single &= a->first_slot[j + 1] - a->first_slot[j] <= 1;
		note_free(a, j);
		/* A kind without copies is never the best of any row. */
		if (a->first_slot[j] == a->first_slot[j + 1])
			a->price[j] = INFINITY;
	}
	for (uint32_t i = 0; i <= a->rows; i++) {
		void_list(a, i);
		a->list_depth[i] = DEPTH_AT_FIRST;
	}
}

void td_auction_set_prices(struct td_auction *a, const float *prices)
{
	for (uint32_t j = 0; j < a->columns; j++) {
		if (a->first_slot[j] == a->first_slot[j + 1])
			continue;
		a->price[j] = prices[j];
		for (uint32_t s = a->first_slot[j]; s < a->first_slot[j + 1]; s++)
			a->slot_price[s] = prices[j];
	}
	for (uint32_t i = 0; i <= a->rows; i++)
		void_list(a, i);
}

const float *td_auction_weights(const struct td_auction *a, uint32_t row)
{
	return row == a->rows ? a->zeros : a->weights + row * a->stride;
}

/*
 * Returns the free column of the greatest value if few columns are free; else NONE. The dummy
 * column need not be considered, because every list has it.
 */
static uint32_t best_free(const struct td_auction *a, const float *weights)
{
	uint32_t best = TD_AUCTION_NONE;
	float most = -INFINITY;

	if (a->free_count > FREE_FEW)
		return TD_AUCTION_NONE;
	for (uint32_t k = 0; k < a->free_count; k++) {
		uint32_t j = a->free_column[k];
		float value;

		if (j == a->columns)
			continue;
		value = td_scan_weight(weights[j]) - a->price[j];
		if (value > most) {
			most = value;
			best = j;
		}
	}
	return best;
}

/*
 * Fills a list that has no room for all near ties with the best one and a sample of the others.
 * Each row samples from another start, so that rows do not all bid for the same columns.
 */
static uint32_t spread(
	struct td_auction *a, const float *weights, uint32_t row, float max, float depth)
{
	uint32_t *columns = a->list_column + (size_t)row * a->list_room;

	columns[0] = td_scan_argmax(weights, a->price, a->columns, a->maxima, max);
	return 1 + td_scan_sample(weights, a->price, a->columns, a->maxima, max - depth,
			   row * 2654435761u >> 8, columns + 1, a->list_room - 3, a->avx2);
}

/*
 * Fills the row's list with the columns whose value exceeds the maximum - depth, and sets the
 * threshold to that. The depth adapts so that the list is between an eighth full and full. It is
 * never less than eps: all near ties are equally good, and a list with only the very best would be
 * void after a neighbour's first bid. The dummy column is always in the list.
 */
static void scan_row(struct td_auction *a, uint32_t row)
{
	const float *weights = td_auction_weights(a, row);
	uint32_t *columns = a->list_column + (size_t)row * a->list_room;
	uint32_t room = a->list_room - 2, count, free_one;
	float max = td_scan_maxima(weights, a->price, a->columns, a->maxima, a->avx2);
	float least = fmaxf(a->eps, 1e-6f * fabsf(max)), depth = fmaxf(a->list_depth[row], least);

	a->scans++;
	for (uint32_t tries = 0;; tries++) {
		count = td_scan_above(weights, a->price, a->columns, a->maxima, max - depth,
			a->hits, room, a->avx2);
		if (count > room && depth > least)
			depth = fmaxf(depth * 0.4f, least);
		else if (count < room / 8 && tries < 4 && count < a->columns)
			depth *= 2;
		else
			break;
	}
	a->list_depth[row] = depth;
	if (count > room) {
		count = spread(a, weights, row, max, depth);
		a->list_threshold[row] = max;
	} else {
		memcpy(columns, a->hits, count * sizeof(*columns));
		a->list_threshold[row] = count == a->columns ? -INFINITY : max - depth;
	}
	free_one = count < a->columns ? best_free(a, weights) : TD_AUCTION_NONE;
	if (free_one != TD_AUCTION_NONE)
		/* May be below the threshold: a list may have more than it needs. */
		columns[count++] = free_one;
	if (a->dummy_slots)
		columns[count++] = a->columns;
	a->list_count[row] = count;
	for (uint32_t k = 0; k < count; k++)
		a->list_weight[(size_t)row * a->list_room + k] =
			columns[k] < a->columns ? td_scan_weight(weights[columns[k]]) : 0;
	for (uint32_t k = count; k < td_scan_padded(count); k++) {
		columns[k] = a->columns;
		a->list_weight[(size_t)row * a->list_room + k] = -INFINITY;
	}
}

struct choice {
	uint32_t column; /* the best column, or NONE */
	float value, second;
};

/* Returns the price of the second-cheapest slot of a kind that has several. */
static float second_price(const struct td_auction *a, uint32_t column)
{
	uint32_t first = a->first_slot[column], n = a->first_slot[column + 1] - first;
	float price = n > 1 ? a->slot_price[first + 1] : INFINITY;

	return n > 2 ? fminf(price, a->slot_price[first + 2]) : price;
}

static struct choice best_in_list(struct td_auction *a, uint32_t row)
{
	size_t list = (size_t)row * a->list_room;
	struct td_scan_best best = td_scan_list(a->list_column + list, a->list_weight + list,
		a->price, a->list_count[row], a->values, a->avx2);
	struct choice c = {TD_AUCTION_NONE, best.value, best.second};

	if (best.at != TD_AUCTION_NONE) {
		float again;

		c.column = a->list_column[list + best.at];
		again = a->list_weight[list + best.at] - second_price(a, c.column);
		c.second = again > c.second ? again : c.second;
	}
	c.second = a->list_threshold[row] > c.second ? a->list_threshold[row] : c.second;
	return c;
}

/*
 * Returns the free column of greatest value in the list that choose() evaluated last, if the value
 * is at least `least`; else NONE.
 */
static uint32_t free_in_list(const struct td_auction *a, uint32_t row, float least)
{
	const uint32_t *columns = a->list_column + (size_t)row * a->list_room;
	uint32_t free = TD_AUCTION_NONE;
	float most = -INFINITY;
	uint64_t bits = 0;

	if (a->free_count)
		bits = td_scan_at_least(a->values, a->list_count[row], least, a->avx2);
	for (; bits; bits &= bits - 1) {
		uint32_t k = (uint32_t)__builtin_ctzll(bits);

		if (a->values[k] > most && a->free_at[columns[k]] != TD_AUCTION_NONE) {
			most = a->values[k];
			free = columns[k];
		}
	}
	return free;
}

/*
 * Finds the row's best columns in its list, which must hold a column within `slack` of the best. No
 * column outside the list is above the threshold, so the greater of the two bounds the best value.
 */
static struct choice choose(struct td_auction *a, uint32_t row, float slack)
{
	struct choice c = best_in_list(a, row);

	if (c.column == TD_AUCTION_NONE || c.value < a->list_threshold[row] - slack) {
		scan_row(a, row);
		c = best_in_list(a, row);
	}
	return c;
}

float td_auction_best(struct td_auction *a, uint32_t row)
{
	return choose(a, row, 0).value;
}

static void put(struct td_auction *a, uint32_t slot, uint32_t unit, float price)
{
	a->slot_unit[slot] = unit;
	a->slot_price[slot] = price;
	if (unit != TD_AUCTION_NONE)
		a->unit_slot[unit] = slot;
}

/*
 * Gives the cheapest slot of a kind to a unit, at a price not below the slot's own, and restores
 * the heap.
 */
static void take_cheapest(struct td_auction *a, uint32_t column, uint32_t unit, float price)
{
	uint32_t first = a->first_slot[column], n = a->first_slot[column + 1] - first, at = 0;

	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child >= n)
			break;
		if (child + 1 < n &&
			a->slot_price[first + child + 1] < a->slot_price[first + child])
			child++;
		if (!(a->slot_price[first + child] < price))
			break;
		put(a, first + at, a->slot_unit[first + child], a->slot_price[first + child]);
		at = child;
	}
	put(a, first + at, unit, price);
	a->price[column] = a->slot_price[first];
	note_free(a, column);
}

/*
 * Lets one unit take a slot. Returns the unit that it displaced, or NONE. The list's best may be
 * below the threshold by up to half of eps. The price still rises by the other half, and the unit
 * has its best value within eps.
 */
static uint32_t bid(struct td_auction *a, uint32_t unit, float eps)
{
	struct choice c = choose(a, a->unit_row[unit], eps / 2);
	uint32_t out, free;
	float price;

	a->bids++;
	free = free_in_list(a, a->unit_row[unit], fmaxf(c.value, c.second) - eps);
	if (free != TD_AUCTION_NONE) {
		take_cheapest(a, free, unit, a->price[free]);
		return TD_AUCTION_NONE;
	}
	out = a->slot_unit[a->first_slot[c.column]];
	price = a->price[c.column] + eps;
	if (c.second > -INFINITY)
		price += c.value - c.second;
	take_cheapest(a, c.column, unit, price);
	if (out != TD_AUCTION_NONE)
		a->unit_slot[out] = TD_AUCTION_NONE;
	return out;
}

float td_auction_bound(struct td_auction *a, uint32_t row, float slack)
{
	struct choice c = choose(a, row, slack);

	return fmaxf(c.value, c.second);
}

float td_auction_weight(const struct td_auction *a, uint32_t row, uint32_t column)
{
	return column == a->columns ? 0 : td_scan_weight(td_auction_weights(a, row)[column]);
}

void td_auction_move(struct td_auction *a, uint32_t unit, uint32_t column)
{
	uint32_t slot = a->first_slot[column];

	put(a, slot, unit, a->slot_price[slot]);
	note_free(a, column);
}

void td_auction_set_price(struct td_auction *a, uint32_t column, float price)
{
	a->price[column] = a->slot_price[a->first_slot[column]] = price;
}

static float weight_at(const struct td_auction *a, uint32_t unit, uint32_t slot)
{
	return td_auction_weight(a, a->unit_row[unit], a->slot_column[slot]);
}

static void vacate(struct td_auction *a, uint32_t unit)
{
	uint32_t slot = a->unit_slot[unit];

	a->slot_unit[slot] = TD_AUCTION_NONE;
	a->unit_slot[unit] = TD_AUCTION_NONE;
	note_free(a, a->slot_column[slot]);
}

/*
 * Takes the slot from each unit that could have more than eps elsewhere. Returns the number of
 * units that wait, which are in the queue.
 */
static uint32_t release(struct td_auction *a, float eps)
{
	uint32_t waiting = 0, row = TD_AUCTION_NONE;
	float best = 0;

	for (uint32_t u = 0; u < a->units; u++) {
		uint32_t slot = a->unit_slot[u];

		if (slot != TD_AUCTION_NONE) {
			if (a->unit_row[u] != row) {
				row = a->unit_row[u];
				best = td_auction_best(a, row);
			}
			if (weight_at(a, u, slot) - a->slot_price[slot] >= best - eps)
				continue;
			vacate(a, u);
		}
		a->queue[waiting++] = u;
	}
	return waiting;
}

/*
 * Searches an alternating path as long as the credit lasts. Each bid earns credit, and a search
 * costs the columns that it has reached, unless it finds a free column.
 */
static bool search(struct td_auction *a, uint32_t unit, float eps, int64_t *credit)
{
	while (*credit > 0) {
		uint32_t reached;
		enum td_augment outcome = td_augment_search(a, unit, eps, &reached);

		a->searched += reached;
		if (outcome == TD_AUGMENT_FOUND)
			return true;
		*credit -= reached;
		if (outcome == TD_AUGMENT_STUCK)
			break;
	}
	return false;
}

bool td_auction_phase(struct td_auction *a, float eps, uint64_t bids_max)
{
	uint32_t waiting, head = 0;
	uint64_t bids_end = a->bids + bids_max;
	int64_t credit = (int64_t)SEARCH_FIRST * a->columns;

	a->eps = eps;
	waiting = release(a, eps);
	while (waiting) {
		uint32_t unit = a->queue[head], out = TD_AUCTION_NONE, tail = head + waiting;
		bool is_tail = a->single && waiting <= a->columns / SEARCH_TAIL + 1;

		if (a->bids == bids_end)
			return false;
		credit += is_tail * SEARCH_EARNED;
		if (!is_tail || !search(a, unit, eps, &credit))
			out = bid(a, unit, eps);
		if (out == TD_AUCTION_NONE)
			waiting--;
		else
			a->queue[tail < a->units ? tail : tail - a->units] = out;
		head = head + 1 < a->units ? head + 1 : 0;
	}
	return true;
}

void td_auction_evaluate(struct td_auction *a)
{
	uint32_t row = TD_AUCTION_NONE;
	float best = 0;

	a->primal = a->dual = 0;
	for (uint32_t s = 0; s < a->units; s++)
		a->dual += a->slot_price[s];
	for (uint32_t u = 0; u < a->units; u++) {
		if (a->unit_row[u] != row) {
			row = a->unit_row[u];
			best = td_auction_best(a, row);
		}
		a->dual += best;
		if (a->unit_slot[u] != TD_AUCTION_NONE)
			a->primal += weight_at(a, u, a->unit_slot[u]);
	}
}

void td_auction_forget(struct td_auction *a, uint32_t row)
{
	void_list(a, row);
	for (uint32_t u = 0; u < a->units; u++) {
		if (a->unit_row[u] != row || a->unit_slot[u] == TD_AUCTION_NONE)
			continue;
		vacate(a, u);
	}
}

void td_auction_rebase(struct td_auction *a)
{
	float least = INFINITY;

	for (uint32_t s = 0; s < a->units; s++)
		least = fminf(least, a->slot_price[s]);
	if (!(least > 4 * a->primal / a->units))
		return;
	for (uint32_t s = 0; s < a->units; s++)
		a->slot_price[s] -= least;
	for (uint32_t j = 0; j <= a->columns; j++)
		a->price[j] -= least;
	for (uint32_t i = 0; i <= a->rows; i++)
		void_list(a, i);
}
