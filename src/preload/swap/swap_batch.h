/*
 * Backend swap: batches of chunks that move together. Two batches take turns: while one is copied,
 * driver calls for the other are made, so that the link is never idle. Agent thread only.
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
	struct td_exchange exchange; /* of an exchange */
};

struct td_batch {
	struct td_move moves[TD_BATCH];
	unsigned n;
	uint64_t bytes;         /* in all */
	uint64_t leaving_bytes; /* of it, on the device until they have left */
	CUstream stream;
	CUevent done;
	int failed;    /* CUresult: it is not copied any more */
	bool unmarked; /* the event could not be recorded: all of the stream has to be waited for */
};

/*
 * For the current context. 0, -ENOMEM, or -ENOTRECOVERABLE: a context that cannot create an event
 * cannot move memory.
 */
int td_batches_init(unsigned slot, struct td_batch batches[2]);
void td_batches_deinit(struct td_batch batches[2]);

/* -- with td_swap.lock -- */

bool td_batch_is_full(const struct td_batch *batch);
/* Adds a chunk before its place is changed. exchange is NULL for a plain move. */
void td_batch_add(struct td_batch *batch, struct td_range *range, struct td_chunk *chunk,
	const struct td_exchange *exchange);
/* The batch is copied when the stream has come to here. */
void td_batch_mark(struct td_batch *batch, CUstream stream);
/* None of it is on its way any more; each chunk's place is the caller's. */
void td_batch_clear(struct td_batch *batch);

/* The stream of the slot's moves; NULL: there is none to be had, and the legacy one serves. */
CUstream td_swap_stream(unsigned slot);
/* The chunk's bytes have come to the device, or left it, or have come within its reach. */
void td_swap_count_move(unsigned slot, struct td_chunk *chunk, enum td_place to);
/* The chunk, which was counted as having come to the device, has not: it is where it was. */
void td_swap_count_back(unsigned slot, struct td_chunk *chunk, enum td_place from);
/* Returns the limit plus pinned memory, which stays whatever the limit is. */
uint64_t td_swap_with_pins(unsigned slot, uint64_t limit_bytes);
void td_swap_failed(unsigned slot, int r);
/* Is every byte within the device's reach? */
bool td_swap_is_reachable(unsigned slot);

/* -- without -- */

/*
 * Work started before has been copied when this returns 0. Memory that must not move may be pinned
 * then (td_choose_look).
 */
int td_batch_await(const struct td_batch *batch);
/* Tries again to map chunks that the driver could not map at their address. */
void td_swap_tie(unsigned slot);
