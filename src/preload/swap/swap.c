/*
 * Backend swap, the calls of the program's threads. An allocation is a range of chunks at a fixed
 * address (chunk.h). Chunks move in bulk, several at a time (swap_move.c), and are returned to the
 * driver at once, so that other processes can have the memory. Unified memory is never used.
 * Allocations smaller than the granularity share blocks of one granule (pieces.h); the block is
 * what counts.
 */
#include "preload/swap/swap.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/time.h"
#include "preload/base/backend.h"
#include "preload/base/page.h"
#include "preload/base/pieces.h"
#include "preload/context/context.h"
#include "preload/driver/real.h"
#include "preload/link/client.h"

/*
 * The largest chunk, on large GPUs, because creating a chunk takes about 0.2 ms. On small GPUs a
 * chunk is a 64th of the memory.
 */
#define CHUNK_MAX (32ull << 20)
/* At most one part in BLOCK_SHARE of the memory in blocks of pieces may be unused. */
#define BLOCK_SHARE 8
#define WAIT_NS     2000000 /* average length of a wait */
#define WAIT_TIMES  1500
#define SHORT_EVERY 16 /* number of waits after which the daemon is told that room is short */
#define ALONE_TIMES 30000

/* The driver's buffer ids never get this large. */
#define FIRST_ID (1ull << 48)

struct td_swap td_swap = {.lock = PTHREAD_MUTEX_INITIALIZER,
	.index_lock = PTHREAD_MUTEX_INITIALIZER,
	.asking = PTHREAD_MUTEX_INITIALIZER,
	.ids = FIRST_ID};

static uint64_t chunk_bytes(unsigned slot, uint64_t least)
{
	uint64_t bytes = td_client_capacity(slot) / 64, chunk = least;

	while (chunk * 2 <= bytes && chunk * 2 <= CHUNK_MAX)
		chunk *= 2;
	return chunk;
}

/* Returns the smallest chunk on the slot's device. The driver is asked once. */
static uint64_t granularity(unsigned slot)
{
	static _Atomic uint64_t known[TD_SLOT_MAX];
	uint64_t bytes = atomic_load_explicit(&known[slot], memory_order_relaxed);
	CUdevice device;

	if (!bytes && !td_true->cuCtxGetDevice(&device)) {
		bytes = td_chunk_granularity(device);
		atomic_store_explicit(&known[slot], bytes, memory_order_relaxed);
	}
	return bytes;
}

static struct td_range *new_range(unsigned slot, size_t asked, uint64_t bytes)
{
	uint64_t each = chunk_bytes(slot, granularity(slot));
	struct td_range *range;
	CUdevice device;
	CUdeviceptr base;
	size_t count;

	if (td_true->cuCtxGetDevice(&device))
		return NULL;
	count = (bytes + each - 1) / each;
	range = calloc(1, sizeof(*range) + count * sizeof(struct td_chunk));
	if (!range || td_true->cuMemAddressReserve(&base, bytes, 0, 0, 0)) {
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

/*
 * How many waits (WAIT_NS each) an allocation may still make until the driver has the memory: with
 * a daemon, and without one.
 */
struct patience {
	unsigned with_daemon, alone;
};

static bool wait_a_little(struct patience *patience)
{
	unsigned *left = td_client_is_alone() ? &patience->alone : &patience->with_daemon;
	/*
	 * The length varies, so that processes that compete for the same memory do not retry in
	 * step.
	 */
	uint64_t pause_ns =
		WAIT_NS / 2 + ((unsigned)getpid() * 2654435761u + *left * 40503u) % WAIT_NS;

	if (!*left)
		return false;
	(*left)--;
	td_time_sleep_until_ns(td_time_now_ns() + pause_ns);
	return true;
}

static int map_on_host(const struct td_range *range, struct td_chunk *chunk)
{
	int r = td_chunk_map_host(chunk, range->device);

	if (!r)
		chunk->place = TD_PLACE_HOST;
	return r ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

/*
 * Maps a chunk that the limit covers. Another process may still be giving the memory back, so this
 * waits a little for the driver to have it. It stops waiting when the gate closes: then this
 * process may be the one that has to free memory, and its grant is void. Without a daemon nobody is
 * asked to free memory. Then host memory is used or, where the driver has none, the caller frees
 * what it has got and tries again until some process ends; otherwise two processes that each held
 * half of the memory would wait for ever. No lock is held. The range is in no table yet and its
 * bytes are promised, so nothing moves it meanwhile.
 */
static int map_patiently(
	const struct td_range *range, struct td_chunk *chunk, struct patience *patience)
{
	uint64_t missing = range->base + range->bytes - chunk->address;
	int r = td_chunk_map(chunk, range->device);

	for (unsigned i = 1; r == CUDA_ERROR_OUT_OF_MEMORY; i++) {
		if (td_client_is_alone())
			return map_on_host(range, chunk);
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

/* Gives the range to the program: enters it into the tables. Returns false if malloc failed. */
static bool adopt(struct td_range *range, int need)
{
	struct td_range **at = &td_swap.ranges;

	if (td_swap_index(range))
		return false;
	while (*at && (*at)->bytes > range->bytes)
		at = &(*at)->next;
	range->next = *at;
	*at = range;
	if (range->pieces) {
		range->next_block = td_swap.blocks[range->slot];
		td_swap.blocks[range->slot] = range;
	}
	td_swap_count(range, 1);
	td_swap_unclaim(range);
	td_swap_pin_new(range);
	td_client_settled(range->slot, range->bytes, need, TD_MOVABLE);
	return true;
}

static void unmap_range(struct td_range *range)
{
	for (size_t i = 0; i < range->count; i++) {
		if (range->chunks[i].place != TD_PLACE_FRESH)
			td_chunk_unmap(&range->chunks[i]);
		range->chunks[i].place = TD_PLACE_FRESH;
		td_chunk_discharge(&range->chunks[i]);
	}
}

/* Maps all chunks of the range, or none. */
static int map_range(struct td_range *range, int need, struct patience *patience)
{
	int r = CUDA_SUCCESS;

	for (size_t i = 0; !r && i < range->count; i++)
		r = need == TD_NEED_HOST ? map_on_host(range, &range->chunks[i])
					 : map_patiently(range, &range->chunks[i], patience);
	if (r)
		unmap_range(range);
	return r;
}

/* Opens the range to devices that have become peers since it was mapped. */
static int open_to_more(const struct td_range *range, uint64_t had)
{
	uint64_t more = td_chunk_peers(range->device) & ~had;
	int r = CUDA_SUCCESS;

	for (int peer = 0; more && !r; peer++, more >>= 1)
		for (size_t i = 0; more & 1 && i < range->count && !r; i++)
			r = td_chunk_open(&range->chunks[i], peer, true);
	return r;
}

/*
 * Maps a range as the grant says. Returns 0, a CUresult, TD_BACKEND_NO_RECORD, or -EAGAIN if the
 * grant no longer holds and the daemon must be asked again.
 */
static int place_range(struct td_range *range, int need, struct patience *patience)
{
	bool was_alone = td_client_is_alone();
	uint64_t peers = td_chunk_peers(range->device);
	int r = need == TD_NEED_LATER ? CUDA_SUCCESS : map_range(range, need, patience);

	/* Another process may end and leave room, or this one may have to make room: ask again. */
	if (r == CUDA_ERROR_OUT_OF_MEMORY &&
		(was_alone || td_client_is_alone() || td_gate_word() & TD_WORD_CLOSED))
		r = -EAGAIN;
	pthread_mutex_lock(&td_swap.lock);
	/*
	 * This is checked while the lock is held. So a fill that begins later finds the range in
	 * the table.
	 */
	if (need == TD_NEED_LATER && !td_client_may_defer(range->slot))
		r = -EAGAIN;
	if (!r)
		r = open_to_more(range, peers);
	if (!r && !adopt(range, need))
		r = TD_BACKEND_NO_RECORD;
	pthread_mutex_unlock(&td_swap.lock);
	if (!r)
		return CUDA_SUCCESS;
	/*
	 * In this order, because memory that is no longer counted may be granted to another process
	 * at once.
	 */
	unmap_range(range);
	td_client_settled(range->slot, range->bytes, need, TD_MOVABLE);
	return r;
}

static int place_if_reserved(struct td_range *range, int need, struct patience *patience)
{
	if (td_swap_reserve(range) && (need != TD_NEED_HOST || td_swap_charge(range)))
		return place_range(range, need, patience);
	td_client_settled(range->slot, range->bytes, need, TD_MOVABLE);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/*
 * Takes a piece of an existing block. Where the block lies does not matter: a process that may use
 * one piece of a block may use all.
 */
static bool take_piece(unsigned slot, size_t asked, uint64_t *ret_address)
{
	uint64_t offset;
	bool found = false;

	pthread_mutex_lock(&td_swap.lock);
	pthread_mutex_lock(&td_swap.index_lock);
	for (const struct td_range *b = td_swap.blocks[slot]; b && !found; b = b->next_block) {
		found = !td_pieces_take(b->pieces, asked, td_swap.ids, &offset);
		if (!found)
			continue;
		*ret_address = b->base + offset;
		if (td_swap.spare[slot] == b)
			td_swap.spare[slot] = NULL;
	}
	pthread_mutex_unlock(&td_swap.index_lock);
	td_swap.ids += found;
	pthread_mutex_unlock(&td_swap.lock);
	return found;
}

/*
 * Makes a range of this many bytes for the allocation; with `block`, a block whose first piece it
 * is.
 */
static struct td_range *new_allocation(unsigned slot, size_t asked, uint64_t bytes, bool block)
{
	struct td_range *range = new_range(slot, asked, bytes);
	uint64_t first;

	if (!range)
		return NULL;
	pthread_mutex_lock(&td_swap.lock);
	range->id = td_swap.ids++;
	pthread_mutex_unlock(&td_swap.lock);
	if (!block)
		return range;
	range->pieces = td_pieces_new(range->bytes);
	if (!range->pieces || td_pieces_take(range->pieces, asked, range->id, &first)) {
		td_swap_free_range(range);
		return NULL;
	}
	return range;
}

static int alloc_range(
	unsigned slot, size_t asked, uint64_t bytes, bool block, uint64_t *ret_address)
{
	struct patience patience = {WAIT_TIMES, ALONE_TIMES};
	struct td_range *range;
	int r = CUDA_ERROR_OUT_OF_MEMORY, need;
	uint64_t base;

	/*
	 * Memory that is only kept for reuse must not make an allocation fail, so it is freed
	 * first.
	 */
	td_swap_trim(slot, false);
	range = new_allocation(slot, asked, bytes, block);
	if (!range)
		return TD_BACKEND_NO_RECORD;
	if (!td_swap_claim(range)) {
		td_swap_free_range(range);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	base = range->base;
	while ((need = td_client_need(slot, range->bytes, TD_MOVABLE)) != TD_NEED_REFUSED) {
		if (need == TD_NEED_MOVES) {
			r = TD_BACKEND_MOVES;
			break;
		}
		r = place_if_reserved(range, need, &patience);
		if (!r) {
			*ret_address = base;
			return CUDA_SUCCESS;
		}
		/*
		 * -EAGAIN: the gate is about to close or to open, or there is no room yet. Ask
		 * again.
		 */
		if (r != -EAGAIN || !wait_a_little(&patience))
			break;
	}
	pthread_mutex_lock(&td_swap.lock);
	td_swap_unclaim(range);
	pthread_mutex_unlock(&td_swap.lock);
	td_swap_free_range(range);
	return need == TD_NEED_REFUSED || r == -EAGAIN ? CUDA_ERROR_OUT_OF_MEMORY : r;
}

/*
 * Returns the size of a new block. Creating a small chunk costs about as much as copying it, so
 * blocks grow with their number, by an eighth.
 */
static uint64_t block_bytes(unsigned slot, uint64_t least)
{
	uint64_t sum = 0, most = chunk_bytes(slot, least), bytes = least;

	pthread_mutex_lock(&td_swap.lock);
	for (const struct td_range *b = td_swap.blocks[slot]; b; b = b->next_block)
		sum += b->bytes;
	pthread_mutex_unlock(&td_swap.lock);
	while (bytes * 2 <= most && bytes * 2 <= sum / BLOCK_SHARE)
		bytes *= 2;
	return bytes;
}

static int swap_alloc(unsigned slot, size_t asked, uint64_t *ret_address)
{
	uint64_t least = granularity(slot), bytes;
	int r;

	if (!least || asked > UINT64_MAX - least)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (asked >= least)
		return alloc_range(
			slot, asked, (asked + least - 1) / least * least, false, ret_address);
	if (take_piece(slot, asked, ret_address))
		return CUDA_SUCCESS;
	bytes = block_bytes(slot, least);
	r = alloc_range(slot, asked, bytes, true, ret_address);
	if (r == CUDA_ERROR_OUT_OF_MEMORY && bytes > least)
		r = alloc_range(slot, asked, least, true, ret_address);
	return r;
}

static int swap_range(uint64_t address, uint64_t *ret_base, size_t *ret_bytes)
{
	struct td_swap_info info;
	int r = td_swap_describe(address, &info);

	if (!r) {
		*ret_base = info.base;
		*ret_bytes = info.bytes;
	}
	return r;
}

static void swap_stats(unsigned slot, struct td_memory_stats *ret)
{
	pthread_mutex_lock(&td_swap.lock);
	*ret = td_swap.totals[slot];
	ret->stranded_bytes = td_swap_stranded(slot);
	ret->fixed_bytes += ret->stranded_bytes;
	ret->again_ns = td_swap_again_ns(slot);
	ret->kept_bytes = td_swap.spare[slot] ? td_swap.spare[slot]->bytes : 0;
	pthread_mutex_unlock(&td_swap.lock);
}

bool td_swap_is_used(void)
{
	return td_agent_backend()->alloc == swap_alloc;
}

/* In a forked child: only the records are dropped, as the device memory is the parent's. */
static void swap_forked(void)
{
	memset(&td_swap, 0, sizeof(td_swap));
	td_swap.ids = FIRST_ID;
	pthread_mutex_init(&td_swap.lock, NULL);
	pthread_mutex_init(&td_swap.index_lock, NULL);
	pthread_mutex_init(&td_swap.asking, NULL);
}

const struct td_backend td_backend_swap = {
	.name = "swap",
	.alloc = swap_alloc,
	.free = td_swap_free,
	.range = swap_range,
	.release = td_swap_end,
	.lost = td_swap_lost,
	.shrink = td_swap_shrink,
	.fill = td_swap_fill,
	.reach = td_swap_reach,
	.host_bytes = td_swap_host_bytes,
	.give_back = td_swap_give_back,
	.trim = td_swap_trim,
	.spills = td_chunk_may_be_on_host,
	.stats = swap_stats,
	.forked = swap_forked,
};
