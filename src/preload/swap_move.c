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

/* The chunk's bytes have come to the device, or left it, or have come within its reach. */
static void count_move(unsigned slot, struct td_chunk *chunk, enum td_place to)
{
	struct td_memory_stats *t = &td_swap.totals[slot];
	enum td_place from = chunk->place;

	if (from == TD_PLACE_HOST)
		t->spilled_bytes -= chunk->bytes;
	if (to == TD_PLACE_HOST)
		t->spilled_bytes += chunk->bytes;

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
			if (range->slot != slot || range->pins ||
				(largest && largest->bytes >= range->bytes))
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

/* What is pinned stays beyond any limit, as what is not ours does. */
static uint64_t with_pins(unsigned slot, uint64_t limit_bytes)
{
	uint64_t fixed = td_swap.totals[slot].fixed_bytes;

	return limit_bytes < fixed ? fixed : limit_bytes;
}

/* One batch. Returns how many chunks have left, or -errno with everything where it was. */
static int leave(unsigned slot, uint64_t limit_bytes, CUstream stream)
{
	uint64_t resident = td_swap.totals[slot].resident_bytes;
	struct td_chunk *batch[BATCH];
	unsigned n;
	int r;

	limit_bytes = with_pins(slot, limit_bytes);
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
		return td_chunk_exchange(chunk, device, stream);
	r = td_chunk_map(chunk, device);
	if (r || chunk->place == TD_PLACE_FRESH)
		return r;
	r = td_chunk_from_arena(chunk, stream);
	if (r)
		td_chunk_unmap(chunk);
	return r;
}

/* Who still wants to come, and what keeps them. */
enum coming {
	COMING_MORE,
	COMING_LIMIT, /* no more fit the limit */
	COMING_FULL,  /* no more fit the device */
};

/* Up to a batch of chunks within the limit: what is out of reach, or what the host has within reach. Returns how many. */
static unsigned start_coming(unsigned slot, uint64_t limit_bytes, bool within_reach,
	CUstream stream, enum coming *ret_coming)
{
	unsigned n = 0;

	for (struct td_range *range = td_swap.ranges; range; range = range->next) {
		for (size_t i = 0; i < range->count && range->slot == slot && n < BATCH; i++) {
			struct td_chunk *chunk = &range->chunks[i];

			if (chunk->place == TD_PLACE_DEVICE ||
				(chunk->place == TD_PLACE_HOST) != within_reach)
				continue;
			if (td_swap.totals[slot].resident_bytes + chunk->bytes > limit_bytes) {
				*ret_coming = COMING_LIMIT;
				return n;
			}
			if (bring(chunk, range->device, stream)) {
				*ret_coming = COMING_FULL;
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

/* What is out of reach comes first, or it would be sent where the other comes from. */
int td_swap_fill(unsigned slot, uint64_t limit_bytes, void (*progress)(unsigned slot))
{
	enum coming coming = COMING_MORE;
	bool within_reach = false, reachable;
	unsigned n;
	int r;

	do {
		uint64_t began_ns = td_time_now_ns();
		CUstream stream;

		pthread_mutex_lock(&td_swap.lock);
		stream = stream_of(slot);
		n = start_coming(slot, limit_bytes, within_reach, stream, &coming);
		if (!n && !within_reach && td_gate_word() & TD_WORD_CLOSED) {
			within_reach = true;
			n = start_coming(slot, limit_bytes, within_reach, stream, &coming);
		}
		r = finish(slot, stream);
		td_swap.totals[slot].move_ns += td_time_now_ns() - began_ns;
		reachable = is_reachable(slot);
		pthread_mutex_unlock(&td_swap.lock);
		if (n)
			progress(slot);
	} while (!r && n && coming == COMING_MORE);
	return r ? r : reachable ? 0 : coming == COMING_FULL ? 2 : 1;
}

/* -- within reach, on the host -- */

/* Host memory behind a chunk that has none, or instead of the device's. 0, or a CUresult with the chunk as it was. */
static int reach(struct td_chunk *chunk, CUdevice device, CUstream stream)
{
	int r;

	if (chunk->place == TD_PLACE_DEVICE)
		return td_chunk_exchange(chunk, device, stream);
	r = td_chunk_map_host(chunk, device);
	if (r || chunk->place == TD_PLACE_FRESH)
		return r;
	r = td_chunk_from_arena(chunk, stream);
	if (!r)
		r = td_real.cuStreamSynchronize(stream);
	if (r)
		td_chunk_unmap(chunk);
	else
		td_chunk_drop_arena(chunk);
	return r;
}

/* The first chunk of the slot that is out of reach; else, while more is on the device than the limit, one from there, of the largest range. */
static struct td_chunk *find_unreached(unsigned slot, uint64_t limit_bytes, CUdevice *ret_device)
{
	bool excess = td_swap.totals[slot].resident_bytes > with_pins(slot, limit_bytes);
	struct td_chunk *found = NULL;
	uint64_t largest = 0;

	for (struct td_range *range = td_swap.ranges; range; range = range->next) {
		for (size_t i = 0; i < range->count && range->slot == slot; i++) {
			struct td_chunk *chunk = &range->chunks[i];

			*ret_device = range->device;
			if (chunk->place == TD_PLACE_FRESH || chunk->place == TD_PLACE_ARENA)
				return chunk;
			if (chunk->place == TD_PLACE_DEVICE && excess && !range->pins &&
				range->bytes > largest) {
				found = chunk;
				largest = range->bytes;
			}
		}
	}
	return found;
}

/* One at a time, the lock free in between: each is a copy across the link. */
int td_swap_reach(unsigned slot, uint64_t limit_bytes, void (*progress)(unsigned slot))
{
	bool done = false, reachable;
	int r = 0;

	while (!done && !r) {
		uint64_t began_ns = td_time_now_ns();
		struct td_chunk *chunk;
		CUdevice device;

		pthread_mutex_lock(&td_swap.lock);
		chunk = find_unreached(slot, limit_bytes, &device);
		done = !chunk || reach(chunk, device, stream_of(slot));
		if (!done)
			count_move(slot, chunk, TD_PLACE_HOST);
		r = finish(slot, stream_of(slot));
		td_swap.totals[slot].move_ns += td_time_now_ns() - began_ns;
		reachable = is_reachable(slot) &&
			    td_swap.totals[slot].resident_bytes <= with_pins(slot, limit_bytes);
		pthread_mutex_unlock(&td_swap.lock);
		if (!done)
			progress(slot);
	}
	return r ? r : !reachable;
}
