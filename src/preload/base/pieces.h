/*
 * Divides a block of memory into pieces. It only knows what is where: it makes no driver calls and
 * takes no locks.
 *
 * As for cuMemAlloc, pieces begin at multiples of TD_PIECE_ALIGN from the block's beginning and
 * never overlap. A piece is found by any address in it. Allocation is first fit; a freed piece
 * joins its free neighbours at once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TD_PIECE_ALIGN 512u

struct td_pieces;

struct td_piece {
	uint64_t offset, bytes; /* as asked for */
	uint64_t id;            /* the caller's */
};

/*
 * For a block of block_bytes, a multiple of TD_PIECE_ALIGN below 4 GiB. NULL: memory is short.
 * td_pieces_free frees it.
 */
struct td_pieces *td_pieces_new(uint64_t block_bytes);
void td_pieces_free(struct td_pieces *pieces);

/* Returns 0, -ENOSPC, or -ENOMEM. bytes is at least 1. */
int td_pieces_take(struct td_pieces *pieces, uint64_t bytes, uint64_t id, uint64_t *ret_offset);

/* Gives back the piece that begins there. False: none does. */
bool td_pieces_put(struct td_pieces *pieces, uint64_t offset);

/* The piece that has the byte at this offset. False: it is in none. */
bool td_pieces_find(const struct td_pieces *pieces, uint64_t offset, struct td_piece *ret);

bool td_pieces_is_empty(const struct td_pieces *pieces);
