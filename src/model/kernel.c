/*
 * Computes durations of work that runs alone. They are whole ns, rounded up, so that no work takes
 * 0 ns.
 */
#include "model/kernel.h"

#include "base/bounds.h"
#include "model/gpu_spec.h"
#include "model/memory.h"

#define NS_PER_US    1000u
#define WARP_THREADS 32u
/*
 * By the CUDA C++ Programming Guide registers are allocated per warp in units of 256, and shared
 * memory in units of at least 128 bytes. A block has up to 1024 threads on every capability.
 */
#define REGISTER_UNIT     256u
#define SHARED_UNIT       128u
#define BLOCK_THREADS_MAX 1024u

static uint64_t round_up(uint64_t n, uint64_t unit)
{
	return (n + unit - 1) / unit * unit;
}

/* Returns count / rate_per_us in ns. The division is split so that no count exceeds 64 bits. */
static uint64_t count_ns(uint64_t count, uint64_t rate_per_us)
{
	uint64_t us = count / rate_per_us, rest = count % rate_per_us;

	return us * NS_PER_US + (rest * NS_PER_US + rate_per_us - 1) / rate_per_us;
}

uint64_t td_model_kernel_ns(const struct td_gpu_spec *spec, uint64_t makespan_ns,
	uint64_t instructions, uint64_t dram_bytes)
{
	uint64_t issue_ns = count_ns(instructions, td_gpu_spec_instr_per_us(spec));
	uint64_t dram_ns = count_ns(dram_bytes, spec->dram_bytes_per_us);

	return spec->launch_latency_ns + td_max_u64(makespan_ns, td_max_u64(issue_ns, dram_ns));
}

uint64_t td_model_copy_ns(
	const struct td_gpu_spec *spec, enum td_copy kind, uint64_t bytes, bool pinned)
{
	uint32_t link = pinned ? spec->pinned_bytes_per_us : spec->pageable_bytes_per_us;
	uint64_t ns = 0;

	switch (kind) {
	case TD_COPY_HTOD:
	case TD_COPY_DTOH: ns = count_ns(bytes, link); break;
	case TD_COPY_DTOD: ns = count_ns(2 * bytes, spec->dram_bytes_per_us); break;
	}
	return spec->copy_latency_ns + ns;
}

uint64_t td_model_moves_ns(const struct td_gpu_spec *spec, const struct td_moves *moves)
{
	return moves->groups * spec->fault_latency_ns +
	       count_ns(moves->fault_in_bytes, spec->fault_bytes_per_us) +
	       count_ns(moves->prefetch_in_bytes, spec->prefetch_bytes_per_us) +
	       count_ns(moves->out_bytes, spec->prefetch_bytes_per_us) +
	       count_ns(moves->remote_bytes, spec->pinned_bytes_per_us);
}

uint32_t td_model_blocks_per_sm(const struct td_gpu_spec *spec, const struct td_block_needs *needs)
{
	uint32_t warps = (needs->threads + WARP_THREADS - 1) / WARP_THREADS;
	uint32_t blocks = spec->sm_blocks;
	uint64_t registers, shared;

	if (!needs->threads || needs->threads > BLOCK_THREADS_MAX ||
		needs->shared_bytes > spec->block_shared_bytes)
		return 0;
	blocks = td_min_u32(blocks, spec->sm_threads / (warps * WARP_THREADS));
	registers = warps * round_up((uint64_t)needs->registers * WARP_THREADS, REGISTER_UNIT);
	if (registers)
		blocks = td_min_u32(blocks, (uint32_t)(spec->sm_registers / registers));
	shared = round_up(needs->shared_bytes, SHARED_UNIT);
	if (shared)
		blocks = td_min_u32(blocks, (uint32_t)(spec->sm_shared_bytes / shared));
	return blocks;
}

uint64_t td_model_wave_count(
	const struct td_gpu_spec *spec, const struct td_block_needs *needs, uint64_t blocks)
{
	uint64_t at_once = (uint64_t)td_model_blocks_per_sm(spec, needs) * spec->sm_count;

	return at_once ? blocks / at_once + !!(blocks % at_once) : 0;
}
