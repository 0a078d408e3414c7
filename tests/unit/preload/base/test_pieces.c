/* Blocks shared out in pieces, against a model that is an array of bytes. */
#include <errno.h>

#include "preload/base/pieces.h"
#include "test.h"

#define BLOCK  (2ull << 20)
#define UNITS  (BLOCK / TD_PIECE_ALIGN)
#define ROUNDS 20000

struct owned {
	uint64_t offset, bytes, id;
};

static uint64_t state;

static uint64_t chance(uint64_t below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (state >> 33) % below;
}

TEST(a_piece_is_aligned_and_found_by_each_of_its_bytes_and_no_other)
{
	struct td_pieces *pieces = td_pieces_new(BLOCK);
	struct td_piece piece;
	uint64_t a, b;

	CHECK(pieces && td_pieces_is_empty(pieces));
	CHECK_EQ(td_pieces_take(pieces, 1000, 7, &a), 0);
	CHECK_EQ(td_pieces_take(pieces, 1, 8, &b), 0);
	CHECK_EQ(a, 0);
	CHECK_EQ(b, 1024);
	CHECK(td_pieces_find(pieces, 999, &piece));
	CHECK(piece.offset == 0 && piece.bytes == 1000 && piece.id == 7);
	CHECK(!td_pieces_find(pieces, 1000, &piece));
	CHECK(td_pieces_find(pieces, 1024, &piece));
	CHECK_EQ(piece.id, 8);
	CHECK(!td_pieces_find(pieces, 1025, &piece));
	CHECK(!td_pieces_find(pieces, BLOCK, &piece));
	CHECK(!td_pieces_put(pieces, 512));
	CHECK(!td_pieces_put(pieces, 1));
	CHECK(!td_pieces_put(pieces, BLOCK));
	CHECK(td_pieces_put(pieces, 0));
	CHECK(!td_pieces_put(pieces, 0));
	CHECK(!td_pieces_find(pieces, 0, &piece));
	CHECK(td_pieces_put(pieces, 1024));
	CHECK(td_pieces_is_empty(pieces));
	td_pieces_free(pieces);
	td_pieces_free(NULL);
}

TEST(a_block_holds_as_many_as_fit_and_is_whole_again_afterwards)
{
	struct td_pieces *pieces = td_pieces_new(BLOCK);
	uint64_t at;

	for (uint64_t i = 0; i < UNITS; i++) {
		CHECK_EQ(td_pieces_take(pieces, TD_PIECE_ALIGN, i, &at), 0);
		CHECK_EQ(at, i * TD_PIECE_ALIGN);
	}
	CHECK_EQ(td_pieces_take(pieces, 1, 0, &at), -ENOSPC);
	for (uint64_t i = 0; i < UNITS; i += 2)
		CHECK(td_pieces_put(pieces, i * TD_PIECE_ALIGN));
	CHECK_EQ(td_pieces_take(pieces, TD_PIECE_ALIGN + 1, 0, &at), -ENOSPC);
	CHECK_EQ(td_pieces_take(pieces, TD_PIECE_ALIGN, 0, &at), 0);
	CHECK(td_pieces_put(pieces, at));
	for (uint64_t i = 1; i < UNITS; i += 2)
		CHECK(td_pieces_put(pieces, i * TD_PIECE_ALIGN));
	CHECK_EQ(td_pieces_take(pieces, BLOCK + 1, 0, &at), -ENOSPC);
	CHECK_EQ(td_pieces_take(pieces, BLOCK, 0, &at), 0);
	td_pieces_free(pieces);
}

/* Marks the piece's units as `to` where they must be `from`; so pieces that overlap show. */
static void claim(uint8_t *model, const struct owned *o, uint8_t from, uint8_t to)
{
	uint64_t end = (o->offset + o->bytes + TD_PIECE_ALIGN - 1) / TD_PIECE_ALIGN;

	CHECK_EQ(o->offset % TD_PIECE_ALIGN, 0);
	CHECK(end <= UNITS);
	for (uint64_t unit = o->offset / TD_PIECE_ALIGN; unit < end; unit++) {
		CHECK_EQ(model[unit], from);
		model[unit] = to;
	}
}

static bool has_run(const uint8_t *model, uint64_t bytes)
{
	uint64_t run = 0;

	for (uint64_t unit = 0; unit < UNITS; unit++) {
		run = model[unit] ? 0 : run + 1;
		if (run * TD_PIECE_ALIGN >= bytes)
			return true;
	}
	return false;
}

TEST(random_sizes_never_overlap_are_refused_only_when_nothing_fits_and_all_come_back)
{
	static uint8_t model[UNITS];
	static struct owned owned[UNITS];
	struct td_pieces *pieces = td_pieces_new(BLOCK);
	struct td_piece piece;
	unsigned count = 0, refused = 0;

	state = 1;
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct owned *o = &owned[count];

		if (count && chance(100) < 48) {
			unsigned victim = (unsigned)chance(count);

			o = &owned[victim];
			CHECK(td_pieces_find(pieces, o->offset + chance(o->bytes), &piece));
			CHECK(piece.offset == o->offset && piece.bytes == o->bytes &&
				piece.id == o->id);
			claim(model, o, 1, 0);
			CHECK(td_pieces_put(pieces, o->offset));
			*o = owned[--count];
			continue;
		}
		*o = (struct owned){
			.bytes = chance(10) ? 1 + chance(8192) : 1 + chance(BLOCK / 4), .id = i};
		if (td_pieces_take(pieces, o->bytes, o->id, &o->offset)) {
			CHECK(!has_run(model, o->bytes));
			refused++;
			continue;
		}
		claim(model, o, 0, 1);
		count++;
	}
	CHECK(refused > 0 && count > 0);
	CHECK(!td_pieces_is_empty(pieces));
	while (count)
		CHECK(td_pieces_put(pieces, owned[--count].offset));
	CHECK(td_pieces_is_empty(pieces));
	CHECK_EQ(td_pieces_take(pieces, BLOCK, 0, &owned[0].offset), 0);
	td_pieces_free(pieces);
}
