/*
 * Backend swap: moves all memory of one GPU to another, at the same addresses. The gate is closed,
 * the device is drained, and no thread allocates (rehome.h).
 *
 *   stage   For each chunk on the device, memory is created on the target and the bytes are copied
 *           there. Until this is done nothing has changed, and a failure leaves it so.
 *   change  Each chunk is unmapped, and its new memory is mapped in its place.
 *
 * If the driver then fails to map a chunk's memory, the chunk is loose and the next fill ties it
 * (td_chunk_tie). For chunks in an arena, and those never written, only the device number changes.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/time.h"
#include "preload/base/backend.h"
#include "preload/driver/real.h"
#include "preload/link/client.h"
#include "preload/swap/swap_batch.h"

struct staged {
	struct td_range *range;
	struct td_chunk *chunk;
	struct td_chunk beside;
};

static uint64_t count_chunks(unsigned slot)
{
	uint64_t count = 0;

	for (const struct td_range *range = td_swap.ranges; range; range = range->next)
		count += range->slot == slot ? range->count : 0;
	return count;
}

static void drop(struct staged *staged, uint64_t count)
{
	while (count--) {
		struct td_chunk *beside = &staged[count].beside;

		td_chunk_unmap(beside);
		(void)td_true->cuMemAddressFree(beside->address, beside->bytes);
	}
}

static int stage_one(struct staged *staged, const struct td_rehome_places *places)
{
	struct td_chunk *beside = &staged->beside;
	CUdeviceptr address;
	int r;

	*beside = (struct td_chunk){.bytes = staged->chunk->bytes};
	r = td_true->cuMemAddressReserve(&address, beside->bytes, 0, 0, 0);
	if (r)
		return r;
	beside->address = address;
	r = td_chunk_map(beside, places->device);
	if (r) {
		(void)td_true->cuMemAddressFree(address, beside->bytes);
		return r;
	}
	r = td_true->cuMemcpyPeerAsync(beside->address, places->to, staged->chunk->address,
		places->from, beside->bytes, places->stream);
	if (r)
		drop(staged, 1);
	return r;
}

/*
 * Stages all chunks. Returns 0, -EAGAIN or a CUresult; *ret_count is the number of staged chunks.
 * The caller holds the lock.
 */
static int stage_all(unsigned slot, const struct td_rehome_places *places, struct staged *staged,
	uint64_t *ret_count)
{
	for (struct td_range *range = td_swap.ranges; range; range = range->next) {
		if (range->slot != slot)
			continue;
		if (range->pins || range->moving)
			return -EAGAIN;
		for (size_t i = 0; i < range->count; i++) {
			struct td_chunk *chunk = &range->chunks[i];
			int r = 0;

			if (chunk->loose || chunk->place == TD_PLACE_BETWEEN)
				return -EAGAIN;
			if (chunk->place == TD_PLACE_HOST)
				r = td_chunk_open(chunk, places->device, true);
			if (r)
				return r;
			if (chunk->place != TD_PLACE_DEVICE)
				continue;
			staged[*ret_count] = (struct staged){.range = range, .chunk = chunk};
			r = stage_one(&staged[*ret_count], places);
			if (r)
				return r;
			++*ret_count;
		}
	}
	return 0;
}

static uint64_t change_one(const struct staged *staged, CUdevice device)
{
	struct td_chunk *chunk = staged->chunk;

	(void)td_true->cuMemUnmap(staged->beside.address, chunk->bytes);
	(void)td_true->cuMemAddressFree(staged->beside.address, chunk->bytes);
	(void)td_true->cuMemUnmap(chunk->address, chunk->bytes);
	(void)td_true->cuMemRelease(chunk->handle);
	chunk->handle = staged->beside.handle;
	(void)td_chunk_tie(chunk, device);
	return chunk->bytes;
}

static void change_slot(unsigned from, unsigned to, CUdevice device)
{
	struct td_range **last = &td_swap.blocks[to];

	while (*last)
		last = &(*last)->next_block;
	*last = td_swap.blocks[from];
	td_swap.blocks[from] = NULL;
	for (struct td_range *range = td_swap.ranges; range; range = range->next) {
		struct td_allocation *row;

		if (range->slot != from)
			continue;
		td_swap_count(range, -1);
		range->slot = to;
		range->device = device;
		td_swap_count(range, 1);
		pthread_mutex_lock(&td_swap.index_lock);
		row = td_ranges_find(&td_swap.index, range->base);
		if (row)
			row->slot = to;
		pthread_mutex_unlock(&td_swap.index_lock);
	}
}

int td_swap_rehome(
	unsigned from, unsigned to, const struct td_rehome_places *places, uint64_t *ret_bytes)
{
	struct staged *staged;
	uint64_t count = 0, bytes = 0;
	int r;

	pthread_mutex_lock(&td_swap.lock);
	staged = malloc((count_chunks(from) + 1) * sizeof(*staged));
	r = staged ? stage_all(from, places, staged, &count) : CUDA_ERROR_OUT_OF_MEMORY;
	/* The copies are awaited after a failure too, because they use the new memory. */
	if (count && td_true->cuStreamSynchronize(places->stream) && !r)
		r = CUDA_ERROR_UNKNOWN;
	if (r) {
		drop(staged, staged ? count : 0);
	} else {
		for (uint64_t i = 0; i < count; i++)
			bytes += change_one(&staged[i], places->device);
		change_slot(from, to, places->device);
		td_swap.totals[from].out_bytes += bytes;
		td_swap.totals[to].in_bytes += bytes;
	}
	pthread_mutex_unlock(&td_swap.lock);
	free(staged);
	*ret_bytes = bytes;
	return r;
}
