/*
 * Passes over a row of weights, in which the matching spends its time. Internal to match.h.
 *
 * Purpose. An auction asks of a row again and again which columns have the largest weight less
 * price. A row of 10,000 floats is 40 kB: at the rate of the memory one question takes 1.6 us, if
 * the pass does nothing else. So a pass only computes the maximum of each block of 16 columns. The
 * columns that matter are then found in the few blocks whose maximum is high enough.
 *
 *     td_scan_maxima    the pass itself: a maximum per block, and of the row
 *     td_scan_above     the list of a row: all columns above a threshold
 *     td_scan_sample    the same where there are too many: some of them, from all over the row,
 *                       so that similar rows do not all bid for the same few
 *     td_scan_argmax    the best column, first among equals
 *     td_scan_list      the question again, of a row's list: a gather, eight entries at a time
 *     td_scan_at_least  the entries of a list that are near ties
 *     td_scan_raise     prices of the whole from the profits of a coarse problem, match.h
 *
 * Method. Each has two versions, AVX2 and portable C. The caller asks once whether the processor
 * has AVX2 and passes the answer, so nothing here is global and a test can choose. AVX2 is compiled
 * by a function attribute, so the library runs on any processor.
 *
 * Invariants
 * - both versions give the same result to the last bit: they take the same differences and maxima
 *   of the same floats, each rounded once. A maximum does not depend on the order, and there is no
 *   product to contract;
 * - a weight that is negative or not a number counts as 0: no match. Prices are finite;
 * - maxima are those of the prices at the pass, so blocks are searched before a price changes;
 * - no column is named twice, and each was above the threshold when it was read;
 * - nothing is read beyond n, nothing written beyond `room`, n or the number of blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TD_SCAN_BLOCK 16

static inline uint32_t td_scan_blocks(uint32_t n)
{
	return (n + TD_SCAN_BLOCK - 1) / TD_SCAN_BLOCK;
}

static inline float td_scan_weight(float w)
{
	return w > 0 ? w : 0;
}

/* Tells whether this processor runs the AVX2 versions. */
bool td_scan_has_avx2(void);

/*
 * Sets maxima[b] to the maximum of weight - price over block b. Returns the maximum of all. n > 0.
 */
float td_scan_maxima(
	const float *weights, const float *prices, uint32_t n, float *maxima, bool avx2);

/*
 * Lists the columns with weight - price > threshold in ascending order, at most `room`. maxima are
 * the blocks' maxima. Returns the number of columns, or room + 1 if there are more.
 */
uint32_t td_scan_above(const float *weights, const float *prices, uint32_t n, const float *maxima,
	float threshold, uint32_t *columns, uint32_t room, bool avx2);

/*
 * Lists at most `room` columns with weight - price > threshold: a sample from all over the row.
 * Blocks are visited in large steps from one that `seed` chooses, and each gives a few columns at
 * most. Returns their number.
 */
uint32_t td_scan_sample(const float *weights, const float *prices, uint32_t n, const float *maxima,
	float threshold, uint32_t seed, uint32_t *columns, uint32_t room, bool avx2);

/* Returns the first column of the greatest value, which is `max`. */
uint32_t td_scan_argmax(
	const float *weights, const float *prices, uint32_t n, const float *maxima, float max);

/* Lists are padded to whole groups. A pad has the weight -INFINITY and any valid column. */
#define TD_SCAN_GROUP 8u

static inline uint32_t td_scan_padded(uint32_t n)
{
	return (n + TD_SCAN_GROUP - 1) / TD_SCAN_GROUP * TD_SCAN_GROUP;
}

struct td_scan_best {
	float value, second; /* the two greatest values; -INFINITY if there are fewer */
	uint32_t at; /* index of the first greatest value; UINT32_MAX if all are -INFINITY */
};

/*
 * Computes values[k] = weights[k] - prices[columns[k]] for a padded list of n entries, and returns
 * the best.
 */
struct td_scan_best td_scan_list(const uint32_t *columns, const float *weights, const float *prices,
	uint32_t n, float *values, bool avx2);

/*
 * Returns a word in which bit k tells that values[k] is at least `least`. n is at most 64; values
 * are from td_scan_list().
 */
uint64_t td_scan_at_least(const float *values, uint32_t n, float least, bool avx2);

/* Sets prices[j] to max(prices[j], weights[j] - profit). */
void td_scan_raise(const float *weights, float profit, uint32_t n, float *prices, bool avx2);
