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

/* Counts of moved pages. Functions add to it, so zero it before the first call. */
struct td_moves {
	uint64_t faults;         /* missing pages that a kernel touched */
	uint64_t groups;         /* fault groups: the GPU takes neighbouring faults together */
	uint64_t fault_in_bytes; /* host to device because of faults */
	uint64_t prefetch_in_bytes;
	/* Device to host: dirty pages that were evicted, prefetched or touched there. */
	uint64_t out_bytes;
	uint64_t remote_bytes; /* bytes used in place on the host, because the device has no room */
	uint64_t evictions;    /* evicted pages, dirty or clean */
};

void td_moves_add(struct td_moves *sum, const struct td_moves *moves);

struct td_memory_context {
	struct td_list ranges;
	uint64_t plain_bytes;    /* reserved bytes, with the context's own cost */
	uint64_t managed_bytes;  /* size of its ranges, in whole pages */
	uint64_t resident_bytes; /* part of managed_bytes on the device */
};

/*
 * A page is on the device or on the host. The host's copy may never have been written: then it is
 * zeros and needs no copy.
 */
struct td_page {
	struct td_list lru; /* in td_memory.lru while on the device */
	struct td_range *range;
	bool on_device;
	bool dirty;    /* written since it came to the device */
	bool has_data; /* the host's copy was written, so it is not just zeros */
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
	struct td_moves total; /* all moves since td_memory_init() */
};

/* Makes an empty memory with the spec's memory_bytes, page size and fault groups. */
void td_memory_init(struct td_memory *mem, const struct td_gpu_spec *spec);

/*
 * Adds ctx and reserves cost_bytes for it. Returns 0, or TD_MEMORY_FULL: no room, and ctx is not
 * added.
 */
int td_memory_context_add(struct td_memory *mem, struct td_memory_context *ctx, uint64_t cost_bytes,
	struct td_moves *moves);

/* Frees the plain bytes, ranges and pages of ctx. Its kernels have to be cancelled before. */
void td_memory_context_remove(struct td_memory *mem, struct td_memory_context *ctx);

/*
 * Reserves plain bytes and evicts managed pages if needed. Returns 0, or TD_MEMORY_FULL: they do
 * not fit even without managed pages, and nothing was changed.
 */
int td_memory_reserve(struct td_memory *mem, struct td_memory_context *ctx, uint64_t bytes,
	struct td_moves *moves);
void td_memory_release(struct td_memory *mem, struct td_memory_context *ctx, uint64_t bytes);

/*
 * td_memory_free_bytes() returns what is free now, td_memory_available_bytes() what a reservation
 * could get by evicting all managed pages.
 */
uint64_t td_memory_free_bytes(const struct td_memory *mem);
uint64_t td_memory_available_bytes(const struct td_memory *mem);

/*
 * Returns the number of pages of a managed allocation of this size, which is the number of td_page
 * structs to provide.
 */
uint64_t td_memory_page_count(const struct td_memory *mem, uint64_t bytes);

/*
 * Adds a managed range. All of its pages are on the host and were never written. Managed memory may
 * exceed the GPU's.
 */
void td_memory_range_add(struct td_memory *mem, struct td_memory_context *ctx,
	struct td_range *range, struct td_page *pages, uint64_t page_count);
void td_memory_range_remove(struct td_memory *mem, struct td_range *range);

/* Notes that a running kernel reads or writes these pages, which must be within the range. */
void td_memory_touch(struct td_memory *mem, struct td_range *range, uint64_t first, uint64_t count,
	bool write, struct td_moves *moves);

/*
 * Notes that the program touches these pages on the CPU: they move to the host, and have data once
 * written.
 */
void td_memory_touch_host(struct td_memory *mem, struct td_range *range, uint64_t first,
	uint64_t count, bool write, struct td_moves *moves);

/*
 * Migrates pages in bulk. The prefetch to the device stops when it would evict its own earlier
 * pages.
 */
void td_memory_prefetch_device(struct td_memory *mem, struct td_range *range, uint64_t first,
	uint64_t count, struct td_moves *moves);
void td_memory_prefetch_host(struct td_memory *mem, struct td_range *range, uint64_t first,
	uint64_t count, struct td_moves *moves);
