/*
 * Backend swap, the program's side: an allocation is a range of chunks at a fixed address (chunk.h). Chunks move in bulk, several at a time
 * (swap_move.c), and go back to the driver at once, so that other processes can have the memory.
 *
 * No managed memory is ever used. Allocations smaller than the granularity take one granule each.
 */
#include "preload/swap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "preload/client.h"
#include "preload/context.h"
#include "preload/gate.h"
#include "preload/real.h"

/* Chunks: large on large cards (creating memory costs about 0.2 ms a piece), a 64th of small ones. */
#define CHUNK_MAX   (32ull << 20)
#define WAIT_NS     2000000 /* on average */
#define WAIT_TIMES  1500
#define SHORT_EVERY 16 /* waits after which the daemon is told that room is short */
#define ALONE_TIMES 30000

struct td_swap td_swap = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t chunk_bytes(unsigned slot, uint64_t least)
{
	uint64_t bytes = td_client_capacity(slot) / 64, chunk = least;

	while (chunk * 2 <= bytes && chunk * 2 <= CHUNK_MAX)
		chunk *= 2;
	return chunk;
}

static struct td_range *find_range(uint64_t address)
{
	for (struct td_range *range = td_swap.ranges; range; range = range->next)
		if (address - range->base < range->bytes)
			return range;
	return NULL;
}

static struct td_range *new_range(unsigned slot, size_t asked)
{
	CUdevice device;
	CUdeviceptr base;
	uint64_t least, each, bytes;
	struct td_range *range;
	size_t count;

	if (td_real.cuCtxGetDevice(&device))
		return NULL;
	least = td_chunk_granularity(device);
	if (asked > UINT64_MAX - least)
		return NULL;
	each = chunk_bytes(slot, least);
	bytes = (asked + least - 1) / least * least;
	count = (bytes + each - 1) / each;
	range = calloc(1, sizeof(*range) + count * sizeof(struct td_chunk));
	if (!range || td_real.cuMemAddressReserve(&base, bytes, 0, 0, 0)) {
		free(range);
		return NULL;
	}
	*range = (struct td_range){.base = base,
		.bytes = bytes,
		.asked = asked,
		.slot = slot,
		.device = device,
		.count = count};
	for (size_t i = 0; i < count; i++) {
		range->chunks[i].address = base + i * each;
		range->chunks[i].bytes = bytes - i * each < each ? bytes - i * each : each;
	}
	return range;
}

static void free_range(struct td_range *range)
{
	for (size_t i = 0; i < range->count; i++)
		td_chunk_free(&range->chunks[i]);
	(void)td_real.cuMemAddressFree(range->base, range->bytes);
	free(range);
}

/* Waits of WAIT_NS that an allocation may still make for the driver to have the memory: while there is a daemon, and while there is none. */
struct patience {
	unsigned with_daemon, alone;
};

static bool wait_a_little(struct patience *patience)
{
	unsigned *left = td_client_is_alone() ? &patience->alone : &patience->with_daemon;
	/* Of differing length, so that processes that fight for the same memory do not do it in step. */
	const struct timespec pause = {0,
		WAIT_NS / 2 + (long)((unsigned)getpid() * 2654435761u + *left * 40503u) % WAIT_NS};

	if (!*left)
		return false;
	(*left)--;
	nanosleep(&pause, NULL);
	return true;
}

/*
 * The limit covers it, but another process may still be giving the memory back: waits a little for the driver to have it. Not behind a
 * gate that closes: this process may then be the one that is to give way, and what was granted to it is no longer meant. Without a daemon nobody
 * is asked to give anything back: host memory serves, or, where the driver has none, the caller gives up what it has got and tries again until
 * somebody ends; two that each held half of what is there would wait for ever. No lock is held; the range is not known yet, and the bytes are
 * promised, so nothing is moved meanwhile.
 */
static int map_patiently(
	const struct td_range *range, struct td_chunk *chunk, struct patience *patience)
{
	uint64_t missing = range->base + range->bytes - chunk->address;
	int r = td_chunk_map(chunk, range->device);

	for (unsigned i = 1; r == CUDA_ERROR_OUT_OF_MEMORY; i++) {
		if (td_client_is_alone()) {
			r = td_chunk_map_host(chunk, range->device);
			if (!r)
				chunk->place = TD_PLACE_HOST;
			return r ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
		}
		if (td_gate_word() & TD_WORD_CLOSED || !wait_a_little(patience))
			return r;
		if (i % SHORT_EVERY == 0)
			td_client_short(range->slot, missing);
		r = td_chunk_map(chunk, range->device);
	}
	if (!r)
		chunk->place = TD_PLACE_DEVICE;
	return r;
}

/* Adds (sign 1) or takes off (-1) what the range has where. */
static void count_range(const struct td_range *range, int sign)
{
	struct td_memory_stats *t = &td_swap.totals[range->slot];

	t->demanded_bytes += sign * range->bytes;
	for (size_t i = 0; i < range->count; i++) {
		if (range->chunks[i].place == TD_PLACE_DEVICE)
			t->resident_bytes += sign * range->chunks[i].bytes;
		else
			t->host_bytes += sign * range->chunks[i].bytes;
	}
	if (t->demanded_bytes > t->peak_bytes)
		t->peak_bytes = t->demanded_bytes;
}

static void adopt(struct td_range *range, int need)
{
	range->next = td_swap.ranges;
	td_swap.ranges = range;
	count_range(range, 1);
	td_client_settled(range->slot, range->bytes, need);
}

/* Everything or nothing. */
static int map_range(struct td_range *range, struct patience *patience)
{
	int r = CUDA_SUCCESS;

	for (size_t i = 0; !r && i < range->count; i++)
		r = map_patiently(range, &range->chunks[i], patience);
	for (size_t i = 0; r && i < range->count; i++) {
		if (range->chunks[i].place != TD_PLACE_FRESH)
			td_chunk_unmap(&range->chunks[i]);
		range->chunks[i].place = TD_PLACE_FRESH;
	}
	return r;
}

/* As it was granted. 0, a CUresult, or -EAGAIN: that does not hold any more, ask again. */
static int place(struct td_range *range, int need, struct patience *patience)
{
	bool was_alone = td_client_is_alone();
	int r = need == 2 ? CUDA_SUCCESS : map_range(range, patience);

	/* Somebody may end and leave room, or we are the ones to make it. */
	if (r == CUDA_ERROR_OUT_OF_MEMORY &&
		(was_alone || td_client_is_alone() || td_gate_word() & TD_WORD_CLOSED))
		r = -EAGAIN;
	pthread_mutex_lock(&td_swap.lock);
	/* Under the lock: a fill that begins later finds the range. */
	if (need == 2 && !td_client_may_defer(range->slot))
		r = -EAGAIN;
	if (!r)
		adopt(range, need);
	pthread_mutex_unlock(&td_swap.lock);
	if (r)
		td_client_settled(range->slot, range->bytes, need);
	return r;
}

static int swap_alloc(unsigned slot, size_t asked, uint64_t *ret_address)
{
	struct patience patience = {WAIT_TIMES, ALONE_TIMES};
	struct td_range *range = new_range(slot, asked);
	uint64_t base;
	int r = CUDA_ERROR_OUT_OF_MEMORY, need;

	if (!range)
		return CUDA_ERROR_OUT_OF_MEMORY;
	base = range->base;
	while ((need = td_client_need(slot, range->bytes)) != 1) {
		r = place(range, need, &patience);
		if (!r) {
			*ret_address = base;
			return CUDA_SUCCESS;
		}
		/* It did not hold, because the gate is about to close or to open, or there is no room yet: asks again. */
		if (r != -EAGAIN || !wait_a_little(&patience))
			break;
	}
	free_range(range);
	return need == 1 || r == -EAGAIN ? CUDA_ERROR_OUT_OF_MEMORY : r;
}

/* As cuMemFree: work that was submitted before may still use the range, so it ends first. */
static int swap_free(uint64_t address)
{
	struct td_range *range;

	pthread_mutex_lock(&td_swap.lock);
	range = find_range(address);
	pthread_mutex_unlock(&td_swap.lock);
	if (!range || range->base != address)
		return range ? CUDA_ERROR_INVALID_VALUE : TD_BACKEND_NOT_MINE;
	if (!td_context_any_capture()) {
		int r = td_real.cuCtxSynchronize();

		/* Of a context that has ended nothing runs any more. */
		if (r && r != CUDA_ERROR_INVALID_CONTEXT && r != CUDA_ERROR_CONTEXT_IS_DESTROYED)
			return r;
	}
	pthread_mutex_lock(&td_swap.lock);
	for (struct td_range **p = &td_swap.ranges; *p; p = &(*p)->next) {
		if (*p != range)
			continue;
		*p = range->next;
		count_range(range, -1);
		free_range(range);
		break;
	}
	pthread_mutex_unlock(&td_swap.lock);
	return CUDA_SUCCESS;
}

static int swap_range(uint64_t address, uint64_t *ret_base, size_t *ret_bytes)
{
	const struct td_range *range;

	pthread_mutex_lock(&td_swap.lock);
	range = find_range(address);
	if (range) {
		*ret_base = range->base;
		*ret_bytes = range->asked;
	}
	pthread_mutex_unlock(&td_swap.lock);
	return range ? CUDA_SUCCESS : TD_BACKEND_NOT_MINE;
}

static void swap_stats(unsigned slot, struct td_memory_stats *ret)
{
	pthread_mutex_lock(&td_swap.lock);
	*ret = td_swap.totals[slot];
	pthread_mutex_unlock(&td_swap.lock);
}

/* The parent's device memory is the parent's; only our records of it go. */
static void swap_forked(void)
{
	memset(&td_swap, 0, sizeof(td_swap));
	pthread_mutex_init(&td_swap.lock, NULL);
}

const struct td_backend td_backend_swap = {
	.name = "swap",
	.alloc = swap_alloc,
	.free = swap_free,
	.range = swap_range,
	.shrink = td_swap_shrink,
	.fill = td_swap_fill,
	.reach = td_swap_reach,
	.stats = swap_stats,
	.forked = swap_forked,
};
