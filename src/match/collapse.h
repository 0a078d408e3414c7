/*
 * Finds identical rows and identical columns. Internal to match.h.
 *
 * Purpose. A cluster has thousands of jobs but a few dozen kinds of them, and GPUs of a few models:
 * their rows of predicted speeds are equal to the last bit. Equal rows bid for the same columns and
 * raise each other's prices step by step, which is the worst case of an auction and of every solver
 * that looks at rows one by one. As one kind with several copies they share a price, and the
 * assignment becomes a transportation problem over kinds (Bertsekas and Castanon, "The auction
 * algorithm for the transportation problem", 1989, join "similar persons" and "similar objects" for
 * the same reason).
 *
 * Method
 * - Up to 64 entries of each row, evenly spread, are hashed, and the hashes sorted: rows that agree
 *   there are neighbours.
 * - Where more than half of the rows differ already, collapsing does not pay and ends here.
 * - Otherwise each row is compared in full, bit by bit, with the first of its hash. A row that
 *   differs stays a kind of its own: a collision costs compactness, never correctness.
 * - Then the columns likewise, over the first row of each kind only.
 * - The compact matrix has one entry per pair of kinds. Larger than a sixteenth of the whole it
 *   saves too little.
 *
 * The cost is a hash of 64 entries a row where all differ, and one pass over the weights where many
 * agree.
 *
 * Invariants, when it returns true
 * - two rows of one kind are equal in every column, and two columns of one kind in every row;
 * - each kind has a member; its counts' sum is the number of rows, or of columns;
 * - the orders hold every row and column once, members of one kind side by side, in the order of
 *   their indices;
 * - weights[r * column_kinds + c] is the weight of any member of r to any member of c;
 * - same weights, same kinds on every machine: the order is by hash, then by index; rows that
 *   differ from the first of their hash come last.
 */
#pragma once

#include <stdbool.h>

#include "match/carve.h"
#include "match/match.h"

struct td_collapse {
	uint32_t row_kinds, column_kinds;
	uint32_t *row_kind, *column_kind;     /* kind of each row and of each column */
	uint32_t *row_counts, *column_counts; /* number of members of each kind */
	uint32_t *row_order, *column_order;   /* rows and columns sorted by kind */
	float *weights;                       /* row_kinds x column_kinds */
	uint64_t *keys;                       /* scratch, the larger of rows and columns */
	uint32_t *first;                      /* scratch: the first member of each kind */
};

/* Returns the largest size of the compact matrix, in floats. A larger one would not pay. */
size_t td_collapse_room(uint32_t rows, uint32_t columns);

void td_collapse_carve(
	struct td_collapse *collapse, struct td_carve *carve, uint32_t rows, uint32_t columns);

/* Finds the kinds. Returns false if they would not pay; the struct is then not valid. */
bool td_collapse_find(struct td_collapse *collapse, const struct td_match_problem *problem);
