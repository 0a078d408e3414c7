/*
 * cp.async, mbarrier and bulk copies, as nvcc uses them and in the corners that it does not reach.
 */
#include "unit/softgpu/ptx/ptx_bench.h"

static void open_bench(struct bench *b)
{
	*b = (struct bench){0};
	bench_load_file(b, "async.ptx");
}

TEST(a_barrier_in_shared_memory_keeps_rounds_apart)
{
	struct bench b;

	open_bench(&b);
	struct {
		uint64_t cells;
		int n;
	} params = {bench_alloc(&b, 384), 7};
	int *cells = bench_host(&b, params.cells);

	for (int n = 0; n < 96; n++)
		cells[n] = n * n;
	bench_grid(&b, 1, 96);
	CHECK_EQ(bench_run(&b, "rounds", &params), 0);
	for (int n = 0; n < 96; n++)
		CHECK_EQ(cells[n], (95 - n) * (95 - n) + 7);
	bench_deinit(&b);
}

TEST(producer_and_consumers_take_turns_by_parity)
{
	struct bench b;

	open_bench(&b);
	struct {
		uint64_t in, out;
		int n;
	} params = {bench_alloc(&b, 64), bench_alloc(&b, 64 * 16 * 4), 16};
	int *in = bench_host(&b, params.in), *out = bench_host(&b, params.out);

	for (int n = 0; n < 16; n++)
		in[n] = 1000 + 3 * n;
	bench_grid(&b, 1, 96);
	CHECK_EQ(bench_run(&b, "hand_over_parity", &params), 0);
	for (int n = 0; n < 16 * 64; n++)
		CHECK_EQ(out[n], 1000 + 3 * (n / 64));
	bench_deinit(&b);
}

TEST(bulk_copies_complete_their_barrier)
{
	struct bench b;
	uint64_t params[2];
	int *in, *out;

	open_bench(&b);
	params[0] = bench_alloc(&b, 2048);
	params[1] = bench_alloc(&b, 2048);
	in = bench_host(&b, params[0]);
	out = bench_host(&b, params[1]);
	for (int n = 0; n < 512; n++)
		in[n] = n * 5;
	bench_grid(&b, 2, 64);
	CHECK_EQ(bench_run(&b, "bulk", params), 0);
	for (int n = 0; n < 512; n++)
		CHECK_EQ(out[n], n * 10 + 1);
	CHECK_EQ(b.result.load_bytes, 2048);
	CHECK_EQ(b.result.store_bytes, 2048);
	bench_deinit(&b);
}

TEST(groups_copy_together)
{
	struct bench b;
	uint64_t params[2];
	double *in, *out;

	open_bench(&b);
	params[0] = bench_alloc(&b, 8 * 192);
	params[1] = bench_alloc(&b, 8 * 192);
	in = bench_host(&b, params[0]);
	out = bench_host(&b, params[1]);
	for (int n = 0; n < 192; n++)
		in[n] = n / 4.0;
	bench_grid(&b, 2, 96);
	CHECK_EQ(bench_run(&b, "group_copy", params), 0);
	for (int n = 0; n < 192; n++)
		CHECK(out[n] == in[n / 96 * 96 + 95 - n % 96]);
	bench_deinit(&b);
}

#define HEAD                                                                                       \
	".version 8.4\n.target sm_90\n.visible .entry f(.param .u64 p) {\n"                        \
	".reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<5>; .reg .pred %q<5>;\n"                  \
	".shared .align 16 .b8 s[64]; .shared .align 8 .b64 m;\n"                                  \
	"ld.param.u64 %rd1, [p]; mov.u32 %r7, s; mov.u32 %r8, m;\n"

static int run_text(struct bench *b, const char *body, uint64_t *ret_address)
{
	char text[2048];

	*b = (struct bench){0};
	snprintf(text, sizeof(text), "%s%s ret; }\n", HEAD, body);
	bench_load(b, text, strlen(text));
	*ret_address = bench_alloc(b, 256);
	for (int n = 0; n < 64; n++)
		((int *)bench_host(b, *ret_address))[n] = n + 1;
	bench_grid(b, 1, 1);
	return bench_run(b, "f", ret_address);
}

TEST(an_ignored_source_is_zeros)
{
	struct bench b;
	uint64_t p;
	int *at;

	CHECK_EQ(run_text(&b,
			 "mov.u64 %rd2, 64; setp.eq.u64 %q1, %rd2, 64;\n"
			 "cp.async.cg.shared.global.L2::128B [%r7], [%rd1], 16;\n"
			 "cp.async.ca.shared.global [%r7+16], [%rd2+3], 4, 0;\n"
			 "cp.async.ca.shared.global [%r7+24], [%rd1], 8, %q1;\n"
			 "cp.async.ca.shared.global [%r7+32], [%rd1+8], 8, 4;\n"
			 "cp.async.commit_group; cp.async.wait_group 0; cp.async.wait_all;\n"
			 "ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [s];\n"
			 "st.global.v4.u32 [%rd1+64], {%r1, %r2, %r3, %r4};\n"
			 "ld.shared.v2.u32 {%r1, %r2}, [s+32]; ld.shared.u32 %r3, [s+24]; "
			 "ld.shared.u32 %r4, [s+16];\n"
			 "st.global.v4.u32 [%rd1+80], {%r1, %r2, %r3, %r4};",
			 &p),
		0);
	at = (int *)bench_host(&b, p) + 16;
	for (int n = 0; n < 4; n++)
		CHECK_EQ(at[n], n + 1);
	CHECK_EQ(at[4], 3);
	CHECK(!at[5] && !at[6] && !at[7]);
	bench_deinit(&b);
}

TEST(a_copy_from_nowhere_faults)
{
	struct bench b;
	uint64_t p;

	CHECK_EQ(run_text(&b, "cp.async.ca.shared.global [%r7], [%rd1+256], 4;", &p),
		SG_PTX_ILLEGAL_ADDRESS);
	CHECK_EQ(b.result.fault_address, p + 256);
	bench_deinit(&b);
	CHECK_EQ(run_text(&b, "cp.async.cg.shared.global [%r7], [%rd1+4], 16;", &p),
		SG_PTX_MISALIGNED_ADDRESS);
	bench_deinit(&b);
	CHECK_EQ(run_text(&b, "cp.async.ca.shared.global [%r7+4096], [%rd1], 4;", &p),
		SG_PTX_ILLEGAL_ADDRESS);
	bench_deinit(&b);
}

TEST(phases_end_when_arrivals_and_bytes_have_come)
{
	struct bench b;
	uint64_t p;
	int *at;

	CHECK_EQ(
		run_text(&b,
			"mbarrier.init.shared::cta.b64 [m], 2;\n"
			"mbarrier.arrive.shared.b64 %rd2, [m]; mbarrier.pending_count.b64 %r1, "
			"%rd2;\n"
			"mbarrier.test_wait.shared.b64 %q1, [%r8], %rd2; selp.u32 %r2, 1, 0, %q1;\n"
			"mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [m], 100;\n"
			"mbarrier.arrive.shared.b64 _, [m];\n"
			"mbarrier.test_wait.parity.shared.b64 %q1, [m], 0; selp.u32 %r3, 1, 0, "
			"%q1;\n"
			"mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [m], 100;\n"
			"mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %q1, [m], 0, 1000; "
			"selp.u32 %r4, 1, 0, %q1;\n"
			"mbarrier.test_wait.shared.b64 %q1, [m], %rd2; selp.u32 %r5, 1, 0, %q1;\n"
			"mbarrier.arrive_drop.shared.b64 %rd3, [m]; mbarrier.arrive.shared.b64 "
			"%rd3, [m];\n"
			"mbarrier.arrive.shared.b64 %rd4, [m]; mbarrier.test_wait.shared.b64 %q1, "
			"[m], %rd4; selp.u32 %r6, 1, 0, %q1;\n"
			"st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4}; st.global.v2.u32 "
			"[%rd1+16], {%r5, %r6};\n"
			"mbarrier.inval.shared.b64 [m];",
			&p),
		0);
	at = bench_host(&b, p);
	CHECK_EQ(at[0], 2);
	CHECK_EQ(at[1], 0);
	CHECK_EQ(at[2], 0);
	CHECK_EQ(at[3], 1);
	CHECK_EQ(at[4], 1);
	CHECK_EQ(at[5], 1);
	bench_deinit(&b);
}

TEST(an_arrival_too_many_traps)
{
	struct bench b;
	uint64_t p;

	CHECK_EQ(run_text(&b,
			 "mbarrier.init.shared.b64 [m], 1; mbarrier.arrive.shared.b64 _, [m], 2;",
			 &p),
		SG_PTX_TRAP);
	bench_deinit(&b);
}

TEST(vectors_of_atomics_and_policies)
{
	struct bench b;
	uint64_t p;
	float *at;

	CHECK_EQ(run_text(&b,
			 "mov.b32 %f1, 0f3F800000; mov.b32 %f2, 0f40000000; cvt.rn.f32.u32 %f3, 4; "
			 "cvt.rn.f32.u32 %f4, 8;\n"
			 "createpolicy.fractional.L2::evict_first.b64 %rd5, 1.0;\n"
			 "st.global.L2::cache_hint.v4.f32 [%rd1], {%f1, %f2, %f3, %f4}, %rd5;\n"
			 "red.global.v4.f32.add [%rd1], {%f4, %f3, %f2, %f1};\n"
			 "atom.global.v2.f32.add {%f1, %f2}, [%rd1], {%f1, %f1};\n"
			 "st.global.v2.f32 [%rd1+16], {%f1, %f2};",
			 &p),
		0);
	at = bench_host(&b, p);
	CHECK(at[0] == 10 && at[1] == 7 && at[2] == 6 && at[3] == 9);
	CHECK(at[4] == 9 && at[5] == 6);
	CHECK_EQ(b.result.atomics, 6);
	bench_deinit(&b);
}

TEST(a_bulk_prefetch_takes_bandwidth_and_changes_nothing)
{
	struct bench b;
	uint64_t address;

	CHECK_EQ(run_text(&b,
			 "mov.u32 %r1, 4096; cp.async.bulk.prefetch.L2.global [%rd1], %r1;\n"
			 "cp.async.bulk.prefetch.L2.global [%rd1], 32;",
			 &address),
		0);
	CHECK_EQ(b.result.load_bytes, 4128);
	CHECK_EQ(b.result.store_bytes, 0);
	CHECK_EQ(((int *)bench_host(&b, address))[0], 1);
	bench_deinit(&b);
}
