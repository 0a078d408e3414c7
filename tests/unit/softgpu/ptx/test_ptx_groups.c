/* Cooperative groups, warp intrinsics and CUB's collectives, against loops on the CPU. */
#include "unit/softgpu/ptx/ptx_bench.h"

#include <math.h>

static void fill(int *at, int n, unsigned seed, int modulus)
{
	for (int k = 0; k < n; k++) {
		seed = seed * 1664525 + 1013904223;
		at[k] = (int)(seed >> 8) % modulus;
	}
}

TEST(tiles_sum_and_scan)
{
	struct bench b = {0};
	uint64_t params[3];
	int *in, *eights, *total, sum = 0;
	float *x, *y;

	bench_load_file(&b, "groups.ptx");
	for (int n = 0; n < 3; n++)
		params[n] = bench_alloc(&b, 4 * 128);
	in = bench_host(&b, params[0]);
	eights = bench_host(&b, params[1]);
	total = bench_host(&b, params[2]);
	fill(in, 128, 1, 1000);
	bench_grid(&b, 1, 128);
	CHECK_EQ(bench_run(&b, "tile_sums", params), 0);
	for (int n = 0; n < 128; n++)
		sum += in[n];
	CHECK_EQ(*total, sum);
	for (int n = 0; n < 128; n++)
		eights[n / 8] -= in[n];
	for (int n = 0; n < 16; n++)
		CHECK_EQ(eights[n], 0);
	x = (float *)in;
	y = (float *)eights;
	for (int n = 0; n < 128; n++)
		x[n] = (float)(n * 7 % 31);
	CHECK_EQ(bench_run(&b, "tile_scan", params), 0);
	for (int n = 0, most = 0; n < 128; n++) {
		CHECK(y[n] == x[n] + (n % 16 ? y[n - 1] : 0));
		most = n % 16 && most > (int)x[n] ? most : (int)x[n];
		if (n % 16 == 15)
			CHECK_EQ(total[n], most);
	}
	bench_deinit(&b);
}

TEST(tiles_wider_than_a_warp)
{
	struct bench b = {0};
	uint64_t params[2];
	int *in, *sums;

	bench_load_file(&b, "groups.ptx");
	params[0] = bench_alloc(&b, 1024);
	params[1] = bench_alloc(&b, 16);
	in = bench_host(&b, params[0]);
	sums = bench_host(&b, params[1]);
	fill(in, 256, 21, 1000);
	bench_grid(&b, 1, 256);
	CHECK_EQ(bench_run(&b, "wide_tiles", params), 0);
	for (int n = 0; n < 256; n++)
		sums[n / 64] -= in[n];
	for (int n = 0; n < 4; n++)
		CHECK_EQ(sums[n], 4);
	bench_deinit(&b);
}

TEST(lanes_that_come_together_compact)
{
	struct bench b = {0};

	bench_load_file(&b, "groups.ptx");
	struct {
		uint64_t in, out, count;
		int n;
	} params = {bench_alloc(&b, 4000), bench_alloc(&b, 4000), bench_alloc(&b, 16), 900};
	int *in = bench_host(&b, params.in), *out = bench_host(&b, params.out), count = 0, sum = 0;

	fill(in, 900, 3, 100);
	for (int n = 0; n < 900; n++) {
		in[n] -= 50;
		count += in[n] > 0;
		sum += in[n] > 0 ? in[n] : 0;
	}
	bench_grid(&b, 8, 128);
	CHECK_EQ(bench_run(&b, "compact", &params), 0);
	CHECK_EQ(*(int *)bench_host(&b, params.count), count);
	for (int n = 0; n < count; n++) {
		CHECK(out[n] > 0);
		sum -= out[n];
	}
	CHECK_EQ(sum, 0);
	CHECK_EQ(out[count], 0);
	bench_deinit(&b);
}

TEST(equal_keys_find_each_other)
{
	struct bench b = {0};
	uint64_t params[2];
	int *keys;
	unsigned *counts, want[32] = {0};

	bench_load_file(&b, "groups.ptx");
	params[0] = bench_alloc(&b, 512);
	params[1] = bench_alloc(&b, 128);
	keys = bench_host(&b, params[0]);
	counts = bench_host(&b, params[1]);
	fill(keys, 96, 8, 20);
	for (int n = 32; n < 64; n++)
		keys[n] = 4;
	for (int n = 0; n < 96; n++)
		want[keys[n]]++;
	want[31] = 32;
	bench_grid(&b, 1, 96);
	CHECK_EQ(bench_run(&b, "count_keys", params), 0);
	CHECK(!memcmp(counts, want, sizeof(want)));
	bench_deinit(&b);
}

TEST(warps_reduce_by_halves)
{
	struct bench b = {0};
	uint64_t params[2];
	int *in, *out;

	bench_load_file(&b, "groups.ptx");
	params[0] = bench_alloc(&b, 256);
	params[1] = bench_alloc(&b, 64 * 48);
	in = bench_host(&b, params[0]);
	out = bench_host(&b, params[1]);
	fill(in, 64, 11, 100);
	in[3] = -5;
	bench_grid(&b, 1, 64);
	CHECK_EQ(bench_run(&b, "warp_reductions", params), 0);
	for (int t = 0; t < 64; t++, out += 12) {
		const int *half = in + (t & ~15);
		int sum = 0, least = half[0], most = half[0], all = -1, any = 0, odd = 0;
		unsigned low = ~0u, high = 0, votes = 0;

		for (int n = 0; n < 16; n++) {
			int v = half[n];

			sum += v;
			least = v < least ? v : least;
			most = v > most ? v : most;
			low = (unsigned)v < low ? (unsigned)v : low;
			high = (unsigned)v > high ? (unsigned)v : high;
			all &= v;
			any |= v;
			odd ^= v;
			votes |= (unsigned)(v > 10) << (n + (t & 16));
		}
		CHECK_EQ(out[0], sum);
		CHECK_EQ(out[1], least);
		CHECK_EQ(out[2], most);
		CHECK_EQ((unsigned)out[3], low);
		CHECK_EQ((unsigned)out[4], high);
		CHECK_EQ(out[5], all);
		CHECK_EQ(out[6], any);
		CHECK_EQ(out[7], odd);
		CHECK_EQ(out[8], __builtin_popcount(votes) == 16);
		CHECK_EQ(out[9], votes != 0);
		CHECK_EQ((unsigned)out[10], votes);
		CHECK_EQ(out[11], in[(t & ~7) + 3]);
	}
	bench_deinit(&b);
}

TEST(barriers_count_and_combine)
{
	struct bench b = {0};
	uint64_t params[2];
	int *in, *out, odd = 0;

	bench_load_file(&b, "groups.ptx");
	params[0] = bench_alloc(&b, 512);
	params[1] = bench_alloc(&b, 100 * 12);
	in = bench_host(&b, params[0]);
	out = bench_host(&b, params[1]);
	fill(in, 100, 2, 70);
	for (int n = 0; n < 100; n++)
		odd += in[n] & 1;
	bench_grid(&b, 1, 100);
	CHECK_EQ(bench_run(&b, "barrier_reductions", params), 0);
	for (int n = 0; n < 100; n++) {
		CHECK_EQ(out[3 * n], odd);
		CHECK_EQ(out[3 * n + 1], 1);
		CHECK_EQ(out[3 * n + 2], 0);
	}
	in[99] = 77;
	in[0] = -1;
	CHECK_EQ(bench_run(&b, "barrier_reductions", params), 0);
	CHECK_EQ(out[1], 0);
	CHECK_EQ(out[2], 1);
	bench_deinit(&b);
}

TEST(a_grid_meets_where_it_was_launched_to)
{
	struct bench b = {0};

	bench_load_file(&b, "groups.ptx");
	struct {
		uint64_t cells;
		int rounds;
	} params = {bench_alloc(&b, 512), 9};
	unsigned *cells = bench_host(&b, params.cells);

	for (unsigned n = 0; n < 128; n++)
		cells[n] = n;
	bench_grid(&b, 4, 32);
#ifndef ON_THE_DRIVER /* where it would end the context */
	CHECK_EQ(bench_run(&b, "grid_rounds", &params), SG_PTX_TRAP);
#endif
	b.launch.cooperative = true;
	CHECK_EQ(bench_run(&b, "grid_rounds", &params), 0);
	for (unsigned n = 0; n < 128; n++)
		CHECK_EQ(cells[n], (n + 9 * 32) % 128 + 9);
	bench_deinit(&b);
}

TEST(one_lane_is_elected)
{
	static const char text[] =
		".version 8.0\n.target sm_90\n.visible .entry f(.param .u64 p) {\n"
		".reg .b32 %r<5>; .reg .b64 %rd<4>; .reg .pred %q<3>;\n"
		"ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; setp.lt.u32 %q1, %r1, 5; @%q1 exit;\n"
		"elect.sync %r2|%q2, -32; selp.b32 %r3, 100, 0, %q2; add.u32 %r3, %r3, %r2;\n"
		"mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd2, %rd1; st.global.u32 [%rd2], %r3;\n"
		"elect.sync _|%q2, -32; @%q2 st.global.u32 [%rd1], 7;\n"
		"griddepcontrol.wait; griddepcontrol.launch_dependents; ret; }\n";
	struct bench b = {0};
	uint64_t p;
	unsigned *at;

	bench_load(&b, text, sizeof(text));
	p = bench_alloc(&b, 128);
	at = bench_host(&b, p);
	CHECK_EQ(bench_run(&b, "f", &p), 0);
	CHECK_EQ(at[0], 7);
	for (unsigned n = 5; n < 32; n++)
		CHECK_EQ(at[n], n == 5 ? 105 : 5);
	bench_deinit(&b);
}

TEST(cub_blocks_reduce_scan_and_sort)
{
	struct bench b = {0};
	uint64_t x, y, params[2];
	float *in, sum;
	int *keys, *values;

	bench_load_file(&b, "cub_block.ptx");
	x = bench_alloc(&b, 4096);
	y = bench_alloc(&b, 4096);
	params[0] = x;
	params[1] = y;
	in = bench_host(&b, x);
	for (int n = 0; n < 256; n++)
		in[n] = (float)(n % 17);
	bench_grid(&b, 2, 128);
	CHECK_EQ(bench_run(&b, "block_reduce", params), 0);
	for (int k = 0; k < 2; k++) {
		sum = 0;
		for (int n = 0; n < 128; n++)
			sum += in[128 * k + n];
		CHECK(((float *)bench_host(&b, y))[k] == sum);
	}
	keys = bench_host(&b, x);
	values = bench_host(&b, y);
	fill(keys, 1024, 4, 1000);
	CHECK_EQ(bench_run(&b, "block_scan", params), 0);
	for (int n = 0, running = 0; n < 1024; n++) {
		running = n % 512 ? running : 0;
		CHECK_EQ(values[n], running);
		running += keys[n];
	}
	for (int n = 0; n < 256; n++)
		values[n] = keys[n] * 3;
	bench_grid(&b, 1, 64);
	CHECK_EQ(bench_run(&b, "block_sort", params), 0);
	for (int n = 0; n < 256; n++) {
		CHECK_EQ(values[n], keys[n] * 3);
		CHECK(!n || keys[n - 1] <= keys[n]);
	}
	bench_deinit(&b);
}

TEST(cub_merges_and_counts)
{
	struct bench b = {0};
	uint64_t params[3];
	double *keys, sum = 0;
	uint8_t *bytes;
	unsigned *bins, want[256] = {0};
	int *in, *sums, *scans;

	bench_load_file(&b, "cub_block.ptx");
	for (int n = 0; n < 3; n++)
		params[n] = bench_alloc(&b, 1024);
	keys = bench_host(&b, params[0]);
	for (int n = 0; n < 128; n++)
		sum += keys[n] = (n * 37 % 128) / 8.0 - 3;
	bench_grid(&b, 1, 64);
	CHECK_EQ(bench_run(&b, "merge_sort", params), 0);
	for (int n = 0; n < 128; n++) {
		CHECK(!n || keys[n - 1] <= keys[n]);
		sum -= keys[n];
	}
	CHECK(sum == 0);
	bytes = bench_host(&b, params[0]);
	bins = bench_host(&b, params[1]);
	for (int n = 0; n < 256; n++)
		want[bytes[n] = (uint8_t)(n * n)]++;
	bench_grid(&b, 1, 128);
	CHECK_EQ(bench_run(&b, "block_histogram", params), 0);
	CHECK(!memcmp(bins, want, sizeof(want)));
	in = bench_host(&b, params[0]);
	sums = bench_host(&b, params[1]);
	scans = bench_host(&b, params[2]);
	fill(in, 64, 77, 500);
	bench_grid(&b, 1, 64);
	CHECK_EQ(bench_run(&b, "warp_collectives", params), 0);
	for (int n = 0, most = 0; n < 64; n++) {
		CHECK_EQ(scans[n], in[n] + (n % 32 ? scans[n - 1] : 0));
		most = n % 16 && most > in[n] ? most : in[n];
		if (n % 16 == 15)
			CHECK_EQ(sums[n / 16], most);
	}
	bench_deinit(&b);
}
