/*
 * The time of a kernel, a copy or a migration that has the GPU to itself.
 *
 * Purpose. The time of a piece of work alone follows from its description: the software GPU's
 * interpretation, or a trace. The effect of other work is in timeline.h (turns), contention.h (side
 * by side) and memory.h (pages).
 *
 * Source. Kernels: the roofline model (Williams, Waterman, Patterson, "Roofline: an insightful
 * visual performance model", 2009), with the blocks' critical path as a third bound. Occupancy: the
 * rules of the CUDA C++ Programming Guide ("Hardware Multithreading"), by threads, blocks,
 * registers and shared memory.
 *
 * Invariants
 * - times are whole ns, rounded up, so no work takes no time;
 * - more instructions, bytes or moves never take less time; nothing overflows for sizes that a GPU
 *   can hold;
 * - pageable copies are never quicker than pinned ones;
 * - blocks per SM is 0 exactly where a launch is refused.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_gpu_spec;
struct td_moves;

enum td_copy { TD_COPY_HTOD, TD_COPY_DTOH, TD_COPY_DTOD };

/*
 * Roofline: the largest of makespan_ns (time of the critical path: blocks dealt to SMs, sleeps;
 * 0 when not known), instructions over the GPU's issue rate and bytes over its DRAM bandwidth;
 * plus the launch latency. `instructions` counts each thread's.
 */
uint64_t td_model_kernel_ns(const struct td_gpu_spec *spec, uint64_t makespan_ns,
	uint64_t instructions, uint64_t dram_bytes);

/* A copy of its own; pinned matters for the link only. Within the device each byte moves twice. */
uint64_t td_model_copy_ns(
	const struct td_gpu_spec *spec, enum td_copy kind, uint64_t bytes, bool pinned);

/*
 * Returns the time that moves cost a kernel (faults) or a prefetch: latency per fault group, bytes
 * in at the rate of faults or of bulk copies, bytes out as bulk copies before the bytes in that
 * need their room, remote accesses at the link's pinned rate.
 */
uint64_t td_model_moves_ns(const struct td_gpu_spec *spec, const struct td_moves *moves);

/* The resources of an SM that one block needs. */
struct td_block_needs {
	uint32_t threads;
	uint32_t registers; /* per thread; 0: not known, no limit */
	uint32_t shared_bytes;
};

/* Blocks resident on one SM at once; 0: cannot be launched at all. */
uint32_t td_model_blocks_per_sm(const struct td_gpu_spec *spec, const struct td_block_needs *needs);

/* Rounds in which a grid of so many blocks runs, all SMs filled; 0 if it cannot be launched. */
uint64_t td_model_wave_count(
	const struct td_gpu_spec *spec, const struct td_block_needs *needs, uint64_t blocks);
