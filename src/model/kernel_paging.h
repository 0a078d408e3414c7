/*
 * A kernel on managed memory, under time slices: its pages are touched as it progresses, and each
 * fault holds it up.
 *
 * Purpose. nvshare exists because of thrashing: two programs whose managed memory does not fit push
 * out each other's pages turn by turn. It happens only if others have turns between the touches of
 * pages, so a kernel's touches are spread over its own progress.
 *
 * The touch list is spread evenly over the kernel's solo length: page i of n is due at progress i *
 * length / n. Pages are touched a fault group at a time, until the faults of this visit have cost
 * quantum_ns; the rest follows when these are served. So with quantum = slice / 16 the order in
 * which contexts touch pages is right to a sixteenth of a turn, and so is the LRU order.
 *
 * Invariants
 * - each page of the list is touched once, in order, and all of them before the kernel is done;
 * - a kernel takes its length and what its moves cost (td_model_moves_ns), whatever the slices;
 * - pages that are on the device cost nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/memory.h"

struct td_gpu_spec;
struct td_op;
struct td_timeline;

struct td_touch {
	struct td_range *range;
	uint64_t first, count; /* pages, counted within the range */
	bool write;
};

struct td_kernel_paging {
	const struct td_gpu_spec *spec;
	struct td_memory *mem;
	const struct td_touch *touches; /* owned by the caller, kept until the kernel is done */
	size_t touch_count;
	uint64_t length_ns, quantum_ns;
	uint64_t page_count; /* number of pages of all touches */
	size_t at;           /* index of the next touch; pages done in it and in all */
	uint64_t at_page, pages_done;
	struct td_moves moves; /* all moves of this kernel */
};

void td_kernel_paging_init(struct td_kernel_paging *paging, const struct td_gpu_spec *spec,
	struct td_memory *mem, const struct td_touch *touches, size_t touch_count);

/*
 * Gives op its solo length and its touches. paging, its touches and their ranges must exist until
 * op is done or cancelled.
 */
void td_kernel_paging_start(struct td_kernel_paging *paging, struct td_timeline *tl,
	struct td_op *op, uint64_t length_ns);
