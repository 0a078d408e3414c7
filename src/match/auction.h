/*
 * The auction behind match.h: rows bid for columns; kinds with several copies share prices and
 * lists. Internal.
 *
 * Purpose. Finds an assignment within eps of the optimum by bids alone. Each bid looks at one row's
 * short list and changes one price (Bertsekas, "A distributed algorithm for the assignment
 * problem", 1979, and "Auction algorithms for network flow problems", 1992; copies as in Bertsekas
 * and Castanon, 1989). match.h chooses the sequence of eps and the first prices.
 *
 * The square problem. N units (copies of row kinds) are all assigned to N slots (copies of column
 * kinds); a dummy kind of weight 0 makes up the difference between rows and columns. Slots have
 * prices p. The value of column j to row i is w_ij - p_j, with the price of its cheapest slot.
 * eps-complementary slackness: the value of an assigned unit's slot is at least its best value -
 * eps. With all units assigned, the sum is within N eps of the optimum. By weak duality
 *     sum of p + sum over units of the best value
 * is an upper bound for any prices, so the gap is known.
 *
 * Bids. A unit takes a free slot within eps of its best value, if there is one. Otherwise it raises
 * the cheapest slot of its best column until its second-best is as good, plus eps, and the former
 * owner bids again. Prices only rise, so a row's list of columns above a threshold stays a superset
 * of them. The row is scanned again only when its best value has fallen to the threshold.
 *
 * Invariants, between two calls
 * - a unit has one slot at most and a slot one unit, and both say so;
 * - after a phase, every unit that has a slot has eps-complementary slackness;
 * - a column's slots are a heap by price, and price[] is that of the first; free_column lists
 *   exactly the kinds whose cheapest slot is free;
 * - a column that is not on a row's list is worth at most list_threshold to it, at any later price
 *   of the phase;
 * - prices are finite; the primal exceeds the dual by rounding errors at most.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "match/match.h"

#define TD_AUCTION_LIST 64u
#define TD_AUCTION_NONE UINT32_MAX

struct td_auction {
	const float *weights; /* rows x stride */
	size_t stride;
	uint32_t rows, columns; /* numbers of kinds without the dummies */
	uint32_t units;         /* N, the number of units */
	uint32_t dummy_units, dummy_slots;
	bool avx2;
	uint32_t list_room; /* maximum number of columns kept per row */

	/* One entry per column kind; index `columns` is the dummy. */
	float *price; /* price of the cheapest slot */
	/* Columns + 2 entries; the slots of a kind are a heap, cheapest first. */
	uint32_t *first_slot;
	uint32_t *free_column,
		/*
		 * free_column lists the kinds whose cheapest slot is free; free_at has the index of
		 * each in it.
		 */
		*free_at;
	uint32_t free_count;
	/* One entry per slot. */
	float *slot_price;
	uint32_t *slot_unit; /* the unit that has the slot, or NONE */
	uint32_t *slot_column;
	/* One entry per unit. */
	uint32_t *unit_row; /* kind of its row; `rows` is the dummy */
	uint32_t *unit_slot;
	uint32_t *queue; /* ring of N waiting units */
	/* One entry per row kind, the dummy included. */
	uint32_t *list_count; /* padded to whole groups with entries of no value: scan.h */
	/* No column outside the row's list has a greater value for the row. */
	float *list_threshold;
	float *list_depth;
	uint32_t *list_column; /* list_room entries per row kind */
	float *list_weight;
	/* Used by augment.c. */
	uint32_t *stamps, stamp; /* per column kind: the last search that reached it */
	uint32_t *reached, *reached_from;
	float *masked; /* the prices, INFINITY for reached columns */
	bool single;   /* every column kind has just one slot */

	float eps;                     /* eps of the present phase */
	float values[TD_AUCTION_LIST]; /* values of the list that was evaluated last */
	uint32_t *hits;                /* scratch of a scan, as are the fields below */
	float *maxima;
	float *zeros; /* weights of the dummy row */

	uint64_t bids, scans, searched;
	double primal, dual;
};

/* Returns the number of bytes that the arrays need for so many kinds and units. */
size_t td_auction_bytes(uint32_t rows, uint32_t columns, uint32_t units);

/*
 * Places the arrays in memory. All units are unassigned at price 0. Without counts, each kind has
 * one copy.
 */
void td_auction_init(struct td_auction *auction, void *memory,
	const struct td_match_problem *problem, bool avx2);

/*
 * Runs one phase: units that break eps-complementary slackness lose their slot, then all bid until
 * all are assigned. Returns false after bids_max bids; the state is then valid, but some units are
 * unassigned.
 */
bool td_auction_phase(struct td_auction *auction, float eps, uint64_t bids_max);

/*
 * Computes the primal and the dual of the present state. Unassigned units count as 0 in the primal.
 */
void td_auction_evaluate(struct td_auction *auction);

/* Returns the best value of a row kind at the present prices. */
float td_auction_best(struct td_auction *auction, uint32_t row);

/*
 * Returns an upper bound of the row's best value. Scans the row unless its list has a column within
 * slack of it.
 */
float td_auction_bound(struct td_auction *auction, uint32_t row, float slack);

float td_auction_weight(const struct td_auction *auction, uint32_t row, uint32_t column);

/* Returns the row's weights; those of the dummy are zeros. */
const float *td_auction_weights(const struct td_auction *auction, uint32_t row);

/*
 * Gives the only slot of a column to a unit, at the slot's price. The caller must give its former
 * owner another slot next.
 */
void td_auction_move(struct td_auction *auction, uint32_t unit, uint32_t column);

/* Sets the price of a column that has one slot. */
void td_auction_set_price(struct td_auction *auction, uint32_t column, float price);

/* Notes that the weights of a row have changed: its units lose their slots and its list is void. */
void td_auction_forget(struct td_auction *auction, uint32_t row);

/*
 * Sets the prices of all column kinds but the dummy, equal for all slots of a kind. All lists
 * become void.
 */
void td_auction_set_prices(struct td_auction *auction, const float *prices);

/*
 * Lowers all prices alike once they are so far above the weights that floats cannot resolve eps,
 * since prices rise from one matching to the next. All lists become void; nothing else changes.
 */
void td_auction_rebase(struct td_auction *auction);
