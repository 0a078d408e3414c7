/*
 * Backend swap: an allocation is a range of chunks at a fixed address. A chunk is fresh (never written, nothing behind it), on the device,
 * or in a pinned buffer on the host. Chunks move in bulk, several at a time, and go back to the driver at once, so that other processes can
 * have the memory.
 *
 * No managed memory is ever used. Allocations smaller than the granularity take one granule each.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "preload/backend.h"
#include "preload/client.h"
#include "preload/context.h"
#include "preload/gate.h"
#include "preload/real.h"

/* Chunks: large on large cards (creating memory costs about 0.2 ms a piece), a 64th of small ones. */
#define CHUNK_MAX   (32ull << 20)
#define BATCH       8
#define WAIT_NS     2000000
#define WAIT_TIMES  1500
#define SHORT_EVERY 16 /* waits after which the daemon is told that room is short */
#define ALONE_TIMES 30000

enum place { FRESH, ON_DEVICE, ON_HOST };

struct chunk {
	enum place place;
	uint64_t address, bytes;
	CUmemGenericAllocationHandle handle;
	void *host; /* pinned, kept for the next time once it exists */
};

struct range {
	struct range *next;
	uint64_t base, bytes, asked; /* asked: what the program asked for */
	unsigned slot;
	CUdevice device;
	CUcontext context;
	size_t count;
	struct chunk chunks[];
};

/* lock guards ranges and totals, and is held while chunks move: allocations wait meanwhile, launches do not exist then. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct range *ranges;
static struct td_memory_stats totals[TD_SLOT_MAX];
static CUstream streams[TD_SLOT_MAX];
static uint64_t granularity[TD_SLOT_MAX];

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static CUmemAllocationProp on_device(CUdevice device)
{
	return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
}

static uint64_t granule(unsigned slot, CUdevice device)
{
	const CUmemAllocationProp prop = on_device(device);
	size_t bytes = 2u << 20;

	if (!granularity[slot]) {
		(void)td_real.cuMemGetAllocationGranularity(&bytes, &prop, 0);
		granularity[slot] = bytes;
	}
	return granularity[slot];
}

static uint64_t chunk_bytes(unsigned slot, uint64_t least)
{
	uint64_t bytes = td_client_capacity(slot) / 64, chunk = least;

	while (chunk * 2 <= bytes && chunk * 2 <= CHUNK_MAX)
		chunk *= 2;
	return chunk;
}

/* -- one chunk -- */

/* CUDA_SUCCESS with memory behind the chunk; its content is undefined. */
static int map_chunk(const struct range *range, struct chunk *chunk)
{
	const CUmemAllocationProp prop = on_device(range->device);
	const CUmemAccessDesc access = {
		{CU_MEM_LOCATION_TYPE_DEVICE, range->device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	int r = td_real.cuMemCreate(&chunk->handle, chunk->bytes, &prop, 0);

	if (r)
		return r;
	r = td_real.cuMemMap(chunk->address, chunk->bytes, 0, chunk->handle, 0);
	if (r) {
		(void)td_real.cuMemRelease(chunk->handle);
		return r;
	}
	r = td_real.cuMemSetAccess(chunk->address, chunk->bytes, &access, 1);
	if (r) {
		(void)td_real.cuMemUnmap(chunk->address, chunk->bytes);
		(void)td_real.cuMemRelease(chunk->handle);
	}
	return r;
}

static void unmap_chunk(const struct chunk *chunk)
{
	(void)td_real.cuMemUnmap(chunk->address, chunk->bytes);
	(void)td_real.cuMemRelease(chunk->handle);
}

static int copy_out(struct chunk *chunk, CUstream stream)
{
	int r = CUDA_SUCCESS;

	if (!chunk->host)
		r = td_real.cuMemHostAlloc(&chunk->host, chunk->bytes, 0);
	if (r)
		chunk->host = NULL;
	return r ? r
		 : td_real.cuMemcpyDtoHAsync_v2(chunk->host, chunk->address, chunk->bytes, stream);
}

static void moved(unsigned slot, const struct chunk *chunk, bool in)
{
	struct td_memory_stats *t = &totals[slot];

	if (in) {
		t->resident_bytes += chunk->bytes;
		t->host_bytes -= chunk->bytes;
		t->in_bytes += chunk->place == ON_HOST ? chunk->bytes : 0;
	} else {
		t->resident_bytes -= chunk->bytes;
		t->host_bytes += chunk->bytes;
		t->out_bytes += chunk->bytes;
	}
}

/* -- allocations -- */

static struct range *find_range(uint64_t address)
{
	for (struct range *range = ranges; range; range = range->next)
		if (address - range->base < range->bytes)
			return range;
	return NULL;
}

static struct range *new_range(unsigned slot, size_t asked)
{
	CUcontext context;
	CUdevice device;
	CUdeviceptr base;
	uint64_t least, each, bytes;
	struct range *range;
	size_t count;

	if (td_real.cuCtxGetCurrent(&context) || td_real.cuCtxGetDevice(&device))
		return NULL;
	least = granule(slot, device);
	each = chunk_bytes(slot, least);
	bytes = (asked + least - 1) / least * least;
	count = (bytes + each - 1) / each;
	range = calloc(1, sizeof(*range) + count * sizeof(struct chunk));
	if (!range || td_real.cuMemAddressReserve(&base, bytes, 0, 0, 0)) {
		free(range);
		return NULL;
	}
	*range = (struct range){.base = base,
		.bytes = bytes,
		.asked = asked,
		.slot = slot,
		.device = device,
		.context = context,
		.count = count};
	for (size_t i = 0; i < count; i++) {
		range->chunks[i].address = base + i * each;
		range->chunks[i].bytes = bytes - i * each < each ? bytes - i * each : each;
	}
	return range;
}

static void free_range(struct range *range)
{
	for (size_t i = 0; i < range->count; i++) {
		struct chunk *chunk = &range->chunks[i];

		if (chunk->place == ON_DEVICE)
			unmap_chunk(chunk);
		if (chunk->host)
			(void)td_real.cuMemFreeHost(chunk->host);
	}
	(void)td_real.cuMemAddressFree(range->base, range->bytes);
	free(range);
}

/* Waits of WAIT_NS that an allocation may still make for the driver to have the memory: while there is a daemon, and while there is none. */
struct patience {
	unsigned with_daemon, alone;
};

static bool wait_a_little(struct patience *patience)
{
	const struct timespec pause = {0, WAIT_NS};
	unsigned *left = td_client_is_alone() ? &patience->alone : &patience->with_daemon;

	if (!*left)
		return false;
	(*left)--;
	nanosleep(&pause, NULL);
	return true;
}

/*
 * The limit covers it, but another process may still be giving the memory back: waits a little for the driver to have it. Without a
 * daemon nobody is asked to give anything back: waits for longer, until somebody ends. Not behind a gate that closes: this process may then be
 * the one that is to give way, and what was granted to it is no longer meant. No lock is held; the range is not known yet, and the bytes are
 * promised, so nothing is moved meanwhile.
 */
static int map_patiently(const struct range *range, struct chunk *chunk, struct patience *patience)
{
	uint64_t missing = range->base + range->bytes - chunk->address;
	int r = map_chunk(range, chunk);

	for (unsigned i = 1; r == CUDA_ERROR_OUT_OF_MEMORY && !(td_gate_word() & TD_WORD_CLOSED) &&
			     wait_a_little(patience);
		i++) {
		if (i % SHORT_EVERY == 0)
			td_client_short(range->slot, missing);
		r = map_chunk(range, chunk);
	}
	return r;
}

static void adopt(struct range *range, int need)
{
	struct td_memory_stats *t = &totals[range->slot];

	range->next = ranges;
	ranges = range;
	t->demanded_bytes += range->bytes;
	if (need == 2)
		t->host_bytes += range->bytes;
	else
		t->resident_bytes += range->bytes;
	if (t->demanded_bytes > t->peak_bytes)
		t->peak_bytes = t->demanded_bytes;
	td_client_settled(range->slot, range->bytes, need);
}

/* Everything or nothing. */
static int map_range(struct range *range, struct patience *patience)
{
	int r = CUDA_SUCCESS;

	for (size_t i = 0; !r && i < range->count; i++) {
		r = map_patiently(range, &range->chunks[i], patience);
		if (!r)
			range->chunks[i].place = ON_DEVICE;
	}
	for (size_t i = 0; r && i < range->count; i++) {
		if (range->chunks[i].place == ON_DEVICE)
			unmap_chunk(&range->chunks[i]);
		range->chunks[i].place = FRESH;
	}
	return r;
}

/* As it was granted. 0, a CUresult, or -EAGAIN: that does not hold any more, ask again. */
static int place(struct range *range, int need, struct patience *patience)
{
	bool was_alone = td_client_is_alone();
	int r = need == 2 ? CUDA_SUCCESS : map_range(range, patience);

	/* Somebody can make room again, or we are the ones to make it. */
	if (r == CUDA_ERROR_OUT_OF_MEMORY &&
		((was_alone && !td_client_is_alone()) || td_gate_word() & TD_WORD_CLOSED))
		r = -EAGAIN;
	pthread_mutex_lock(&lock);
	/* Under the lock: a fill that begins later finds the range. */
	if (need == 2 && !td_client_may_defer(range->slot))
		r = -EAGAIN;
	if (!r)
		adopt(range, need);
	pthread_mutex_unlock(&lock);
	if (r)
		td_client_settled(range->slot, range->bytes, need);
	return r;
}

static int swap_alloc(unsigned slot, size_t asked, uint64_t *ret_address)
{
	struct patience patience = {WAIT_TIMES, ALONE_TIMES};
	struct range *range = new_range(slot, asked);
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
		/* It did not hold, because the gate is about to close or to open: asks again. */
		if (r != -EAGAIN || !wait_a_little(&patience))
			break;
	}
	free_range(range);
	return need == 1 || r == -EAGAIN ? CUDA_ERROR_OUT_OF_MEMORY : r;
}

/* As cuMemFree: work that was submitted before may still use the range, so it ends first. */
static int swap_free(uint64_t address)
{
	struct range *range;

	pthread_mutex_lock(&lock);
	range = find_range(address);
	pthread_mutex_unlock(&lock);
	if (!range || range->base != address)
		return range ? CUDA_ERROR_INVALID_VALUE : TD_BACKEND_NOT_MINE;
	if (!td_context_any_capture()) {
		int r = td_real.cuCtxSynchronize();

		if (r)
			return r;
	}
	pthread_mutex_lock(&lock);
	for (struct range **p = &ranges; *p; p = &(*p)->next) {
		struct td_memory_stats *t = &totals[range->slot];

		if (*p != range)
			continue;
		*p = range->next;
		t->demanded_bytes -= range->bytes;
		for (size_t i = 0; i < range->count; i++) {
			if (range->chunks[i].place == ON_DEVICE)
				t->resident_bytes -= range->chunks[i].bytes;
			else
				t->host_bytes -= range->chunks[i].bytes;
		}
		free_range(range);
		break;
	}
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

static int swap_range(uint64_t address, uint64_t *ret_base, size_t *ret_bytes)
{
	const struct range *range;

	pthread_mutex_lock(&lock);
	range = find_range(address);
	if (range) {
		*ret_base = range->base;
		*ret_bytes = range->asked;
	}
	pthread_mutex_unlock(&lock);
	return range ? CUDA_SUCCESS : TD_BACKEND_NOT_MINE;
}

/* -- moving (agent thread) -- */

static CUstream stream_of(unsigned slot)
{
	if (!streams[slot])
		(void)td_real.cuStreamCreate(&streams[slot], CU_STREAM_NON_BLOCKING);
	return streams[slot];
}

/* The next chunk on the device, of the largest range that has one. */
static struct chunk *next_victim(unsigned slot)
{
	struct range *largest = NULL;
	struct chunk *victim = NULL;

	for (struct range *range = ranges; range; range = range->next) {
		if (range->slot != slot || (largest && largest->bytes >= range->bytes))
			continue;
		for (size_t i = 0; i < range->count; i++) {
			if (range->chunks[i].place != ON_DEVICE || range->chunks[i].handle == 0)
				continue;
			largest = range;
			victim = &range->chunks[i];
			break;
		}
	}
	return victim;
}

static int swap_shrink(unsigned slot, uint64_t limit_bytes, void (*progress)(unsigned slot))
{
	CUstream stream = stream_of(slot);
	uint64_t began = now_ns();
	int r = 0;

	while (!r) {
		struct chunk *batch[BATCH];
		uint64_t leaving = 0;
		unsigned n = 0;

		pthread_mutex_lock(&lock);
		while (n < BATCH && totals[slot].resident_bytes - leaving > limit_bytes) {
			struct chunk *chunk = next_victim(slot);

			if (!chunk || copy_out(chunk, stream))
				break;
			chunk->place = ON_HOST; /* so that it is not chosen twice; settled below */
			leaving += chunk->bytes;
			batch[n++] = chunk;
		}
		r = td_real.cuStreamSynchronize(stream) ? -EIO : 0;
		for (unsigned i = 0; i < n; i++) {
			if (r) {
				batch[i]->place = ON_DEVICE; /* where it was, with all its bytes */
				continue;
			}
			unmap_chunk(batch[i]);
			moved(slot, batch[i], false);
		}
		if (!r && !n)
			r = totals[slot].resident_bytes > limit_bytes ? -ENOMEM : 1;
		totals[slot].move_ns += now_ns() - began;
		began = now_ns();
		pthread_mutex_unlock(&lock);
		progress(slot);
	}
	return r > 0 ? 0 : r;
}

/* Maps up to a batch of chunks within the limit and starts their copies. Returns how many; *ret_full: no more room. */
static unsigned start_batch(
	unsigned slot, uint64_t limit_bytes, CUstream stream, struct chunk **batch, bool *ret_full)
{
	unsigned n = 0;

	for (struct range *range = ranges; range; range = range->next) {
		for (size_t i = 0; i < range->count && range->slot == slot && n < BATCH; i++) {
			struct chunk *chunk = &range->chunks[i];

			if (chunk->place == ON_DEVICE)
				continue;
			if (totals[slot].resident_bytes + chunk->bytes > limit_bytes ||
				map_chunk(range, chunk)) {
				*ret_full = true;
				return n;
			}
			if (chunk->place == ON_HOST && td_real.cuMemcpyHtoDAsync_v2(chunk->address,
							       chunk->host, chunk->bytes, stream)) {
				unmap_chunk(chunk);
				*ret_full = true;
				return n;
			}
			batch[n++] = chunk;
			moved(slot, chunk, true);
			chunk->place = ON_DEVICE;
		}
	}
	return n;
}

static int swap_fill(unsigned slot, uint64_t limit_bytes, void (*progress)(unsigned slot))
{
	CUstream stream = stream_of(slot);
	uint64_t began = now_ns();
	bool full = false;
	unsigned n;

	do {
		struct chunk *batch[BATCH];

		pthread_mutex_lock(&lock);
		n = start_batch(slot, limit_bytes, stream, batch, &full);
		/* A context that has died fails here; the program will see its error at its next call. */
		(void)td_real.cuStreamSynchronize(stream);
		totals[slot].move_ns += now_ns() - began;
		began = now_ns();
		pthread_mutex_unlock(&lock);
		if (n)
			progress(slot);
	} while (n && !full);
	return full;
}

static void swap_stats(unsigned slot, struct td_memory_stats *ret)
{
	pthread_mutex_lock(&lock);
	*ret = totals[slot];
	pthread_mutex_unlock(&lock);
}

/* The parent's device memory is the parent's; only our records of it go. */
static void swap_forked(void)
{
	pthread_mutex_init(&lock, NULL);
	ranges = NULL;
	memset(totals, 0, sizeof(totals));
	memset(streams, 0, sizeof(streams));
}

const struct td_backend td_backend_swap = {
	.name = "swap",
	.alloc = swap_alloc,
	.free = swap_free,
	.range = swap_range,
	.shrink = swap_shrink,
	.fill = swap_fill,
	.stats = swap_stats,
	.forked = swap_forked,
};
