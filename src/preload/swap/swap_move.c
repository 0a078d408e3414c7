/*
 * Backend swap, the agent's side. Chunks leave the device and come back several at a time, so that
 * copies follow one another without a gap and other processes get the memory while the rest still
 * moves.
 *
 * Mapped host memory (a chunk in place HOST) is off the device and yet within its reach. It is
 * exchanged for device memory only behind a closed gate, when no kernel can be using it.
 */
#include <errno.h>

#include "base/time.h"
#include "preload/base/agent_calls.h"
#include "preload/base/page.h"
#include "preload/driver/choose.h"
#include "preload/driver/real.h"
#include "preload/swap/swap_batch.h"

/*
 * Waits for the stream, which has only the library's copies, so its error is the context's sticky
 * error. Returns 0 or -ENOTRECOVERABLE.
 */
static int await_copies(unsigned slot, CUstream stream)
{
	int r = td_true->cuStreamSynchronize(stream);

	td_swap_failed(slot, r);
	return r ? -ENOTRECOVERABLE : 0;
}

/* -- moving memory off the device -- */

/*
 * Starts the copies of a batch, from the largest ranges first, of at most `bytes` rounded up to
 * whole chunks.
 */
static void start_leaving(unsigned slot, uint64_t bytes, CUstream stream, struct td_batch *batch)
{
	for (struct td_range *range = td_swap.ranges; range; range = range->next) {
		for (size_t i = 0; i < range->count && range->slot == slot && !range->pins; i++) {
			struct td_chunk *chunk = &range->chunks[i];

			if (td_batch_is_full(batch) || batch->bytes >= bytes)
				return;
			if (chunk->place != TD_PLACE_DEVICE || chunk->loose)
				continue;
			/*
			 * If the host has no more memory, unused memory of other chunks is freed
			 * and it is tried once more.
			 */
			if (td_chunk_to_arena(chunk, stream) &&
				(!td_swap_drop_idle(slot) || td_chunk_to_arena(chunk, stream)))
				return;
			td_batch_add(batch, range, chunk, NULL);
			chunk->place = TD_PLACE_BETWEEN;
		}
	}
}

/* Ends a batch: its chunks have left the device or, if the copy failed, have stayed. */
static void end_leaving(unsigned slot, struct td_batch *batch, bool left)
{
	for (unsigned i = 0; i < batch->n; i++) {
		struct td_chunk *chunk = batch->moves[i].chunk;

		chunk->place = TD_PLACE_DEVICE;
		/* a range that was pinned meanwhile stays */
		if (!left || batch->moves[i].range->pins)
			continue;
		td_chunk_unmap(chunk);
		td_swap_count_move(slot, chunk, TD_PLACE_ARENA);
	}
	td_batch_clear(batch);
}

/*
 * Unmaps memory that was allocated while the gate was closed. No work has written to it, so it
 * needs neither a copy nor a place on the host.
 */
static void drop_blank(unsigned slot, uint64_t limit_bytes)
{
	/*
	 * If a second GPU of the process has failed, the daemon opens the gate at once. Then the
	 * program may be writing already.
	 */
	if (!(td_gate_word() & TD_WORD_CLOSED))
		return;
	pthread_mutex_lock(&td_swap.lock);
	for (struct td_range *range = td_swap.ranges; range; range = range->next) {
		for (size_t i = 0; i < range->count && range->slot == slot && !range->pins; i++) {
			struct td_chunk *chunk = &range->chunks[i];

			if (td_swap.totals[slot].resident_bytes <=
				td_swap_with_pins(slot, limit_bytes))
				break;
			if (chunk->place != TD_PLACE_DEVICE ||
				chunk->blank != td_plans_closings() + 1)
				continue;
			td_chunk_unmap(chunk);
			td_swap_count_move(slot, chunk, TD_PLACE_FRESH);
		}
	}
	pthread_mutex_unlock(&td_swap.lock);
}

/* Starts the next batch's copies, behind those of the other batch. */
static void move_off_device(
	unsigned slot, uint64_t limit_bytes, struct td_batch *batch, const struct td_batch *other)
{
	uint64_t resident, most;
	CUstream stream;

	pthread_mutex_lock(&td_swap.lock);
	stream = td_swap_stream(slot);
	resident = td_swap.totals[slot].resident_bytes - other->leaving_bytes;
	most = td_swap_with_pins(slot, limit_bytes);
	if (resident > most)
		start_leaving(slot, resident - most, stream, batch);
	td_batch_mark(batch, stream);
	pthread_mutex_unlock(&td_swap.lock);
}

/* Waits for the other batch, whose copies were started before. Returns 0 or -ENOTRECOVERABLE. */
static int have_left(unsigned slot, struct td_batch *batch, uint64_t began_ns)
{
	int r = td_batch_await(batch);

	pthread_mutex_lock(&td_swap.lock);
	end_leaving(slot, batch, !r);
	td_swap_failed(slot, r);
	td_swap.totals[slot].move_ns += td_time_now_ns() - began_ns;
	pthread_mutex_unlock(&td_swap.lock);
	return r ? -ENOTRECOVERABLE : 0;
}

static bool is_above(unsigned slot, uint64_t limit_bytes)
{
	bool above;

	pthread_mutex_lock(&td_swap.lock);
	above = td_swap.totals[slot].resident_bytes > td_swap_with_pins(slot, limit_bytes);
	pthread_mutex_unlock(&td_swap.lock);
	return above;
}

int td_swap_shrink(unsigned slot, uint64_t limit_bytes, void (*progress)(unsigned slot))
{
	struct td_batch batches[2];
	unsigned turn = 0;
	int r;

	td_choose_look();
	drop_blank(slot, limit_bytes);
	if (!is_above(slot, limit_bytes)) {
		progress(slot);
		return 0;
	}
	r = td_batches_init(slot, batches);
	if (r)
		return r;
	do {
		uint64_t began_ns = td_time_now_ns();

		move_off_device(slot, limit_bytes, &batches[turn], &batches[!turn]);
		turn = !turn;
		r = have_left(slot, &batches[turn], began_ns);
		progress(slot);
	} while (!r && batches[!turn].n);
	/* A failure stops both batches, so the other one counts as failed too. */
	batches[!turn].failed = (int)td_swap.totals[slot].failed;
	(void)have_left(slot, &batches[!turn], td_time_now_ns());
	td_batches_deinit(batches);
	if (r)
		return r;
	if (!is_above(slot, limit_bytes)) {
		td_swap_strand(slot, false);
		return 0;
	}
	/*
	 * The chunk has no place to go and stays, unless the context has failed. Those who want the
	 * room wait until it is freed.
	 */
	pthread_mutex_lock(&td_swap.lock);
	r = await_copies(slot, td_swap_stream(slot));
	pthread_mutex_unlock(&td_swap.lock);
	if (!r)
		td_swap_strand(slot, true);
	progress(slot);
	return r;
}

/* -- moving memory back to the device -- */

/*
 * Moves a chunk to the device that the device cannot reach. Returns 0, after which a copy may be in
 * progress; or a CUresult with the chunk unchanged.
 */
static int bring_chunk(struct td_chunk *chunk, CUdevice device, CUstream stream)
{
	int r = td_chunk_map(chunk, device);

	if (r || chunk->place == TD_PLACE_FRESH)
		return r;
	r = td_chunk_from_arena(chunk, stream);
	if (r)
		td_chunk_unmap(chunk);
	return r;
}

/*
 * Starts to bring a chunk, wherever it is, to the device. If mapped host memory is in use, it stays
 * mapped until it is copied.
 */
static int start_one(unsigned slot, struct td_range *range, struct td_chunk *chunk, CUstream stream,
	struct td_batch *batch)
{
	bool exchanged = chunk->place == TD_PLACE_HOST;
	struct td_exchange exchange;
	int r = exchanged ? td_chunk_begin_exchange(chunk, range->device, stream, &exchange)
			  : bring_chunk(chunk, range->device, stream);

	if (r)
		return r;
	chunk->blank = chunk->place == TD_PLACE_FRESH ? td_plans_closings() + 1 : 0;
	td_batch_add(batch, range, chunk, exchanged ? &exchange : NULL);
	td_swap_count_move(slot, chunk, TD_PLACE_DEVICE);
	if (batch->moves[batch->n - 1].from != TD_PLACE_FRESH)
		chunk->place = TD_PLACE_BETWEEN;
	return CUDA_SUCCESS;
}

/* Why no more chunks are coming to the device. */
enum coming {
	COMING_MORE,
	COMING_LIMIT,   /* the limit allows no more */
	COMING_FULL,    /* the device is full, or the driver cannot map more */
	COMING_REFUSED, /* the driver refused for another reason than lack of memory */
};

/*
 * Returns whether other processes have opened the range's device memory, so that it cannot leave. A
 * pin is no reason here: a pinned range may still come to the device, and stays there then.
 */
static bool is_held(const struct td_range *range)
{
	return range->pins > (td_swap.stays ? 1u : 0u);
}

static bool wants_to_come(const struct td_chunk *chunk, bool within_reach)
{
	if (within_reach)
		return chunk->place == TD_PLACE_HOST && !chunk->loose;
	return chunk->place == TD_PLACE_FRESH || chunk->place == TD_PLACE_ARENA;
}

/*
 * Starts a batch within the limit: chunks that the device cannot reach or, with within_reach, those
 * in mapped host memory.
 */
static void start_coming(unsigned slot, uint64_t limit_bytes, bool within_reach, CUstream stream,
	struct td_batch *batch, enum coming *ret_coming)
{
	int r;

	for (struct td_range *range = td_swap.ranges; range; range = range->next) {
		for (size_t i = 0;
			i < range->count && range->slot == slot && !td_batch_is_full(batch); i++) {
			struct td_chunk *chunk = &range->chunks[i];

			if (!wants_to_come(chunk, within_reach) || (within_reach && is_held(range)))
				continue;
			if (td_swap.totals[slot].resident_bytes + chunk->bytes > limit_bytes) {
				*ret_coming = COMING_LIMIT;
				return;
			}
			r = start_one(slot, range, chunk, stream, batch);
			if (r) {
				*ret_coming = r == CUDA_ERROR_OUT_OF_MEMORY ? COMING_FULL
									    : COMING_REFUSED;
				return;
			}
		}
	}
}

/*
 * Ends the move of one chunk. Returns false if the chunk is unchanged. An exchange counts only if
 * nothing can have written to the chunk since the copy.
 */
static bool end_one(struct td_move *move, bool copied)
{
	struct td_chunk *chunk = move->chunk;

	if (move->from == TD_PLACE_ARENA) {
		if (!copied)
			td_chunk_unmap(chunk);
		return copied;
	}
	if (move->from == TD_PLACE_FRESH)
		return true;
	if (copied && td_plans_is_still() && !is_held(move->range))
		return !td_chunk_end_exchange(chunk, move->range->device, &move->exchange);
	td_chunk_drop_exchange(chunk, &move->exchange);
	return false;
}

static void end_coming(unsigned slot, struct td_batch *batch, bool copied, enum coming *ret_coming)
{
	for (unsigned i = 0; i < batch->n; i++) {
		struct td_move *move = &batch->moves[i];

		if (end_one(move, copied)) {
			move->chunk->place = TD_PLACE_DEVICE;
			continue;
		}
		td_swap_count_back(slot, move->chunk, move->from);
		if (*ret_coming != COMING_REFUSED)
			*ret_coming = COMING_FULL;
	}
	td_batch_clear(batch);
}

/*
 * Starts the copies of the next batch behind those of the other batch. Chunks that the device
 * cannot reach on the host come first. Otherwise they might be put into the host memory that the
 * others are just leaving.
 */
static void start_next_batch(unsigned slot, uint64_t limit_bytes, bool *within_reach,
	struct td_batch *batch, enum coming *ret_coming)
{
	CUstream stream;

	pthread_mutex_lock(&td_swap.lock);
	stream = td_swap_stream(slot);
	if (*ret_coming == COMING_MORE)
		start_coming(slot, limit_bytes, *within_reach, stream, batch, ret_coming);
	if (!batch->n && !*within_reach && td_plans_is_still()) {
		*within_reach = true;
		start_coming(slot, limit_bytes, true, stream, batch, ret_coming);
	}
	td_batch_mark(batch, stream);
	pthread_mutex_unlock(&td_swap.lock);
}

/* Waits for a batch that was coming to the device. Returns 0 or -ENOTRECOVERABLE. */
static int have_come(
	unsigned slot, struct td_batch *batch, uint64_t began_ns, enum coming *ret_coming)
{
	int r = td_batch_await(batch);

	pthread_mutex_lock(&td_swap.lock);
	end_coming(slot, batch, !r, ret_coming);
	td_swap_failed(slot, r);
	td_swap.totals[slot].move_ns += td_time_now_ns() - began_ns;
	pthread_mutex_unlock(&td_swap.lock);
	return r ? -ENOTRECOVERABLE : 0;
}

/*
 * Asks the driver why memory is short. If it does not even tell how much there is, the device is
 * gone and is not waited for. Returns 0 or -ENOTRECOVERABLE.
 */
static int ask_device(unsigned slot)
{
	size_t left, all;
	int r = td_true->cuMemGetInfo_v2(&left, &all);

	if (!r)
		return 0;
	pthread_mutex_lock(&td_swap.lock);
	td_swap_failed(slot, r);
	pthread_mutex_unlock(&td_swap.lock);
	return -ENOTRECOVERABLE;
}

/* Returns 0, 1 or 2, as fill does in backend.h. */
static int whether_reachable(unsigned slot, enum coming coming)
{
	bool reachable;

	pthread_mutex_lock(&td_swap.lock);
	reachable = td_swap_is_reachable(slot);
	pthread_mutex_unlock(&td_swap.lock);
	if (reachable)
		return 0;
	return coming == COMING_FULL || coming == COMING_REFUSED ? 2 : 1;
}

int td_swap_fill(unsigned slot, uint64_t limit_bytes, void (*progress)(unsigned slot))
{
	enum coming coming = COMING_MORE;
	bool within_reach = false;
	struct td_batch batches[2];
	unsigned turn = 0, n;
	int r;

	r = td_batches_init(slot, batches);
	if (r)
		return r;
	td_swap_tie(slot);
	do {
		uint64_t began_ns = td_time_now_ns();

		start_next_batch(slot, limit_bytes, &within_reach, &batches[turn], &coming);
		turn = !turn;
		n = batches[turn].n;
		r = have_come(slot, &batches[turn], began_ns, &coming);
		if (n)
			progress(slot);
	} while (!r && batches[!turn].n);
	n = batches[!turn].n;
	batches[!turn].failed = (int)td_swap.totals[slot].failed;
	(void)have_come(slot, &batches[!turn], td_time_now_ns(), &coming);
	if (n)
		progress(slot);
	td_batches_deinit(batches);
	if (!r && coming == COMING_REFUSED)
		r = ask_device(slot);
	return r ? r : whether_reachable(slot, coming);
}
