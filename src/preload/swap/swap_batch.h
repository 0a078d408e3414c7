/*
 * Backend swap: batches of chunks that move together. There are two batches. While the copies of
 * one run, the driver's other calls for the next are made, so that the copy engine is never idle.
 * Only the agent's thread uses this.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "preload/swap/swap.h"

#define TD_BATCH 16

struct td_move {
	struct td_range *range;
	struct td_chunk *chunk;
	enum td_place from;
	struct td_exchange exchange; /* used if the chunk is exchanged */
};

struct td_batch {
	struct td_move moves[TD_BATCH];
	unsigned n;
	uint64_t bytes; /* sum of all its chunks */
	/* part of `bytes`: device memory that is free once they have left */
	uint64_t leaving_bytes;
	CUstream stream;
	CUevent done;
	int failed;    /* CUresult; nonzero: no more copies are made */
	bool unmarked; /* the event was not recorded: wait for the whole stream */
};

/*
 * Creates both batches for the current context. Returns 0, -ENOMEM, or -ENOTRECOVERABLE if the
 * context cannot create an event: then it cannot move memory either.
 */
int td_batches_init(unsigned slot, struct td_batch batches[2]);
void td_batches_deinit(struct td_batch batches[2]);

/* -- functions that need td_swap.lock -- */

bool td_batch_is_full(const struct td_batch *batch);
/* Adds a chunk, before its place is changed. exchange: NULL for a plain copy. */
void td_batch_add(struct td_batch *batch, struct td_range *range, struct td_chunk *chunk,
	const struct td_exchange *exchange);
/* Records an event behind the batch's copies: they have ended when the stream reaches it. */
void td_batch_mark(struct td_batch *batch, CUstream stream);
/* Ends the batch: no copy of it is in progress any more. The caller sets the chunks' places. */
void td_batch_clear(struct td_batch *batch);

/*
 * Returns the stream for the slot's moves; NULL if none can be created: the legacy stream is used
 * then.
 */
CUstream td_swap_stream(unsigned slot);
/* Updates the totals: the chunk's bytes have moved to the place `to`. */
void td_swap_count_move(unsigned slot, struct td_chunk *chunk, enum td_place to);
/* Undoes this for a chunk that was counted as having come to the device but has not. */
void td_swap_count_back(unsigned slot, struct td_chunk *chunk, enum td_place from);
/* Returns the limit plus the pinned bytes, which stay on the device whatever the limit is. */
uint64_t td_swap_with_pins(unsigned slot, uint64_t limit_bytes);
void td_swap_failed(unsigned slot, int r);
/*
 * Returns whether the device can use every byte of the slot's memory, on the device or on the host.
 */
bool td_swap_is_reachable(unsigned slot);

/* -- functions to be called without the lock -- */

/*
 * Waits for the batch's copies. Returns 0 when they are done. If a device that forbids
 * moves was opened meanwhile, memory is pinned before it returns (td_choose_look).
 */
int td_batch_await(const struct td_batch *batch);
/* Tries again to map chunks that the driver could not map at their address. */
void td_swap_tie(unsigned slot);
