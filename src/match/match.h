/*
 * Maximum-weight bipartite matching, to a relative gap that is proved each time.
 *
 * Purpose. MuxFlow (5, Algorithm 1) pairs offline workloads with GPUs that run online ones so that
 * the sum of the predicted speeds is greatest. It uses the Kuhn-Munkres algorithm, O(n^3), "several
 * minutes for thousands of workloads". Predicted speeds are the hard case for exact solvers: they
 * are smooth functions of a few numbers, so very many columns are nearly as good as the best one,
 * and augmenting paths get long. An optimum more exact than the predictor is of no use; a gap of
 * 1e-4 is far below its error.
 *
 * Method
 * - An auction with epsilon scaling (Bertsekas) on the square problem; auction.h. Any set of prices
 *   gives an upper bound of the optimum (the dual). The auction ends when the matching's weight is
 *   within the tolerance of that bound, which proves the gap.
 * - Identical rows are one kind with several copies, and so are identical columns; a kind has one
 *   list and one price. This is a transportation problem. Kinds are found here, or named by the
 *   caller.
 * - Coarse to fine: a third of the rows and of the columns, evenly spread over their mean weights,
 *   is solved first, and so on recursively. Prices of all columns follow from the sample's by p_j =
 *   max_i (w_ij - profit_i). On smooth weights these are almost right, and the whole needs only
 *   small corrections. Where they are not better than none, they are not used.
 *
 * Weights are floats, row-major. A weight that is 0, negative or not a number is an infeasible
 * pair, and a row may stay without a column. Rows and columns may differ in number.
 *
 * Invariants
 * - each unit of a row has at most one column, each column at most its count of units, and no pair
 *   is infeasible;
 * - gap <= tolerance, unless td_match_solve() returned 1; weight and bound are sums in double;
 * - same input, same matching, with or without SIMD;
 * - memory: td_match_bytes(), for n x n about 0.8 n^2 bytes beside the weights' 4 n^2.
 *
 * Pure: the caller provides the memory. The weights are read only, and must stay for
 * td_match_again().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TD_MATCH_NONE UINT32_MAX

struct td_match_problem {
	const float *weights; /* rows x stride */
	size_t stride;        /* distance of two rows in floats, at least `columns` */
	uint32_t rows, columns;
	const uint32_t *row_counts, *column_counts; /* number of copies of each; NULL: one each */
};

struct td_match_options {
	double tolerance;      /* largest relative gap to the optimum; 1e-4 is usual */
	bool portable;         /* does not use SIMD */
	bool keep_kinds_apart; /* does not look for identical rows and columns */
	bool flat;             /* does not use coarse levels */
};

extern const struct td_match_options td_match_default;

struct td_match_result {
	double weight; /* weight of the matching */
	double bound;  /* no matching weighs more */
	/* Work: bids made, weights looked at, columns that searches for better paths reached. */
	uint64_t bids, scans, searched;
	uint32_t phases, levels;          /* rounds of bids; problems solved, from coarse to fine */
	uint32_t row_kinds, column_kinds; /* identical rows (columns) are one kind */
};

struct td_match;

/*
 * Returns the bytes needed for problems of up to so many rows, columns and units. `units` is the
 * larger of the two sums of counts.
 */
size_t td_match_bytes(uint32_t rows, uint32_t columns, uint32_t units);

/*
 * Solves the problem. memory is 64-byte aligned. ret_column gets the column of each unit, or
 * TD_MATCH_NONE, in the order of the rows (copies of a row are neighbours). *ret_match, inside the
 * memory, is for td_match_again().
 *
 * Returns
 * - 0: solved;
 * - 1: the tolerance is below what floats can tell apart. The matching is valid and the bound tells
 *   the gap;
 * - -EINVAL: no rows or columns, a stride too small, or a tolerance not above 0;
 * - -ENOMEM: memory too small.
 */
int td_match_solve(const struct td_match_problem *problem, const struct td_match_options *options,
	void *memory, size_t bytes, uint32_t *ret_column, struct td_match_result *ret_result,
	struct td_match **ret_match);

/*
 * Solves again from the last prices and matching, after the weights of some rows have changed. It
 * is quick if they are few. Returns the same values as td_match_solve(). Row numbers are those of
 * the problem. A problem whose kinds were found by td_match_solve() is solved anew.
 */
int td_match_again(struct td_match *match, const uint32_t *changed, uint32_t count,
	uint32_t *ret_column, struct td_match_result *ret_result);
