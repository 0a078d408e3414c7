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
 * Returns the time of a kernel by the roofline model: the largest of makespan_ns, instructions over
 * the GPU's issue rate, and bytes over its DRAM bandwidth; plus the launch latency. makespan_ns is
 * the time of the critical path, with blocks dealt to SMs and sleeps; 0: not known. `instructions`
 * counts those of each thread.
 */
uint64_t td_model_kernel_ns(const struct td_gpu_spec *spec, uint64_t makespan_ns,
	uint64_t instructions, uint64_t dram_bytes);

/*
 * Returns the time of a copy that runs alone. `pinned` matters only for copies over the link. A
 * copy within the device moves each byte twice.
 */
uint64_t td_model_copy_ns(
	const struct td_gpu_spec *spec, enum td_copy kind, uint64_t bytes, bool pinned);

/*
 * Returns the time that moved pages cost a kernel (faults) or a prefetch: the latency of each fault
 * group; bytes in, at the rate of faults or of bulk copies; bytes out, as bulk copies before the
 * bytes in that need their room; and remote accesses at the pinned rate of the link.
 */
uint64_t td_model_moves_ns(const struct td_gpu_spec *spec, const struct td_moves *moves);

/* The resources of an SM that one block needs. */
struct td_block_needs {
	uint32_t threads;
	uint32_t registers; /* per thread; 0: not known, so no limit */
	uint32_t shared_bytes;
};

/* Returns how many blocks are resident on one SM at once; 0: the launch is refused. */
uint32_t td_model_blocks_per_sm(const struct td_gpu_spec *spec, const struct td_block_needs *needs);

/*
 * Returns the number of waves in which a grid of this many blocks runs; 0 if its launch is refused.
 */
uint64_t td_model_wave_count(
	const struct td_gpu_spec *spec, const struct td_block_needs *needs, uint64_t blocks);
