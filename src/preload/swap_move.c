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
#include "preload/host.h"
#include "preload/plans.h"
#include "preload/real.h"

#define BATCH       16
#define BATCH_BYTES (64ull << 20) /* and one chunk */

/*
 * Chunks that are being copied, and when that is done. Two batches take turns: while one is copied, what the other needs of the driver is done, so that
 * the link is never without work.
 */
struct batch {
	struct td_chunk *chunks[BATCH];
	struct td_range *ranges[BATCH];
	unsigned n;
	uint64_t bytes;
	CUevent done;
	CUstream
		unmarked; /* the event could not be recorded: all of this stream has to be waited for */
};

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
		t->out_bytes += to == TD_PLACE_FRESH ? 0 : chunk->bytes;
	}
	chunk->place = to;
}

static void failed(unsigned slot, int r)
{
	td_swap.totals[slot].failed = (uint32_t)r;
}

/* A stream of ours knows only of our own copies: what it fails with is the context's sticky error. 0 or -ENOTRECOVERABLE. */
static int finish(unsigned slot, CUstream stream)
{
	int r = td_real.cuStreamSynchronize(stream);

	failed(slot, r);
	return r ? -ENOTRECOVERABLE : 0;
}

static void batches_deinit(struct batch batches[2])
{
	for (unsigned i = 0; i < 2; i++)
		if (batches[i].done)
			(void)td_real.cuEventDestroy_v2(batches[i].done);
}

/* 0, -ENOMEM, or -ENOTRECOVERABLE: a context that cannot make an event can move nothing. */
static int batches_init(unsigned slot, struct batch batches[2])
{
	int r = CUDA_SUCCESS;

	for (unsigned i = 0; i < 2; i++)
		batches[i] = (struct batch){0};
	for (unsigned i = 0; i < 2 && !r; i++)
		r = td_real.cuEventCreate(&batches[i].done, CU_EVENT_DISABLE_TIMING);
	if (!r)
		return 0;
	batches_deinit(batches);
	if (r == CUDA_ERROR_OUT_OF_MEMORY)
		return -ENOMEM;
	pthread_mutex_lock(&td_swap.lock);
	failed(slot, r);
	pthread_mutex_unlock(&td_swap.lock);
	return -ENOTRECOVERABLE;
}

static bool is_full(const struct batch *batch)
{
	return batch->n == BATCH || batch->bytes >= BATCH_BYTES;
}

static void batch_add(struct batch *batch, struct td_range *range, struct td_chunk *chunk)
{
	range->moving++;
	batch->ranges[batch->n] = range;
	batch->chunks[batch->n++] = chunk;
	batch->bytes += chunk->bytes;
}

/* No lock. What was started before is copied when this returns 0. */
static int batch_await(const struct batch *batch)
{
	if (batch->n && batch->unmarked)
		return td_real.cuStreamSynchronize(batch->unmarked);
	return batch->n ? td_real.cuEventSynchronize(batch->done) : CUDA_SUCCESS;
}

/* The batch is copied when the stream has come to here. An event that was not recorded would say so at once. */
static void mark(struct batch *batch, CUstream stream)
{
	batch->unmarked = NULL;
	if (batch->n && td_real.cuEventRecord(batch->done, stream))
		batch->unmarked = stream;
}

/* -- off the device -- */

/* Starts the copies of a batch, of the largest ranges first, of no more than `bytes` and what a chunk has beyond that. */
static void start_leaving(unsigned slot, uint64_t bytes, CUstream stream, struct batch *batch)
{
	for (struct td_range *range = td_swap.ranges; range; range = range->next) {
		for (size_t i = 0; i < range->count && range->slot == slot && !range->pins; i++) {
			struct td_chunk *chunk = &range->chunks[i];

			if (is_full(batch) || batch->bytes >= bytes)
				return;
			if (chunk->place != TD_PLACE_DEVICE)
				continue;
			/* Where there is no more, what others of its chunks keep for the next time will do. */
			if (td_chunk_to_arena(chunk, stream) &&
				(!td_swap_drop_idle(slot) || td_chunk_to_arena(chunk, stream)))
				return;
			chunk->place = TD_PLACE_ARENA; /* so that it is not chosen twice */
			batch_add(batch, range, chunk);
		}
	}
}

/* They have left, or, if the copy failed, not. */
static void end_leaving(unsigned slot, struct batch *batch, bool left)
{
	for (unsigned i = 0; i < batch->n; i++) {
		batch->chunks[i]->place = TD_PLACE_DEVICE;
		batch->ranges[i]->moving--;
		if (!left)
			continue;
		td_chunk_unmap(batch->chunks[i]);
		count_move(slot, batch->chunks[i], TD_PLACE_ARENA);
	}
	batch->n = 0;
	batch->bytes = 0;
}

/* What is pinned stays beyond any limit, as what is not ours does. */
static uint64_t with_pins(unsigned slot, uint64_t limit_bytes)
{
	uint64_t fixed = td_swap.totals[slot].fixed_bytes;

	return limit_bytes < fixed ? fixed : limit_bytes;
}

/* What came since the gate was closed with no bytes of its own has none yet: it goes without a copy, and needs no place on the host. */
static void drop_blank(unsigned slot, uint64_t limit_bytes)
{
	/* A process whose other GPU has failed is let go at once: then it may be writing already. */
	if (!(td_gate_word() & TD_WORD_CLOSED))
		return;
	pthread_mutex_lock(&td_swap.lock);
	for (struct td_range *range = td_swap.ranges; range; range = range->next) {
		for (size_t i = 0; i < range->count && range->slot == slot && !range->pins; i++) {
			struct td_chunk *chunk = &range->chunks[i];

			if (td_swap.totals[slot].resident_bytes <= with_pins(slot, limit_bytes))
				break;
			if (chunk->place != TD_PLACE_DEVICE ||
				chunk->blank != td_plans_closings() + 1)
				continue;
			td_chunk_unmap(chunk);
			count_move(slot, chunk, TD_PLACE_FRESH);
		}
	}
	pthread_mutex_unlock(&td_swap.lock);
}

/* The next batch's copies, behind those of the other. */
static void leave(
	unsigned slot, uint64_t limit_bytes, struct batch *batch, const struct batch *other)
{
	uint64_t resident, most;
	CUstream stream;

	pthread_mutex_lock(&td_swap.lock);
	stream = stream_of(slot);
	resident = td_swap.totals[slot].resident_bytes - other->bytes;
	most = with_pins(slot, limit_bytes);
	if (resident > most)
		start_leaving(slot, resident - most, stream, batch);
	mark(batch, stream);
	pthread_mutex_unlock(&td_swap.lock);
}

/* The other batch, whose copies were started before. 0 or -ENOTRECOVERABLE. */
static int have_left(unsigned slot, struct batch *batch, uint64_t began_ns)
{
	int r = batch_await(batch);

	pthread_mutex_lock(&td_swap.lock);
	end_leaving(slot, batch, !r);
	failed(slot, r);
	td_swap.totals[slot].move_ns += td_time_now_ns() - began_ns;
	pthread_mutex_unlock(&td_swap.lock);
	return r ? -ENOTRECOVERABLE : 0;
}

static bool is_above(unsigned slot, uint64_t limit_bytes)
{
	bool above;

	pthread_mutex_lock(&td_swap.lock);
	above = td_swap.totals[slot].resident_bytes > with_pins(slot, limit_bytes);
	pthread_mutex_unlock(&td_swap.lock);
	return above;
}

/* All that is left on the device cannot leave for now, or may be able to again. */
static void strand(unsigned slot, bool stranded)
{
	const struct td_memory_stats *t = &td_swap.totals[slot];

	pthread_mutex_lock(&td_swap.lock);
	td_swap.stranded_bytes[slot] = stranded ? t->resident_bytes - t->fixed_bytes : 0;
	td_swap.stranded_grants[slot] = td_host_granted();
	pthread_mutex_unlock(&td_swap.lock);
}

int td_swap_shrink(unsigned slot, uint64_t limit_bytes, void (*progress)(unsigned slot))
{
	struct batch batches[2];
	unsigned turn = 0;
	int r;

	drop_blank(slot, limit_bytes);
	if (!is_above(slot, limit_bytes)) {
		progress(slot);
		return 0;
	}
	r = batches_init(slot, batches);
	if (r)
		return r;
	do {
		uint64_t began_ns = td_time_now_ns();

		leave(slot, limit_bytes, &batches[turn], &batches[!turn]);
		turn = !turn;
		r = have_left(slot, &batches[turn], began_ns);
		progress(slot);
	} while (!r && batches[!turn].n);
	/* After a failure the other one has failed, too. */
	(void)have_left(slot, &batches[!turn], td_time_now_ns());
	batches_deinit(batches);
	if (r)
		return r;
	if (!is_above(slot, limit_bytes)) {
		strand(slot, false);
		return 0;
	}
	/* It has nowhere to go, and stays; unless it is the context that can do nothing. Whoever wants the room waits until it is freed. */
	pthread_mutex_lock(&td_swap.lock);
	r = finish(slot, stream_of(slot));
	pthread_mutex_unlock(&td_swap.lock);
	if (!r)
		strand(slot, true);
	progress(slot);
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

/* Up to a batch of chunks within the limit: what is out of reach, or what the host has within reach. */
static void start_coming(unsigned slot, uint64_t limit_bytes, bool within_reach, CUstream stream,
	struct batch *batch, enum coming *ret_coming)
{
	for (struct td_range *range = td_swap.ranges; range; range = range->next) {
		for (size_t i = 0; i < range->count && range->slot == slot && !is_full(batch);
			i++) {
			struct td_chunk *chunk = &range->chunks[i];

			if (chunk->place == TD_PLACE_DEVICE ||
				(chunk->place == TD_PLACE_HOST) != within_reach)
				continue;
			if (td_swap.totals[slot].resident_bytes + chunk->bytes > limit_bytes) {
				*ret_coming = COMING_LIMIT;
				return;
			}
			if (bring(chunk, range->device, stream)) {
				*ret_coming = COMING_FULL;
				return;
			}
			chunk->blank = chunk->place == TD_PLACE_FRESH ? td_plans_closings() + 1 : 0;
			count_move(slot, chunk, TD_PLACE_DEVICE);
			batch_add(batch, range, chunk);
		}
	}
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

/* The next batch's copies, behind those of the other. What is out of reach comes first, or it would be sent where the other comes from. */
static void come(unsigned slot, uint64_t limit_bytes, bool *within_reach, struct batch *batch,
	enum coming *ret_coming)
{
	CUstream stream;

	pthread_mutex_lock(&td_swap.lock);
	stream = stream_of(slot);
	if (*ret_coming == COMING_MORE)
		start_coming(slot, limit_bytes, *within_reach, stream, batch, ret_coming);
	if (!batch->n && !*within_reach && td_gate_word() & TD_WORD_CLOSED) {
		*within_reach = true;
		start_coming(slot, limit_bytes, true, stream, batch, ret_coming);
	}
	mark(batch, stream);
	pthread_mutex_unlock(&td_swap.lock);
}

/* 0 or -ENOTRECOVERABLE. */
static int have_come(unsigned slot, struct batch *batch, uint64_t began_ns)
{
	int r = batch_await(batch);

	pthread_mutex_lock(&td_swap.lock);
	while (batch->n)
		batch->ranges[--batch->n]->moving--;
	batch->bytes = 0;
	failed(slot, r);
	td_swap.totals[slot].move_ns += td_time_now_ns() - began_ns;
	pthread_mutex_unlock(&td_swap.lock);
	return r ? -ENOTRECOVERABLE : 0;
}

/* 0, 1 or 2, see backend.h. */
static int whether_reachable(unsigned slot, enum coming coming)
{
	bool reachable;

	pthread_mutex_lock(&td_swap.lock);
	reachable = is_reachable(slot);
	pthread_mutex_unlock(&td_swap.lock);
	return reachable ? 0 : coming == COMING_FULL ? 2 : 1;
}

int td_swap_fill(unsigned slot, uint64_t limit_bytes, void (*progress)(unsigned slot))
{
	enum coming coming = COMING_MORE;
	bool within_reach = false;
	struct batch batches[2];
	unsigned turn = 0, n;
	int r;

	r = batches_init(slot, batches);
	if (r)
		return r;
	do {
		uint64_t began_ns = td_time_now_ns();

		come(slot, limit_bytes, &within_reach, &batches[turn], &coming);
		turn = !turn;
		n = batches[turn].n;
		r = have_come(slot, &batches[turn], began_ns);
		if (n)
			progress(slot);
	} while (!r && batches[!turn].n);
	n = batches[!turn].n;
	(void)have_come(slot, &batches[!turn], td_time_now_ns());
	if (n)
		progress(slot);
	batches_deinit(batches);
	return r ? r : whether_reachable(slot, coming);
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
