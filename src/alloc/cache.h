/*
 * A caching allocator of device memory, as deep learning frameworks have one: freed memory is kept
 * in segments and handed out again on the same stream without asking the driver. For tandem it
 * distinguishes memory in use from cached memory, and gives the latter back at a step's end when
 * asked (AntMan 3.1.1: shrinking drops cached memory and copies none).
 *
 *   segment  memory from the driver: 2 MiB for requests up to 1 MiB, 20 MiB (or as the driver
 *            struct says) for those below half of that; otherwise the request in whole 2 MiB
 *   block    a part of a segment, a multiple of 512 bytes; free neighbours are one block
 *
 * Any thread may call, one at a time: the caller locks. get and put are called within.
 *
 * Invariants. Blocks of a segment lie end to end and cover it. No two neighbours are free. in_use +
 * cached = the bytes of all segments. A block is only given to the stream of its segment: work of
 * that stream submitted before the free precedes work submitted after. If other streams used the
 * block too (td_cache_record), that stream waits for their work until the free.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct td_cache;

struct td_cache_driver {
	/* Returns 0, or nonzero for out of memory. Segments are aligned to at least 512 bytes. */
	int (*get)(void *arg, size_t bytes, uint64_t *ret_address);
	/* Waits for work that may still use it. */
	void (*put)(void *arg, uint64_t address);
	/*
	 * Orders work submitted to `stream` from now on after the present work of `other`.
	 * TD_CACHE_ALL_STREAMS: after all work of any stream.
	 */
	void (*join)(void *arg, const void *stream, const void *other);
	void *arg;
	size_t segment_bytes; /* for requests below half of it, whole 2 MiB; 0: 20 MiB */
};

#define TD_CACHE_ALL_STREAMS ((const void *)UINTPTR_MAX)

struct td_cache_stats {
	uint64_t in_use_bytes, cached_bytes; /* in blocks, their rounding included */
	uint64_t spare_bytes; /* of what is cached: whole segments, which trimming gives back */
	uint64_t peak_in_use_bytes;
	uint64_t step_peak_bytes, step_least_bytes; /* in use, since td_cache_end_step */
	uint64_t hits, misses; /* requests served from what was kept, and by the driver */
};

/* NULL: memory is short. */
struct td_cache *td_cache_new(const struct td_cache_driver *driver);
/* Segments are left to the driver. */
void td_cache_delete(struct td_cache *cache);

/* Returns 0 or -ENOMEM. Before -ENOMEM, all cached memory has been given back. */
int td_cache_alloc(struct td_cache *cache, size_t bytes, const void *stream, uint64_t *ret_address);
/*
 * Records that another stream than the block's own uses it, too. Returns 0, or -EINVAL if the
 * address is no block in use.
 */
int td_cache_record(struct td_cache *cache, uint64_t address, const void *stream);
/* Returns 0, or -EINVAL for an address that is no block in use. */
int td_cache_free(struct td_cache *cache, uint64_t address);

/*
 * Gives whole free segments back, the largest first, until `bytes` have gone. Returns the bytes
 * that went.
 */
size_t td_cache_trim(struct td_cache *cache, size_t bytes);

/* A step has ended: its peak and its least are those of the next one from now on. */
void td_cache_end_step(struct td_cache *cache);

void td_cache_get_stats(const struct td_cache *cache, struct td_cache_stats *ret);
