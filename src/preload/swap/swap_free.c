/*
 * Backend swap: the end of allocations. As with cuMemFree, work submitted before may still use the
 * memory, so that work ends first; only then is a piece handed out again or a range unmapped. While
 * a stream captures, nothing may wait: memory freed then is freed later (late.h).
 */
#include <stdlib.h>

#include "base/time.h"
#include "preload/base/pieces.h"
#include "preload/context/context.h"
#include "preload/driver/real.h"
#include "preload/link/client.h"
#include "preload/memory/late.h"
#include "preload/swap/swap.h"

#define MOVING_LOOK_NS (200 * TD_NS_PER_US)

void td_swap_free_range(struct td_range *range)
{
	for (size_t i = 0; i < range->count; i++)
		td_chunk_free(&range->chunks[i]);
	(void)td_true->cuMemAddressFree(range->base, range->bytes);
	td_pieces_free(range->pieces);
	free(range);
}

void td_swap_unlink(struct td_range *range)
{
	for (struct td_range **p = &td_swap.ranges; *p; p = &(*p)->next) {
		if (*p == range) {
			*p = range->next;
			break;
		}
	}
	for (struct td_range **p = &td_swap.blocks[range->slot]; *p; p = &(*p)->next_block) {
		if (*p == range) {
			*p = range->next_block;
			break;
		}
	}
	td_swap_unindex(range);
	td_swap_count(range, -1);
	if (range->pins)
		td_swap.totals[range->slot].fixed_bytes -= range->bytes;
	/* With the freed memory gone, the rest may find a place on the host. */
	td_swap.stranded[range->slot].bytes = 0;
}

/* Finds the range and returns with the lock held, when no copy of the range is in progress. */
static struct td_range *lock_still(uint64_t address)
{
	struct td_range *range;

	for (;;) {
		pthread_mutex_lock(&td_swap.lock);
		range = td_swap_find(address);
		if (!range || !range->moving)
			return range;
		pthread_mutex_unlock(&td_swap.lock);
		td_time_sleep_until_ns(td_time_now_ns() + MOVING_LOOK_NS);
	}
}

/* Frees a piece of a block. Returns false if there is none. The caller holds the lock. */
static bool put_piece(struct td_range *range, uint64_t address)
{
	bool put;

	pthread_mutex_lock(&td_swap.index_lock);
	put = td_pieces_put(range->pieces, address - range->base);
	pthread_mutex_unlock(&td_swap.index_lock);
	return put;
}

int td_swap_release(uint64_t address)
{
	struct td_range *range;
	unsigned slot = 0;
	bool last = false;
	int r = CUDA_ERROR_INVALID_VALUE;

	range = lock_still(address);
	if (range && range->pieces) {
		/* If two threads free the same piece, one of them gets an error. */
		bool put = put_piece(range, address);

		r = put ? CUDA_SUCCESS : r;
		last = put && td_pieces_is_empty(range->pieces) && !td_swap_keep(range);
	} else if (range && range->base == address) {
		r = CUDA_SUCCESS;
		last = true;
	}
	/* Unmapped under the lock, so that the daemon is not told before the memory is free. */
	if (last) {
		slot = range->slot;
		td_swap_unlink(range);
		td_swap_free_range(range);
	}
	pthread_mutex_unlock(&td_swap.lock);
	if (last)
		td_client_memory_changed(slot);
	return r;
}

int td_swap_end(uint64_t address)
{
	return td_ipc_keeps(address) ? CUDA_SUCCESS : td_swap_release(address);
}

/*
 * Waits for the current context. Returns false if a stream captures, since the wait would break the
 * capture. A capture that is about to begin waits until the driver has answered. No lock is held
 * meanwhile, because the work may need another thread to proceed.
 */
static bool wait_outside_captures(int *ret)
{
	bool none = td_context_hold_captures();

	if (none)
		td_context_waiting(true);
	td_context_release_captures();
	if (none) {
		*ret = td_true->cuCtxSynchronize();
		td_context_waiting(false);
	}
	return none;
}

int td_swap_free(uint64_t address)
{
	struct td_swap_info info;
	CUcontext context = NULL;
	int r = td_swap_describe(address, &info);

	if (r == TD_BACKEND_NOT_MINE)
		return r;
	if (r || info.base != address || td_late_has(address) || td_ipc_is_kept(address))
		return CUDA_ERROR_INVALID_VALUE;
	(void)td_true->cuCtxGetCurrent(&context);
	if (!wait_outside_captures(&r))
		return td_late_free(address, context) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	/* Nothing runs in a context that has ended. */
	if (r && r != CUDA_ERROR_INVALID_CONTEXT && r != CUDA_ERROR_CONTEXT_IS_DESTROYED)
		return r;
	if (!r)
		td_late_is_over(context);
	return td_swap_end(address);
}

/* Chunks belong to the process, so the end of a context does not free them: it is done here. */
void td_swap_lost(uint64_t address, const void *context)
{
	(void)context;
	(void)td_swap_end(address);
}
