/* Passes over a row of weights; see scan.h. */
#include "match/scan.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#define SAMPLE_PER_BLOCK 1u

static float block_maximum(const float *weights, const float *prices, uint32_t n)
{
	float max = td_scan_weight(weights[0]) - prices[0];

	for (uint32_t j = 1; j < n; j++) {
		float value = td_scan_weight(weights[j]) - prices[j];

		max = value > max ? value : max;
	}
	return max;
}

static float maxima_portable(const float *weights, const float *prices, uint32_t n, float *maxima)
{
	float max = -__builtin_inff();

	for (uint32_t j = 0; j < n; j += TD_SCAN_BLOCK) {
		uint32_t width = n - j < TD_SCAN_BLOCK ? n - j : TD_SCAN_BLOCK;
		float value = block_maximum(weights + j, prices + j, width);

		maxima[j / TD_SCAN_BLOCK] = value;
		max = value > max ? value : max;
	}
	return max;
}

static void raise_portable(const float *weights, float profit, uint32_t n, float *prices)
{
	for (uint32_t j = 0; j < n; j++) {
		float price = td_scan_weight(weights[j]) - profit;

		prices[j] = price > prices[j] ? price : prices[j];
	}
}

static uint32_t above_portable(const float *weights, const float *prices, uint32_t n,
	const float *maxima, float threshold, uint32_t *columns, uint32_t room)
{
	uint32_t count = 0;

	for (uint32_t b = 0; b < td_scan_blocks(n); b++) {
		uint32_t end = (b + 1) * TD_SCAN_BLOCK < n ? (b + 1) * TD_SCAN_BLOCK : n;

		if (!(maxima[b] > threshold))
			continue;
		for (uint32_t j = b * TD_SCAN_BLOCK; j < end; j++) {
			if (!(td_scan_weight(weights[j]) - prices[j] > threshold))
				continue;
			if (count == room)
				return room + 1;
			columns[count++] = j;
		}
	}
	return count;
}

/* Returns a word in which bit k tells that value k of the block is above the threshold. */
static uint32_t bits_portable(
	const float *weights, const float *prices, uint32_t n, float threshold)
{
	uint32_t bits = 0;

	for (uint32_t k = 0; k < n && k < TD_SCAN_BLOCK; k++)
		bits |= (uint32_t)(td_scan_weight(weights[k]) - prices[k] > threshold) << k;
	return bits;
}

static struct td_scan_best list_portable(const uint32_t *columns, const float *weights,
	const float *prices, uint32_t n, float *values)
{
	struct td_scan_best best = {-__builtin_inff(), -__builtin_inff(), UINT32_MAX};

	for (uint32_t k = 0; k < td_scan_padded(n); k++) {
		float value = weights[k] - prices[columns[k]];

		values[k] = value;
		if (value > best.value) {
			best.second = best.value;
			best.value = value;
			best.at = k;
		} else if (value > best.second) {
			best.second = value;
		}
	}
	return best;
}

static uint64_t at_least_portable(const float *values, uint32_t n, float least)
{
	uint64_t bits = 0;

	for (uint32_t k = 0; k < n; k++)
		bits |= (uint64_t)(values[k] >= least) << k;
	return bits;
}

#if defined(__x86_64__)

bool td_scan_has_avx2(void)
{
	uint32_t a, b, c, d, low, high;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
		return false;
	__asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	if ((low & 6) != 6) /* the system has to save both halves of the registers */
		return false;
	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_AVX2);
}

__attribute__((target("avx2"))) static inline __m256 values8(
	const float *weights, const float *prices)
{
	/* max(w, 0) is 0 if w is not a number */
	return _mm256_sub_ps(_mm256_max_ps(_mm256_loadu_ps(weights), _mm256_setzero_ps()),
		_mm256_loadu_ps(prices));
}

/* Returns the maximum of each of four blocks' vectors, one per lane. */
__attribute__((target("avx2"))) static inline __m128 four_maxima(
	__m256 a, __m256 b, __m256 c, __m256 d)
{
	__m256 ab = _mm256_max_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
	__m256 cd = _mm256_max_ps(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
	__m256 all =
		_mm256_max_ps(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee));

	return _mm_max_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1));
}

__attribute__((target("avx2"))) static float maxima_avx2(
	const float *weights, const float *prices, uint32_t n, float *maxima)
{
	__m128 max4 = _mm_set1_ps(-__builtin_inff());
	uint32_t j = 0, whole = n - n % (4 * TD_SCAN_BLOCK);
	float lanes[4], max;

	for (; j < whole; j += 4 * TD_SCAN_BLOCK) {
		__m256 block[4];
		__m128 four;

		for (uint32_t b = 0; b < 4; b++)
			block[b] = _mm256_max_ps(values8(weights + j + 16 * b, prices + j + 16 * b),
				values8(weights + j + 16 * b + 8, prices + j + 16 * b + 8));
		four = four_maxima(block[0], block[1], block[2], block[3]);
		_mm_storeu_ps(maxima + j / TD_SCAN_BLOCK, four);
		max4 = _mm_max_ps(max4, four);
	}
	_mm_storeu_ps(lanes, max4);
	max = lanes[0];
	for (uint32_t l = 1; l < 4; l++)
		max = lanes[l] > max ? lanes[l] : max;
	if (j < n) {
		float rest =
			maxima_portable(weights + j, prices + j, n - j, maxima + j / TD_SCAN_BLOCK);

		max = rest > max ? rest : max;
	}
	return max;
}

__attribute__((target("avx2"))) static void raise_avx2(
	const float *weights, float profit, uint32_t n, float *prices)
{
	uint32_t whole = n - n % 8;
	__m256 less = _mm256_set1_ps(profit);

	for (uint32_t j = 0; j < whole; j += 8) {
		__m256 w = _mm256_max_ps(_mm256_loadu_ps(weights + j), _mm256_setzero_ps());

		_mm256_storeu_ps(prices + j,
			_mm256_max_ps(_mm256_sub_ps(w, less), _mm256_loadu_ps(prices + j)));
	}
	raise_portable(weights + whole, profit, n - whole, prices + whole);
}

/* Returns a word in which bit k tells that value k of the block is above the threshold. */
__attribute__((target("avx2"))) static inline uint32_t block_above(
	const float *weights, const float *prices, __m256 threshold)
{
	__m256 low = _mm256_cmp_ps(values8(weights, prices), threshold, _CMP_GT_OQ);
	__m256 high = _mm256_cmp_ps(values8(weights + 8, prices + 8), threshold, _CMP_GT_OQ);

	return (uint32_t)_mm256_movemask_ps(low) | (uint32_t)_mm256_movemask_ps(high) << 8;
}

__attribute__((target("avx2"))) static uint32_t bits_avx2(
	const float *weights, const float *prices, float threshold)
{
	return block_above(weights, prices, _mm256_set1_ps(threshold));
}

__attribute__((target("avx2"))) static uint32_t above_avx2(const float *weights,
	const float *prices, uint32_t n, const float *maxima, float threshold, uint32_t *columns,
	uint32_t room)
{
	uint32_t whole = n / (8 * TD_SCAN_BLOCK) * 8, count = 0, rest, done;
	__m256 than = _mm256_set1_ps(threshold);

	for (uint32_t b = 0; b < whole; b += 8) {
		uint32_t blocks = (uint32_t)_mm256_movemask_ps(
			_mm256_cmp_ps(_mm256_loadu_ps(maxima + b), than, _CMP_GT_OQ));

		for (; blocks; blocks &= blocks - 1) {
			uint32_t j = (b + (uint32_t)__builtin_ctz(blocks)) * TD_SCAN_BLOCK;

			for (uint32_t hits = block_above(weights + j, prices + j, than); hits;
				hits &= hits - 1) {
				if (count == room)
					return room + 1;
				columns[count++] = j + (uint32_t)__builtin_ctz(hits);
			}
		}
	}
	done = whole * TD_SCAN_BLOCK;
	rest = above_portable(weights + done, prices + done, n - done, maxima + whole, threshold,
		columns + count, room - count);
	for (uint32_t k = 0; k < rest && count + k < room; k++)
		columns[count + k] += done;
	return count + rest;
}

/*
 * Gives each lane the value of another lane. fold 0: of the other half; 1: of the other pair in its
 * half; 2: of its neighbour.
 */
__attribute__((target("avx2"))) static inline __m256 fold_over(__m256 lanes, int fold)
{
	if (fold == 0)
		return _mm256_permute2f128_ps(lanes, lanes, 1);
	return fold == 1 ? _mm256_shuffle_ps(lanes, lanes, 0x4e)
			 : _mm256_shuffle_ps(lanes, lanes, 0xb1);
}

__attribute__((target("avx2"))) static struct td_scan_best list_avx2(const uint32_t *columns,
	const float *weights, const float *prices, uint32_t n, float *values)
{
	__m256 first = _mm256_set1_ps(-__builtin_inff()), second = first;
	struct td_scan_best best = {-__builtin_inff(), -__builtin_inff(), UINT32_MAX};

	for (uint32_t k = 0; k < n; k += TD_SCAN_GROUP) {
		__m256i at = _mm256_loadu_si256((const __m256i *)(columns + k));
		__m256 value = _mm256_sub_ps(
			_mm256_loadu_ps(weights + k), _mm256_i32gather_ps(prices, at, 4));

		_mm256_storeu_ps(values + k, value);
		second = _mm256_max_ps(second, _mm256_min_ps(first, value));
		first = _mm256_max_ps(first, value);
	}
	for (int fold = 0; fold < 3; fold++) { /* halves, pairs, neighbours */
		__m256 other = fold_over(first, fold);

		second = _mm256_max_ps(_mm256_max_ps(second, fold_over(second, fold)),
			_mm256_min_ps(first, other));
		first = _mm256_max_ps(first, other);
	}
	best.value = _mm256_cvtss_f32(first);
	best.second = _mm256_cvtss_f32(second);
	if (!(best.value > -__builtin_inff()))
		return best;
	for (best.at = 0;; best.at += TD_SCAN_GROUP) {
		int hits = _mm256_movemask_ps(
			_mm256_cmp_ps(_mm256_loadu_ps(values + best.at), first, _CMP_GE_OQ));

		if (hits) {
			best.at += (uint32_t)__builtin_ctz((unsigned)hits);
			return best;
		}
	}
}

__attribute__((target("avx2"))) static uint64_t at_least_avx2(
	const float *values, uint32_t n, float least)
{
	__m256 than = _mm256_set1_ps(least);
	uint64_t bits = 0;

	for (uint32_t k = 0; k < n; k += TD_SCAN_GROUP)
		bits |= (uint64_t)(uint32_t)_mm256_movemask_ps(
				_mm256_cmp_ps(_mm256_loadu_ps(values + k), than, _CMP_GE_OQ))
			<< k;
	return n < 64 ? bits & ((1ull << n) - 1) : bits;
}

#else

bool td_scan_has_avx2(void)
{
	return false;
}

static uint32_t bits_avx2(const float *weights, const float *prices, float threshold)
{
	return bits_portable(weights, prices, TD_SCAN_BLOCK, threshold);
}

static struct td_scan_best list_avx2(const uint32_t *columns, const float *weights,
	const float *prices, uint32_t n, float *values)
{
	return list_portable(columns, weights, prices, n, values);
}

static uint64_t at_least_avx2(const float *values, uint32_t n, float least)
{
	return at_least_portable(values, n, least);
}

static float maxima_avx2(const float *weights, const float *prices, uint32_t n, float *maxima)
{
	return maxima_portable(weights, prices, n, maxima);
}

static uint32_t above_avx2(const float *weights, const float *prices, uint32_t n,
	const float *maxima, float threshold, uint32_t *columns, uint32_t room)
{
	return above_portable(weights, prices, n, maxima, threshold, columns, room);
}

static void raise_avx2(const float *weights, float profit, uint32_t n, float *prices)
{
	raise_portable(weights, profit, n, prices);
}

#endif

float td_scan_maxima(
	const float *weights, const float *prices, uint32_t n, float *maxima, bool avx2)
{
	return avx2 ? maxima_avx2(weights, prices, n, maxima)
		    : maxima_portable(weights, prices, n, maxima);
}

void td_scan_raise(const float *weights, float profit, uint32_t n, float *prices, bool avx2)
{
	if (avx2)
		raise_avx2(weights, profit, n, prices);
	else
		raise_portable(weights, profit, n, prices);
}

uint32_t td_scan_above(const float *weights, const float *prices, uint32_t n, const float *maxima,
	float threshold, uint32_t *columns, uint32_t room, bool avx2)
{
	return (avx2 ? above_avx2 : above_portable)(
		weights, prices, n, maxima, threshold, columns, room);
}

struct td_scan_best td_scan_list(const uint32_t *columns, const float *weights, const float *prices,
	uint32_t n, float *values, bool avx2)
{
	return (avx2 ? list_avx2 : list_portable)(columns, weights, prices, n, values);
}

uint64_t td_scan_at_least(const float *values, uint32_t n, float least, bool avx2)
{
	return (avx2 ? at_least_avx2 : at_least_portable)(values, n, least);
}

/*
 * Returns a step near the golden section that has no divisor in common with the number of blocks,
 * so that stepping visits every block.
 */
static uint32_t step_over(uint32_t blocks)
{
	uint32_t step = (uint32_t)((uint64_t)blocks * 618 / 1000) | 1;

	for (;; step++) {
		uint32_t a = blocks, b = step;

		while (b) {
			uint32_t rest = a % b;

			a = b;
			b = rest;
		}
		if (a == 1)
			return step;
	}
}

uint32_t td_scan_sample(const float *weights, const float *prices, uint32_t n, const float *maxima,
	float threshold, uint32_t seed, uint32_t *columns, uint32_t room, bool avx2)
{
	uint32_t blocks = td_scan_blocks(n), step = step_over(blocks), b = seed % blocks, count = 0;
	uint32_t turn = (seed >> 8) % TD_SCAN_BLOCK;

	for (uint32_t k = 0; k < blocks && count < room; k++) {
		uint32_t j = b * TD_SCAN_BLOCK, bits;

		b = b + step < blocks ? b + step : b + step - blocks;
		if (!(maxima[j / TD_SCAN_BLOCK] > threshold))
			continue;
		bits = avx2 && n - j >= TD_SCAN_BLOCK
			       ? bits_avx2(weights + j, prices + j, threshold)
			       : bits_portable(weights + j, prices + j, n - j, threshold);
		bits = (bits >> turn | bits << (TD_SCAN_BLOCK - turn)) & 0xffff;
		for (uint32_t most = count + SAMPLE_PER_BLOCK; bits && count < most && count < room;
			bits &= bits - 1)
			columns[count++] =
				j + ((uint32_t)__builtin_ctz(bits) + turn) % TD_SCAN_BLOCK;
	}
	return count;
}

uint32_t td_scan_argmax(
	const float *weights, const float *prices, uint32_t n, const float *maxima, float max)
{
	uint32_t b = 0, j;

	while (maxima[b] < max)
		b++;
	for (j = b * TD_SCAN_BLOCK; td_scan_weight(weights[j]) - prices[j] < max; j++)
		;
	return j < n ? j : n - 1;
}
