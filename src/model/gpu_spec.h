/*
 * The figures of one GPU model: sizes, rates and costs that the model's formulas use.
 *
 * Purpose. One table describes the GPUs; formulas (kernel.h, memory.h, timeline.h, load.h) name no
 * product. gpu_spec.c names the source of each figure, and says where a figure was chosen for want
 * of a source.
 *
 * Rates are bytes per microsecond (= 10^6 bytes/s), so that bytes * 1000 / rate stays within 64
 * bits for every size that a GPU can hold.
 *
 * Invariants
 * - names are unique, and in the table's order for help texts;
 * - no rate, count or slice is 0; idle is not above base, base not above the highest clock; a
 *   context leaves memory to its program;
 * - pageable is not quicker than pinned, and faults are not quicker than prefetches;
 * - the table is constant; for another GPU, copy a row.
 */
#pragma once

#include <stdint.h>

struct td_gpu_spec {
	const char *name;      /* what a person types: "a100" */
	const char *full_name; /* what cuDeviceGetName shows */
	uint32_t capability_major, capability_minor;

	uint64_t memory_bytes;
	uint64_t context_bytes; /* taken from memory_bytes by each context */

	uint32_t sm_count;
	uint32_t clock_mhz;       /* highest SM clock, at which the model always runs */
	uint32_t base_clock_mhz;  /* clock at which thermal slow-down ends */
	uint32_t idle_clock_mhz;  /* shown by NVML while nothing runs */
	uint32_t instr_per_clock; /* thread instructions that one SM issues per cycle */
	uint32_t sm_threads, sm_blocks, sm_registers;
	uint32_t sm_shared_bytes;
	uint32_t block_shared_bytes; /* maximum shared memory that a block may opt in to */

	uint32_t dram_bytes_per_us;
	/* Rate of the link in each direction, for page-locked memory. */
	uint32_t pinned_bytes_per_us;
	/* Rate of the link in each direction, for pageable memory through a staging buffer. */
	uint32_t pageable_bytes_per_us;

	uint32_t page_bytes; /* unit of residency of managed memory */
	/* The number of pages that one page fault brings in, if all of them are missing. */
	uint32_t fault_group_pages;
	uint32_t fault_bytes_per_us;    /* rate of migration by faults */
	uint32_t prefetch_bytes_per_us; /* rate of migration by prefetch */
	uint64_t fault_latency_ns;      /* added once per fault group */

	uint64_t slice_ns;  /* a context's turn while others wait */
	uint64_t switch_ns; /* engine time lost when the turn goes to another context */
	uint64_t launch_latency_ns;
	uint64_t copy_latency_ns;

	uint32_t idle_power_mw, max_power_mw;
};

/* Returns the spec of that name, or NULL. It is never freed. Copy the struct to change a field. */
const struct td_gpu_spec *td_gpu_spec_find(const char *name);

/* Returns the i-th spec of the table, NULL past the end. For help texts. */
const struct td_gpu_spec *td_gpu_spec_at(unsigned i);

/* Returns the thread instructions per microsecond of the whole GPU when every SM always issues. */
uint64_t td_gpu_spec_instr_per_us(const struct td_gpu_spec *spec);
