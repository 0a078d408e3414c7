/* How launches end, what time they model, and that threads which wait for each other progress. */
#include "unit/softgpu/ptx/ptx_bench.h"

#include <errno.h>

static void open_bench(struct bench *b)
{
	*b = (struct bench){0};
	bench_load_file(b, "kernels_sm75.ptx");
}

TEST(a_store_beyond_its_allocation_names_address_and_thread)
{
	struct bench b;

	open_bench(&b);
	struct {
		uint64_t p;
		int offset;
	} params = {bench_alloc(&b, 64), 16};

	bench_grid(&b, 1, 1);
	CHECK_EQ(bench_run(&b, "wild_store", &params), SG_PTX_ILLEGAL_ADDRESS);
	CHECK_EQ(b.result.fault_address, params.p + 64);
	CHECK_EQ(b.result.fault_access, SG_PTX_STORE);
	CHECK_EQ(b.result.fault_bytes, 4);
	CHECK(b.result.fault_line > 0);
	params.offset = 15;
	CHECK_EQ(bench_run(&b, "wild_store", &params), 0);
	params.offset = -1;
	CHECK_EQ(bench_run(&b, "wild_store", &params), SG_PTX_ILLEGAL_ADDRESS);
	params.p++;
	params.offset = 1;
	CHECK_EQ(bench_run(&b, "wild_store", &params), SG_PTX_MISALIGNED_ADDRESS);
	bench_deinit(&b);
}

TEST(shared_memory_has_an_end_too)
{
	struct bench b;
	uint64_t p;

	open_bench(&b);
	p = bench_alloc(&b, 16);
	b.launch.dynamic_shared_bytes = 64;
	*(int *)bench_host(&b, p) = 15;
	CHECK_EQ(bench_run(&b, "wild_shared", &p), 0);
	*(int *)bench_host(&b, p) = 16;
	CHECK_EQ(bench_run(&b, "wild_shared", &p), SG_PTX_ILLEGAL_ADDRESS);
	bench_deinit(&b);
}

TEST(traps_asserts_and_exits)
{
	struct bench b;
	int how = 1;

	open_bench(&b);
	CHECK_EQ(bench_run(&b, "stops", &how), SG_PTX_TRAP);
	how = 2;
	CHECK_EQ(bench_run(&b, "stops", &how), SG_PTX_ASSERT);
	how = 3;
	CHECK_EQ(bench_run(&b, "stops", &how), 0);
	bench_deinit(&b);
}

TEST(an_endless_loop_ends_by_limit_or_cancellation)
{
	const volatile int cancel = 1;
	struct bench b;
	int how = 4;

	open_bench(&b);
	b.launch.max_instructions = 100000;
	CHECK_EQ(bench_run(&b, "stops", &how), SG_PTX_LIMIT);
	CHECK(b.result.instructions >= 100000 && b.result.instructions < 101000);
	b.launch.max_instructions = 0;
	b.launch.cancel = &cancel;
	CHECK_EQ(bench_run(&b, "stops", &how), SG_PTX_CANCELLED);
	bench_deinit(&b);
}

TEST(a_barrier_that_nobody_joins_is_a_deadlock)
{
	struct bench b;
	int how = 5;

	open_bench(&b);
	CHECK_EQ(bench_run(&b, "stops", &how), SG_PTX_DEADLOCK);
	bench_grid(&b, 1, 65);
	CHECK_EQ(bench_run(&b, "stops", &how), 0);
	bench_deinit(&b);
}

TEST(a_lane_waits_for_those_it_names_until_they_exit)
{
	static const char text[] =
		".version 8.0\n.target sm_75\n.visible .entry f() {\n"
		".reg .b32 %r<4>; .reg .pred %p;\n"
		"mov.u32 %r1, %tid.x; setp.eq.u32 %p, %r1, 0; selp.b32 %r2, 1, 3, %p;\n"
		"bar.warp.sync %r2; ret; }\n";
	struct bench b = {0};

	bench_load(&b, text, sizeof(text));
	bench_grid(&b, 1, 1);
	CHECK_EQ(bench_run(&b, "f", NULL), 0);
	bench_grid(&b, 1, 2);
	/* Lane 0 names itself alone and leaves; lane 1 then waits for nobody else. */
	CHECK_EQ(bench_run(&b, "f", NULL), 0);
	bench_deinit(&b);
}

TEST(a_barrier_brings_every_thread_to_the_latest)
{
	static const char text[] =
		".version 8.0\n.target sm_75\n.visible .entry f(.param .u64 p) {\n"
		".reg .b32 %r<4>; .reg .b64 %rd<9>; .reg .pred %p;\n"
		"ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; setp.eq.u32 %p, %r1, 33;\n"
		"@%p nanosleep.u32 5000; bar.sync 0; mov.u64 %rd2, %globaltimer;\n"
		"mul.wide.u32 %rd3, %r1, 8; add.u64 %rd4, %rd1, %rd3;\n"
		"st.global.u64 [%rd4], %rd2; ret; }\n";
	struct bench b = {0};
	uint64_t p, *at;

	bench_load(&b, text, sizeof(text));
	p = bench_alloc(&b, 512);
	at = bench_host(&b, p);
	bench_grid(&b, 1, 64);
	CHECK_EQ(bench_run(&b, "f", &p), 0);
	for (int n = 0; n < 64; n++)
		CHECK_EQ(at[n], 1000000 + 5000 + 5);
	bench_deinit(&b);
}

TEST(launches_that_no_gpu_takes_are_invalid)
{
	struct bench b;
	uint64_t p;

	open_bench(&b);
	p = bench_alloc(&b, 4096);
	bench_grid(&b, 1, 128);
	CHECK_EQ(bench_run(&b, "bounded", &p), 0);
	bench_grid(&b, 1, 129);
	CHECK_EQ(bench_run(&b, "bounded", &p), SG_PTX_INVALID);
	bench_grid(&b, 0, 32);
	CHECK_EQ(bench_run(&b, "bounded", &p), SG_PTX_INVALID);
	bench_grid(&b, 1, 0);
	CHECK_EQ(bench_run(&b, "bounded", &p), SG_PTX_INVALID);
	bench_grid(&b, 1, 1025);
	CHECK_EQ(bench_run(&b, "collatz", &p), SG_PTX_INVALID);
	bench_grid(&b, 1, 1);
	b.launch.grid[1] = 65536;
	CHECK_EQ(bench_run(&b, "bounded", &p), SG_PTX_INVALID);
	b.launch.grid[1] = 1;
	b.launch.dynamic_shared_bytes = SG_PTX_MAX_SHARED_BYTES;
	CHECK_EQ(bench_run(&b, "bounded", &p), 0);
	b.launch.dynamic_shared_bytes++;
	CHECK_EQ(bench_run(&b, "bounded", &p), SG_PTX_INVALID);
	bench_deinit(&b);
}

TEST(an_unbound_variable_stops_the_launch)
{
	static const char text[] = ".version 8.0\n.target sm_75\n.global .u32 x;\n"
				   ".visible .entry f() { ret; }\n";
	struct sg_ptx_module *m;
	struct sg_ptx_launch l = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .time = {.slots = 1}};
	struct sg_ptx_result result;

	CHECK_EQ(sg_ptx_module_new(text, sizeof(text), NULL, &m), 0);
	l.module = m;
	l.function = sg_ptx_module_function(m, 0);
	CHECK_EQ(sg_ptx_run(&l, &result), SG_PTX_INVALID);
	sg_ptx_module_bind(m, 0, BENCH_BASE);
	CHECK_EQ(sg_ptx_run(&l, &result), 0);
	sg_ptx_module_free(m);
}

TEST(a_spin_on_the_timer_takes_its_time_and_few_instructions)
{
	struct bench b;

	open_bench(&b);
	struct {
		uint64_t ns, out;
	} params = {1000000, bench_alloc(&b, 4096)};
	uint64_t *out = bench_host(&b, params.out);

	bench_grid(&b, 8, 32);
	CHECK_EQ(bench_run(&b, "spin_timer", &params), 0);
	for (int n = 0; n < 256; n++)
		CHECK(out[n] >= 1000000 && out[n] < 1001100);
	/* Two waves of four slots. */
	CHECK(b.result.makespan_ns >= 2000000 && b.result.makespan_ns < 2010000);
	CHECK(b.result.instructions < 256 * 8000);
	CHECK_EQ(bench_run(&b, "spin_sleep", &params), 0);
	CHECK(out[0] >= 1000000 && out[0] < 1002000);
	params.ns = 5000;
	bench_grid(&b, 1, 1);
	CHECK_EQ(bench_run(&b, "spin_clock", &params), 0);
	CHECK(out[0] >= 5000 && out[0] < 6100);
	bench_deinit(&b);
}

TEST(waiting_for_seconds_costs_no_instructions)
{
	static const char *const names[] = {"spin_timer", "spin_sleep", "spin_clock"};
	struct bench b;

	open_bench(&b);
	struct {
		uint64_t ns, out;
	} params = {5000000000, bench_alloc(&b, 4096)};
	uint64_t *out = bench_host(&b, params.out);

	bench_grid(&b, 8, 32);
	for (int k = 0; k < 3; k++) {
		CHECK_EQ(bench_run(&b, names[k], &params), 0);
		CHECK(out[0] >= 5000000000 && out[0] < 5000002000);
		CHECK(b.result.makespan_ns >= 10000000000 && b.result.makespan_ns < 10000010000);
		CHECK(b.result.instructions < 256 * 64);
	}
	bench_deinit(&b);
}

/*
 * Runs a kernel whose loop has this body, from L to its branch back; the clock is in rd2, the start
 * in rd1.
 */
static int run_loop(struct bench *b, const char *body)
{
	char text[1024];
	uint64_t p;

	*b = (struct bench){0};
	snprintf(text, sizeof(text),
		".version 8.0\n.target sm_75\n.visible .entry f(.param .u64 p) {\n"
		".reg .b64 %%rd<9>; .reg .b32 %%r<5>; .reg .pred %%q<4>;\n"
		"ld.param.u64 %%rd8, [p]; mov.u32 %%r1, 0; mov.u64 %%rd1, %%globaltimer;\n"
		"L: mov.u64 %%rd2, %%globaltimer; %s bra L;\n"
		"st.global.u32 [%%rd8], %%r1; ret; }\n",
		body);
	bench_load(b, text, strlen(text));
	p = bench_alloc(b, 16);
	bench_grid(b, 1, 1);
	b->launch.max_instructions = 1000000;
	return bench_run(b, "f", &p);
}

TEST(a_loop_that_counts_goes_round)
{
	struct bench b;

	CHECK_EQ(run_loop(&b, "add.u32 %r1, %r1, 1; sub.u64 %rd3, %rd2, %rd1;\n"
			      "setp.lt.u64 %q1, %rd3, 1000000; @%q1"),
		0);
	CHECK(*(uint32_t *)b.areas[0].host > 500);
	bench_deinit(&b);
	CHECK_EQ(run_loop(&b, "sub.u64 %rd3, %rd2, %rd1; setp.ge.u64 %q1, %rd3, 1000000;\n"
			      "@!%q1 add.u32 %r1, %r1, 1; @!%q1"),
		0);
	CHECK(*(uint32_t *)b.areas[0].host > 500);
	bench_deinit(&b);
}

TEST(a_loop_may_wait_for_a_value_between_two)
{
	struct bench b;

	CHECK_EQ(
		run_loop(&b,
			"sub.u64 %rd3, %rd2, %rd1; shr.u64 %rd4, %rd3, 20; and.b64 %rd4, %rd4, 1;\n"
			"cvt.u32.u64 %r1, %rd3; setp.ne.u64 %q1, %rd4, 0; @!%q1"),
		0);
	CHECK(*(uint32_t *)b.areas[0].host >= 1u << 20 && *(uint32_t *)b.areas[0].host < 1u << 21);
	CHECK(b.result.instructions < 100);
	bench_deinit(&b);
}

TEST(a_loop_that_no_time_ends_is_endless)
{
	struct bench b;

	CHECK_EQ(run_loop(&b, "setp.lt.u64 %q1, %rd2, %rd1; @!%q1"), SG_PTX_LIMIT);
	bench_deinit(&b);
}

TEST(blocks_go_to_the_slot_that_is_free_first)
{
	static const char text[] =
		".version 8.0\n.target sm_75\n.visible .entry f(.param .u64 p) {\n"
		".reg .b32 %r<9>; .reg .b64 %rd<5>; .reg .pred %q;\n"
		"ld.param.u64 %rd1, [p]; mov.u32 %r1, %ctaid.x; setp.eq.u32 %q, %r1, 0;\n"
		"mov.u32 %r2, 1000; @%q mov.u32 %r2, 10000; nanosleep.u32 %r2;\n"
		"mov.u32 %r3, %smid; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2;\n"
		"st.global.u32 [%rd3], %r3; ret; }\n";
	struct bench b = {0};
	uint32_t *slots;
	uint64_t p;

	bench_load(&b, text, sizeof(text));
	p = bench_alloc(&b, 64);
	slots = bench_host(&b, p);
	bench_grid(&b, 6, 1);
	b.launch.time.slots = 2;
	b.launch.time.block_launch_ns = 100;
	CHECK_EQ(bench_run(&b, "f", &p), 0);
	CHECK_EQ(slots[0], 0);
	for (int n = 1; n < 6; n++)
		CHECK_EQ(slots[n], 1);
	CHECK_EQ(b.result.makespan_ns, 100 + 10000 + 11);
	/* The guarded one counts whether it runs or not. */
	CHECK_EQ(b.result.instructions, 6 * 11);
	bench_deinit(&b);
}

static void raise_flag(struct bench *b, uint64_t now_ns)
{
	CHECK(now_ns >= 1000000 + 500 * (b->syncs - 1));
	if (b->syncs == 100)
		*(volatile int *)b->areas[b->area_count - 1].host = 6;
}

TEST(polling_a_host_flag_synchronises_clocks)
{
	struct bench b;

	open_bench(&b);
	struct {
		uint64_t flag, out;
	} params = {.out = bench_alloc(&b, 16)};

	params.flag = bench_alloc(&b, 16);
	b.areas[b.area_count - 1].is_host = true;
	b.on_sync = raise_flag;
	b.jump_ns = 500;
	bench_grid(&b, 1, 1);
	CHECK_EQ(bench_run(&b, "poll_flag", &params), 0);
	CHECK_EQ(*(int *)bench_host(&b, params.out), 6);
	CHECK_EQ(b.syncs, 101);
	CHECK(b.result.makespan_ns >= 101 * 500);
	bench_deinit(&b);
}

TEST(a_thread_that_waits_for_its_neighbour_gets_its_answer)
{
	struct bench b;
	uint64_t p;

	open_bench(&b);
	p = bench_alloc(&b, 16);
	CHECK_EQ(bench_run(&b, "hand_over", &p), 0);
	CHECK_EQ(*(int *)bench_host(&b, p), 42);
	bench_deinit(&b);
}

static void run_grid_barrier(bool cooperative)
{
	struct bench b;
	uint64_t params[2];
	unsigned *out;

	open_bench(&b);
	params[0] = bench_alloc(&b, 16);
	params[1] = bench_alloc(&b, 1024);
	out = bench_host(&b, params[1]);
	bench_grid(&b, 4, 32);
	b.launch.cooperative = cooperative;
	CHECK_EQ(bench_run(&b, "grid_barrier", params), 0);
	for (int n = 0; n < 128; n++)
		CHECK_EQ(out[n], 128);
	bench_deinit(&b);
}

TEST(cooperative_blocks_meet_at_a_grid_barrier)
{
	run_grid_barrier(true);
}

TEST(other_blocks_meet_too_while_they_fit)
{
	run_grid_barrier(false);
}

TEST(a_cooperative_grid_must_fit)
{
	struct bench b;
	uint64_t params[2] = {0};

	open_bench(&b);
	bench_grid(&b, 5, 32);
	b.launch.cooperative = true;
	CHECK_EQ(bench_run(&b, "grid_barrier", params), SG_PTX_COOPERATIVE_TOO_LARGE);
	bench_deinit(&b);
}

TEST(each_small_range_is_asked_for_once_per_kind_of_access)
{
	struct bench b;

	open_bench(&b);
	struct {
		uint64_t x, y, z;
		int n;
	} params = {bench_alloc(&b, 1 << 20), bench_alloc(&b, 1 << 20), bench_alloc(&b, 1 << 20),
		1 << 18};

	b.grain = SG_PTX_TLB_GRAIN;
	bench_grid(&b, 1024, 256);
	CHECK_EQ(bench_run(&b, "vector_add", &params), 0);
	CHECK(b.translations[SG_PTX_LOAD] >= 32);
	CHECK(b.translations[SG_PTX_STORE] >= 16);
	bench_deinit(&b);
}

TEST(endless_recursion_overflows_the_stack)
{
	static const char text[] = ".version 8.0\n.target sm_75\n.func f();\n"
				   ".func f()\n{ .local .b8 x[64]; call f; ret; }\n"
				   ".visible .entry g() { call f; ret; }\n";
	struct bench b = {0};

	bench_load(&b, text, sizeof(text));
	CHECK_EQ(bench_run(&b, "g", NULL), SG_PTX_STACK_OVERFLOW);
	CHECK_EQ(b.result.fault_line, 5);
	bench_deinit(&b);
}

TEST(carries_cross_words)
{
	static const char text[] =
		".version 8.0\n.target sm_75\n.visible .entry f(.param .u64 p) {\n"
		".reg .b32 %r<9>; .reg .b64 %rd<5>;\n"
		"ld.param.u64 %rd1, [p]; add.cc.u32 %r1, -1, 2; addc.u32 %r2, 5, 0;\n"
		"sub.cc.u32 %r3, 1, 2; subc.u32 %r4, 5, 0;\n"
		"mad.lo.cc.u32 %r5, -1, -1, -1; madc.hi.u32 %r6, -1, -1, 0;\n"
		"st.global.v2.u32 [%rd1], {%r1, %r2}; st.global.v4.u32 [%rd1+16], {%r3, %r4, %r5, "
		"%r6};"
		"ret; }\n";
	static const uint32_t want[] = {1, 6, 0, 0, ~0u, 4, 0, ~0u - 1 + 1};
	struct bench b = {0};
	uint64_t p;

	bench_load(&b, text, sizeof(text));
	p = bench_alloc(&b, 64);
	bench_grid(&b, 1, 1);
	CHECK_EQ(bench_run(&b, "f", &p), 0);
	for (int n = 0; n < 8; n++)
		CHECK_EQ(((uint32_t *)bench_host(&b, p))[n], want[n]);
	bench_deinit(&b);
}

/* nvcc's library has such blocks: a register of the name of one in the outer family. */
TEST(inner_registers_hide_outer_ones)
{
	static const char text[] =
		".version 8.0\n.target sm_75\n.visible .entry f(.param .u64 p) {\n"
		".reg .b32 %r<5>; .reg .b64 %rd<5>; .reg .b32 %s1; ld.param.u64 %rd1, [p];\n"
		"mov.u32 %r1, 10; mov.u32 %s1, 20;\n"
		"{ .reg .b32 %r1; mov.u32 %r1, 1; { .reg .b32 %r<2>; mov.u32 %r1, 2; } add.u32 "
		"%r2, %r1, 100; }\n"
		"{ .reg .b32 %s<3>; mov.u32 %s1, 3; add.u32 %r3, %s1, %r1; }\n"
		"st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %s1}; ret; }\n";
	struct bench b = {0};
	uint64_t p;
	int *at;

	bench_load(&b, text, sizeof(text));
	p = bench_alloc(&b, 16);
	at = bench_host(&b, p);
	bench_grid(&b, 1, 1);
	CHECK_EQ(bench_run(&b, "f", &p), 0);
	CHECK_EQ(at[0], 10);
	CHECK_EQ(at[1], 101);
	CHECK_EQ(at[2], 13);
	CHECK_EQ(at[3], 20);
	bench_deinit(&b);
}

TEST(outcomes_have_names)
{
	CHECK_STR(sg_ptx_outcome_name(0), "success");
	CHECK_STR(sg_ptx_outcome_name(SG_PTX_TRAP), "trap");
	CHECK_STR(sg_ptx_outcome_name(-ENOMEM), "Cannot allocate memory");
}
