/*
 * The table of GPU models.
 *
 * Sources, by field:
 *   capability, sm_*, block_shared_bytes: CUDA C++ Programming Guide, "Technical Specifications
 *     per Compute Capability" (7.0, 7.5, 8.0, 9.0).
 *   sm_count, clock_mhz, dram, max_power: NVIDIA's data sheets and architecture
 *     white papers of Tesla T4, V100 SXM2, A100 SXM4 40 GB, H100 SXM5 and H200 SXM.
 *   memory_bytes: what the driver reports in total, below the nominal size.
 *   instr_per_clock: four warp schedulers per SM, each one instruction of 32 threads per cycle
 *     (the same white papers).
 *   pinned: what page-locked copies reach on PCIe 3.0, 4.0 and 5.0 x16, about 3/4 of the raw
 *     rate; pageable: chosen, about half (one more pass through the CPU's caches).
 *   switch_ns: about 100 us, measured on an A100 by GPreempt (its SMs hold 44 MB of state).
 *   slice_ns: chosen, 2 ms; the real length is not documented and has to be measured.
 *   context_bytes: 300-500 MB, growing with the number of SMs.
 *   page_bytes: UVM's basic block of 64 KiB; fault_group_pages: chosen, 8, half-way up the tree
 *     by which UVM's prefetcher widens a fault within its 2 MiB.
 *   fault_latency_ns, fault_bytes_per_us: chosen so that streaming through faults reaches about a
 *     third of the link's rate; published figures are 8 GB/s by faults, 24 GB/s by pinned copies
 *     (on different machines).
 *   prefetch: chosen, 90 % of the pinned rate, since it moves pages, not one large extent.
 *   base and idle clock, idle_power_mw, launch and copy latency: chosen, of the usual size.
 *
 * `tiny` is no product. It is sized so that an interpreter that does 50 M PTX instructions/s on
 * one core keeps pace: 2 SMs x 1 lane x 20 MHz = 40 M thread instructions/s. Its memory (64 MiB)
 * and link (1.5 GB/s) make swapping 48 MiB take 34 ms, faulting it in about four times as long:
 * enough to be seen in a run of seconds, on a machine whose own memcpy is faster than that. Its
 * context costs 1 MiB, and a launch 20 us, about what a round trip to a server process takes.
 */
#include "model/gpu_spec.h"

#include <stddef.h>
#include <string.h>

#define KIB(n) ((uint32_t)(n) << 10)
#define MIB(n) ((uint64_t)(n) << 20)

static const struct td_gpu_spec specs[] = {
	{
		.name = "t4",
		.full_name = "Tesla T4",
		.capability_major = 7,
		.capability_minor = 5,
		.memory_bytes = MIB(15360),
		.context_bytes = MIB(300),
		.sm_count = 40,
		.clock_mhz = 1590,
		.base_clock_mhz = 585,
		.idle_clock_mhz = 300,
		.instr_per_clock = 128,
		.sm_threads = 1024,
		.sm_blocks = 16,
		.sm_registers = 65536,
		.sm_shared_bytes = KIB(64),
		.block_shared_bytes = KIB(64),
		.dram_bytes_per_us = 320000,
		.pinned_bytes_per_us = 12000,
		.pageable_bytes_per_us = 6000,
		.page_bytes = KIB(64),
		.fault_group_pages = 8,
		.fault_bytes_per_us = 6000,
		.prefetch_bytes_per_us = 10800,
		.fault_latency_ns = 40000,
		.slice_ns = 2000000,
		.switch_ns = 100000,
		.launch_latency_ns = 3000,
		.copy_latency_ns = 8000,
		.idle_power_mw = 10000,
		.max_power_mw = 70000,
	},
	{
		.name = "v100",
		.full_name = "Tesla V100-SXM2-16GB",
		.capability_major = 7,
		.capability_minor = 0,
		.memory_bytes = MIB(16160),
		.context_bytes = MIB(320),
		.sm_count = 80,
		.clock_mhz = 1530,
		.base_clock_mhz = 1290,
		.idle_clock_mhz = 135,
		.instr_per_clock = 128,
		.sm_threads = 2048,
		.sm_blocks = 32,
		.sm_registers = 65536,
		.sm_shared_bytes = KIB(96),
		.block_shared_bytes = KIB(96),
		.dram_bytes_per_us = 900000,
		.pinned_bytes_per_us = 12000,
		.pageable_bytes_per_us = 6000,
		.page_bytes = KIB(64),
		.fault_group_pages = 8,
		.fault_bytes_per_us = 6000,
		.prefetch_bytes_per_us = 10800,
		.fault_latency_ns = 40000,
		.slice_ns = 2000000,
		.switch_ns = 100000,
		.launch_latency_ns = 3000,
		.copy_latency_ns = 8000,
		.idle_power_mw = 40000,
		.max_power_mw = 300000,
	},
	{
		.name = "a100",
		.full_name = "NVIDIA A100-SXM4-40GB",
		.capability_major = 8,
		.capability_minor = 0,
		.memory_bytes = MIB(40960),
		.context_bytes = MIB(420),
		.sm_count = 108,
		.clock_mhz = 1410,
		.base_clock_mhz = 1095,
		.idle_clock_mhz = 210,
		.instr_per_clock = 128,
		.sm_threads = 2048,
		.sm_blocks = 32,
		.sm_registers = 65536,
		.sm_shared_bytes = KIB(164),
		.block_shared_bytes = KIB(163),
		.dram_bytes_per_us = 1555000,
		.pinned_bytes_per_us = 24000,
		.pageable_bytes_per_us = 10000,
		.page_bytes = KIB(64),
		.fault_group_pages = 8,
		.fault_bytes_per_us = 14000,
		.prefetch_bytes_per_us = 21600,
		.fault_latency_ns = 25000,
		.slice_ns = 2000000,
		.switch_ns = 100000,
		.launch_latency_ns = 3000,
		.copy_latency_ns = 8000,
		.idle_power_mw = 50000,
		.max_power_mw = 400000,
	},
	{
		.name = "h100",
		.full_name = "NVIDIA H100 80GB HBM3",
		.capability_major = 9,
		.capability_minor = 0,
		.memory_bytes = MIB(81559),
		.context_bytes = MIB(500),
		.sm_count = 132,
		.clock_mhz = 1980,
		.base_clock_mhz = 1590,
		.idle_clock_mhz = 345,
		.instr_per_clock = 128,
		.sm_threads = 2048,
		.sm_blocks = 32,
		.sm_registers = 65536,
		.sm_shared_bytes = KIB(228),
		.block_shared_bytes = KIB(227),
		.dram_bytes_per_us = 3350000,
		.pinned_bytes_per_us = 48000,
		.pageable_bytes_per_us = 16000,
		.page_bytes = KIB(64),
		.fault_group_pages = 8,
		.fault_bytes_per_us = 32000,
		.prefetch_bytes_per_us = 43200,
		.fault_latency_ns = 16000,
		.slice_ns = 2000000,
		.switch_ns = 100000,
		.launch_latency_ns = 3000,
		.copy_latency_ns = 8000,
		.idle_power_mw = 70000,
		.max_power_mw = 700000,
	},
	{
		.name = "h200",
		.full_name = "NVIDIA H200",
		.capability_major = 9,
		.capability_minor = 0,
		.memory_bytes = MIB(143771),
		.context_bytes = MIB(500),
		.sm_count = 132,
		.clock_mhz = 1980,
		.base_clock_mhz = 1590,
		.idle_clock_mhz = 345,
		.instr_per_clock = 128,
		.sm_threads = 2048,
		.sm_blocks = 32,
		.sm_registers = 65536,
		.sm_shared_bytes = KIB(228),
		.block_shared_bytes = KIB(227),
		.dram_bytes_per_us = 4800000,
		.pinned_bytes_per_us = 48000,
		.pageable_bytes_per_us = 16000,
		.page_bytes = KIB(64),
		.fault_group_pages = 8,
		.fault_bytes_per_us = 32000,
		.prefetch_bytes_per_us = 43200,
		.fault_latency_ns = 16000,
		.slice_ns = 2000000,
		.switch_ns = 100000,
		.launch_latency_ns = 3000,
		.copy_latency_ns = 8000,
		.idle_power_mw = 75000,
		.max_power_mw = 700000,
	},
	{
		.name = "tiny",
		.full_name = "tandem tiny (software)",
		.capability_major = 9,
		.capability_minor = 0,
		.memory_bytes = MIB(64),
		.context_bytes = MIB(1),
		.sm_count = 2,
		.clock_mhz = 20,
		.base_clock_mhz = 10,
		.idle_clock_mhz = 5,
		.instr_per_clock = 1,
		.sm_threads = 2048,
		.sm_blocks = 32,
		.sm_registers = 65536,
		.sm_shared_bytes = KIB(64),
		.block_shared_bytes = KIB(48),
		.dram_bytes_per_us = 20000,
		.pinned_bytes_per_us = 1500,
		.pageable_bytes_per_us = 1000,
		.page_bytes = KIB(64),
		.fault_group_pages = 8,
		.fault_bytes_per_us = 450,
		.prefetch_bytes_per_us = 1350,
		.fault_latency_ns = 150000,
		.slice_ns = 2000000,
		.switch_ns = 100000,
		.launch_latency_ns = 20000,
		.copy_latency_ns = 20000,
		.idle_power_mw = 1000,
		.max_power_mw = 10000,
	},
};

static const unsigned spec_count = sizeof(specs) / sizeof(specs[0]);

const struct td_gpu_spec *td_gpu_spec_at(unsigned i)
{
	return i < spec_count ? &specs[i] : NULL;
}

const struct td_gpu_spec *td_gpu_spec_find(const char *name)
{
	for (unsigned i = 0; i < spec_count; i++)
		if (!strcmp(specs[i].name, name))
			return &specs[i];
	return NULL;
}

uint64_t td_gpu_spec_instr_per_us(const struct td_gpu_spec *spec)
{
	return (uint64_t)spec->sm_count * spec->instr_per_clock * spec->clock_mhz;
}
