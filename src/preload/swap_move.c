/*
 * Backend swap, the agent's side: chunks leave the device and come back, several at a time, so that copies follow one another without
 * a gap and other processes get the memory while the rest still moves.
 *
 * Host memory that is mapped (a chunk of place HOST) is off the device and yet within reach. It is exchanged for device memory only behind
 * a closed gate, when no kernel can be using it.
 */
#include "preload/swap.h"

#include <errno.h>

#include "base/time.h"
#include "preload/context.h"
#include "preload/gate.h"
#include "preload/real.h"

#define BATCH 8

static CUstream stream_of(unsigned slot)
{
	if (!td_context_is_alive(td_swap.stream_contexts[slot])) {
		td_swap.streams[slot] = NULL;
		if (!td_real.cuStreamCreate(&td_swap.streams[slot], CU_STREAM_NON_BLOCKING))
			td_swap.stream_contexts[slot] = td_context_serial();
	}
	return td_swap.streams[slot];
}

/* The chunk's bytes have come to the device, or left it. */
static void count_move(unsigned slot, struct td_chunk *chunk, enum td_place to)
{
	struct td_memory_stats *t = &td_swap.totals[slot];
	enum td_place from = chunk->place;

	if (to == TD_PLACE_DEVICE) {
		t->resident_bytes += chunk->bytes;
		t->host_bytes -= chunk->bytes;
		t->in_bytes += from == TD_PLACE_FRESH ? 0 : chunk->bytes;
	} else if (from == TD_PLACE_DEVICE) {
		t->resident_bytes -= chunk->bytes;
		t->host_bytes += chunk->bytes;
		t->out_bytes += chunk->bytes;
	}
	chunk->place = to;
}

/* A stream of ours knows only of our own copies: what it fails with is the context's sticky error. 0 or -ENOTRECOVERABLE. */
static int finish(unsigned slot, CUstream stream)
{
	int r = td_real.cuStreamSynchronize(stream);

	td_swap.totals[slot].failed = (uint32_t)r;
	return r ? -ENOTRECOVERABLE : 0;
}

/* -- off the device -- */

/* Fills batch with chunks on the device, of the largest ranges first, until they hold `bytes` or there are BATCH; starts their copies. */
static unsigned start_leaving(
	unsigned slot, uint64_t bytes, CUstream stream, struct td_chunk **batch)
{
	unsigned n = 0;

	while (n < BATCH && bytes) {
		struct td_range *largest = NULL;
		struct td_chunk *victim = NULL;

		for (struct td_range *range = td_swap.ranges; range; range = range->next) {
			if (range->slot != slot || (largest && largest->bytes >= range->bytes))
				continue;
			for (size_t i = 0; i < range->count; i++) {
				if (range->chunks[i].place != TD_PLACE_DEVICE)
					continue;
				largest = range;
				victim = &range->chunks[i];
				break;
			}
		}
		if (!victim || td_chunk_to_arena(victim, stream))
			break;
		victim->place = TD_PLACE_ARENA; /* so that it is not chosen twice; see shrink */
		bytes -= victim->bytes < bytes ? victim->bytes : bytes;
		batch[n++] = victim;
	}
	return n;
}

/* One batch. Returns how many chunks have left, or -errno with everything where it was. */
static int leave(unsigned slot, uint64_t limit_bytes, CUstream stream)
{
	uint64_t resident = td_swap.totals[slot].resident_bytes;
	struct td_chunk *batch[BATCH];
	unsigned n;
	int r;

	if (resident <= limit_bytes)
		return 0;
	n = start_leaving(slot, resident - limit_bytes, stream, batch);
	r = finish(slot, stream);
	for (unsigned i = 0; i < n; i++) {
		batch[i]->place = TD_PLACE_DEVICE;
		if (r)
			continue;
		td_chunk_unmap(batch[i]);
		count_move(slot, batch[i], TD_PLACE_ARENA);
	}
	if (r)
		return r;
	return n ? (int)n : -ENOMEM;
}

int td_swap_shrink(unsigned slot, uint64_t limit_bytes, void (*progress)(unsigned slot))
{
	int r;

	do {
		uint64_t began_ns = td_time_now_ns();

		pthread_mutex_lock(&td_swap.lock);
		r = leave(slot, limit_bytes, stream_of(slot));
		td_swap.totals[slot].move_ns += td_time_now_ns() - began_ns;
		pthread_mutex_unlock(&td_swap.lock);
		progress(slot);
	} while (r > 0);
	return r;
}

/* -- back onto it -- */

/* 0, or a CUresult with the chunk as it was. A copy is under way afterwards if there was one to make. */
static int bring(struct td_chunk *chunk, CUdevice device, CUstream stream)
{
	int r;

	if (chunk->place == TD_PLACE_HOST)
		return td_chunk_pull(chunk, device, stream);
	r = td_chunk_map(chunk, device);
	if (r || chunk->place == TD_PLACE_FRESH)
		return r;
	r = td_chunk_from_arena(chunk, stream);
	if (r)
		td_chunk_unmap(chunk);
	return r;
}

static bool may_come(const struct td_chunk *chunk, bool closed)
{
	return chunk->place != TD_PLACE_DEVICE && (chunk->place != TD_PLACE_HOST || closed);
}

/* Up to a batch of chunks within the limit. Returns how many; *ret_full: no more room. */
static unsigned start_coming(unsigned slot, uint64_t limit_bytes, CUstream stream, bool *ret_full)
{
	bool closed = td_gate_word() & TD_WORD_CLOSED;
	unsigned n = 0;

	for (struct td_range *range = td_swap.ranges; range; range = range->next) {
		for (size_t i = 0; i < range->count && range->slot == slot && n < BATCH; i++) {
			struct td_chunk *chunk = &range->chunks[i];

			if (!may_come(chunk, closed))
				continue;
			if (td_swap.totals[slot].resident_bytes + chunk->bytes > limit_bytes ||
				bring(chunk, range->device, stream)) {
				*ret_full = true;
				return n;
			}
			count_move(slot, chunk, TD_PLACE_DEVICE);
			n++;
		}
	}
	return n;
}

/* Is every byte within the device's reach? */
static bool is_reachable(unsigned slot)
{
	for (const struct td_range *range = td_swap.ranges; range; range = range->next)
		for (size_t i = 0; i < range->count && range->slot == slot; i++)
			if (range->chunks[i].place != TD_PLACE_DEVICE &&
				range->chunks[i].place != TD_PLACE_HOST)
				return false;
	return true;
}

int td_swap_fill(unsigned slot, uint64_t limit_bytes, void (*progress)(unsigned slot))
{
	bool full = false, reachable;
	unsigned n;
	int r;

	do {
		uint64_t began_ns = td_time_now_ns();
		CUstream stream;

		pthread_mutex_lock(&td_swap.lock);
		stream = stream_of(slot);
		n = start_coming(slot, limit_bytes, stream, &full);
		r = finish(slot, stream);
		td_swap.totals[slot].move_ns += td_time_now_ns() - began_ns;
		reachable = is_reachable(slot);
		pthread_mutex_unlock(&td_swap.lock);
		if (n)
			progress(slot);
	} while (!r && n && !full);
	return r ? r : !reachable;
}

/* Host memory behind a chunk that has none: the device is full. */
static int reach(struct td_chunk *chunk, CUdevice device, CUstream stream)
{
	int r = td_chunk_map_host(chunk, device);

	if (r)
		return r;
	if (chunk->place == TD_PLACE_ARENA) {
		r = td_chunk_from_arena(chunk, stream);
		if (!r)
			r = td_real.cuStreamSynchronize(stream);
		if (r) {
			td_chunk_unmap(chunk);
			return r;
		}
	}
	chunk->place = TD_PLACE_HOST;
	return CUDA_SUCCESS;
}

int td_swap_reach(unsigned slot)
{
	CUstream stream;
	bool reachable;

	pthread_mutex_lock(&td_swap.lock);
	stream = stream_of(slot);
	for (struct td_range *range = td_swap.ranges; range; range = range->next)
		for (size_t i = 0; i < range->count && range->slot == slot; i++)
			if (range->chunks[i].place == TD_PLACE_FRESH ||
				range->chunks[i].place == TD_PLACE_ARENA)
				(void)reach(&range->chunks[i], range->device, stream);
	reachable = is_reachable(slot);
	pthread_mutex_unlock(&td_swap.lock);
	return !reachable;
}
