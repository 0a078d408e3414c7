/*
 * Implements cache.h. Free blocks are in lists by their size's power of two; blocks in use are in a
 * hash table by address.
 */
#include "alloc/cache.h"

#include <errno.h>
#include <stdlib.h>

#include "base/list.h"

#define UNIT          ((size_t)512)
#define SMALL_MAX     ((size_t)1 << 20)
#define SMALL_SEGMENT ((size_t)2 << 20)
#define LARGE_SEGMENT ((size_t)20 << 20)
#define LARGE_ROUND   ((size_t)2 << 20)
#define BINS          64
#define BUCKETS       4096
/*
 * A freed block remembers this many streams, besides its own, that used it. If more streams used
 * it, freeing it waits for all streams.
 */
#define USERS 4

struct segment {
	const void *stream;
	bool small;
};

struct block {
	struct td_list link; /* in a list by size, or in the hash table */
	struct block *before, *after;
	struct segment *segment;
	uint64_t address;
	size_t bytes;
	bool in_use;
	uint8_t user_count; /* more than USERS: freeing waits for all streams */
	const void *users[USERS];
};

struct td_cache {
	struct td_cache_driver driver;
	struct td_cache_stats stats;
	struct td_list bins[BINS], buckets[BUCKETS];
};

static struct td_list *bucket_of(struct td_cache *cache, uint64_t address)
{
	return &cache->buckets[(address / UNIT * 0x9e3779b97f4a7c15ull >> 32) % BUCKETS];
}

static unsigned bin_of(size_t bytes)
{
	return 63u - (unsigned)__builtin_clzll(bytes);
}

struct td_cache *td_cache_new(const struct td_cache_driver *driver)
{
	struct td_cache *cache = calloc(1, sizeof(*cache));

	if (!cache)
		return NULL;
	cache->driver = *driver;
	if (!cache->driver.segment_bytes)
		cache->driver.segment_bytes = LARGE_SEGMENT;
	for (unsigned i = 0; i < BINS; i++)
		td_list_init(&cache->bins[i]);
	for (unsigned i = 0; i < BUCKETS; i++)
		td_list_init(&cache->buckets[i]);
	return cache;
}

static void delete_all(struct td_list *head)
{
	struct td_list *it, *tmp;

	td_list_for_each_safe (it, tmp, head) {
		struct block *block = td_container_of(it, struct block, link);

		/* The segment's record is freed with its first block. */
		if (!block->before)
			free(block->segment);
		free(block);
	}
}

void td_cache_delete(struct td_cache *cache)
{
	for (unsigned i = 0; i < BINS; i++)
		delete_all(&cache->bins[i]);
	for (unsigned i = 0; i < BUCKETS; i++)
		delete_all(&cache->buckets[i]);
	free(cache);
}

static uint64_t spare(const struct block *block)
{
	return block->before || block->after ? 0 : block->bytes;
}

/* Takes a free block out of its bin. */
static void take_from_bin(struct td_cache *cache, struct block *block)
{
	cache->stats.spare_bytes -= spare(block);
	td_list_remove(&block->link);
}

static void put_in_bin(struct td_cache *cache, struct block *block)
{
	block->in_use = false;
	cache->stats.spare_bytes += spare(block);
	td_list_append(&cache->bins[bin_of(block->bytes)], &block->link);
}

static bool fits(const struct block *block, size_t bytes, const void *stream)
{
	return block->bytes >= bytes && block->segment->stream == stream &&
	       block->segment->small == (bytes <= SMALL_MAX);
}

/* Returns the smallest free block that fits; NULL: there is none. */
static struct block *find_block(struct td_cache *cache, size_t bytes, const void *stream)
{
	struct block *best = NULL;
	struct td_list *it;

	for (unsigned i = bin_of(bytes); i < BINS && !best; i++) {
		td_list_for_each (it, &cache->bins[i]) {
			struct block *block = td_container_of(it, struct block, link);

			if (fits(block, bytes, stream) && (!best || block->bytes < best->bytes))
				best = block;
		}
	}
	return best;
}

static size_t segment_bytes(const struct td_cache *cache, size_t bytes)
{
	if (bytes <= SMALL_MAX)
		return SMALL_SEGMENT;
	if (bytes < cache->driver.segment_bytes / 2)
		return cache->driver.segment_bytes;
	return (bytes + LARGE_ROUND - 1) / LARGE_ROUND * LARGE_ROUND;
}

/*
 * Gets a new segment, which is one free block. Returns NULL if there is no memory on the device or
 * on the host.
 */
static struct block *get_block(struct td_cache *cache, size_t bytes, const void *stream)
{
	struct segment *segment = calloc(1, sizeof(*segment));
	struct block *block = calloc(1, sizeof(*block));

	if (!segment || !block)
		goto err_free;
	block->bytes = segment_bytes(cache, bytes);
	if (cache->driver.get(cache->driver.arg, block->bytes, &block->address) &&
		(!td_cache_trim(cache, SIZE_MAX) ||
			cache->driver.get(cache->driver.arg, block->bytes, &block->address)))
		goto err_free;
	*segment = (struct segment){stream, bytes <= SMALL_MAX};
	block->segment = segment;
	cache->stats.cached_bytes += block->bytes;
	put_in_bin(cache, block);
	return block;

err_free:
	free(segment);
	free(block);
	return NULL;
}

/*
 * Tells whether a block should be split. A large block keeps a small rest, which nobody could use.
 */
static bool is_worth_splitting(const struct block *block, size_t bytes)
{
	size_t rest = block->bytes - bytes;

	return block->segment->small ? rest >= UNIT : rest > SMALL_MAX;
}

/* Splits the rest off a block, if there is memory for the rest's record. */
static void split(struct td_cache *cache, struct block *block, size_t bytes)
{
	struct block *rest = is_worth_splitting(block, bytes) ? calloc(1, sizeof(*rest)) : NULL;

	if (!rest)
		return;
	*rest = (struct block){.before = block,
		.after = block->after,
		.segment = block->segment,
		.address = block->address + bytes,
		.bytes = block->bytes - bytes};
	if (rest->after)
		rest->after->before = rest;
	block->after = rest;
	block->bytes = bytes;
	put_in_bin(cache, rest);
}

int td_cache_alloc(struct td_cache *cache, size_t bytes, const void *stream, uint64_t *ret_address)
{
	struct td_cache_stats *stats = &cache->stats;
	struct block *block;

	if (bytes > SIZE_MAX / 2)
		return -ENOMEM;
	bytes = bytes ? (bytes + UNIT - 1) / UNIT * UNIT : UNIT;
	block = find_block(cache, bytes, stream);
	stats->hits += block != NULL;
	stats->misses += block == NULL;
	if (!block)
		block = get_block(cache, bytes, stream);
	if (!block)
		return -ENOMEM;
	take_from_bin(cache, block);
	split(cache, block, bytes);
	block->in_use = true;
	td_list_append(bucket_of(cache, block->address), &block->link);
	stats->cached_bytes -= block->bytes;
	stats->in_use_bytes += block->bytes;
	if (stats->in_use_bytes > stats->peak_in_use_bytes)
		stats->peak_in_use_bytes = stats->in_use_bytes;
	if (stats->in_use_bytes > stats->step_peak_bytes)
		stats->step_peak_bytes = stats->in_use_bytes;
	*ret_address = block->address;
	return 0;
}

/* Joins a block with the one behind it. Both are free and in no list. */
static void merge(struct block *block, struct block *next)
{
	block->bytes += next->bytes;
	block->after = next->after;
	if (block->after)
		block->after->before = block;
	free(next);
}

static struct block *find_in_use(struct td_cache *cache, uint64_t address)
{
	struct td_list *it;

	td_list_for_each (it, bucket_of(cache, address))
		if (td_container_of(it, struct block, link)->address == address)
			return td_container_of(it, struct block, link);
	return NULL;
}

int td_cache_record(struct td_cache *cache, uint64_t address, const void *stream)
{
	struct block *block = find_in_use(cache, address);

	if (!block)
		return -EINVAL;
	if (stream == block->segment->stream || block->user_count > USERS)
		return 0;
	for (unsigned i = 0; i < block->user_count; i++)
		if (block->users[i] == stream)
			return 0;
	if (block->user_count < USERS)
		block->users[block->user_count] = stream;
	block->user_count++;
	return 0;
}

static void join_users(struct td_cache *cache, struct block *block)
{
	const struct td_cache_driver *driver = &cache->driver;

	if (block->user_count > USERS)
		driver->join(driver->arg, block->segment->stream, TD_CACHE_ALL_STREAMS);
	for (unsigned i = 0; block->user_count <= USERS && i < block->user_count; i++)
		driver->join(driver->arg, block->segment->stream, block->users[i]);
	block->user_count = 0;
}

int td_cache_free(struct td_cache *cache, uint64_t address)
{
	struct block *block = find_in_use(cache, address);

	if (!block)
		return -EINVAL;
	join_users(cache, block);
	cache->stats.in_use_bytes -= block->bytes;
	if (cache->stats.in_use_bytes < cache->stats.step_least_bytes)
		cache->stats.step_least_bytes = cache->stats.in_use_bytes;
	cache->stats.cached_bytes += block->bytes;
	td_list_remove(&block->link);
	if (block->after && !block->after->in_use) {
		take_from_bin(cache, block->after);
		merge(block, block->after);
	}
	if (block->before && !block->before->in_use) {
		block = block->before;
		take_from_bin(cache, block);
		merge(block, block->after);
	}
	put_in_bin(cache, block);
	return 0;
}

static void give_back(struct td_cache *cache, struct block *block)
{
	cache->stats.cached_bytes -= block->bytes;
	cache->driver.put(cache->driver.arg, block->address);
	take_from_bin(cache, block);
	free(block->segment);
	free(block);
}

size_t td_cache_trim(struct td_cache *cache, size_t bytes)
{
	size_t gone = 0;
	struct td_list *it, *tmp;

	for (unsigned i = BINS; i-- > 0;) {
		td_list_for_each_safe (it, tmp, &cache->bins[i]) {
			struct block *block = td_container_of(it, struct block, link);

			if (gone >= bytes)
				return gone;
			if (block->before || block->after)
				continue;
			gone += block->bytes;
			give_back(cache, block);
		}
	}
	return gone;
}

void td_cache_end_step(struct td_cache *cache)
{
	cache->stats.step_peak_bytes = cache->stats.step_least_bytes = cache->stats.in_use_bytes;
}

void td_cache_get_stats(const struct td_cache *cache, struct td_cache_stats *ret)
{
	*ret = cache->stats;
}
