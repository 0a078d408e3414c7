/* The caching allocator against a driver that remembers what it gave. */
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/cache.h"

#define MIB      ((uint64_t)1 << 20)
#define SEGMENTS 512

static struct {
	struct {
		uint64_t address, bytes; /* address 0: free */
	} segments[SEGMENTS];
	uint64_t next, bytes, most;
	unsigned gets, puts;
} driver;

static int get(void *arg, size_t bytes, uint64_t *ret_address)
{
	(void)arg;
	if (driver.bytes + bytes > driver.most)
		return 2;
	for (unsigned i = 0; i < SEGMENTS; i++) {
		if (driver.segments[i].address)
			continue;
		driver.segments[i].address = *ret_address = driver.next;
		driver.segments[i].bytes = bytes;
		driver.next += bytes + MIB;
		driver.bytes += bytes;
		driver.gets++;
		return 0;
	}
	return 2;
}

static void put(void *arg, uint64_t address)
{
	(void)arg;
	for (unsigned i = 0; i < SEGMENTS; i++) {
		if (driver.segments[i].address != address)
			continue;
		driver.bytes -= driver.segments[i].bytes;
		driver.segments[i].address = 0;
		driver.puts++;
		return;
	}
	abort(); /* never given */
}

static struct {
	const void *stream, *other;
} joined[16];
static unsigned joined_count;

static void join(void *arg, const void *stream, const void *other)
{
	(void)arg;
	joined[joined_count].stream = stream;
	joined[joined_count++].other = other;
}

static struct td_cache *begin(uint64_t most)
{
	const struct td_cache_driver d = {get, put, join, NULL, 0};

	memset(&driver, 0, sizeof(driver));
	driver.next = 1 << 30;
	driver.most = most;
	return td_cache_new(&d);
}

static uint64_t take(struct td_cache *cache, size_t bytes)
{
	uint64_t address = 0;

	CHECK_EQ(td_cache_alloc(cache, bytes, NULL, &address), 0);
	return address;
}

TEST(what_was_freed_is_handed_out_again_without_the_driver)
{
	struct td_cache *cache = begin(UINT64_MAX);
	struct td_cache_stats stats;
	uint64_t a = take(cache, 3 * MIB), b = take(cache, 1000);

	CHECK_EQ(driver.gets, 2);
	CHECK_EQ(td_cache_free(cache, a), 0);
	CHECK_EQ(td_cache_free(cache, b), 0);
	CHECK_EQ(take(cache, 3 * MIB), a);
	CHECK_EQ(take(cache, 10), b);
	CHECK_EQ(driver.gets, 2);
	CHECK_EQ(driver.puts, 0);
	td_cache_get_stats(cache, &stats);
	CHECK_EQ(stats.in_use_bytes, 3 * MIB + 512);
	CHECK_EQ(stats.cached_bytes, 22 * MIB - 3 * MIB - 512);
	CHECK_EQ(stats.hits, 2);
	td_cache_delete(cache);
}

TEST(only_to_the_stream_that_it_was_freed_on)
{
	struct td_cache *cache = begin(UINT64_MAX);
	int streams[2];
	uint64_t a, b;

	CHECK_EQ(td_cache_alloc(cache, MIB, &streams[0], &a), 0);
	CHECK_EQ(td_cache_free(cache, a), 0);
	CHECK_EQ(td_cache_alloc(cache, MIB, &streams[1], &b), 0);
	CHECK(a != b);
	CHECK_EQ(driver.gets, 2);
	td_cache_delete(cache);
}

/*
 * Tensor.record_stream: work on another stream before the free precedes work on the block's own
 * stream after its reuse.
 */
TEST(a_stream_waits_for_the_others_that_used_what_it_gets_back)
{
	struct td_cache *cache = begin(UINT64_MAX);
	int own, others[5];
	uint64_t a, b;

	joined_count = 0;
	CHECK_EQ(td_cache_alloc(cache, MIB, &own, &a), 0);
	CHECK_EQ(td_cache_record(cache, a, &own), 0);
	CHECK_EQ(td_cache_record(cache, a, &others[0]), 0);
	CHECK_EQ(td_cache_record(cache, a, &others[1]), 0);
	CHECK_EQ(td_cache_record(cache, a, &others[0]), 0);
	CHECK_EQ(joined_count, 0);
	CHECK_EQ(td_cache_free(cache, a), 0);
	CHECK_EQ(joined_count, 2);
	CHECK(joined[0].stream == &own && joined[0].other == &others[0]);
	CHECK(joined[1].stream == &own && joined[1].other == &others[1]);
	CHECK_EQ(td_cache_alloc(cache, MIB, &own, &b), 0);
	CHECK_EQ(a, b);
	CHECK_EQ(td_cache_free(cache, b), 0); /* nobody else used it this time */
	CHECK_EQ(joined_count, 2);
	CHECK_EQ(td_cache_alloc(cache, MIB, &own, &a), 0);
	for (unsigned i = 0; i < 5; i++)
		CHECK_EQ(td_cache_record(cache, a, &others[i]), 0);
	CHECK_EQ(td_cache_free(cache, a), 0);
	CHECK_EQ(joined_count, 3);
	CHECK(joined[2].stream == &own && joined[2].other == TD_CACHE_ALL_STREAMS);
	td_cache_delete(cache);
}

TEST(nonsense_is_refused)
{
	struct td_cache *cache = begin(UINT64_MAX);
	uint64_t a = take(cache, MIB), b;

	CHECK_EQ(td_cache_free(cache, a + 512), -EINVAL);
	CHECK_EQ(td_cache_record(cache, a + 512, NULL), -EINVAL);
	CHECK_EQ(td_cache_record(cache, 0, NULL), -EINVAL);
	CHECK_EQ(td_cache_free(cache, 0), -EINVAL);
	CHECK_EQ(td_cache_free(cache, a), 0);
	CHECK_EQ(td_cache_free(cache, a), -EINVAL);
	CHECK_EQ(td_cache_alloc(cache, SIZE_MAX, NULL, &b), -ENOMEM);
	td_cache_delete(cache);
}

TEST(segments_are_as_large_as_it_was_asked_for)
{
	const struct td_cache_driver d = {get, put, join, NULL, 4 * MIB};
	struct td_cache *cache;

	td_cache_delete(begin(64 * MIB));
	cache = td_cache_new(&d);
	(void)take(cache, MIB * 3 / 2);
	CHECK_EQ(driver.bytes, 4 * MIB);
	(void)take(cache, MIB * 3 / 2);
	CHECK_EQ(driver.gets, 1);
	(void)take(cache, 2 * MIB);
	CHECK_EQ(driver.bytes, 6 * MIB);
	td_cache_delete(cache);
}

TEST(a_step_has_its_own_peak_and_least)
{
	struct td_cache *cache = begin(64 * MIB);
	struct td_cache_stats stats;
	uint64_t a, b;

	CHECK_EQ(td_cache_alloc(cache, 4 * MIB, NULL, &a), 0);
	td_cache_end_step(cache);
	CHECK_EQ(td_cache_alloc(cache, 8 * MIB, NULL, &b), 0);
	CHECK_EQ(td_cache_free(cache, a), 0);
	CHECK_EQ(td_cache_free(cache, b), 0);
	CHECK_EQ(td_cache_alloc(cache, 2 * MIB, NULL, &a), 0);
	td_cache_get_stats(cache, &stats);
	CHECK_EQ(stats.step_peak_bytes, 12 * MIB);
	CHECK_EQ(stats.step_least_bytes, 0);
	td_cache_end_step(cache);
	td_cache_get_stats(cache, &stats);
	CHECK_EQ(stats.step_peak_bytes, 2 * MIB);
	CHECK_EQ(stats.step_least_bytes, 2 * MIB);
	td_cache_delete(cache);
}

TEST(trimming_gives_whole_free_segments_back_the_largest_first_and_no_more_than_asked)
{
	struct td_cache *cache = begin(UINT64_MAX);
	uint64_t large = take(cache, 40 * MIB), middle = take(cache, 12 * MIB),
		 small = take(cache, 512), other = take(cache, 512);
	struct td_cache_stats stats;

	CHECK_EQ(td_cache_trim(cache, SIZE_MAX), 0);
	td_cache_get_stats(cache, &stats);
	CHECK_EQ(stats.spare_bytes, 0);
	CHECK_EQ(td_cache_free(cache, middle), 0);
	CHECK_EQ(td_cache_free(cache, small), 0);
	CHECK_EQ(td_cache_free(cache, large), 0);
	CHECK_EQ(td_cache_trim(cache, 1), 40 * MIB);
	CHECK_EQ(td_cache_trim(cache, 13 * MIB),
		12 * MIB); /* of the small segment a part is in use */
	CHECK_EQ(td_cache_free(cache, other), 0);
	CHECK_EQ(td_cache_trim(cache, SIZE_MAX), 2 * MIB);
	CHECK_EQ(driver.bytes, 0);
	td_cache_delete(cache);
}

TEST(before_there_is_no_memory_what_is_kept_goes_back)
{
	struct td_cache *cache = begin(40 * MIB);
	uint64_t a = take(cache, 30 * MIB), b;

	CHECK_EQ(td_cache_alloc(cache, 38 * MIB, NULL, &b), -ENOMEM);
	CHECK_EQ(td_cache_free(cache, a), 0);
	CHECK_EQ(td_cache_alloc(cache, 38 * MIB, NULL, &b), 0);
	CHECK_EQ(driver.bytes, 38 * MIB);
	td_cache_delete(cache);
}

/* -- at random -- */

#define BLOCKS 200

static struct {
	uint64_t address, bytes;
} blocks[BLOCKS];

static uint64_t state = 1;

static uint64_t chance(uint64_t below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (state >> 33) % below;
}

static uint64_t size_at_random(void)
{
	static const uint64_t most[] = {2000, 100000, MIB + 1, 9 * MIB, 30 * MIB};

	return 1 + chance(most[chance(5)]);
}

static bool is_within_a_segment(uint64_t address, uint64_t bytes)
{
	for (unsigned i = 0; i < SEGMENTS; i++)
		if (driver.segments[i].address && address >= driver.segments[i].address &&
			address + bytes <= driver.segments[i].address + driver.segments[i].bytes)
			return true;
	return false;
}

static bool is_apart(unsigned which)
{
	for (unsigned i = 0; i < BLOCKS; i++)
		if (i != which && blocks[i].address &&
			blocks[i].address < blocks[which].address + blocks[which].bytes &&
			blocks[which].address < blocks[i].address + blocks[i].bytes)
			return false;
	return true;
}

TEST(blocks_never_overlap_and_nothing_is_lost)
{
	struct td_cache *cache = begin(600 * MIB);
	struct td_cache_stats stats;

	for (unsigned round = 0; round < 20000; round++) {
		unsigned i = (unsigned)chance(BLOCKS);

		if (blocks[i].address) {
			CHECK_EQ(td_cache_free(cache, blocks[i].address), 0);
			blocks[i].address = 0;
		} else {
			blocks[i].bytes = size_at_random();
			if (td_cache_alloc(cache, blocks[i].bytes, NULL, &blocks[i].address)) {
				blocks[i].address = 0;
			} else {
				CHECK(is_within_a_segment(blocks[i].address, blocks[i].bytes));
				CHECK(is_apart(i));
				CHECK_EQ(blocks[i].address % 512, 0);
			}
		}
		if (!chance(100))
			(void)td_cache_trim(cache, chance(100 * MIB));
		td_cache_get_stats(cache, &stats);
		CHECK_EQ(stats.in_use_bytes + stats.cached_bytes, driver.bytes);
	}
	for (unsigned i = 0; i < BLOCKS; i++)
		if (blocks[i].address)
			CHECK_EQ(td_cache_free(cache, blocks[i].address), 0);
	td_cache_get_stats(cache, &stats);
	CHECK_EQ(stats.in_use_bytes, 0);
	CHECK(stats.hits > stats.misses);
	/* Free neighbours are one block, so every segment is whole again. */
	CHECK_EQ(stats.spare_bytes, stats.cached_bytes);
	CHECK_EQ(td_cache_trim(cache, SIZE_MAX), stats.cached_bytes);
	CHECK_EQ(driver.bytes, 0);
	td_cache_delete(cache);
}
