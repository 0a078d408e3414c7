/*
 * Pieces of a block; see pieces.h. There are two bitmaps of units: taken units, and the first units
 * of pieces. A piece's length is in its record, which is found by its first unit. Records lie in
 * groups, one for each word of a bitmap, and a group exists once a piece has begun in it: so a
 * block of few pieces touches little memory.
 */
#include "preload/base/pieces.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WORD_BITS 64u

struct record {
	uint64_t id;
	uint32_t bytes; /* the size that was asked for */
};

struct group {
	struct record records[WORD_BITS];
};

struct td_pieces {
	uint32_t units, taken_units, words;
	uint32_t most; /* upper bound of the longest free run, in units */
	uint32_t full; /* all units before this one are taken */
	struct group **groups;
	uint64_t *taken, *first;
	uint64_t maps[]; /* three parts: bitmap of taken units, bitmap of first units, groups */
};

static uint32_t units_of(uint64_t bytes)
{
	return (uint32_t)((bytes + TD_PIECE_ALIGN - 1) / TD_PIECE_ALIGN);
}

struct td_pieces *td_pieces_new(uint64_t block_bytes)
{
	uint32_t units = units_of(block_bytes), words = (units + WORD_BITS - 1) / WORD_BITS;
	struct td_pieces *pieces = calloc(
		1, sizeof(*pieces) + words * (2 * sizeof(uint64_t) + sizeof(struct group *)));

	if (!pieces)
		return NULL;
	pieces->units = pieces->most = units;
	pieces->words = words;
	pieces->taken = pieces->maps;
	pieces->first = pieces->maps + words;
	pieces->groups = (struct group **)(pieces->maps + 2 * (size_t)words);
	return pieces;
}

void td_pieces_free(struct td_pieces *pieces)
{
	for (uint32_t i = 0; pieces && i < pieces->words; i++)
		free(pieces->groups[i]);
	free(pieces);
}

static struct record *record_of(const struct td_pieces *pieces, uint32_t unit)
{
	return &pieces->groups[unit / WORD_BITS]->records[unit % WORD_BITS];
}

/* Returns the first unit in [at, most) that is taken (wanted) or free (not wanted), else `most`. */
static uint32_t seek(const struct td_pieces *pieces, uint32_t at, uint32_t most, bool wanted)
{
	while (at < most) {
		uint64_t word = pieces->taken[at / WORD_BITS];

		word = (wanted ? word : ~word) >> at % WORD_BITS;
		if (word) {
			at += (uint32_t)__builtin_ctzll(word);
			break;
		}
		at += WORD_BITS - at % WORD_BITS;
	}
	return at < most ? at : most;
}

static void mark_in_word(uint64_t *word, uint32_t shift, uint32_t n, bool taken)
{
	uint64_t mask = UINT64_MAX >> (WORD_BITS - n) << shift;

	*word = taken ? *word | mask : *word & ~mask;
}

static void mark(struct td_pieces *pieces, uint32_t at, uint32_t n, bool taken)
{
	uint64_t *word = &pieces->taken[at / WORD_BITS];
	uint32_t shift = at % WORD_BITS;

	if (shift) {
		uint32_t here = n < WORD_BITS - shift ? n : WORD_BITS - shift;

		mark_in_word(word++, shift, here, taken);
		n -= here;
	}
	memset(word, taken ? 0xff : 0, n / WORD_BITS * sizeof(*word));
	if (n % WORD_BITS)
		mark_in_word(word + n / WORD_BITS, 0, n % WORD_BITS, taken);
}

/* Records a piece that begins at unit `at`. Returns false if malloc failed. */
static bool begin(struct td_pieces *pieces, uint32_t at, struct record record)
{
	struct group **group = &pieces->groups[at / WORD_BITS];

	if (!*group)
		*group = malloc(sizeof(**group));
	if (!*group)
		return false;
	*record_of(pieces, at) = record;
	pieces->first[at / WORD_BITS] |= 1ull << at % WORD_BITS;
	return true;
}

int td_pieces_take(struct td_pieces *pieces, uint64_t bytes, uint64_t id, uint64_t *ret_offset)
{
	uint32_t n = units_of(bytes), longest = 0, at = pieces->full, end;

	if (bytes > (uint64_t)pieces->most * TD_PIECE_ALIGN)
		return -ENOSPC;
	for (;; at = end) {
		at = seek(pieces, at, pieces->units, false);
		if (!longest)
			pieces->full = at;
		if (n > pieces->units - at)
			break;
		end = seek(pieces, at, at + n, true);
		if (end == at + n) {
			if (!begin(pieces, at, (struct record){id, (uint32_t)bytes}))
				return -ENOMEM;
			mark(pieces, at, n, true);
			pieces->taken_units += n;
			pieces->full += at == pieces->full ? n : 0;
			*ret_offset = (uint64_t)at * TD_PIECE_ALIGN;
			return 0;
		}
		longest = end - at > longest ? end - at : longest;
	}
	/* The free run at the end of the block counts too. */
	if (pieces->units - at > longest)
		longest = pieces->units - at;
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
	n = units_of(record_of(pieces, at)->bytes);
	mark(pieces, at, n, false);
	pieces->first[at / WORD_BITS] &= ~(1ull << at % WORD_BITS);
	pieces->taken_units -= n;
	pieces->most = pieces->units;
	if (at < pieces->full)
		pieces->full = at;
	return true;
}

/* Returns the first unit of the last piece that begins at or before this unit, else `units`. */
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
	const struct record *record;
	uint32_t at;

	if (offset / TD_PIECE_ALIGN >= pieces->units)
		return false;
	at = first_before(pieces, (uint32_t)(offset / TD_PIECE_ALIGN));
	if (at == pieces->units)
		return false;
	record = record_of(pieces, at);
	if (offset - (uint64_t)at * TD_PIECE_ALIGN >= record->bytes)
		return false;
	*ret = (struct td_piece){(uint64_t)at * TD_PIECE_ALIGN, record->bytes, record->id};
	return true;
}

bool td_pieces_is_empty(const struct td_pieces *pieces)
{
	return !pieces->taken_units;
}
