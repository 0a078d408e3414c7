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
	/*
	 * Gets a segment. Returns 0, or nonzero for out of memory. Segments are aligned to at least
	 * 512 bytes.
	 */
	int (*get)(void *arg, size_t bytes, uint64_t *ret_address);
	/* Returns a segment. Waits first for work that may still use it. */
	void (*put)(void *arg, uint64_t address);
	/*
	 * Makes work submitted to `stream` from now on wait for the present work of stream `other`.
	 * TD_CACHE_ALL_STREAMS: for the present work of all streams.
	 */
	void (*join)(void *arg, const void *stream, const void *other);
	void *arg;
	/* Size of segments for requests below half of it, in whole 2 MiB; 0: 20 MiB. */
	size_t segment_bytes;
};

#define TD_CACHE_ALL_STREAMS ((const void *)UINTPTR_MAX)

struct td_cache_stats {
	uint64_t in_use_bytes, cached_bytes; /* sums of the sizes of blocks, with their rounding */
	/* Part of cached_bytes in whole free segments, which trimming gives back. */
	uint64_t spare_bytes;
	uint64_t peak_in_use_bytes;
	/* Maximum and minimum of in_use_bytes since td_cache_end_step(). */
	uint64_t step_peak_bytes, step_least_bytes;
	uint64_t hits, misses; /* requests served from cached memory; by the driver */
};

/* Makes a cache. Returns NULL if memory is short. */
struct td_cache *td_cache_new(const struct td_cache_driver *driver);
/* Frees the records only. The segments are left to the driver. */
void td_cache_delete(struct td_cache *cache);

/*
 * Allocates a block. Returns 0, or -ENOMEM. Before -ENOMEM, all cached memory has been given back.
 */
int td_cache_alloc(struct td_cache *cache, size_t bytes, const void *stream, uint64_t *ret_address);
/*
 * Records that another stream than the block's own uses the block, too. Returns 0; -EINVAL: no
 * block in use has this address.
 */
int td_cache_record(struct td_cache *cache, uint64_t address, const void *stream);
/* Frees a block. Returns 0; -EINVAL: no block in use has this address. */
int td_cache_free(struct td_cache *cache, uint64_t address);

/*
 * Gives whole free segments back, the largest first, until at least `bytes` are given back. Returns
 * how many were.
 */
size_t td_cache_trim(struct td_cache *cache, size_t bytes);

/* Ends a step: the peak and the least of the next step begin with what is in use now. */
void td_cache_end_step(struct td_cache *cache);

void td_cache_get_stats(const struct td_cache *cache, struct td_cache_stats *ret);
