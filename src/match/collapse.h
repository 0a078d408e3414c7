/*
 * Finds identical rows and identical columns. Internal to match.h.
 *
 * A few entries of each row, evenly spread, are hashed; rows of one hash are compared with the first of them in full. A row that
 * differs after all stays a kind of its own. Then the columns likewise, over the kinds of rows alone. So it costs next to
 * nothing where all differ, and one pass over the weights where many agree.
 */
#pragma once

#include <stdbool.h>

#include "match/carve.h"
#include "match/match.h"

struct td_collapse {
	uint32_t row_kinds, column_kinds;
	uint32_t *row_kind, *column_kind;     /* of each row, column */
	uint32_t *row_counts, *column_counts; /* of each kind */
	uint32_t *row_order, *column_order;   /* rows, columns by kind */
	float *weights;                       /* row_kinds x column_kinds */
	uint64_t *keys;                       /* scratch, the larger of rows and columns */
	uint32_t *first; /* scratch, likewise: of each kind, its first member */
};

/* Size of the compact matrix at most, in floats: beyond it kinds are not worth it. */
size_t td_collapse_room(uint32_t rows, uint32_t columns);

void td_collapse_carve(
	struct td_collapse *collapse, struct td_carve *carve, uint32_t rows, uint32_t columns);

/* False: not worth it, nothing is said. */
bool td_collapse_find(struct td_collapse *collapse, const struct td_match_problem *problem);
