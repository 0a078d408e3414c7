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
	uint64_t offset, bytes; /* bytes: the size that was asked for */
	uint64_t id;            /* chosen by the caller */
};

/*
 * Makes a division for a block of block_bytes, a multiple of TD_PIECE_ALIGN below 4 GiB. Returns
 * NULL if malloc failed. The caller frees it with td_pieces_free.
 */
struct td_pieces *td_pieces_new(uint64_t block_bytes);
void td_pieces_free(struct td_pieces *pieces);

/* Takes a piece of at least 1 byte. Returns 0, -ENOSPC, or -ENOMEM if malloc failed. */
int td_pieces_take(struct td_pieces *pieces, uint64_t bytes, uint64_t id, uint64_t *ret_offset);

/* Gives back the piece that begins at this offset. Returns false if none begins there. */
bool td_pieces_put(struct td_pieces *pieces, uint64_t offset);

/* Finds the piece that contains the byte at this offset. Returns false if none does. */
bool td_pieces_find(const struct td_pieces *pieces, uint64_t offset, struct td_piece *ret);

bool td_pieces_is_empty(const struct td_pieces *pieces);
