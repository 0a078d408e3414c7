/* CUDA's mathematical functions, which are PTX of nvcc's own library, against the C library's. */
#include "unit/softgpu/ptx/ptx_bench.h"

#include <math.h>

#include "ptx/image/fatbin.h"

#define POINTS 64

/* In the order of tests/data/ptx/images/math.cu. */
#define UNARY(F)                                                                                   \
	F(acos)                                                                                    \
	F(acosh)                                                                                   \
	F(asin)                                                                                    \
	F(asinh)                                                                                   \
	F(atan)                                                                                    \
	F(atanh)                                                                                   \
	F(cbrt)                                                                                    \
	F(ceil)                                                                                    \
	F(cos)                                                                                     \
	F(cosh)                                                                                    \
	F(erf)                                                                                     \
	F(erfc)                                                                                    \
	F(exp)                                                                                     \
	F(exp10)                                                                                   \
	F(exp2)                                                                                    \
	F(expm1)                                                                                   \
	F(fabs)                                                                                    \
	F(floor)                                                                                   \
	F(j0)                                                                                      \
	F(j1)                                                                                      \
	F(lgamma)                                                                                  \
	F(log)                                                                                     \
	F(log10)                                                                                   \
	F(log1p)                                                                                   \
	F(log2)                                                                                    \
	F(logb)                                                                                    \
	F(nearbyint)                                                                               \
	F(rint)                                                                                    \
	F(round)                                                                                   \
	F(sin)                                                                                     \
	F(sinh) F(sqrt) F(tan) F(tanh) F(tgamma) F(trunc) F(y0) F(y1)
#define BINARY(F)                                                                                  \
	F(atan2)                                                                                   \
	F(copysign)                                                                                \
	F(fdim)                                                                                    \
	F(fmax) F(fmin) F(fmod) F(hypot) F(nextafter) F(pow) F(remainder)

#define DOUBLE_1(name) {#name, name, NULL, NULL, NULL},
#define DOUBLE_2(name) {#name, NULL, name, NULL, NULL},
#define SINGLE_1(name) {#name "f", NULL, NULL, name##f, NULL},
#define SINGLE_2(name) {#name "f", NULL, NULL, NULL, name##f},

struct function {
	const char *name;
	double (*one)(double);
	double (*two)(double, double);
	float (*single_one)(float);
	float (*single_two)(float, float);
};

static const struct function doubles[] = {UNARY(DOUBLE_1) BINARY(DOUBLE_2)};
static const struct function singles[] = {UNARY(SINGLE_1) BINARY(SINGLE_2)};

#define COUNT (sizeof(doubles) / sizeof(doubles[0]))

static double call(const struct function *f, double x, double y)
{
	if (f->one)
		return f->one(x);
	if (f->two)
		return f->two(x, y);
	return f->single_one ? f->single_one((float)x) : f->single_two((float)x, (float)y);
}

/* Bessel functions are only good to an absolute error where they oscillate. */
static bool is_exempt(const struct function *f, double x)
{
	return (f->name[0] == 'j' || f->name[0] == 'y') && fabs(x) > 100;
}

static void check(const struct function *f, double x, double y, double got, double tolerance)
{
	double want = call(f, x, y);

	if ((isnan(want) && isnan(got)) || is_exempt(f, x) ||
		fabs(got - want) <= tolerance * fabs(want) || (got >= want && got <= want))
		return;
	test_fail(
		__FILE__, __LINE__, "%s(%g, %g) = %.17g, expected %.17g", f->name, x, y, got, want);
}

/* Around zero, of every magnitude, and what is special. */
static void choose(double *x, double *y)
{
	static const double special[] = {0, -0.0, INFINITY, -INFINITY, NAN, 1, -1, 5e-310};

	for (int n = 0; n < POINTS; n++) {
		if (n < 40)
			x[n] = (n - 20) * 0.37 + 0.01;
		else
			x[n] = n < 56 ? exp((n - 48) * 9.0) * (n & 1 ? -1 : 1) : special[n - 56];
		y[n] = (n * 7 % 23 - 11) * 0.61;
	}
}

static void open_bench(struct bench *b)
{
	static uint8_t bytes[1 << 18];
	struct sg_fatbin_ptx ptx;
	char path[512];
	size_t len;
	FILE *f;

	snprintf(path, sizeof(path), "%s/images/math.fatbin", PTX_DATA);
	f = fopen(path, "rb");
	CHECK(f);
	len = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	switch (sg_fatbin_find_ptx(bytes, len, 75, &ptx)) {
	case 0: break;
	case SG_FATBIN_COMPRESSED: SKIP("built without libzstd");
	default: test_fail(__FILE__, __LINE__, "not a fat binary with PTX");
	}
	*b = (struct bench){0};
	bench_load(b, ptx.text, ptx.len);
	sg_fatbin_ptx_deinit(&ptx);
	bench_grid(b, 1, POINTS);
}

TEST(functions_of_doubles)
{
	double x[POINTS], y[POINTS], *out;
	uint64_t params[3];
	struct bench b;

	open_bench(&b);
	choose(x, y);
	params[0] = bench_alloc(&b, sizeof(x));
	params[1] = bench_alloc(&b, sizeof(y));
	params[2] = bench_alloc(&b, COUNT * sizeof(x));
	memcpy(bench_host(&b, params[0]), x, sizeof(x));
	memcpy(bench_host(&b, params[1]), y, sizeof(y));
	out = bench_host(&b, params[2]);
	CHECK_EQ(bench_run(&b, "doubles", params), 0);
	for (size_t k = 0; k < COUNT; k++) {
		for (int n = 0; n < POINTS; n++)
			check(&doubles[k], x[n], y[n], out[k * POINTS + n], 1e-14);
	}
	bench_deinit(&b);
}

TEST(functions_of_singles)
{
	double x[POINTS], y[POINTS];
	uint64_t params[3];
	float *in[2], *out;
	struct bench b;

	open_bench(&b);
	choose(x, y);
	for (int k = 0; k < 2; k++) {
		params[k] = bench_alloc(&b, POINTS * 4);
		in[k] = bench_host(&b, params[k]);
	}
	params[2] = bench_alloc(&b, COUNT * POINTS * 4);
	out = bench_host(&b, params[2]);
	for (int n = 0; n < POINTS; n++) {
		in[0][n] = (float)x[n];
		in[1][n] = (float)y[n];
	}
	CHECK_EQ(bench_run(&b, "floats", params), 0);
	for (size_t k = 0; k < COUNT; k++) {
		for (int n = 0; n < POINTS; n++)
			check(&singles[k], in[0][n], in[1][n], out[k * POINTS + n], 2e-6);
	}
	bench_deinit(&b);
}
