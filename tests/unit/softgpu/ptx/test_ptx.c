/* Kernels as nvcc makes them, against references on the CPU; tests/data/ptx has their source. */
#include "unit/softgpu/ptx/ptx_bench.h"

#include <math.h>

static const char *const files[] = {"kernels_sm75.ptx", "kernels_sm90.ptx"};

#define FOR_EACH_TARGET(var)                                                                       \
	for (size_t file_ = 0; file_ < 2; file_++)                                                 \
		for (struct bench var = {0}, *once_ = bench_load_file(&var, files[file_]); once_;  \
			bench_deinit(&var), once_ = NULL)

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

TEST(vector_add_adds_up_to_the_last_element)
{
	FOR_EACH_TARGET(b)
	{
		enum { N = 1000 };
		uint64_t x = bench_alloc(&b, 4 * N), y = bench_alloc(&b, 4 * N);
		uint64_t z = bench_alloc(&b, 4 * N);
		struct {
			uint64_t x, y, z;
			int n;
		} params = {x, y, z, N};
		float *xs = bench_host(&b, x), *ys = bench_host(&b, y), *zs = bench_host(&b, z);

		for (int n = 0; n < N; n++) {
			xs[n] = (float)n / 3;
			ys[n] = (float)n / 7;
		}
		bench_grid(&b, 4, 256);
		CHECK_EQ(bench_run(&b, "vector_add", &params), 0);
		for (int n = 0; n < N; n++)
			CHECK(zs[n] == xs[n] + ys[n]);
		CHECK_EQ(b.result.load_bytes, 8 * N);
		CHECK_EQ(b.result.store_bytes, 4 * N);
	}
}

TEST(saxpy_of_vectors_uses_fused_multiplication)
{
	FOR_EACH_TARGET(b)
	{
		enum { N = 512 };
		uint64_t x = bench_alloc(&b, 16 * N), y = bench_alloc(&b, 16 * N);
		struct {
			float k;
			uint64_t x, y;
			int n;
		} params = {0.3f, x, y, N};
		float *xs = bench_host(&b, x), *ys = bench_host(&b, y), want[4 * N];

		for (int n = 0; n < 4 * N; n++) {
			xs[n] = (float)n / 3;
			ys[n] = (float)n / 7;
			want[n] = fmaf(0.3f, xs[n], ys[n]);
		}
		bench_grid(&b, 2, 64);
		CHECK_EQ(bench_run(&b, "saxpy4", &params), 0);
		CHECK(!memcmp(ys, want, sizeof(want)));
	}
}

TEST(transpose_through_shared_memory)
{
	FOR_EACH_TARGET(b)
	{
		enum { N = 40 };
		uint64_t x = bench_alloc(&b, 4 * N * N), y = bench_alloc(&b, 4 * N * N);
		struct {
			uint64_t x, y;
			int n;
		} params = {x, y, N};
		int *xs = bench_host(&b, x), *ys = bench_host(&b, y);

		for (int n = 0; n < N * N; n++)
			xs[n] = n * 7;
		memcpy(b.launch.grid, (uint32_t[3]){3, 3, 1}, 12);
		memcpy(b.launch.block, (uint32_t[3]){16, 16, 1}, 12);
		CHECK_EQ(bench_run(&b, "transpose", &params), 0);
		for (int n = 0; n < N * N; n++)
			CHECK_EQ(ys[n % N * N + n / N], xs[n]);
	}
}

TEST(reductions_by_shared_memory_and_by_shuffles_agree)
{
	FOR_EACH_TARGET(b)
	{
		enum { N = 3000 };
		uint64_t x = bench_alloc(&b, 4 * N), y = bench_alloc(&b, 16);
		struct {
			uint64_t x, y;
			int n;
		} params = {x, y, N};
		int *xs = bench_host(&b, x), *sum = bench_host(&b, y), want = 0;

		for (int n = 0; n < N; n++)
			want += xs[n] = n * n % 1001 - 300;
		bench_grid(&b, 12, 256);
		b.launch.dynamic_shared_bytes = 1024;
		CHECK_EQ(bench_run(&b, "reduce_shared", &params), 0);
		CHECK_EQ(*sum, want);
		CHECK_EQ(b.result.atomics, 12);
		*sum = 0;
		b.launch.dynamic_shared_bytes = 0;
		CHECK_EQ(bench_run(&b, "reduce_warp", &params), 0);
		CHECK_EQ(*sum, want);
	}
}

TEST(tiled_matrices_multiply)
{
	FOR_EACH_TARGET(b)
	{
		enum { N = 48 };
		uint64_t x = bench_alloc(&b, 4 * N * N), y = bench_alloc(&b, 4 * N * N);
		uint64_t z = bench_alloc(&b, 4 * N * N);
		struct {
			uint64_t x, y, z;
			int n;
		} params = {x, y, z, N};
		float *xs = bench_host(&b, x), *ys = bench_host(&b, y), *zs = bench_host(&b, z);
		uint32_t seed = 1;

		for (int n = 0; n < N * N; n++) {
			xs[n] = (float)(next_random(&seed) % 100) / 10;
			ys[n] = (float)(next_random(&seed) % 100) / 10;
		}
		memcpy(b.launch.grid, (uint32_t[3]){3, 3, 1}, 12);
		memcpy(b.launch.block, (uint32_t[3]){16, 16, 1}, 12);
		CHECK_EQ(bench_run(&b, "matmul", &params), 0);
		for (int n = 0; n < N * N; n++) {
			float want = 0;

			for (int k = 0; k < N; k++)
				want = fmaf(xs[n / N * N + k], ys[k * N + n % N], want);
			CHECK(zs[n] == want);
		}
	}
}

TEST(scan_crosses_warps)
{
	FOR_EACH_TARGET(b)
	{
		uint64_t x = bench_alloc(&b, 2048), y = bench_alloc(&b, 2048);
		uint64_t params[] = {x, y};
		uint32_t *xs = bench_host(&b, x), *ys = bench_host(&b, y), sum = 0;

		for (unsigned n = 0; n < 512; n++)
			xs[n] = n * 3 + 1;
		bench_grid(&b, 2, 256);
		CHECK_EQ(bench_run(&b, "scan", params), 0);
		for (unsigned n = 0; n < 512; n++) {
			sum = n % 256 ? sum + xs[n] : xs[n];
			CHECK_EQ(ys[n], sum);
		}
	}
}

TEST(histogram_of_shared_and_global_atomics)
{
	FOR_EACH_TARGET(b)
	{
		enum { N = 10000 };
		uint64_t x = bench_alloc(&b, N), y = bench_alloc(&b, 1024);
		struct {
			uint64_t x, y;
			int n;
		} params = {x, y, N};
		uint8_t *xs = bench_host(&b, x);
		uint32_t *bins = bench_host(&b, y), want[256] = {0}, seed = 9;

		for (int n = 0; n < N; n++)
			want[xs[n] = (uint8_t)next_random(&seed)]++;
		bench_grid(&b, 4, 96);
		CHECK_EQ(bench_run(&b, "histogram", &params), 0);
		CHECK(!memcmp(bins, want, sizeof(want)));
	}
}

static uint32_t permute(uint32_t a, uint32_t c)
{
	uint8_t bytes[8];

	memcpy(bytes, &a, 4);
	memcpy(bytes + 4, &c, 4);
	return bytes[0] | (uint32_t)bytes[4] << 8 | (uint32_t)bytes[1] << 16 |
	       (uint32_t)bytes[5] << 24;
}

static uint32_t reversed(uint32_t v)
{
	uint32_t r = 0;

	for (int n = 0; n < 32; n++)
		r |= (v >> n & 1) << (31 - n);
	return r;
}

TEST(hashes_use_every_bit_operation)
{
	FOR_EACH_TARGET(b)
	{
		uint64_t y = bench_alloc(&b, 256);
		struct {
			uint64_t y;
			int rounds;
		} params = {y, 20};
		uint32_t *ys = bench_host(&b, y);

		bench_grid(&b, 2, 32);
		CHECK_EQ(bench_run(&b, "hash_mix", &params), 0);
		for (uint32_t n = 0; n < 64; n++) {
			uint32_t h = n * 0x9e3779b9u + 1;

			for (int k = 0; k < 20; k++) {
				h ^= h >> 16;
				h *= 0x85ebca6bu;
				h = (h << 13 | h >> 19) + reversed(h) +
				    (uint32_t)__builtin_popcount(h) +
				    (h ? (uint32_t)__builtin_clz(h) : 32);
				h ^= permute(h, n);
			}
			CHECK_EQ(ys[n], h);
		}
	}
}

TEST(monte_carlo_draws_what_the_cpu_draws)
{
	FOR_EACH_TARGET(b)
	{
		uint64_t y = bench_alloc(&b, 16), want = 0;
		struct {
			uint64_t y;
			int draws;
		} params = {y, 100};

		for (uint64_t t = 1; t <= 128; t++) {
			uint64_t s = t;

			for (int d = 0; d < 100; d++) {
				s = s * 6364136223846793005ull + 1442695040888963407ull;
				uint64_t u = s >> 48, v = s >> 32 & 0xffff;

				want += u * u + v * v < 1ull << 32;
			}
		}
		bench_grid(&b, 2, 64);
		CHECK_EQ(bench_run(&b, "monte_carlo", &params), 0);
		CHECK_EQ(*(uint64_t *)bench_host(&b, y), want);
	}
}

TEST(divergent_loops_end_each_at_its_own_time)
{
	FOR_EACH_TARGET(b)
	{
		uint64_t y = bench_alloc(&b, 512);
		uint32_t *ys = bench_host(&b, y);

		bench_grid(&b, 2, 64);
		CHECK_EQ(bench_run(&b, "collatz", &y), 0);
		for (uint64_t n = 1; n <= 128; n++) {
			uint32_t steps = 0;

			for (uint64_t v = n; v != 1; steps++)
				v = v & 1 ? 3 * v + 1 : v / 2;
			CHECK_EQ(ys[n - 1], steps);
		}
	}
}

static bool is_near(double got, double want, double tolerance)
{
	return fabs(got - want) <= tolerance * (fabs(want) + 1);
}

TEST(wide_integers_and_doubles)
{
	FOR_EACH_TARGET(b)
	{
		uint64_t params[] = {bench_alloc(&b, 256), bench_alloc(&b, 256),
			bench_alloc(&b, 1024), bench_alloc(&b, 1024)};
		int64_t *a = bench_host(&b, params[0]), *i = bench_host(&b, params[2]);
		double *x = bench_host(&b, params[1]), *y = bench_host(&b, params[3]);

		for (int n = 0; n < 32; n++) {
			a[n] = (n - 16) * 0x123456789abll * (n * n + 1);
			x[n] = (n - 15.5) * 3.7;
		}
		CHECK_EQ(bench_run(&b, "wide_math", params), 0);
		for (int n = 0; n < 32; n++, i += 4, y += 4) {
			int64_t p = a[n], q = a[(n + 1) & 31] | 1;
			double v = x[n];

			CHECK_EQ(i[0], p / q);
			CHECK_EQ(i[1], p % q);
			CHECK_EQ(i[2], (int64_t)((__int128)p * q >> 64));
			CHECK_EQ(i[3], (int64_t)v + (uint8_t)p - (int16_t)q + (p < q ? p : q));
			CHECK(y[0] == sqrt(fabs(v)) + 1.0 / v);
			CHECK(y[1] == fma(v, v, -x[(n + 1) & 31]));
			CHECK(y[2] == floor(v) + (double)p + (double)(float)v);
			CHECK(is_near(y[3], pow(fabs(v), 1.5) + exp(v * 0.01) + sin(v), 1e-13));
		}
	}
}

TEST(single_precision_functions_and_roundings)
{
	FOR_EACH_TARGET(b)
	{
		uint64_t params[] = {bench_alloc(&b, 128), bench_alloc(&b, 1024)};
		float *x = bench_host(&b, params[0]), *y = bench_host(&b, params[1]);

		for (int n = 0; n < 32; n++)
			x[n] = (float)(n - 16) * 0.77f + 0.11f;
		CHECK_EQ(bench_run(&b, "float_math", params), 0);
		for (int n = 0; n < 32; n++, y += 8) {
			float v = x[n], whole = truncf(v);

			CHECK(is_near(y[0], sinf(v) + cosf(v), 1e-6));
			CHECK(is_near(y[1], exp2f(v * 0.1f) + log2f(fabsf(v) + 1), 1e-6));
			CHECK(is_near(y[2], 1 / sqrtf(fabsf(v) + 1) + sqrtf(fabsf(v)), 1e-6));
			CHECK(is_near(
				y[3], fminf(fmaxf(v, 0), 1) + fminf(v, 2) + fmaxf(v, -2), 1e-6));
			CHECK(is_near(y[4], v + 1 / v, 1e-6));
			CHECK(is_near(y[5], whole + rintf(v) + truncf(fabsf(v)), 1e-6));
			CHECK(is_near(y[6], expf(v * 0.1f) * tanhf(v), 1e-5));
			CHECK(is_near(y[7], sinf(v * 100) + copysignf(3, v), 1e-5));
		}
	}
}

TEST(atomics_of_every_kind)
{
	FOR_EACH_TARGET(b)
	{
		uint64_t params[] = {bench_alloc(&b, 64), bench_alloc(&b, 64), bench_alloc(&b, 64),
			bench_alloc(&b, 64), bench_alloc(&b, 64)};
		int32_t *i = bench_host(&b, params[0]);
		uint32_t *u = bench_host(&b, params[1]);
		uint64_t *l = bench_host(&b, params[2]);

		u[0] = ~0u;
		bench_grid(&b, 1, 64);
		CHECK_EQ(bench_run(&b, "atomics", params), 0);
		CHECK_EQ(i[0], 63 * 32);
		CHECK_EQ(i[1], -63);
		CHECK_EQ(i[2], 63);
		CHECK_EQ(i[3], 7);
		CHECK_EQ(i[4], 5);
		CHECK_EQ(u[0], 0);
		CHECK_EQ(u[1], ~0u);
		CHECK_EQ(u[2], 0);
		CHECK_EQ(u[3], 64 % 10);
		CHECK_EQ(u[4], 6);
		CHECK_EQ(l[0], 64ull << 33);
		CHECK_EQ(l[1], 63ull << 40);
		CHECK(*(float *)bench_host(&b, params[3]) == 32);
		CHECK(*(double *)bench_host(&b, params[4]) == 16);
	}
}

TEST(warp_operations)
{
	FOR_EACH_TARGET(b)
	{
		uint64_t y = bench_alloc(&b, 64 * 32);
		uint32_t *o = bench_host(&b, y);

		bench_grid(&b, 1, 64);
		CHECK_EQ(bench_run(&b, "warp_ops", &y), 0);
		for (uint32_t t = 0; t < 64; t++, o += 8) {
			uint32_t lane = t & 31;

			CHECK_EQ(o[0], 0x49249249);
			CHECK_EQ(o[1], 1);
			CHECK_EQ(o[2], lane < 3 ? t : t - 3);
			CHECK_EQ(o[3], t ^ 5);
			CHECK_EQ(o[4], (t & 32) + 9);
			CHECK_EQ(o[5], 0xfu << (lane & 28));
			CHECK_EQ(o[6], 2);
			CHECK_EQ(o[7], lane < 7 ? t + 1 : lane == 7 ? t : 0);
		}
	}
}

static int fibonacci(int n)
{
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

TEST(device_functions_recurse_and_pass_structs)
{
	FOR_EACH_TARGET(b)
	{
		struct {
			uint64_t y;
			struct {
				int64_t a;
				int b;
			} pair;
		} params = {bench_alloc(&b, 256), {5, 70}};
		int *y = bench_host(&b, params.y);

		CHECK_EQ(bench_run(&b, "calls", &params), 0);
		for (int t = 0; t < 32; t++) {
			int local[4] = {1, 2, 3, t}, *add = local + (t & 1);

			CHECK_EQ(y[2 * t], fibonacci(t & 15));
			CHECK_EQ(
				y[2 * t + 1], (70 + add[1]) * 1000 + t + add[0] + 5 + local[t & 3]);
		}
	}
}

TEST(variables_hold_initial_values_and_addresses)
{
	FOR_EACH_TARGET(b)
	{
		static const int table[] = {10, 20, 30}, weights[] = {1, -2, 3, -4};
		uint64_t y = bench_alloc(&b, 128);
		long at = sg_ptx_module_find_variable(b.module, "table");
		int *ys = bench_host(&b, y);

		CHECK_EQ(bench_run(&b, "variables", &y), 0);
		for (int t = 0; t < 32; t++)
			CHECK_EQ(ys[t], table[1 + (t & 1)] * weights[t & 3]);
		CHECK(at >= 0);
		CHECK_EQ(((int *)b.areas[at].host)[3], 77);
	}
}
