/* Searches paths breadth-first and raises prices; see augment.h. */
#include "match/augment.h"

#include <math.h>
#include <string.h>

#include "match/scan.h"

static uint32_t owner(const struct td_auction *a, uint32_t column)
{
	return a->slot_unit[a->first_slot[column]];
}

/*
 * Moves each unit on the path to its next column; the path ends at the k-th reached column, which
 * is free.
 */
static void move_over(struct td_auction *a, uint32_t unit, uint32_t k)
{
	while (k != TD_AUCTION_NONE) {
		uint32_t from = a->reached_from[k];

		td_auction_move(a, from == TD_AUCTION_NONE ? unit : owner(a, a->reached[from]),
			a->reached[k]);
		k = from;
	}
}

/*
 * Adds the columns within eps of the row's best to those reached. Returns the index of a free one,
 * or NONE.
 */
static uint32_t reach_ties(
	struct td_auction *a, uint32_t row, uint32_t from, float eps, uint32_t *count)
{
	float least = td_auction_bound(a, row, eps / 2) - eps;
	const uint32_t *columns = a->list_column + (size_t)row * a->list_room;
	uint64_t bits = td_scan_at_least(a->values, a->list_count[row], least, a->avx2);

	for (; bits; bits &= bits - 1) {
		uint32_t j = columns[__builtin_ctzll(bits)];

		if (a->stamps[j] == a->stamp)
			continue;
		a->stamps[j] = a->stamp;
		a->reached[*count] = j;
		a->reached_from[*count] = from;
		if (owner(a, j) == TD_AUCTION_NONE)
			return *count;
		++*count;
	}
	return TD_AUCTION_NONE;
}

/*
 * Returns the row's greatest value over columns that were not reached. a->masked has the prices,
 * INFINITY for reached columns.
 */
static float best_out(struct td_auction *a, uint32_t row, float enough)
{
	size_t list = (size_t)row * a->list_room;
	float out = td_scan_list(a->list_column + list, a->list_weight + list, a->masked,
		a->list_count[row], a->values, a->avx2)
			    .value;

	/* Columns outside the list matter only if the threshold exceeds both values. */
	if (a->list_threshold[row] > fmaxf(out, enough)) {
		out = fmaxf(out, td_scan_maxima(td_auction_weights(a, row), a->masked, a->columns,
					 a->maxima, a->avx2));
		a->scans++;
	}
	return out;
}

/*
 * Raises the prices of the reached columns by as much as all reached rows allow. Returns false,
 * with nothing changed, if that is less than eps / 2.
 */
static bool raise_all(struct td_auction *a, uint32_t unit, float eps, uint32_t count)
{
	uint32_t row = a->unit_row[unit];
	float own = td_auction_bound(a, row, eps / 2), delta;

	memcpy(a->masked, a->price, (a->columns + 1) * sizeof(float));
	for (uint32_t k = 0; k < count; k++)
		a->masked[a->reached[k]] = INFINITY;
	delta = own + eps - best_out(a, row, -INFINITY);
	for (uint32_t k = 0; k < count && delta >= eps / 2; k++) {
		uint32_t j = a->reached[k];

		row = a->unit_row[owner(a, j)];
		own = td_auction_weight(a, row, j) - a->price[j];
		delta = fminf(delta, own + eps - best_out(a, row, own + eps - delta));
	}
	if (!(delta >= eps / 2 && delta < INFINITY))
		return false;
	for (uint32_t k = 0; k < count; k++)
		td_auction_set_price(a, a->reached[k], a->price[a->reached[k]] + delta);
	return true;
}

enum td_augment td_augment_search(
	struct td_auction *a, uint32_t unit, float eps, uint32_t *ret_reached)
{
	uint32_t count = 0, found;

	a->stamp++;
	found = reach_ties(a, a->unit_row[unit], TD_AUCTION_NONE, eps, &count);
	for (uint32_t head = 0; found == TD_AUCTION_NONE && head < count; head++)
		found = reach_ties(a, a->unit_row[owner(a, a->reached[head])], head, eps, &count);
	*ret_reached = count + 1;
	if (found != TD_AUCTION_NONE) {
		move_over(a, unit, found);
		return TD_AUGMENT_FOUND;
	}
	return raise_all(a, unit, eps, count) ? TD_AUGMENT_RAISED : TD_AUGMENT_STUCK;
}
