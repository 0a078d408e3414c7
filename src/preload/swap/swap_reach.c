/*
 * Backend swap, on the agent's thread. Moves memory to host memory that the device can use in
 * place: memory beyond the limit, and memory on the host that the device cannot use. As in
 * swap_move.c there are two batches, so that copies follow one another without a gap.
 */
#include <errno.h>

#include "base/time.h"
#include "preload/base/agent_calls.h"
#include "preload/driver/real.h"
#include "preload/swap/swap_batch.h"

/*
 * Maps a chunk that the device cannot reach. Returns 0, after which a copy may be in progress; or a
 * CUresult with the chunk unchanged.
 */
static int start_mapping(unsigned slot, struct td_range *range, struct td_chunk *chunk,
	CUstream stream, struct td_batch *batch)
{
	int r = td_chunk_map_host(chunk, range->device);

	/*
	 * If the host has no more memory, unused memory of other chunks is freed and it is tried
	 * once more.
	 */
	if (r && td_swap_drop_idle(slot))
		r = td_chunk_map_host(chunk, range->device);
	if (r)
		return r;
	if (chunk->place == TD_PLACE_FRESH) {
		td_swap_count_move(slot, chunk, TD_PLACE_HOST);
		return CUDA_SUCCESS;
	}
	r = td_chunk_from_arena(chunk, stream);
	if (r) {
		td_chunk_unmap(chunk);
		return r;
	}
	td_batch_add(batch, range, chunk, NULL);
	chunk->place = TD_PLACE_BETWEEN;
	return CUDA_SUCCESS;
}

/* Starts to exchange device memory for host memory. The chunk stays in place until it is copied. */
static int start_exchange(
	struct td_range *range, struct td_chunk *chunk, CUstream stream, struct td_batch *batch)
{
	struct td_exchange exchange;
	int r = td_chunk_begin_exchange(chunk, range->device, stream, &exchange);

	if (r && td_swap_drop_idle(range->slot))
		r = td_chunk_begin_exchange(chunk, range->device, stream, &exchange);
	if (r)
		return r;
	td_batch_add(batch, range, chunk, &exchange);
	chunk->place = TD_PLACE_BETWEEN;
	return CUDA_SUCCESS;
}

/*
 * Starts to map chunks that the device cannot reach. Returns 0, or the error that prevented some.
 */
static int start_unreached(unsigned slot, CUstream stream, struct td_batch *batch)
{
	int r = CUDA_SUCCESS;

	for (struct td_range *range = td_swap.ranges; range; range = range->next) {
		for (size_t i = 0; i < range->count && range->slot == slot; i++) {
			struct td_chunk *chunk = &range->chunks[i];

			if (r || td_batch_is_full(batch))
				return r;
			if (chunk->place == TD_PLACE_FRESH || chunk->place == TD_PLACE_ARENA)
				r = start_mapping(slot, range, chunk, stream, batch);
		}
	}
	return r;
}

/*
 * Starts to exchange chunks of the largest ranges first: at most `bytes`, rounded up to whole
 * chunks.
 */
static int start_excess(unsigned slot, uint64_t bytes, CUstream stream, struct td_batch *batch)
{
	int r = CUDA_SUCCESS;

	for (struct td_range *range = td_swap.ranges; range; range = range->next) {
		for (size_t i = 0; i < range->count && range->slot == slot && !range->pins; i++) {
			struct td_chunk *chunk = &range->chunks[i];

			if (r || td_batch_is_full(batch) || batch->leaving_bytes >= bytes)
				return r;
			if (chunk->place == TD_PLACE_DEVICE && !chunk->loose)
				r = start_exchange(range, chunk, stream, batch);
		}
	}
	return r;
}

/*
 * Starts the next batch's copies behind those of the other batch. False: some could not be started;
 * no more batches follow.
 */
static bool start_next_batch(
	unsigned slot, uint64_t limit_bytes, struct td_batch *batch, const struct td_batch *other)
{
	uint64_t resident, most;
	CUstream stream;
	int r;

	pthread_mutex_lock(&td_swap.lock);
	stream = td_swap_stream(slot);
	r = start_unreached(slot, stream, batch);
	resident = td_swap.totals[slot].resident_bytes - other->leaving_bytes;
	most = td_swap_with_pins(slot, limit_bytes);
	if (!r && resident > most && td_plans_is_still())
		r = start_excess(slot, resident - most, stream, batch);
	td_batch_mark(batch, stream);
	pthread_mutex_unlock(&td_swap.lock);
	return !r;
}

/* Returns false if the chunk is unchanged. */
static bool end_mapping(unsigned slot, struct td_chunk *chunk, bool copied)
{
	chunk->place = TD_PLACE_ARENA;
	if (!copied) {
		td_chunk_unmap(chunk);
		return false;
	}
	td_chunk_drop_arena(chunk);
	td_swap_count_move(slot, chunk, TD_PLACE_HOST);
	return true;
}

/*
 * Ends an exchange. False: the chunk is unchanged, as after a failure, or if the program may have
 * written to it since the copy.
 */
static bool end_exchange(unsigned slot, const struct td_move *move, bool copied)
{
	struct td_chunk *chunk = move->chunk;

	chunk->place = TD_PLACE_DEVICE;
	if (!copied || !td_plans_is_still() || move->range->pins) {
		td_chunk_drop_exchange(chunk, &move->exchange);
		return false;
	}
	if (td_chunk_end_exchange(chunk, move->range->device, &move->exchange))
		return false;
	td_swap_count_move(slot, chunk, TD_PLACE_HOST);
	return true;
}

/*
 * Waits for a batch. Returns 0 or -ENOTRECOVERABLE. *ret_all stays true only if all its chunks were
 * moved.
 */
static int have_reached(unsigned slot, struct td_batch *batch, uint64_t began_ns, bool *ret_all)
{
	int r = td_batch_await(batch);

	pthread_mutex_lock(&td_swap.lock);
	for (unsigned i = 0; i < batch->n; i++) {
		const struct td_move *move = &batch->moves[i];

		*ret_all &= move->from == TD_PLACE_DEVICE ? end_exchange(slot, move, !r)
							  : end_mapping(slot, move->chunk, !r);
	}
	td_batch_clear(batch);
	td_swap_failed(slot, r);
	td_swap.totals[slot].move_ns += td_time_now_ns() - began_ns;
	pthread_mutex_unlock(&td_swap.lock);
	return r ? -ENOTRECOVERABLE : 0;
}

static bool is_reachable(unsigned slot)
{
	bool reachable;

	pthread_mutex_lock(&td_swap.lock);
	reachable = td_swap_is_reachable(slot);
	pthread_mutex_unlock(&td_swap.lock);
	return reachable;
}

static bool is_done(unsigned slot, uint64_t limit_bytes)
{
	bool within;

	pthread_mutex_lock(&td_swap.lock);
	within = td_swap.totals[slot].resident_bytes <= td_swap_with_pins(slot, limit_bytes);
	pthread_mutex_unlock(&td_swap.lock);
	return within && is_reachable(slot);
}

int td_swap_reach(unsigned slot, uint64_t limit_bytes, void (*progress)(unsigned slot))
{
	struct td_batch batches[2];
	unsigned turn = 0;
	bool all = true, full = false, done, stays;
	int r;

	td_swap_tie(slot);
	if (is_done(slot, limit_bytes))
		return 0;
	r = td_batches_init(slot, batches);
	if (r)
		return r;
	do {
		uint64_t began_ns = td_time_now_ns();

		if (all)
			full = !start_next_batch(
				slot, limit_bytes, &batches[turn], &batches[!turn]);
		all &= !full;
		turn = !turn;
		r = have_reached(slot, &batches[turn], began_ns, &all);
		progress(slot);
	} while (!r && batches[!turn].n);
	/* A failure stops both batches, so the other one counts as failed too. */
	batches[!turn].failed = (int)td_swap.totals[slot].failed;
	(void)have_reached(slot, &batches[!turn], td_time_now_ns(), &all);
	td_batches_deinit(batches);
	if (r) {
		progress(slot);
		return r;
	}
	done = is_done(slot, limit_bytes);
	/*
	 * Instead of waiting for ever, the process runs on with more on the device than its limit.
	 */
	stays = !done && full && is_reachable(slot);
	if (done || stays)
		td_swap_strand(slot, stays);
	progress(slot);
	return !done && !stays;
}
