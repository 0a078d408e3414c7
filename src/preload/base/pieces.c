/*
 * Pieces of a block; see pieces.h. There are two bitmaps of units: taken units, and the first units
 * of pieces. A piece's length is in its record. Records are indexed by unit, so none is searched or
 * allocated.
 */
#include "preload/base/pieces.h"

#include <errno.h>
#include <stdlib.h>

#define WORD_BITS 64u

struct record {
	uint64_t id;
	uint32_t bytes; /* asked for */
};

struct td_pieces {
	uint32_t units, taken_units;
	uint32_t most; /* no free run is longer than this, in units */
	uint64_t *taken, *first;
	struct record records[];
};

static uint32_t units_of(uint64_t bytes)
{
	return (uint32_t)((bytes + TD_PIECE_ALIGN - 1) / TD_PIECE_ALIGN);
}

struct td_pieces *td_pieces_new(uint64_t block_bytes)
{
	uint32_t units = units_of(block_bytes);
	size_t words = (units + WORD_BITS - 1) / WORD_BITS;
	struct td_pieces *pieces = calloc(1, sizeof(*pieces) + units * sizeof(struct record));
	uint64_t *maps = calloc(2 * words, sizeof(*maps));

	if (!pieces || !maps) {
		free(pieces);
		free(maps);
		return NULL;
	}
	pieces->units = pieces->most = units;
	pieces->taken = maps;
	pieces->first = maps + words;
	return pieces;
}

void td_pieces_free(struct td_pieces *pieces)
{
	if (pieces)
		free(pieces->taken);
	free(pieces);
}

/* The first unit from `at` on that is taken, or not, as wanted; units if there is none. */
static uint32_t seek(const struct td_pieces *pieces, uint32_t at, bool wanted)
{
	while (at < pieces->units) {
		uint64_t word = pieces->taken[at / WORD_BITS];

		word = (wanted ? word : ~word) >> at % WORD_BITS;
		if (word) {
			at += (uint32_t)__builtin_ctzll(word);
			break;
		}
		at += WORD_BITS - at % WORD_BITS;
	}
	return at < pieces->units ? at : pieces->units;
}

static void mark(struct td_pieces *pieces, uint32_t at, uint32_t n, bool taken)
{
	while (n) {
		uint32_t shift = at % WORD_BITS, here = WORD_BITS - shift;
		uint64_t mask = UINT64_MAX << shift;

		if (n < here) {
			here = n;
			mask &= UINT64_MAX >> (WORD_BITS - shift - n);
		}
		if (taken)
			pieces->taken[at / WORD_BITS] |= mask;
		else
			pieces->taken[at / WORD_BITS] &= ~mask;
		at += here;
		n -= here;
	}
}

int td_pieces_take(struct td_pieces *pieces, uint64_t bytes, uint64_t id, uint64_t *ret_offset)
{
	uint32_t n = units_of(bytes), longest = 0, at = 0;

	if (bytes > (uint64_t)pieces->most * TD_PIECE_ALIGN)
		return -ENOSPC;
	for (;;) {
		uint32_t end;

		at = seek(pieces, at, false);
		end = seek(pieces, at, true);
		if (at == end)
			break;
		if (end - at >= n) {
			mark(pieces, at, n, true);
			pieces->first[at / WORD_BITS] |= 1ull << at % WORD_BITS;
			pieces->records[at] = (struct record){id, (uint32_t)bytes};
			pieces->taken_units += n;
			*ret_offset = (uint64_t)at * TD_PIECE_ALIGN;
			return 0;
		}
		longest = end - at > longest ? end - at : longest;
		at = end;
	}
	pieces->most = longest;
	return -ENOSPC;
}

static bool is_first(const struct td_pieces *pieces, uint32_t unit)
{
	return pieces->first[unit / WORD_BITS] >> unit % WORD_BITS & 1;
}

bool td_pieces_put(struct td_pieces *pieces, uint64_t offset)
{
	uint32_t at = (uint32_t)(offset / TD_PIECE_ALIGN), n;

	if (offset % TD_PIECE_ALIGN || offset / TD_PIECE_ALIGN >= pieces->units ||
		!is_first(pieces, at))
		return false;
	n = units_of(pieces->records[at].bytes);
	mark(pieces, at, n, false);
	pieces->first[at / WORD_BITS] &= ~(1ull << at % WORD_BITS);
	pieces->taken_units -= n;
	pieces->most = pieces->units;
	return true;
}

/* The last first unit at or before this one; units if there is none. */
static uint32_t first_before(const struct td_pieces *pieces, uint32_t unit)
{
	uint32_t word = unit / WORD_BITS;
	uint64_t bits = pieces->first[word] & UINT64_MAX >> (WORD_BITS - 1 - unit % WORD_BITS);

	while (!bits && word)
		bits = pieces->first[--word];
	return bits ? word * WORD_BITS + (WORD_BITS - 1 - (uint32_t)__builtin_clzll(bits))
		    : pieces->units;
}

bool td_pieces_find(const struct td_pieces *pieces, uint64_t offset, struct td_piece *ret)
{
	uint32_t at;

	if (offset / TD_PIECE_ALIGN >= pieces->units)
		return false;
	at = first_before(pieces, (uint32_t)(offset / TD_PIECE_ALIGN));
	if (at == pieces->units ||
		offset - (uint64_t)at * TD_PIECE_ALIGN >= pieces->records[at].bytes)
		return false;
	*ret = (struct td_piece){
		(uint64_t)at * TD_PIECE_ALIGN, pieces->records[at].bytes, pieces->records[at].id};
	return true;
}

bool td_pieces_is_empty(const struct td_pieces *pieces)
{
	return !pieces->taken_units;
}
