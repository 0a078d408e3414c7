/*
 * One GPU's memory: reserved bytes, and the managed pages that are on it.
 *
 * Purpose. Every process of a GPU reserves its memory here, so no process gets memory that another
 * has, and oversubscription has its price.
 *
 * Plain bytes (allocations, contexts) are reserved or refused. Managed pages come when a kernel
 * touches them or by prefetch, and go, least recently used first over all contexts, when others
 * need the room; a plain reservation evicts them too. A page that finds no room even so, because
 * plain bytes fill the GPU, stays on the host and is read there over the link.
 *
 * Contexts, ranges and the ranges' page records are memory of the caller. Every operation is O(1)
 * per page that it names or evicts. Nothing takes time here: struct td_moves says what was moved
 * and td_model_moves_ns() (kernel.h) what that costs.
 *
 * Invariants
 * - plain and resident bytes never exceed the capacity; both are the sums over the contexts;
 * - a page is on the device or on the host, and a written page is copied before it changes sides;
 * - a refused reservation changes nothing; a context that leaves frees all that was its own, and
 *   nothing else;
 * - same calls, same pages and same moves.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

struct td_gpu_spec;

enum { TD_MEMORY_OK, TD_MEMORY_FULL };

/* Functions add to it; zero it before the first. */
struct td_moves {
	uint64_t faults;         /* pages that were missing when a kernel touched them */
	uint64_t groups;         /* faults as the GPU takes them: neighbours together */
	uint64_t fault_in_bytes; /* host to device because of faults */
	uint64_t prefetch_in_bytes;
	uint64_t out_bytes; /* device to host: dirty pages evicted, prefetched or touched there */
	uint64_t remote_bytes; /* read or written in place on the host, for want of room */
	uint64_t evictions;    /* pages that had to go, dirty or clean */
};

void td_moves_add(struct td_moves *sum, const struct td_moves *moves);

struct td_memory_context {
	struct td_list ranges;
	uint64_t plain_bytes;    /* reserved, its own cost included */
	uint64_t managed_bytes;  /* size of its ranges, in whole pages */
	uint64_t resident_bytes; /* of these, on the device */
};

/* A page lives on the host (whose copy may be untouched: zeros, never copied) or on the device. */
struct td_page {
	struct td_list lru; /* in td_memory.lru while on the device */
	struct td_range *range;
	bool on_device;
	bool dirty;    /* on the device: written since it came */
	bool has_data; /* the host's copy is more than zeros that were never written */
};

struct td_range {
	struct td_list link;
	struct td_memory_context *context;
	uint64_t page_count;
	struct td_page *pages;
};

struct td_memory {
	uint64_t capacity_bytes;
	uint64_t plain_bytes;
	uint64_t resident_bytes; /* managed pages on the device */
	uint32_t page_bytes, group_pages;
	struct td_list lru;    /* pages on the device, least recently used first */
	struct td_moves total; /* since init */
};

/* Page size and fault groups are the spec's, capacity its memory_bytes. */
void td_memory_init(struct td_memory *mem, const struct td_gpu_spec *spec);

/* Makes ctx known and reserves cost_bytes for it. TD_MEMORY_FULL: no room; ctx is not known. */
int td_memory_context_add(struct td_memory *mem, struct td_memory_context *ctx, uint64_t cost_bytes,
	struct td_moves *moves);

/* Releases everything of ctx: plain bytes, ranges, pages. Cancel its kernels before. */
void td_memory_context_remove(struct td_memory *mem, struct td_memory_context *ctx);

/* Plain bytes. TD_MEMORY_FULL: not even with all managed pages gone; nothing was changed. */
int td_memory_reserve(struct td_memory *mem, struct td_memory_context *ctx, uint64_t bytes,
	struct td_moves *moves);
void td_memory_release(struct td_memory *mem, struct td_memory_context *ctx, uint64_t bytes);

/* Free at this instant; and what a reservation could get by evicting managed pages. */
uint64_t td_memory_free_bytes(const struct td_memory *mem);
uint64_t td_memory_available_bytes(const struct td_memory *mem);

/* Pages that a managed allocation of so many bytes has: how many td_page to provide. */
uint64_t td_memory_page_count(const struct td_memory *mem, uint64_t bytes);

/* All pages start on the host, never written. Managed memory may exceed the GPU. */
void td_memory_range_add(struct td_memory *mem, struct td_memory_context *ctx,
	struct td_range *range, struct td_page *pages, uint64_t page_count);
void td_memory_range_remove(struct td_memory *mem, struct td_range *range);

/* A running kernel reads (or writes) these pages. The pages must lie within the range. */
void td_memory_touch(struct td_memory *mem, struct td_range *range, uint64_t first, uint64_t count,
	bool write, struct td_moves *moves);

/* The program touches them on the CPU: they go home, and hold data once written. */
void td_memory_touch_host(struct td_memory *mem, struct td_range *range, uint64_t first,
	uint64_t count, bool write, struct td_moves *moves);

/*
 * Bulk migration. To the device: stops bringing pages in when only its own would have to go, as
 * the later pages would push out the earlier ones.
 */
void td_memory_prefetch_device(struct td_memory *mem, struct td_range *range, uint64_t first,
	uint64_t count, struct td_moves *moves);
void td_memory_prefetch_host(struct td_memory *mem, struct td_range *range, uint64_t first,
	uint64_t count, struct td_moves *moves);
