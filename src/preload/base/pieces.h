/*
 * A block of memory shared out in pieces: what is where, and nothing else. No driver calls, no locks: the caller's.
 *
 * Pieces begin at multiples of TD_PIECE_ALIGN from the block's beginning, as cuMemAlloc's do, never overlap, and are found by any address in them. First
 * fit; a free piece is at once whole with its free neighbours.
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

/* For a block of so many bytes, a multiple of TD_PIECE_ALIGN, less than 4 GiB. NULL: memory is short. Freed by td_pieces_free. */
struct td_pieces *td_pieces_new(uint64_t block_bytes);
void td_pieces_free(struct td_pieces *pieces);

/* 0 or -ENOSPC. bytes: at least 1. */
int td_pieces_take(struct td_pieces *pieces, uint64_t bytes, uint64_t id, uint64_t *ret_offset);

/* Gives back the piece that begins there. False: none does. */
bool td_pieces_put(struct td_pieces *pieces, uint64_t offset);

/* The piece that has the byte at this offset. False: it is in none. */
bool td_pieces_find(const struct td_pieces *pieces, uint64_t offset, struct td_piece *ret);

bool td_pieces_is_empty(const struct td_pieces *pieces);
