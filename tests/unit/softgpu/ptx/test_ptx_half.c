/*
 * f16 and bf16 as nvcc uses them, against a rounding of its own: the nearest of all the values that
 * there are, in 113 bits.
 */
#include "unit/softgpu/ptx/ptx_bench.h"

#include <math.h>

typedef __float128 exact;

enum kind { F16, BF16 };

/* The value of a positive pattern. */
static exact value_of(enum kind kind, unsigned bits)
{
	unsigned mantissa = kind == F16 ? 10 : 7, part = bits & ((1u << mantissa) - 1);
	int exponent = (int)(bits >> mantissa), bias = kind == F16 ? 15 : 127;

	if (!exponent)
		return (exact)ldexp(part, 1 - bias - (int)mantissa);
	return (exact)ldexp(part + (1u << mantissa), exponent - bias - (int)mantissa);
}

static exact signed_value(enum kind kind, uint16_t bits)
{
	exact v = value_of(kind, bits & 0x7fff);

	return bits & 0x8000 ? -v : v;
}

static unsigned infinity_of(enum kind kind)
{
	return kind == F16 ? 0x7c00 : 0x7f80;
}

/* how: 0 to nearest, ties to even; 1 toward zero; 2 down; 3 up. */
static uint16_t rounded(enum kind kind, exact v, bool negative_zero, int how)
{
	bool is_negative = v < 0 || (negative_zero && !(v > 0));
	unsigned low = 0, high = infinity_of(kind);
	exact a = v < 0 ? -v : v, below, above;
	uint16_t sign = is_negative ? 0x8000 : 0;

	while (high - low > 1) {
		unsigned middle = (low + high) / 2;

		if (value_of(kind, middle) <= a)
			low = middle;
		else
			high = middle;
	}
	below = a - value_of(kind, low);
	above = value_of(kind, high) - a;
	if (!(below > 0))
		return (uint16_t)(sign | low);
	if (how == 0)
		high = below > above || (!(below < above) && low & 1) ? high : low;
	else
		high = how == (is_negative ? 2 : 3) ? high : low;
	return (uint16_t)(sign | high);
}

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

/* Finite, of any sign; every fourth of an extreme exponent. */
static uint16_t random_half(enum kind kind, uint32_t *state)
{
	uint32_t v = next_random(state);
	unsigned middle = kind == F16 ? 15u << 10 : 127u << 7;
	unsigned bits = v & 3 ? middle + (v >> 2 & 0x7ff) - 0x400 : v >> 2 & 0x7fff;

	return (uint16_t)((bits < infinity_of(kind) ? bits : middle) | (v >> 3 & 0x8000));
}

static bool is_zero_negative(uint16_t a, uint16_t b)
{
	return a & b & 0x8000;
}

static void check_ops(enum kind kind, const uint16_t *got, uint16_t a, uint16_t b)
{
	exact x = signed_value(kind, a), y = signed_value(kind, b), saturated;
	bool both = is_zero_negative(a, b), product = (a ^ b) & 0x8000;

	CHECK_EQ(got[0], rounded(kind, x + y, both, 0));
	CHECK_EQ(got[1], rounded(kind, x - y, is_zero_negative(a, b ^ 0x8000), 0));
	CHECK_EQ(got[2], rounded(kind, x * y, product, 0));
	CHECK_EQ(got[3], rounded(kind, x * y + x, product && a & 0x8000, 0));
	CHECK(signed_value(kind, got[4]) == (x < y ? x : y));
	CHECK(signed_value(kind, got[5]) == (x < y ? y : x));
	CHECK_EQ(got[6], a | 0x8000);
	saturated = x * y + y;
	if (kind == F16)
		saturated = saturated > 1 ? 1 : saturated;
	saturated = saturated < 0 ? 0 : saturated;
	if (x < y)
		CHECK_EQ(got[7], a);
	else
		CHECK(signed_value(kind, got[7]) ==
			signed_value(kind, rounded(kind, saturated, false, 0)));
}

static void run_ops(enum kind kind, const char *name)
{
	struct bench b = {0};
	uint64_t params[3];
	uint32_t state = 7;

	bench_load_file(&b, "half.ptx");
	for (int n = 0; n < 3; n++)
		params[n] = bench_alloc(&b, 2 * 256 * 8);
	for (int n = 0; n < 256; n++) {
		((uint16_t *)bench_host(&b, params[0]))[n] = random_half(kind, &state);
		((uint16_t *)bench_host(&b, params[1]))[n] = random_half(kind, &state);
	}
	bench_grid(&b, 1, 256);
	CHECK_EQ(bench_run(&b, name, params), 0);
	for (int n = 0; n < 256; n++)
		check_ops(kind, (uint16_t *)bench_host(&b, params[2]) + 8 * n,
			((uint16_t *)bench_host(&b, params[0]))[n],
			((uint16_t *)bench_host(&b, params[1]))[n]);
	bench_deinit(&b);
}

TEST(f16_arithmetic_rounds_once)
{
	run_ops(F16, "half_ops");
}

TEST(bf16_arithmetic_rounds_once)
{
	run_ops(BF16, "bf16_ops");
}

/* 1.5 (1 + 2^-7) lies halfway between two numbers; 2^-126 more or less decides. */
TEST(a_tie_is_broken_by_what_a_double_cannot_hold)
{
	static const char text[] =
		".version 8.0\n.target sm_90\n.visible .entry f(.param .u64 p) {\n"
		".reg .b16 %h<9>; .reg .b64 %rd<3>; ld.param.u64 %rd1, [p];\n"
		"mov.b16 %h1, 0x3fc0; mov.b16 %h2, 0x3f81; mov.b16 %h3, 0x0080; mov.b16 %h4, "
		"0x8080;\n"
		"fma.rn.bf16 %h5, %h1, %h2, %h3; fma.rn.bf16 %h6, %h1, %h2, %h4;\n"
		"mul.rn.bf16 %h7, %h1, %h2; st.global.b16 [%rd1], %h5;\n"
		"st.global.b16 [%rd1+2], %h6; st.global.b16 [%rd1+4], %h7; ret; }\n";
	struct bench b = {0};
	uint16_t *got;
	uint64_t p;

	bench_load(&b, text, sizeof(text));
	p = bench_alloc(&b, 16);
	got = bench_host(&b, p);
	bench_grid(&b, 1, 1);
	CHECK_EQ(bench_run(&b, "f", &p), 0);
	CHECK_EQ(got[0], 0x3fc2);
	CHECK_EQ(got[1], 0x3fc1);
	CHECK_EQ(got[2], 0x3fc2);
	bench_deinit(&b);
}

TEST(pairs_work_on_both_halves)
{
	struct bench b = {0};
	uint64_t params[4];
	uint32_t state = 99;

	bench_load_file(&b, "half.ptx");
	for (int n = 0; n < 4; n++)
		params[n] = bench_alloc(&b, 64 * 4 * 8);
	for (int n = 0; n < 128; n++) {
		((uint16_t *)bench_host(&b, params[0]))[n] = random_half(F16, &state);
		((uint16_t *)bench_host(&b, params[1]))[n] = random_half(F16, &state);
	}
	((uint16_t *)bench_host(&b, params[0]))[5] = 0x7e00; /* not a number */
	bench_grid(&b, 1, 64);
	CHECK_EQ(bench_run(&b, "half2_ops", params), 0);
	for (int n = 0; n < 128; n++) {
		const uint16_t *x = bench_host(&b, params[0]), *y = bench_host(&b, params[1]);
		const uint16_t *got = (uint16_t *)bench_host(&b, params[2]) + n / 2 * 12 + (n & 1);
		exact v = signed_value(F16, x[n]), w = signed_value(F16, y[n]);
		exact crossed = signed_value(F16, y[n ^ 1]);

		if (n == 5) {
			CHECK_EQ(got[0], 0x7fff);
			CHECK_EQ(got[4], y[n]);
			CHECK_EQ(got[10], 0);
			continue;
		}
		CHECK_EQ(got[0], rounded(F16, v + w, is_zero_negative(x[n], y[n]), 0));
		CHECK_EQ(got[2], rounded(F16, v * crossed, (x[n] ^ y[n ^ 1]) & 0x8000, 0));
		CHECK(signed_value(F16, got[4]) == (v < w ? v : w));
		CHECK(signed_value(F16, got[6]) == (v < w ? w : v));
		CHECK_EQ(got[8], x[n] | 0x8000);
		CHECK_EQ(got[10], v < w ? 0x3c00 : 0);
	}
	for (int n = 0; n < 64; n++) {
		const uint16_t *x = bench_host(&b, params[0]), *y = bench_host(&b, params[1]);
		const unsigned *masks = (unsigned *)bench_host(&b, params[3]) + 3 * n;
		exact v[2], w[2];

		if (n == 2)
			continue;
		for (int k = 0; k < 2; k++) {
			v[k] = signed_value(F16, x[2 * n + k]);
			w[k] = signed_value(F16, y[2 * n + k]);
		}
		CHECK_EQ(masks[0], (v[0] >= w[0] ? 0xffffu : 0) | (v[1] >= w[1] ? 0xffff0000u : 0));
		CHECK_EQ(masks[1], (unsigned)(v[0] == w[0] && v[1] == w[1]) |
					   (unsigned)(v[0] < w[0] && v[1] < w[1]) << 1);
		CHECK_EQ(masks[2], 0);
	}
	bench_deinit(&b);
}

TEST(conversions_round_as_they_say)
{
	static const float odd[] = {0, -0.0f, 65504, 65519.996f, 65520, -1e30f, 6e-8f, 3e-8f,
		2.9e-8f, 1e-40f, 2049, 2051, 0.1f, -0.1f, INFINITY, -INFINITY};
	struct bench b = {0};
	uint64_t params[5];
	float *x;
	int *n;

	bench_load_file(&b, "half.ptx");
	for (int k = 0; k < 5; k++)
		params[k] = bench_alloc(&b, 16 * 12 * 8);
	x = bench_host(&b, params[0]);
	n = bench_host(&b, params[1]);
	for (int k = 0; k < 16; k++) {
		x[k] = odd[k];
		n[k] = k * k * k * 37 - 9000;
	}
	bench_grid(&b, 1, 16);
	CHECK_EQ(bench_run(&b, "half_convert", params), 0);
	for (int k = 0; k < 16; k++) {
		const uint16_t *got = (uint16_t *)bench_host(&b, params[2]) + 12 * k;
		const float *wide = (float *)bench_host(&b, params[3]) + 2 * k;
		const long long *whole = (long long *)bench_host(&b, params[4]) + 2 * k;
		exact v = (exact)x[k];
		bool minus = signbit(x[k]);

		if (isinf(x[k])) {
			CHECK_EQ(got[0], minus ? 0xfc00 : 0x7c00);
			CHECK_EQ(got[1], minus ? 0xfc00 : 0x7c00);
			CHECK(isinf(wide[0]) && isinf(wide[1]));
			continue;
		}
		for (int how = 0; how < 4; how++)
			CHECK_EQ(got[how], rounded(F16, v, minus, how));
		CHECK_EQ(got[4], rounded(BF16, v, minus, 0));
		CHECK_EQ(got[5], rounded(BF16, v, minus, 1));
		CHECK_EQ(got[6], rounded(F16, (exact)n[k], false, 0));
		CHECK_EQ(got[7], rounded(F16, (exact)((double)x[k] * 1.0000001), minus, 0));
		CHECK_EQ(got[10], rounded(F16, -v, !minus, 0));
		CHECK_EQ(got[11], rounded(BF16, -v, !minus, 0));
		if (got[0] == (minus ? 0xfc00 : 0x7c00))
			continue;
		CHECK((exact)wide[0] == signed_value(F16, got[0]));
		CHECK((exact)wide[1] == signed_value(BF16, got[4]));
		CHECK((exact)floor((double)wide[0]) == signed_value(F16, got[8]));
		CHECK((exact)rint((double)wide[0]) == signed_value(F16, got[9]));
		CHECK_EQ(whole[0], (long long)wide[0]);
		CHECK_EQ(whole[1], (long long)floor((double)wide[0]));
	}
	bench_deinit(&b);
}

static bool is_near(double got, double want, double tolerance)
{
	return fabs(got - want) <= tolerance * (fabs(want) + 1e-3);
}

TEST(functions_of_halves)
{
	struct bench b = {0};
	uint64_t params[2];

	bench_load_file(&b, "half.ptx");
	params[0] = bench_alloc(&b, 128);
	params[1] = bench_alloc(&b, 32 * 8 * 4);
	for (int n = 0; n < 32; n++)
		((float *)bench_host(&b, params[0]))[n] = (float)(n - 16) / 4 + 0.125f;
	CHECK_EQ(bench_run(&b, "half_functions", params), 0);
	for (int n = 0; n < 32; n++) {
		double x = (double)(n - 16) / 4 + 0.125;
		const float *y = (float *)bench_host(&b, params[1]) + 8 * n;

		CHECK(is_near(y[0], exp2(x), 1e-3));
		CHECK(is_near(y[1], sqrt(fabs(x)), 1e-3));
		CHECK(is_near(y[2], x / 3, 1e-3));
		CHECK(is_near(y[3], tanh(x), 1e-3));
		CHECK(is_near(y[4], exp2(x), 8e-3));
		CHECK(is_near(y[5], tanh(x), 8e-3));
		CHECK(is_near(y[6], 1 / x, 1e-3));
		CHECK(is_near(y[7], log2(fabs(x)), 8e-3));
	}
	bench_deinit(&b);
}

TEST(dot_products_and_axpy)
{
	struct bench b = {0};

	bench_load_file(&b, "half.ptx");
	struct {
		uint64_t x, y, out;
		int n;
	} dot = {bench_alloc(&b, 4096), bench_alloc(&b, 4096), bench_alloc(&b, 128), 256};
	struct {
		float k;
		uint64_t x, y;
		int n;
	} axpy = {1.5f, dot.x, bench_alloc(&b, 512), 100};
	uint16_t *x = bench_host(&b, dot.x), *y = bench_host(&b, dot.y);
	float *out = bench_host(&b, dot.out), total = 0;
	uint16_t *z = bench_host(&b, axpy.y);

	for (int n = 0; n < 512; n++) {
		x[n] = rounded(F16, n % 5, false, 0);
		y[n] = rounded(F16, n % 3, false, 0);
	}
	CHECK_EQ(bench_run(&b, "half2_dot", &dot), 0);
	for (int n = 0; n < 32; n++)
		total += out[n];
	for (int n = 0; n < 512; n++)
		total -= (float)(n % 5 * (n % 3));
	CHECK(total == 0);
	for (int n = 0; n < 100; n++) {
		x[n] = rounded(BF16, n, false, 0);
		z[n] = rounded(BF16, 1000 - n, false, 0);
	}
	bench_grid(&b, 2, 64);
	CHECK_EQ(bench_run(&b, "bf16_axpy", &axpy), 0);
	for (int n = 0; n < 100; n++)
		CHECK_EQ(z[n], rounded(BF16,
				       (exact)1.5 * n + signed_value(BF16,
								rounded(BF16, 1000 - n, false, 0)),
				       false, 0));
	CHECK_EQ(z[100], 0);
	bench_deinit(&b);
}

TEST(pairs_of_bf16)
{
	struct bench b = {0};
	uint64_t params[3];
	uint32_t state = 5;

	bench_load_file(&b, "half.ptx");
	for (int n = 0; n < 3; n++)
		params[n] = bench_alloc(&b, 32 * 5 * 4);
	for (int n = 0; n < 64; n++) {
		((uint16_t *)bench_host(&b, params[0]))[n] = random_half(BF16, &state);
		((uint16_t *)bench_host(&b, params[1]))[n] = random_half(BF16, &state);
	}
	CHECK_EQ(bench_run(&b, "bf162_ops", params), 0);
	for (int n = 0; n < 64; n++) {
		const uint16_t *x = bench_host(&b, params[0]), *y = bench_host(&b, params[1]);
		const uint16_t *got = (uint16_t *)bench_host(&b, params[2]) + n / 2 * 10 + (n & 1);
		exact v = signed_value(BF16, x[n]), w = signed_value(BF16, y[n]);
		bool product = (x[n] ^ y[n]) & 0x8000;

		CHECK_EQ(got[0], rounded(BF16, v + w, is_zero_negative(x[n], y[n]), 0));
		CHECK_EQ(got[2], rounded(BF16, v * w + v, product && x[n] & 0x8000, 0));
		CHECK(signed_value(BF16, got[4]) == (v < w ? v : w));
		CHECK_EQ(got[6], x[n] | 0x8000);
		CHECK_EQ(got[8], v >= w ? 0x3f80 : 0);
	}
	bench_deinit(&b);
}

TEST(atomic_sums_of_halves)
{
	struct bench b = {0};
	uint64_t params[4];

	bench_load_file(&b, "half.ptx");
	for (int n = 0; n < 4; n++)
		params[n] = bench_alloc(&b, 16);
	bench_grid(&b, 1, 64);
	CHECK_EQ(bench_run(&b, "half_atomics", params), 0);
	CHECK_EQ(*(uint32_t *)bench_host(&b, params[0]),
		rounded(F16, 96, false, 0) | (uint32_t)rounded(F16, 64, false, 0) << 16);
	CHECK_EQ(*(uint32_t *)bench_host(&b, params[1]),
		rounded(BF16, 64, false, 0) | (uint32_t)rounded(BF16, 96, false, 0) << 16);
	CHECK_EQ(*(uint16_t *)bench_host(&b, params[2]), rounded(F16, 96, false, 0));
	CHECK_EQ(*(uint16_t *)bench_host(&b, params[3]), rounded(BF16, 64, false, 0));
	bench_deinit(&b);
}
