/*
 * The operations of CUDA's samples, as nvcc compiles them (tests/data/ptx/samples.cu), against the
 * CPU.
 */
#include "unit/softgpu/ptx/ptx_bench.h"

#include <math.h>

static void open_bench(struct bench *b)
{
	*b = (struct bench){0};
	bench_load_file(b, "samples.ptx");
}

TEST(asynchronous_copies_feed_a_matrix_product)
{
	enum { N = 64 };
	struct bench b;

	open_bench(&b);
	struct {
		uint64_t x, y, z;
		int n;
	} params = {bench_alloc(&b, 4 * N * N), bench_alloc(&b, 4 * N * N),
		bench_alloc(&b, 4 * N * N), N};
	float *x = bench_host(&b, params.x), *y = bench_host(&b, params.y),
	      *z = bench_host(&b, params.z);

	for (int n = 0; n < N * N; n++) {
		x[n] = (float)(n * 13 % 29) / 7;
		y[n] = (float)(n * 17 % 31) / 9;
	}
	memcpy(b.launch.grid, (uint32_t[3]){N / 16, N / 16, 1}, 12);
	memcpy(b.launch.block, (uint32_t[3]){16, 16, 1}, 12);
	CHECK_EQ(bench_run(&b, "matmul_async", &params), 0);
	for (int n = 0; n < N * N; n++) {
		float want = 0;

		for (int k = 0; k < N; k++)
			want = fmaf(x[n / N * N + k], y[k * N + n % N], want);
		CHECK(z[n] == want);
	}
	bench_deinit(&b);
}

TEST(asynchronous_copies_fill_up_with_zeros)
{
	struct bench b;

	open_bench(&b);
	struct {
		uint64_t in, out;
		int n;
	} params = {bench_alloc(&b, 16 * 40), bench_alloc(&b, 16 * 64), 40};
	int *in = bench_host(&b, params.in), *out = bench_host(&b, params.out);

	for (int n = 0; n < 160; n++)
		in[n] = n + 1;
	bench_grid(&b, 2, 32);
	b.launch.dynamic_shared_bytes = 512;
	CHECK_EQ(bench_run(&b, "copy_async", &params), 0);
	for (int n = 0; n < 256; n++) {
		int from = n / 128 * 128 + (31 - n / 4 % 32) * 4 + n % 4;

		CHECK_EQ(out[n], from < 160 ? from + 1 : 0);
	}
	bench_deinit(&b);
}

TEST(stencils_of_doubles)
{
	enum { N = 10 };
	struct bench b;

	open_bench(&b);
	struct {
		uint64_t in, out;
		int n;
	} params = {bench_alloc(&b, 8 * N * N * N), bench_alloc(&b, 8 * N * N * N), N};
	double *in = bench_host(&b, params.in), *out = bench_host(&b, params.out);

	for (int n = 0; n < N * N * N; n++)
		in[n] = n * 31 % 101 / 7.0;
	memcpy(b.launch.grid, (uint32_t[3]){2, 2, 1}, 12);
	memcpy(b.launch.block, (uint32_t[3]){8, 8, 1}, 12);
	CHECK_EQ(bench_run(&b, "stencil", &params), 0);
	for (int n = 0; n < N * N * N; n++) {
		int x = n % N, y = n / N % N, z = n / N / N;
		const double *p = in + n;
		double want = 0;

		if (x && y && z && x < N - 1 && y < N - 1 && z < N - 1)
			want = fma(p[0], 0.5,
				(p[-1] + p[1] + p[-N] + p[N] + p[-N * N] + p[N * N]) / 12.0);
		CHECK(out[n] == want);
	}
	bench_deinit(&b);
}

TEST(atomics_of_64_bits)
{
	struct bench b;
	uint64_t params[3], bits = 0, *u;
	double product = 1, *d;

	open_bench(&b);
	for (int n = 0; n < 3; n++)
		params[n] = bench_alloc(&b, 64);
	u = bench_host(&b, params[0]);
	d = bench_host(&b, params[2]);
	u[1] = ~0ull;
	d[0] = 1;
	for (int t = 0; t < 40; t++) {
		bits ^= 1ull << t;
		product *= 1.5;
	}
	bench_grid(&b, 1, 40);
	CHECK_EQ(bench_run(&b, "wide_atomics", params), 0);
	CHECK_EQ(u[0], 780ull << 32);
	CHECK_EQ(u[1], 5);
	CHECK_EQ(u[2], bits);
	CHECK_EQ(u[3], 99);
	CHECK_EQ(*(int64_t *)bench_host(&b, params[1]), 19);
	CHECK(d[0] == product);
	CHECK(d[1] == 10);
	bench_deinit(&b);
}

#ifndef ON_THE_DRIVER /* what the interpreter alone says */
static void append(void *arg, const char *text, size_t len)
{
	char *all = arg;

	CHECK(strlen(all) + len < 512);
	strncat(all, text, len);
}

TEST(kernels_print)
{
	char printed[512] = "";
	struct bench b;
	int n = 3;

	open_bench(&b);
	CHECK_EQ(bench_run(&b, "print", &n), 0);
	b.launch.output.arg = printed;
	b.launch.output.write = append;
	CHECK_EQ(bench_run(&b, "print", &n), 0);
	CHECK_STR(printed, "first 0 of  0.00% x123456789abc\nlane 1 of  1.50% x123456789abd\n"
			   "lane 2 of  3.00% x123456789abe\n");
	bench_deinit(&b);
}

/* The bytes of a format, its arguments, and what is printed. */
static void check_print(const char *format, const void *arguments, size_t len, const char *want)
{
	static const char text[] =
		".version 8.0\n.target sm_75\n.extern .func (.param .b32 r) vprintf(.param .b64 f, "
		".param .b64 a);\n"
		".visible .entry f(.param .u64 p, .param .u64 q, .param .u64 o) {\n"
		".reg .b64 %rd<4>; .reg .b32 %r1; ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; "
		"ld.param.u64 %rd3, [o];\n"
		"{ .param .b64 x; .param .b64 y; .param .b32 z; st.param.b64 [x], %rd1; "
		"st.param.b64 [y], %rd2;\n"
		"call.uni (z), vprintf, (x, y); ld.param.b32 %r1, [z]; }\n"
		"st.global.u32 [%rd3], %r1; ret; }\n";
	char printed[512] = "";
	struct bench b = {0};
	uint64_t params[3];

	bench_load(&b, text, sizeof(text));
	params[0] = bench_alloc(&b, 256);
	params[1] = bench_alloc(&b, 64);
	params[2] = bench_alloc(&b, 16);
	strcpy(bench_host(&b, params[0]), format);
	memcpy(bench_host(&b, params[1]), arguments, len);
	b.launch.output.arg = printed;
	b.launch.output.write = append;
	bench_grid(&b, 1, 1);
	CHECK_EQ(bench_run(&b, "f", params), 0);
	CHECK_STR(printed, want);
	CHECK_EQ(*(int *)bench_host(&b, params[2]), (int)strlen(want));
	bench_deinit(&b);
}

TEST(formats_are_cudas_and_no_others)
{
	struct {
		int i;
		unsigned u;
		double d;
		int64_t l;
	} mixed = {-7, 0xbeef, -2.5, -(1ll << 40)};

	check_print("%+5d|%#X|%.3e|%ld", &mixed, sizeof(mixed),
		"   -7|0XBEEF|-2.500e+00|-1099511627776");
	check_print("%hd %c %% %u", (int[]){0x1fff0, 'A', 3}, 12, "-16 A % 3");
	check_print("100%", "", 0, "100%");
	check_print("%n %d", (int[]){5}, 4, "%n 5");
	check_print("%*d", (int[]){5, 6}, 8, "%*d");
	check_print("%08.3f", (double[]){3.14159}, 8, "0003.142");
}
#endif

static int ackermann(int m, int n)
{
	return !m ? n + 1 : ackermann(m - 1, n ? ackermann(m, n - 1) : 1);
}

TEST(recursion_pointers_and_virtual_functions)
{
	uint64_t params[2];
	struct bench b;
	int *out, *kinds;
	float *areas;

	open_bench(&b);
	params[0] = bench_alloc(&b, 256);
	params[1] = bench_alloc(&b, 256);
	out = bench_host(&b, params[0]);
	kinds = bench_host(&b, params[1]);
	CHECK_EQ(bench_run(&b, "recurse", params), 0);
	for (int t = 0; t < 32; t++)
		CHECK_EQ(out[t], ackermann(2, t & 3));
	CHECK_EQ(bench_run(&b, "function_pointers", params), 0);
	for (int t = 0; t < 32; t++)
		CHECK_EQ(out[t], t % 3 == 0 ? t + 7 : t % 3 == 1 ? t - 7 : t * 7);
	for (int t = 0; t < 32; t++)
		kinds[t] = t & 1;
	areas = bench_host(&b, params[0]);
	CHECK_EQ(bench_run(&b, "virtual_calls", params), 0);
	for (int t = 0; t < 32; t++)
		CHECK(areas[t] == (float)(t & 1 ? (t + 2) * (t + 2) : 3 * (t + 1) * (t + 1)));
	bench_deinit(&b);
}

#ifndef ON_THE_DRIVER /* what the interpreter alone says */
TEST(a_call_of_what_is_no_function_ends_the_run)
{
	static const char text[] =
		".version 8.0\n.target sm_75\n.func g(.param .b32 a) { ret; }\n"
		".visible .entry f(.param .u64 p) { .reg .b64 %rd<3>; .param .b64 x; ld.param.u64 "
		"%rd1, [p];\n"
		"setp_done: mov.u64 %rd2, g; { t: .callprototype _ (.param .b64 _);\n"
		"call %rd1, (x), t; } ret; }\n";
	struct bench b = {0};
	uint64_t wild = 0x1234;

	bench_load(&b, text, sizeof(text));
	CHECK_EQ(bench_run(&b, "f", &wild), SG_PTX_INVALID_PC);
	CHECK_EQ(b.result.fault_line, 6);
	wild = (4ull << 56) + 16; /* g, but its argument is smaller */
	CHECK_EQ(bench_run(&b, "f", &wild), SG_PTX_INVALID_PC);
	bench_deinit(&b);
}
#endif

TEST(a_switch_is_a_table_of_jumps)
{
	static const char text[] =
		".version 8.0\n.target sm_75\n.visible .entry f(.param .u64 p) {\n"
		".reg .b64 %rd<4>; .reg .b32 %r<4>; ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x;\n"
		"mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2;\n"
		"T: .branchtargets A, B,\n A, C;\n brx.idx %r1, T;\n"
		"A: mov.u32 %r2, 10; bra E;\nB: mov.u32 %r2, 20; bra E;\nC: mov.u32 %r2, 30;\n"
		"E: st.global.u32 [%rd3], %r2; ret; }\n";
	struct bench b = {0};
	uint64_t p;
	int *at;

	bench_load(&b, text, sizeof(text));
	p = bench_alloc(&b, 64);
	at = bench_host(&b, p);
	bench_grid(&b, 1, 4);
	CHECK_EQ(bench_run(&b, "f", &p), 0);
	CHECK(at[0] == 10 && at[1] == 20 && at[2] == 10 && at[3] == 30);
#ifndef ON_THE_DRIVER
	bench_grid(&b, 1, 5);
	CHECK_EQ(bench_run(&b, "f", &p), SG_PTX_INVALID_PC);
#endif
	bench_deinit(&b);
}

TEST(switches_pick_one_of_many)
{
	uint64_t params[2];
	struct bench b;
	int *in, *out;

	open_bench(&b);
	params[0] = bench_alloc(&b, 128);
	params[1] = bench_alloc(&b, 256);
	in = bench_host(&b, params[0]);
	out = bench_host(&b, params[1]);
	for (int n = 0; n < 32; n++) {
		in[n] = n - 4;
		out[32 + n] = n * 1000 + 3;
	}
	CHECK_EQ(bench_run(&b, "jumps", params), 0);
	CHECK_EQ(out[3], -1);
	CHECK_EQ(out[4], 3);
	CHECK_EQ(out[5], 17 + 1003);
	CHECK_EQ(out[6], 2 ^ 2003);
	CHECK_EQ(out[7], 3 - 3003);
	CHECK_EQ(out[8], 4003 / 3);
	CHECK_EQ(out[9], 5003 << 2);
	CHECK_EQ(out[10], __builtin_popcount(6003));
	CHECK_EQ(out[11], __builtin_clz(7003));
	CHECK_EQ(out[12], -1);
	bench_deinit(&b);
}

TEST(constants_weigh_a_convolution)
{
	static const float weights[16] = {1, 2, 3, 4};
	struct bench b;

	open_bench(&b);
	struct {
		uint64_t in, out;
		int n;
	} params = {bench_alloc(&b, 1200), bench_alloc(&b, 1200), 300};
	float *in = bench_host(&b, params.in), *out = bench_host(&b, params.out);

	for (int n = 0; n < 300; n++)
		in[n] = (float)(n * 7 % 13);
	bench_grid(&b, 2, 256);
	CHECK_EQ(bench_run(&b, "convolve", &params), 0);
	for (int n = 0; n < 300; n++) {
		float want = 0;

		for (int k = 0; k < 16 && n + k < 300; k++)
			want = fmaf(weights[k], in[n + k], want);
		CHECK(out[n] == want);
	}
#ifndef ON_THE_DRIVER
	CHECK_EQ(b.launch.function->max_threads, 256);
#endif
	bench_deinit(&b);
}

static int part(int v, int n, int bits, bool is_signed)
{
	int p = v >> n * bits & ((1 << bits) - 1);

	return is_signed && p >> (bits - 1) ? p - (1 << bits) : p;
}

TEST(bytes_and_half_words_multiply)
{
	uint64_t params[3];
	struct bench b;
	int *x, *y, *out;

	open_bench(&b);
	for (int n = 0; n < 3; n++)
		params[n] = bench_alloc(&b, 32 * 24);
	x = bench_host(&b, params[0]);
	y = bench_host(&b, params[1]);
	out = bench_host(&b, params[2]);
	for (int n = 0; n < 32; n++) {
		x[n] = n * 0x01f3a795;
		y[n] = (int)((unsigned)n * 0x7b3d1c8fu);
	}
	CHECK_EQ(bench_run(&b, "dots", params), 0);
	for (int t = 0; t < 32; t++, out += 6) {
		int s = 5, u = 7, low = 1, high = 2;
		uint32_t sums = 0, differences = 0;

		for (int n = 0; n < 4; n++) {
			int p = part(x[t], n, 8, false), q = part(y[t], n, 8, false);

			s += part(x[t], n, 8, true) * part(y[t], n, 8, true);
			u += p * q;
			sums |= (uint32_t)((p + q) & 0xff) << 8 * n;
			differences |= (uint32_t)abs(p - q) << 8 * n;
		}
		for (int n = 0; n < 2; n++) {
			low += part(x[t], n, 16, true) * part(y[t], n, 8, true);
			high += part(x[t], n, 16, false) * part(y[t], n + 2, 8, false);
		}
		CHECK_EQ(out[0], s);
		CHECK_EQ(out[1], u);
		CHECK_EQ(out[2], low);
		CHECK_EQ(out[3], high);
		CHECK_EQ((uint32_t)out[4], sums);
		CHECK_EQ((uint32_t)out[5], differences);
	}
	bench_deinit(&b);
}

static uint32_t nth_set(uint32_t v, int n)
{
	for (uint32_t at = 0; at < 32; at++) {
		if (v >> at & 1 && !--n)
			return at;
	}
	return ~0u;
}

TEST(fields_of_bits)
{
	uint64_t params[2];
	struct bench b;
	uint32_t *in, *out;

	open_bench(&b);
	params[0] = bench_alloc(&b, 128);
	params[1] = bench_alloc(&b, 32 * 32);
	in = bench_host(&b, params[0]);
	out = bench_host(&b, params[1]);
	for (uint32_t n = 0; n < 32; n++)
		in[n] = n * 0x9e3779b9u;
	CHECK_EQ(bench_run(&b, "bit_fields", params), 0);
	for (uint32_t n = 0; n < 32; n++, out += 8) {
		uint32_t v = in[n], inverse = ~v;
		uint8_t bytes[8];

		memcpy(bytes, &v, 4);
		memcpy(bytes + 4, &inverse, 4);
		CHECK_EQ(out[0], v >> 5 & 0x1ff);
		CHECK_EQ(out[1], (uint32_t)((int32_t)(v << 5) >> 25));
		CHECK_EQ(out[2], (0xaaaaaaaau & ~0xfff00u) | (v & 0xfff) << 8);
		CHECK_EQ(out[3], (uint32_t)(0x1full << (v & 31)));
		CHECK_EQ(out[4], nth_set(v, 3));
		CHECK_EQ(out[5], (uint32_t)((int32_t)(v << 21) >> 21));
		CHECK_EQ(out[6], (inverse << 13) | v >> 19);
		CHECK_EQ(out[7], bytes[5] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[7] << 16 |
					 (uint32_t)bytes[3] << 24);
	}
	bench_deinit(&b);
}

TEST(messages_are_released_and_acquired)
{
	uint64_t params[2];
	struct bench b;
	int *data;

	open_bench(&b);
	params[0] = bench_alloc(&b, 64);
	params[1] = bench_alloc(&b, 128);
	data = bench_host(&b, params[1]);
	bench_grid(&b, 1, 256);
	CHECK_EQ(bench_run(&b, "messages", params), 0);
	for (int n = 0; n < 4; n++)
		CHECK_EQ(data[16 + n], 2 * (100 + n));
	bench_deinit(&b);
}

TEST(volatile_cells_and_hints)
{
	uint64_t params[4];
	struct bench b;
	int *in, sum = 0;
	float *x, *y;

	open_bench(&b);
	for (int n = 0; n < 4; n++)
		params[n] = bench_alloc(&b, 1024);
	in = bench_host(&b, params[0]);
	for (int n = 0; n < 64; n++)
		sum += in[n] = n * n;
	bench_grid(&b, 1, 64);
	CHECK_EQ(bench_run(&b, "volatile_sum", params), 0);
	CHECK_EQ(*(int *)bench_host(&b, params[1]), sum);
	x = bench_host(&b, params[0]);
	y = bench_host(&b, params[1]);
	for (int n = 0; n < 256; n++)
		x[n] = (float)n;
	for (int n = 0; n < 64; n++)
		((double *)bench_host(&b, params[2]))[n] = n / 2.0;
	bench_grid(&b, 1, 32);
	CHECK_EQ(bench_run(&b, "hints", params), 0);
	for (int n = 0; n < 128; n++) {
		CHECK(y[n] == x[n] + x[n + 128]);
		CHECK(y[128 + n] == x[n ^ 3]);
	}
	CHECK(!memcmp(bench_host(&b, params[2]), bench_host(&b, params[3]), 512));
	bench_deinit(&b);
}
