/* Batches of chunks that move together; see swap_batch.h. */
#include "preload/swap/swap_batch.h"

#include <errno.h>

#include "preload/context/context.h"
#include "preload/driver/choose.h"
#include "preload/driver/real.h"

/* The bytes of one batch of copies; a batch may exceed this by one chunk. */
#define BATCH_BYTES (64ull << 20)

CUstream td_swap_stream(unsigned slot)
{
	bool is_alive = td_context_is_alive(td_swap.stream_contexts[slot]),
	     is_left = td_context_is_left(td_swap.stream_contexts[slot]);

	if (!is_alive || is_left) {
		if (is_left)
			(void)td_true->cuStreamDestroy_v2(td_swap.streams[slot]);
		td_swap.streams[slot] = NULL;
		if (!td_true->cuStreamCreate(&td_swap.streams[slot], CU_STREAM_NON_BLOCKING))
			td_swap.stream_contexts[slot] = td_context_serial();
	}
	return td_swap.streams[slot];
}

void td_swap_count_move(unsigned slot, struct td_chunk *chunk, enum td_place to)
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

void td_swap_count_back(unsigned slot, struct td_chunk *chunk, enum td_place from)
{
	struct td_memory_stats *t = &td_swap.totals[slot];

	t->resident_bytes -= chunk->bytes;
	t->host_bytes += chunk->bytes;
	t->in_bytes -= chunk->bytes;
	if (from == TD_PLACE_HOST)
		t->spilled_bytes += chunk->bytes;
	chunk->place = from;
}

uint64_t td_swap_with_pins(unsigned slot, uint64_t limit_bytes)
{
	uint64_t fixed = td_swap.totals[slot].fixed_bytes;

	return limit_bytes < fixed ? fixed : limit_bytes;
}

void td_swap_failed(unsigned slot, int r)
{
	td_swap.totals[slot].failed = (uint32_t)r;
}

void td_swap_tie(unsigned slot)
{
	pthread_mutex_lock(&td_swap.lock);
	for (struct td_range *range = td_swap.ranges; range; range = range->next)
		for (size_t i = 0; i < range->count && range->slot == slot; i++)
			if (range->chunks[i].loose)
				(void)td_chunk_tie(&range->chunks[i], range->device);
	pthread_mutex_unlock(&td_swap.lock);
}

bool td_swap_is_reachable(unsigned slot)
{
	for (const struct td_range *range = td_swap.ranges; range; range = range->next) {
		for (size_t i = 0; i < range->count && range->slot == slot; i++) {
			const struct td_chunk *chunk = &range->chunks[i];

			if (chunk->loose ||
				(chunk->place != TD_PLACE_DEVICE && chunk->place != TD_PLACE_HOST))
				return false;
		}
	}
	return true;
}

void td_batches_deinit(struct td_batch batches[2])
{
	for (unsigned i = 0; i < 2; i++)
		if (batches[i].done)
			(void)td_true->cuEventDestroy_v2(batches[i].done);
}

int td_batches_init(unsigned slot, struct td_batch batches[2])
{
	int r = CUDA_SUCCESS;

	for (unsigned i = 0; i < 2; i++)
		batches[i] = (struct td_batch){0};
	for (unsigned i = 0; i < 2 && !r; i++)
		r = td_true->cuEventCreate(&batches[i].done, CU_EVENT_DISABLE_TIMING);
	if (!r)
		return 0;
	td_batches_deinit(batches);
	if (r == CUDA_ERROR_OUT_OF_MEMORY)
		return -ENOMEM;
	pthread_mutex_lock(&td_swap.lock);
	td_swap_failed(slot, r);
	pthread_mutex_unlock(&td_swap.lock);
	return -ENOTRECOVERABLE;
}

bool td_batch_is_full(const struct td_batch *batch)
{
	return batch->n == TD_BATCH || batch->bytes >= BATCH_BYTES;
}

void td_batch_add(struct td_batch *batch, struct td_range *range, struct td_chunk *chunk,
	const struct td_exchange *exchange)
{
	struct td_move *move = &batch->moves[batch->n++];

	*move = (struct td_move){.range = range, .chunk = chunk, .from = chunk->place};
	if (exchange)
		move->exchange = *exchange;
	range->moving++;
	batch->bytes += chunk->bytes;
	if (chunk->place == TD_PLACE_DEVICE)
		batch->leaving_bytes += chunk->bytes;
}

/*
 * Records the batch's event. If that fails, `unmarked` is set, as an event never recorded counts as
 * complete.
 */
void td_batch_mark(struct td_batch *batch, CUstream stream)
{
	batch->stream = stream;
	batch->unmarked = batch->n && td_true->cuEventRecord(batch->done, stream);
}

static int await_batch(const struct td_batch *batch)
{
	if (!batch->n || batch->failed)
		return batch->failed;
	if (!batch->unmarked && !td_true->cuEventSynchronize(batch->done))
		return CUDA_SUCCESS;
	/*
	 * The stream has only the library's own copies, so its error is the context's sticky error,
	 * and no copy is running any more.
	 */
	return td_true->cuStreamSynchronize(batch->stream);
}

int td_batch_await(const struct td_batch *batch)
{
	int r = await_batch(batch);

	td_choose_look();
	return r;
}

void td_batch_clear(struct td_batch *batch)
{
	while (batch->n)
		batch->moves[--batch->n].range->moving--;
	batch->bytes = 0;
	batch->leaving_bytes = 0;
}
