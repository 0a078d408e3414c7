/*
 * Passes over a row of weights: what the matching spends its time in. Internal to match.h.
 *
 * Purpose. An auction asks of a row again and again: which columns have the largest weight less price? A row of 10,000 floats is
 * 40 kB; at the rate of the memory one question takes 1.6 us, if the pass does nothing else. So a pass only computes the maximum of each
 * block of 16 columns; those that matter are then found by looking into the few blocks whose maximum is high enough.
 *
 *   td_scan_maxima      the pass itself: a maximum per block, and of the row
 *   td_scan_above       the list of a row: all columns above a threshold
 *   td_scan_sample      the same where there are too many: some of them, from all over the row, so that rows that are alike do not
 *                       all bid for the same few
 *   td_scan_argmax      the best column, first among equals
 *   td_scan_list        the question again, of a row's list: a gather, eight entries at a time
 *   td_scan_at_least    which of a list are near ties
 *   td_scan_raise       prices of the whole from the profits of a coarse problem, match.h
 *
 * Method. Two versions of each, AVX2 and portable C. The caller asks once whether the processor has AVX2 and hands the answer down, so
 * that nothing here is global and a test can have either. AVX2 is compiled by a function attribute: the library runs anywhere.
 *
 * Invariants
 *  - both versions give the same result to the last bit: they take the same differences and maxima of the same floats, each
 *    rounded once; a maximum does not depend on the order; no product is contracted, for there is none;
 *  - a weight that is negative or not a number counts as 0: no match. Prices are finite;
 *  - maxima are those of the prices at the pass: who looks into blocks does so before a price changes;
 *  - no column is named twice; what is named was above the threshold when it was looked at;
 *  - nothing is read beyond n, nothing written beyond `room`, n or the number of blocks.
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

/* May this processor run the AVX2 versions? Asks the processor, nothing else. */
bool td_scan_has_avx2(void);

/* maxima[b] = max over block b of weight - price; returns the maximum of all. n > 0. */
float td_scan_maxima(
	const float *weights, const float *prices, uint32_t n, float *maxima, bool avx2);

/*
 * Columns with weight - price > threshold, ascending, at most `room`; the blocks' maxima are there. Returns how many, or room + 1
 * if there are more.
 */
uint32_t td_scan_above(const float *weights, const float *prices, uint32_t n, const float *maxima,
	float threshold, uint32_t *columns, uint32_t room, bool avx2);

/*
 * At most `room` columns with weight - price > threshold, of those that there are a sample from all over the row: the blocks are visited
 * from one that `seed` chooses on, in large steps, and none gives more than a few. Returns how many.
 */
uint32_t td_scan_sample(const float *weights, const float *prices, uint32_t n, const float *maxima,
	float threshold, uint32_t seed, uint32_t *columns, uint32_t room, bool avx2);

/* A column of the greatest value, `max`, the first one. */
uint32_t td_scan_argmax(
	const float *weights, const float *prices, uint32_t n, const float *maxima, float max);

/* Lists are padded to whole groups: a pad has the weight -INFINITY and any column that has a price. */
#define TD_SCAN_GROUP 8u

static inline uint32_t td_scan_padded(uint32_t n)
{
	return (n + TD_SCAN_GROUP - 1) / TD_SCAN_GROUP * TD_SCAN_GROUP;
}

struct td_scan_best {
	float value, second; /* the two greatest, -INFINITY where there are none */
	uint32_t at; /* of the greatest, the first one; UINT32_MAX where all are -INFINITY */
};

/* values[k] = weights[k] - prices[columns[k]] for a padded list of n entries, and the best of them. */
struct td_scan_best td_scan_list(const uint32_t *columns, const float *weights, const float *prices,
	uint32_t n, float *values, bool avx2);

/* Bit k: values[k] is at least `least`. n at most 64; values as td_scan_list() left them. */
uint64_t td_scan_at_least(const float *values, uint32_t n, float least, bool avx2);

/* prices[j] = max(prices[j], weight[j] - profit). */
void td_scan_raise(const float *weights, float profit, uint32_t n, float *prices, bool avx2);
