/*
 * The cost of a matching, per family of weights and size: solving, and solving again after 1 % of
 * the rows have changed. It measures the CPU time of one thread, because wall time includes other
 * work of the machine.
 *
 * The families, from easy to hard:
 * - uniform;
 * - kinds: few identical rows and columns;
 * - near: the same kinds, each weight with a little noise, so that nothing is identical;
 * - product: a_i b_j, the classic bad case of augmenting paths;
 * - sigmoid: of a difference and of a product of features;
 * - speed: MuxFlow's predictor, the part of its speed that an offline job keeps beside a service, 1
 *   / (1 + pressure x sensitivity) under the share that is left, with measurement noise;
 * - holes: uniform, half of the pairs infeasible;
 * - wide: uniform, 1.2 times as many columns.
 *
 * usage: match SIZE [FAMILY [RUNS]]
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/time.h"
#include "match/match.h"
#include "row.h"

#define RUNS_MAX 101

static uint64_t state;

static float unit(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (float)(state >> 40) * 0x1p-24f;
}

static float *features[4];

static void make_features(uint32_t n)
{
	for (int f = 0; f < 4; f++) {
		free(features[f]);
		features[f] = malloc(n * sizeof(float));
		if (!features[f])
			exit(1);
		for (uint32_t i = 0; i < n; i++)
			features[f][i] = unit();
	}
}

static float sigmoid(float x)
{
	return 1 / (1 + expf(-x));
}

static float kind_weight(uint32_t i, uint32_t j)
{
	uint32_t hash = ((i * 37 % 61) * 64 + j * 53 % 47 + 1) * 2654435761u;

	return 0.1f + 0.9f * (float)(hash >> 16) / 65536;
}

static float weight(const char *family, uint32_t i, uint32_t j)
{
	float a = features[0][i], b = features[1][j], c = features[2][i], d = features[3][j];

	switch (family[0]) {
	case 'u':
	case 'w': return unit();
	case 'k': return kind_weight(i, j);
	case 'n': return kind_weight(i, j) * (1 + 1e-3f * unit());
	case 'p': return a * b;
	case 's':
		if (!strcmp(family, "sigmoid"))
			return sigmoid(4 * (a - b) + 3 * (c - 0.5f) * (d - 0.5f));
		return (1 - 0.7f * a) / (1 + 1.5f * b * c + 0.3f * d) * (1 + 0.01f * unit());
	default: return unit() < 0.5f ? 0 : unit();
	}
}

static void fill(const char *family, float *weights, uint32_t rows, uint32_t columns)
{
	for (uint32_t i = 0; i < rows; i++)
		for (uint32_t j = 0; j < columns; j++)
			weights[(size_t)i * columns + j] = weight(family, i, j);
}

/* The bound again, from scratch, is not possible without the prices; the weight is. */
static double weigh(const float *weights, uint32_t rows, uint32_t columns, const uint32_t *column)
{
	char *taken = calloc(columns, 1);
	double sum = 0;

	for (uint32_t i = 0; taken && i < rows; i++) {
		if (column[i] == TD_MATCH_NONE)
			continue;
		if (taken[column[i]]++)
			abort();
		sum += weights[(size_t)i * columns + column[i]];
	}
	free(taken);
	return sum;
}

static uint64_t cpu_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * TD_NS_PER_S + (uint64_t)t.tv_nsec;
}

static double ms_since(uint64_t start_ns)
{
	return (double)(cpu_now_ns() - start_ns) * 1e-6;
}

static void report(const char *what, const char *family, uint32_t n, double *ms, size_t runs)
{
	char figure[80];

	snprintf(figure, sizeof(figure), "%s %s %u", what, family, n);
	bench_row(figure, "ms", ms, runs);
}

static void say(const struct td_match_result *r, double weight_found, int outcome)
{
	fprintf(stderr,
		"#   outcome %d gap %.2e (weight off by %.1e), kinds %u x %u, levels %u, phases "
		"%u, bids %llu, scans %llu, reached %llu\n",
		outcome, 1 - r->weight / r->bound, fabs(weight_found / r->weight - 1), r->row_kinds,
		r->column_kinds, r->levels, r->phases, (unsigned long long)r->bids,
		(unsigned long long)r->scans, (unsigned long long)r->searched);
}

static void measure(const char *family, uint32_t n, size_t runs)
{
	uint32_t rows = n, columns = family[0] == 'w' ? n + n / 5 : n;
	uint32_t most = columns, *column = malloc(rows * sizeof(*column)),
		 *changed = malloc(rows * sizeof(*changed));
	size_t bytes = td_match_bytes(rows, columns, most);
	float *weights = aligned_alloc(64, ((size_t)rows * columns * 4 + 63) & ~(size_t)63);
	void *memory = aligned_alloc(64, bytes);
	double solve[RUNS_MAX], again[RUNS_MAX];
	struct td_match_problem problem = {weights, columns, rows, columns, NULL, NULL};
	struct td_match_result result;
	struct td_match *match;

	if (!column || !changed || !weights || !memory)
		exit(1);
	memset(memory, 0, bytes);
	fprintf(stderr, "# %s %u x %u, %.1f MB of weights, %.1f MB of memory\n", family, rows,
		columns, (double)rows * columns * 4e-6, (double)bytes * 1e-6);
	for (size_t run = 0; run < runs; run++) {
		uint64_t start_ns;
		int r;

		state = 88172645463325252ull + run;
		make_features(columns);
		fill(family, weights, rows, columns);
		start_ns = cpu_now_ns();
		r = td_match_solve(
			&problem, &td_match_default, memory, bytes, column, &result, &match);
		solve[run] = ms_since(start_ns);
		if (!run)
			say(&result, weigh(weights, rows, columns, column), r);
		for (uint32_t k = 0; k < (rows + 99) / 100; k++) {
			uint32_t i = k * 97 % rows;

			changed[k] = i;
			features[0][i] = unit();
			features[2][i] = unit();
			for (uint32_t j = 0; j < columns; j++)
				weights[(size_t)i * columns + j] = weight(family, i, j);
		}
		start_ns = cpu_now_ns();
		r = td_match_again(match, changed, (rows + 99) / 100, column, &result);
		again[run] = ms_since(start_ns);
		if (!run)
			say(&result, weigh(weights, rows, columns, column), r);
	}
	report("match", family, n, solve, runs);
	report("re-match 1 %", family, n, again, runs);
	fflush(stdout);
	free(column);
	free(changed);
	free(weights);
	free(memory);
}

int main(int argc, char **argv)
{
	static const char *const families[] = {
		"uniform", "kinds", "near", "product", "sigmoid", "speed", "holes", "wide"};
	long n = argc > 1 ? atol(argv[1]) : 0, runs = argc > 3 ? atol(argv[3]) : 5;

	if (n < 1 || n > 30000 || runs < 1 || runs > RUNS_MAX) {
		fputs("usage: match SIZE [FAMILY [RUNS]]\n", stderr);
		return 2;
	}
	for (size_t f = 0; f < sizeof(families) / sizeof(families[0]); f++)
		if (argc < 3 || !strcmp(argv[2], "all") || !strcmp(argv[2], families[f]))
			measure(families[f], (uint32_t)n, (size_t)runs);
	return 0;
}
