/* Durations and occupancy against figures worked out by hand. */
#include "test.h"

#include "model/gpu_spec.h"
#include "model/kernel.h"
#include "model/memory.h"

/* 4 SMs x 2 x 100 MHz = 800 instructions/us; 1000 B/us DRAM; 100 and 50 B/us link. */
static const struct td_gpu_spec spec = {
	.sm_count = 4,
	.instr_per_clock = 2,
	.clock_mhz = 100,
	.sm_threads = 2048,
	.sm_blocks = 16,
	.sm_registers = 65536,
	.sm_shared_bytes = 65536,
	.block_shared_bytes = 49152,
	.dram_bytes_per_us = 1000,
	.pinned_bytes_per_us = 100,
	.pageable_bytes_per_us = 50,
	.fault_bytes_per_us = 25,
	.prefetch_bytes_per_us = 80,
	.fault_latency_ns = 500,
	.launch_latency_ns = 7,
	.copy_latency_ns = 11,
};

TEST(a_kernel_takes_the_longest_of_its_three_bounds)
{
	CHECK_EQ(td_model_kernel_ns(&spec, 0, 8000, 0), 7 + 10000);
	CHECK_EQ(td_model_kernel_ns(&spec, 0, 8000, 20000), 7 + 20000);
	CHECK_EQ(td_model_kernel_ns(&spec, 30000, 8000, 20000), 7 + 30000);
	CHECK_EQ(td_model_kernel_ns(&spec, 0, 0, 0), 7);
}

TEST(durations_are_rounded_up)
{
	CHECK_EQ(td_model_kernel_ns(&spec, 0, 1, 0), 7 + 2); /* 1.25 ns */
	CHECK_EQ(td_model_kernel_ns(&spec, 0, 801, 0), 7 + 1002);
}

TEST(huge_counts_do_not_overflow)
{
	/* 2^60 instructions / 800 per us = 1441151880758558.72 us */
	CHECK_EQ(td_model_kernel_ns(&spec, 0, 1ull << 60, 0), 7 + 1441151880758558720ll);
}

TEST(copies_go_at_the_rate_of_their_kind)
{
	CHECK_EQ(td_model_copy_ns(&spec, TD_COPY_HTOD, 1000, true), 11 + 10000);
	CHECK_EQ(td_model_copy_ns(&spec, TD_COPY_DTOH, 1000, true), 11 + 10000);
	CHECK_EQ(td_model_copy_ns(&spec, TD_COPY_DTOH, 1000, false), 11 + 20000);
	CHECK_EQ(td_model_copy_ns(&spec, TD_COPY_DTOD, 1000, false), 11 + 2000);
}

TEST(moves_cost_their_latency_and_bytes)
{
	struct td_moves m = {
		.faults = 9,
		.groups = 3,
		.fault_in_bytes = 1000,
		.prefetch_in_bytes = 800,
		.out_bytes = 1600,
		.remote_bytes = 300,
	};

	CHECK_EQ(td_model_moves_ns(&spec, &m), 3 * 500 + 40000 + 10000 + 20000 + 3000);
}

static uint32_t blocks(uint32_t threads, uint32_t registers, uint32_t shared)
{
	struct td_block_needs needs = {threads, registers, shared};

	return td_model_blocks_per_sm(&spec, &needs);
}

TEST(occupancy_is_bound_by_the_scarcest_resource)
{
	CHECK_EQ(blocks(256, 0, 0), 8); /* 2048 threads */
	CHECK_EQ(blocks(32, 0, 0), 16); /* block slots */
	CHECK_EQ(blocks(33, 0, 0), 16); /* two warps each: 32 would fit */
	CHECK_EQ(blocks(1024, 0, 0), 2);
	CHECK_EQ(blocks(256, 64, 0), 4); /* 16384 registers each */
	CHECK_EQ(blocks(256, 65, 0), 3); /* 2304 per warp, 18432 each */
	CHECK_EQ(blocks(256, 0, 16384), 4);
	CHECK_EQ(blocks(256, 0, 16385), 3);
}

TEST(what_cannot_be_launched_has_no_occupancy)
{
	CHECK_EQ(blocks(0, 0, 0), 0);
	CHECK_EQ(blocks(1025, 0, 0), 0);
	CHECK_EQ(blocks(1024, 255, 0), 0);
	CHECK_EQ(blocks(32, 0, 49153), 0);
}

TEST(blocks_run_in_waves)
{
	struct td_block_needs needs = {.threads = 256};

	CHECK_EQ(td_model_wave_count(&spec, &needs, 1), 1);
	CHECK_EQ(td_model_wave_count(&spec, &needs, 32), 1);
	CHECK_EQ(td_model_wave_count(&spec, &needs, 33), 2);
	needs.threads = 0;
	CHECK_EQ(td_model_wave_count(&spec, &needs, 33), 0);
}
