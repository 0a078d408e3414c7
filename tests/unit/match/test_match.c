/*
 * Matchings against brute force and an independent solver: their bounds, their kinds, and matching
 * again.
 */
#include "test.h"

#include <errno.h>
#include <math.h>

#include "match/auction.h"
#include "match/match.h"
#include "match/scan.h"
#include "policy_random.h"

#define MOST 1300

static uint32_t column[MOST];
static struct td_match_result result;
static struct td_match *match;
static void *memory;

static int solve_with(const struct td_match_problem *p, const struct td_match_options *options)
{
	uint32_t rows = 0, columns = 0, units;
	size_t bytes;

	for (uint32_t i = 0; i < p->rows; i++)
		rows += p->row_counts ? p->row_counts[i] : 1;
	for (uint32_t j = 0; j < p->columns; j++)
		columns += p->column_counts ? p->column_counts[j] : 1;
	units = rows > columns ? rows : columns;
	bytes = td_match_bytes(p->rows, p->columns, units);
	free(memory);
	memory = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
	CHECK(memory);
	memset(memory, 0xa5, bytes); /* nothing may rely on zeros */
	return td_match_solve(p, options, memory, bytes, column, &result, &match);
}

static int solve(const struct td_match_problem *p)
{
	return solve_with(p, &td_match_default);
}

static struct td_match_problem dense(const float *w, uint32_t rows, uint32_t columns)
{
	return (struct td_match_problem){w, columns, rows, columns, NULL, NULL};
}

/* Each column once, no infeasible pair, the weight as stated, the gap as promised. */
static void check_matching(const struct td_match_problem *p, double tolerance)
{
	static uint8_t taken[MOST];
	double sum = 0;

	memset(taken, 0, sizeof(taken));
	for (uint32_t i = 0; i < p->rows; i++) {
		if (column[i] == TD_MATCH_NONE)
			continue;
		CHECK(column[i] < p->columns && !taken[column[i]]++);
		CHECK(p->weights[i * p->stride + column[i]] > 0);
		sum += p->weights[i * p->stride + column[i]];
	}
	CHECK(fabs(sum - result.weight) <= 1e-6 * sum + 1e-12);
	CHECK(result.weight <= result.bound * (1 + 1e-6) + 1e-12);
	CHECK(result.bound - result.weight <= tolerance * result.bound + 1e-12);
}

/* Best of all, by recursion over the rows: at most 8 columns. */
static double brute_force(const struct td_match_problem *p, uint32_t row, uint32_t taken)
{
	double best;

	if (row == p->rows)
		return 0;
	best = brute_force(p, row + 1, taken);
	for (uint32_t j = 0; j < p->columns; j++) {
		float w = p->weights[row * p->stride + j];

		if (!(taken >> j & 1) && w > 0)
			best = fmax(best, w + brute_force(p, row + 1, taken | 1u << j));
	}
	return best;
}

/* Shortest augmenting paths with potentials on the square problem of costs -w, in double. */
static double hungarian(const struct td_match_problem *p)
{
	enum { N = 121 };
	static double u[N], v[N], least[N];
	static int match_of[N], way[N], used[N];
	int n = (int)(p->rows > p->columns ? p->rows : p->columns);
	double sum = 0;

	memset(u, 0, sizeof(u));
	memset(v, 0, sizeof(v));
	memset(match_of, 0, sizeof(match_of));
	for (int i = 1; i <= n; i++) {
		int j0 = 0;

		match_of[0] = i;
		for (int j = 0; j <= n; j++) {
			least[j] = INFINITY;
			used[j] = 0;
		}
		do {
			int i0 = match_of[j0], j1 = 0;
			double delta = INFINITY;

			used[j0] = 1;
			for (int j = 1; j <= n; j++) {
				double w = 0, cost;

				if (used[j])
					continue;
				if (i0 <= (int)p->rows && j <= (int)p->columns)
					w = p->weights[(i0 - 1) * p->stride + (size_t)j - 1];
				cost = -(w > 0 ? w : 0) - u[i0] - v[j];
				if (cost < least[j]) {
					least[j] = cost;
					way[j] = j0;
				}
				if (least[j] < delta) {
					delta = least[j];
					j1 = j;
				}
			}
			for (int j = 0; j <= n; j++) {
				if (used[j]) {
					u[match_of[j]] += delta;
					v[j] -= delta;
				} else {
					least[j] -= delta;
				}
			}
			j0 = j1;
		} while (match_of[j0]);
		for (; j0; j0 = way[j0])
			match_of[j0] = match_of[way[j0]];
	}
	for (int j = 1; j <= (int)p->columns; j++) {
		double w = 0;

		if (match_of[j] <= (int)p->rows)
			w = p->weights[(match_of[j] - 1) * p->stride + (size_t)j - 1];
		sum += w > 0 ? w : 0;
	}
	return sum;
}

static float feature[4][MOST];

static void make_features(uint64_t *seed)
{
	for (int f = 0; f < 4; f++)
		for (int i = 0; i < MOST; i++)
			feature[f][i] = (float)random_unit(seed);
}

enum family { UNIFORM, PRODUCT, SIGMOID, KINDS, NEAR, HOLES, FAMILIES };

static float weight(enum family family, uint32_t i, uint32_t j, uint64_t *seed)
{
	float a = feature[0][i], b = feature[1][j], noise = (float)random_unit(seed);
	float kind = feature[2][(i % 7) * 5 + j % 5];

	switch (family) {
	case UNIFORM: return noise;
	case PRODUCT: return a * b;
	case SIGMOID: return 1 / (1 + expf(4 * (a - b) + 2 * feature[2][i] * feature[3][j]));
	case KINDS: return kind;
	case NEAR: return kind * (1 + 1e-3f * noise);
	default: return noise < 0.6f ? (noise < 0.3f ? NAN : -1) : noise;
	}
}

static void fill(float *w, enum family family, uint32_t rows, uint32_t columns, uint64_t *seed)
{
	for (uint32_t i = 0; i < rows; i++)
		for (uint32_t j = 0; j < columns; j++)
			w[(size_t)i * columns + j] = weight(family, i, j, seed);
}

TEST(muxflows_example_is_matched)
{
	/*
	 * Figure 9: A and B share with two of C, D, E; the best plan is A with D, B with C, 1.6 in
	 * all.
	 */
	const float w[] = {0.3f, 0.8f, 0.4f, 0.8f, 0.4f, 0.3f};
	struct td_match_problem p = dense(w, 2, 3);

	CHECK_EQ(solve(&p), 0);
	CHECK_EQ(column[0], 1);
	CHECK_EQ(column[1], 0);
	CHECK(fabs(result.weight - 1.6) < 1e-6);
}

TEST(small_problems_agree_with_brute_force)
{
	uint64_t seed = 5;
	float w[64];

	for (int run = 0; run < 3000; run++) {
		uint32_t rows = 1 + random_below(&seed, 6), columns = 1 + random_below(&seed, 7);
		struct td_match_problem p = dense(w, rows, columns);
		double best;

		make_features(&seed);
		fill(w, (enum family)(run % FAMILIES), rows, columns, &seed);
		best = brute_force(&p, 0, 0);
		CHECK_EQ(solve(&p), 0);
		check_matching(&p, 1e-4);
		CHECK(result.weight >= best * (1 - 1e-4) - 1e-9 && result.weight <= best + 1e-6);
		CHECK(result.bound >= best * (1 - 1e-6));
	}
}

TEST(middling_problems_agree_with_an_independent_solver)
{
	static float w[120 * 120];
	uint64_t seed = 7;

	for (int run = 0; run < 60; run++) {
		uint32_t rows = 20 + random_below(&seed, 100),
			 columns = 20 + random_below(&seed, 100);
		struct td_match_problem p = dense(w, rows, run & 1 ? columns : rows);
		double best;

		make_features(&seed);
		fill(w, (enum family)(run / 2 % FAMILIES), rows, p.columns, &seed);
		best = hungarian(&p);
		CHECK_EQ(solve(&p), 0);
		check_matching(&p, 1e-4);
		CHECK(result.weight >= best * (1 - 1e-4));
		CHECK(result.bound >= best * (1 - 1e-6));
	}
}

TEST(large_problems_prove_their_gap_by_way_of_coarse_ones)
{
	float *w = malloc(sizeof(float) * MOST * MOST);
	uint64_t seed = 11;

	CHECK(w);
	for (int family = 0; family < FAMILIES; family++) {
		struct td_match_problem p = dense(w, 900 + 100 * (family % 3), 1000);

		make_features(&seed);
		fill(w, (enum family)family, p.rows, p.columns, &seed);
		CHECK_EQ(solve(&p), 0);
		check_matching(&p, 1e-4);
		CHECK(family == KINDS ? result.levels == 0 : result.levels > 0);
	}
	free(w);
}

TEST(kinds_are_found_and_change_nothing)
{
	static float w[300 * 310];
	struct td_match_problem p = dense(w, 300, 310);
	struct td_match_options apart = td_match_default;
	uint64_t seed = 13;
	double together;

	apart.keep_kinds_apart = true;
	make_features(&seed);
	fill(w, KINDS, 300, 310, &seed);
	CHECK_EQ(solve(&p), 0);
	CHECK_EQ(result.row_kinds, 7);
	CHECK_EQ(result.column_kinds, 5);
	check_matching(&p, 1e-4);
	together = result.weight;
	CHECK_EQ(solve_with(&p, &apart), 0);
	CHECK_EQ(result.row_kinds, 300);
	check_matching(&p, 1e-4);
	CHECK(fabs(together / result.weight - 1) < 1e-4);
}

TEST(a_row_that_differs_in_one_place_is_another_kind)
{
	static float w[200 * 200];
	struct td_match_problem p = dense(w, 200, 200);

	for (uint32_t i = 0; i < 200 * 200; i++)
		w[i] = 0.25f;
	w[77 * 200 + 130] = 1; /* no column that the first look samples */
	CHECK_EQ(solve(&p), 0);
	CHECK_EQ(result.row_kinds, 2);
	CHECK_EQ(result.column_kinds, 2);
	CHECK_EQ(column[77], 130);
	check_matching(&p, 1e-4);
}

TEST(counts_are_copies)
{
	const float kinds[] = {5, 3, 1, 4, 4, 0, 2, 6, 3};
	const uint32_t rows[] = {3, 0, 4}, columns[] = {2, 3, 1};
	struct td_match_problem p = {kinds, 3, 3, 3, rows, columns};
	float w[7 * 6];
	struct td_match_problem copies = dense(w, 7, 6);
	uint32_t count[3] = {0};
	double best;

	for (uint32_t i = 0; i < 7; i++)
		for (uint32_t j = 0; j < 6; j++)
			w[i * 6 + j] = kinds[(i < 3 ? 0 : 2) * 3 + (j < 2 ? 0 : j < 5 ? 1 : 2)];
	best = brute_force(&copies, 0, 0);
	CHECK_EQ(solve(&p), 0);
	CHECK(fabs(result.weight - best) < 1e-4 * best);
	for (int u = 0; u < 7; u++)
		if (column[u] != TD_MATCH_NONE)
			count[column[u]]++;
	for (int j = 0; j < 3; j++)
		CHECK(count[j] <= columns[j]);
}

TEST(without_simd_the_matching_is_the_same)
{
	static float w[700 * 650];
	static uint32_t with[700];
	struct td_match_options portable = td_match_default;
	uint64_t seed = 17;

	if (!td_scan_has_avx2())
		SKIP("this processor has no AVX2: both are the portable one");
	portable.portable = true;
	for (int family = 0; family < FAMILIES; family++) {
		struct td_match_problem p = dense(w, 700, 650);
		uint64_t bids;

		make_features(&seed);
		fill(w, (enum family)family, 700, 650, &seed);
		CHECK_EQ(solve(&p), 0);
		memcpy(with, column, sizeof(with));
		bids = result.bids;
		CHECK_EQ(solve_with(&p, &portable), 0);
		CHECK(!memcmp(with, column, sizeof(with)) && bids == result.bids);
	}
}

TEST(scans_agree_to_the_last_bit)
{
	float w[300], prices[300], a[20], b[20], raised[2][300];
	uint32_t hits[2][300];
	uint64_t seed = 19;

	if (!td_scan_has_avx2())
		SKIP("this processor has no AVX2");
	for (int run = 0; run < 5000; run++) {
		uint32_t n = 1 + random_below(&seed, 300), room = 1 + random_below(&seed, n), found;
		float max, threshold = (float)random_normal(&seed);

		for (uint32_t j = 0; j < n; j++) {
			w[j] = random_below(&seed, 9) ? (float)random_normal(&seed) : NAN;
			prices[j] = random_below(&seed, 9) ? (float)random_normal(&seed) : INFINITY;
			raised[0][j] = raised[1][j] = prices[j];
		}
		max = td_scan_maxima(w, prices, n, a, true);
		CHECK(!(max < td_scan_maxima(w, prices, n, b, false)) &&
			!(max > td_scan_maxima(w, prices, n, b, false)));
		CHECK(!memcmp(a, b, td_scan_blocks(n) * sizeof(float)));
		found = td_scan_above(w, prices, n, a, threshold, hits[0], room, true);
		CHECK_EQ(td_scan_above(w, prices, n, a, threshold, hits[1], room, false), found);
		CHECK(!memcmp(hits[0], hits[1], (found < room ? found : room) * sizeof(uint32_t)));
		td_scan_raise(w, threshold, n, raised[0], true);
		td_scan_raise(w, threshold, n, raised[1], false);
		CHECK(!memcmp(raised[0], raised[1], n * sizeof(float)));
	}
}

TEST(looks_at_lists_agree_to_the_last_bit_and_find_the_two_best)
{
	float weights[64], prices[200], values[2][64];
	uint32_t columns[64];
	uint64_t seed = 20;

	if (!td_scan_has_avx2())
		SKIP("this processor has no AVX2: both are the portable one");
	for (uint32_t round = 0; round < 2000; round++) {
		uint32_t n = random_below(&seed, 65), padded = td_scan_padded(n);
		struct td_scan_best best[2], plain = {-INFINITY, -INFINITY, UINT32_MAX};

		for (uint32_t j = 0; j < 200; j++)
			prices[j] = (float)random_below(&seed, 20) / 7;
		for (uint32_t k = 0; k < padded; k++) {
			columns[k] = random_below(&seed, 200);
			weights[k] = k < n ? (float)random_below(&seed, 20) / 7 : -INFINITY;
		}
		for (uint32_t k = 0; k < n; k++) {
			float value = weights[k] - prices[columns[k]];

			if (value > plain.value) {
				plain = (struct td_scan_best){value, plain.value, k};
			} else if (value > plain.second) {
				plain.second = value;
			}
		}
		for (int avx2 = 0; avx2 < 2; avx2++) {
			best[avx2] = td_scan_list(columns, weights, prices, n, values[avx2], avx2);
			CHECK(!memcmp(&best[avx2], &plain, sizeof(plain)));
		}
		CHECK(!memcmp(values[0], values[1], padded * sizeof(float)));
		for (uint32_t k = 0; k < n; k += 7) {
			uint64_t bits = td_scan_at_least(values[0], n, values[0][k], false);

			CHECK(bits >> k & 1 && (n == 64 || !(bits >> n)));
			CHECK_EQ(td_scan_at_least(values[0], n, values[0][k], true),
				(long long)bits);
		}
	}
}

TEST(a_sample_is_of_different_columns_above_and_all_over_the_row)
{
	float weights[1000], prices[1000], maxima[63];
	uint32_t columns[2][62], blocks = 0;
	uint64_t random = 21;

	for (uint32_t j = 0; j < 1000; j++) {
		weights[j] = 1 + (float)random_below(&random, 100) / 100;
		prices[j] = 0;
	}
	weights[777] = 3;
	CHECK_EQ(td_scan_argmax(weights, prices, 1000, maxima,
			 td_scan_maxima(weights, prices, 1000, maxima, false)),
		777);
	for (uint32_t seed = 0; seed < 500; seed++) {
		bool seen[1000] = {false}, block[63] = {false};
		uint32_t n = td_scan_sample(
			weights, prices, 1000, maxima, 1.5f, seed * 77, columns[0], 62, false);

		if (td_scan_has_avx2())
			CHECK(td_scan_sample(weights, prices, 1000, maxima, 1.5f, seed * 77,
				      columns[1], 62, true) == n &&
				!memcmp(columns[0], columns[1], n * sizeof(uint32_t)));
		CHECK(n > 30 && n <= 62);
		for (uint32_t k = 0; k < n; k++) {
			CHECK(columns[0][k] < 1000 && weights[columns[0][k]] > 1.5f);
			CHECK(!seen[columns[0][k]]);
			seen[columns[0][k]] = block[columns[0][k] / TD_SCAN_BLOCK] = true;
		}
		blocks = 0;
		for (uint32_t b = 0; b < 63; b++)
			blocks += block[b];
		CHECK(blocks > 30);
	}
}

TEST(changed_rows_are_matched_again)
{
	static float w[600 * 600];
	uint64_t seed = 23;

	for (int family = 0; family < FAMILIES; family++) {
		struct td_match_problem p = dense(w, 600, 600);

		make_features(&seed);
		fill(w, (enum family)family, 600, 600, &seed);
		CHECK_EQ(solve(&p), 0);
		for (int round = 0; round < 10; round++) {
			uint32_t changed[6];

			for (int k = 0; k < 6; k++) {
				changed[k] = random_below(&seed, 600);
				feature[0][changed[k]] = (float)random_unit(&seed);
				for (uint32_t j = 0; j < 600; j++)
					w[changed[k] * 600 + j] =
						weight((enum family)family, changed[k], j, &seed);
			}
			CHECK_EQ(td_match_again(match, changed, 6, column, &result), 0);
			check_matching(&p, 1e-4);
		}
	}
}

TEST(many_matchings_in_a_row_stay_within_the_tolerance)
{
	static float w[40 * 40];
	struct td_match_problem p = dense(w, 40, 40);
	uint64_t seed = 29;

	fill(w, UNIFORM, 40, 40, &seed);
	CHECK_EQ(solve(&p), 0);
	for (uint32_t round = 0; round < 5000; round++) {
		uint32_t i = round % 40;

		for (uint32_t j = 0; j < 40; j++)
			w[i * 40 + j] = (float)random_unit(&seed);
		CHECK_EQ(td_match_again(match, &i, 1, column, &result), 0);
	}
	check_matching(&p, 1e-4);
	CHECK(result.weight >= hungarian(&p) * (1 - 1e-4));
}

TEST(prices_far_above_the_weights_are_lowered_alike)
{
	static float w[30 * 30];
	static char room[1 << 20] __attribute__((aligned(64)));
	struct td_match_problem p = dense(w, 30, 30);
	struct td_auction auction;
	float prices[30];
	uint64_t seed = 37;

	CHECK(td_auction_bytes(30, 30, 30) <= sizeof(room));
	fill(w, UNIFORM, 30, 30, &seed);
	td_auction_init(&auction, room, &p, false);
	for (int j = 0; j < 30; j++)
		prices[j] = 5000 + (float)j / 64;
	td_auction_set_prices(&auction, prices);
	CHECK(td_auction_phase(&auction, 0.001f, 1000000));
	td_auction_evaluate(&auction);
	CHECK(auction.slot_price[0] >= 5000);
	td_auction_rebase(&auction);
	CHECK(auction.slot_price[0] < 2);
	CHECK(td_auction_phase(&auction, 0.001f, 1000000));
	td_auction_evaluate(&auction);
	CHECK(auction.dual - auction.primal <= 30 * 0.001 * 1.01);
	CHECK(auction.primal >= hungarian(&p) - 30 * 0.001);
}

TEST(nothing_feasible_matches_nothing)
{
	const float w[] = {0, -1, NAN, -INFINITY};
	struct td_match_problem p = dense(w, 2, 2);

	CHECK_EQ(solve(&p), 0);
	CHECK(column[0] == TD_MATCH_NONE && column[1] == TD_MATCH_NONE);
	CHECK(!(result.weight > 0));
}

TEST(lone_rows_and_columns_take_the_best)
{
	const float w[] = {1, 5, 2};
	struct td_match_problem row = dense(w, 1, 3), col = dense(w, 3, 1);

	CHECK_EQ(solve(&row), 0);
	CHECK_EQ(column[0], 1);
	CHECK_EQ(solve(&col), 0);
	CHECK(column[0] == TD_MATCH_NONE && column[1] == 0 && column[2] == TD_MATCH_NONE);
}

TEST(a_tolerance_beyond_floats_is_reported_with_the_bound)
{
	static float w[50 * 50];
	struct td_match_options finest = {.tolerance = 1e-15};
	struct td_match_problem p = dense(w, 50, 50);
	uint64_t seed = 31;

	fill(w, UNIFORM, 50, 50, &seed);
	CHECK_EQ(solve_with(&p, &finest), 1);
	check_matching(&p, 1e-5);
}

TEST(what_is_no_problem_is_refused)
{
	const float w[4] = {1, 2, 3, 4};
	struct td_match_problem p = dense(w, 2, 2);
	struct td_match_options bad = {.tolerance = 0};
	const uint32_t none[] = {0, 0}, beyond = 2;
	char small[64];

	CHECK_EQ(solve(&p), 0);
	CHECK_EQ(td_match_again(match, &beyond, 1, column, &result), -EINVAL);
	CHECK_EQ(td_match_solve(&p, &bad, small, sizeof(small), column, &result, &match), -EINVAL);
	CHECK_EQ(td_match_solve(
			 &p, &td_match_default, small, sizeof(small), column, &result, &match),
		-ENOMEM);
	p.stride = 1;
	CHECK_EQ(td_match_solve(
			 &p, &td_match_default, small, sizeof(small), column, &result, &match),
		-EINVAL);
	p = dense(w, 0, 2);
	CHECK_EQ(td_match_solve(
			 &p, &td_match_default, small, sizeof(small), column, &result, &match),
		-EINVAL);
	p = (struct td_match_problem){w, 2, 2, 2, none, none};
	CHECK_EQ(td_match_solve(
			 &p, &td_match_default, small, sizeof(small), column, &result, &match),
		-EINVAL);
}

/* The list has the columns near the best value, then the best of those that are free. */
TEST(a_short_list_ends_with_the_best_free_column)
{
	static float w[40];
	struct td_match_problem p = dense(w, 1, 40);
	struct td_auction a;

	for (uint32_t k = 0; k < 40; k++)
		w[k] = k == 0 ? 1e6f : k == 1 ? 5e5f : 1;
	free(memory);
	memory = aligned_alloc(64, (td_auction_bytes(1, 40, 40) + 63) & ~(size_t)63);
	CHECK(memory);
	td_auction_init(&a, memory, &p, false);
	CHECK(td_auction_best(&a, 0) >= 1e6f);
	CHECK_EQ(a.list_count[0], 2);
	CHECK_EQ(a.list_column[0], 0);
	CHECK_EQ(a.list_column[1], 0);
}
