/*
 * Unpacks Zstandard (RFC 8878; no dictionaries, checksums are not verified) and LZ4 (the block
 * format). The whole output is in memory, so it is its own window.
 *
 * Bits are read backwards, from the last byte of a stream to its first. A reader that wants more
 * bits than there are gets zeros, and the stream counts as damaged.
 */
#include "preload/image/unpack.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC          0xfd2fb528u
#define SKIPPABLE      0x184d2a50u /* the first of 16 such numbers */
#define BLOCK_MAX      (128u << 10)
#define WEIGHTS_MAX    255
#define CODE_BITS_MAX  11
#define STATE_BITS_MAX 9
#define SYMBOLS_MAX    53

struct in {
	const uint8_t *at, *end;
};

struct out {
	uint8_t *start, *at, *end;
};

/* -- bytes and bits -- */

static size_t left_of(const struct in *in)
{
	return (size_t)(in->end - in->at);
}

static bool read_le(struct in *in, unsigned bytes, uint64_t *ret)
{
	*ret = 0;
	if (left_of(in) < bytes)
		return false;
	for (unsigned i = 0; i < bytes; i++)
		*ret |= (uint64_t)*in->at++ << 8 * i;
	return true;
}

/* Makes the next `bytes` bytes an input of their own. */
static bool split(struct in *in, size_t bytes, struct in *ret)
{
	if (left_of(in) < bytes)
		return false;
	*ret = (struct in){in->at, in->at + bytes};
	in->at += bytes;
	return true;
}

/* Returns the number of the highest bit of a value above 0. */
static unsigned highest(uint64_t value)
{
	return 63 - (unsigned)__builtin_clzll(value);
}

struct bits {
	const uint8_t *from;
	size_t len;
	int64_t left; /* bits left; negative: more were read than there are */
};

/* Returns n bits (at most 56), beginning at bit `at`. */
static uint64_t bits_at(const struct bits *b, uint64_t at, unsigned n)
{
	size_t byte = at / 8;
	uint64_t value = 0;

	if (byte + 8 <= b->len)
		memcpy(&value, b->from + byte, 8);
	else
		for (size_t i = 0; byte + i < b->len; i++)
			value |= (uint64_t)b->from[byte + i] << 8 * i;
	return value >> at % 8 & ((1ull << n) - 1);
}

static uint64_t peek(const struct bits *b, unsigned n)
{
	if (b->left >= (int64_t)n)
		return bits_at(b, (uint64_t)b->left - n, n);
	return b->left > 0 ? bits_at(b, 0, (unsigned)b->left) << (n - (unsigned)b->left) : 0;
}

static uint64_t take(struct bits *b, unsigned n)
{
	uint64_t value = peek(b, n);

	b->left -= n;
	return value;
}

/*
 * Begins to read a bit stream. The highest set bit of its last byte marks the end and is no data.
 */
static bool begin_bits(const struct in *in, struct bits *ret)
{
	size_t len = left_of(in);

	if (!len || !in->end[-1])
		return false;
	*ret = (struct bits){in->at, len, (int64_t)(8 * (len - 1) + highest(in->end[-1]))};
	return true;
}

/* -- tables of states (4.1) -- */

struct states {
	unsigned bits; /* number of bits in a state */
	uint16_t base[1 << STATE_BITS_MAX];
	uint8_t more[1 << STATE_BITS_MAX], symbol[1 << STATE_BITS_MAX];
};

/*
 * Fills the table. counts[i] is the number of states of symbol i; -1: one state, and the next state
 * is read in full.
 */
static void fill_states(struct states *s, const int16_t *counts, unsigned symbols, unsigned bits)
{
	unsigned size = 1u << bits, mask = size - 1, high = size, at = 0;
	uint16_t next[SYMBOLS_MAX];

	s->bits = bits;
	for (unsigned i = 0; i < symbols; i++) {
		next[i] = counts[i] < 0 ? 1 : (uint16_t)counts[i];
		if (counts[i] < 0)
			s->symbol[--high] = (uint8_t)i;
	}
	for (unsigned i = 0; i < symbols; i++)
		for (int n = 0; n < counts[i]; n++) {
			s->symbol[at] = (uint8_t)i;
			do
				at = (at + (size >> 1) + (size >> 3) + 3) & mask;
			while (at >= high);
		}
	for (unsigned i = 0; i < size; i++) {
		unsigned n = next[s->symbol[i]]++;

		s->more[i] = (uint8_t)(bits - highest(n));
		s->base[i] = (uint16_t)((n << s->more[i]) - size);
	}
}

/* Reads a table's counts (4.1.1). These bits are read forwards. */
static bool read_states(struct in *in, unsigned bits_max, unsigned symbols_max, struct states *ret)
{
	const struct bits b = {in->at, left_of(in), 0};
	int16_t counts[SYMBOLS_MAX] = {0};
	unsigned bits = (unsigned)bits_at(&b, 0, 4) + 5, n = 0;
	uint64_t at = 4;
	int left = 1 << bits;

	if (bits > bits_max)
		return false;
	while (left > 0 && n < symbols_max) {
		unsigned width = highest((unsigned)left + 1) + 1, low = (1u << (width - 1)) - 1;
		unsigned spare = (1u << width) - 1 - ((unsigned)left + 1), repeat;
		unsigned value = (unsigned)bits_at(&b, at, width);

		if ((value & low) < spare) {
			at += width - 1;
			value &= low;
		} else {
			at += width;
			value -= value > low ? spare : 0;
		}
		counts[n] = (int16_t)((int)value - 1);
		left -= counts[n] < 0 ? 1 : counts[n];
		if (counts[n++])
			continue;
		do {
			repeat = (unsigned)bits_at(&b, at, 2);
			at += 2;
			n += repeat;
		} while (repeat == 3 && n < symbols_max);
	}
	if (left || n > symbols_max || (at + 7) / 8 > b.len)
		return false;
	in->at += (at + 7) / 8;
	fill_states(ret, counts, n, bits);
	return true;
}

static void next_state(const struct states *s, struct bits *b, unsigned *state)
{
	*state = s->base[*state] + (unsigned)take(b, s->more[*state]);
}

/* -- literals (3.1.1.3.1, and 4.2 for their codes) -- */

struct codes {
	unsigned bits; /* length of the longest code in bits; 0: no codes yet */
	uint8_t symbol[1 << CODE_BITS_MAX], width[1 << CODE_BITS_MAX];
};

static bool fill_codes(struct codes *c, uint8_t *weights, unsigned count)
{
	uint32_t sum = 0, rest, at = 0;

	for (unsigned i = 0; i < count; i++) {
		if (weights[i] > CODE_BITS_MAX)
			return false;
		sum += weights[i] ? 1u << (weights[i] - 1) : 0;
	}
	if (!sum || highest(sum) + 1 > CODE_BITS_MAX)
		return false;
	c->bits = highest(sum) + 1;
	/* The weight of the last symbol is not stored: it takes all that is left. */
	rest = (1u << c->bits) - sum;
	if (rest & (rest - 1))
		return false;
	weights[count++] = (uint8_t)(highest(rest) + 1);
	for (unsigned w = 1; w <= c->bits; w++)
		for (unsigned i = 0; i < count; i++) {
			if (weights[i] != w)
				continue;
			memset(c->symbol + at, (int)i, 1u << (w - 1));
			memset(c->width + at, (int)(c->bits + 1 - w), 1u << (w - 1));
			at += 1u << (w - 1);
		}
	return true;
}

/*
 * Reads the weights with two states that take turns, until the bits are used up. Returns the number
 * of weights, or 0 if the data is damaged.
 */
static unsigned unpack_weights(struct in *in, uint8_t *weights)
{
	struct states s;
	struct bits b;
	unsigned state[2], n = 0;

	if (!read_states(in, 6, CODE_BITS_MAX + 2, &s) || !begin_bits(in, &b))
		return 0;
	state[0] = (unsigned)take(&b, s.bits);
	state[1] = (unsigned)take(&b, s.bits);
	while (b.left >= 0 && n + 1 < WEIGHTS_MAX) {
		unsigned *turn = &state[n % 2];

		weights[n++] = s.symbol[*turn];
		next_state(&s, &b, turn);
	}
	if (b.left >= 0)
		return 0;
	weights[n] = s.symbol[state[n % 2]];
	return n + 1;
}

static bool read_codes(struct in *in, struct codes *ret)
{
	uint8_t weights[WEIGHTS_MAX + 1];
	unsigned count;
	uint64_t head;
	struct in part;

	ret->bits = 0;
	if (!read_le(in, 1, &head))
		return false;
	if (head < 128) {
		if (!split(in, head, &part))
			return false;
		count = unpack_weights(&part, weights);
	} else {
		count = (unsigned)head - 127;
		if (!split(in, (count + 1) / 2, &part))
			return false;
		for (unsigned i = 0; i < count; i++)
			weights[i] = i % 2 ? part.at[i / 2] & 15 : part.at[i / 2] >> 4;
	}
	return count && fill_codes(ret, weights, count);
}

static bool unpack_stream(const struct codes *c, const struct in *in, uint8_t *to, size_t count)
{
	struct bits b;

	if (!begin_bits(in, &b))
		return false;
	for (size_t i = 0; i < count && b.left >= 0; i++) {
		uint64_t code = peek(&b, c->bits);

		to[i] = c->symbol[code];
		b.left -= c->width[code];
	}
	return !b.left;
}

static bool unpack_streams(
	const struct codes *c, struct in *in, uint8_t *to, size_t count, bool four)
{
	size_t each = (count + 3) / 4;
	uint64_t bytes[3];
	struct in part;

	if (!four)
		return unpack_stream(c, in, to, count);
	for (unsigned i = 0; i < 3; i++)
		if (!read_le(in, 2, &bytes[i]))
			return false;
	if (3 * each > count)
		return false;
	for (unsigned i = 0; i < 3; i++, to += each)
		if (!split(in, bytes[i], &part) || !unpack_stream(c, &part, to, each))
			return false;
	return unpack_stream(c, in, to, count - 3 * each);
}

struct zstd {
	struct codes codes;
	struct states lengths, offsets, matches; /* bits 0: the table has one symbol */
	bool has_states;
	uint64_t before[3]; /* the last three offsets */
	uint8_t literals[BLOCK_MAX];
	size_t literal_count;
};

/*
 * Copies literals that are not compressed: either each one is stored, or one that is repeated (RFC
 * 8878, 3.1.1.3.1).
 */
static bool plain_literals(struct zstd *z, struct in *in, unsigned format, bool repeated)
{
	static const uint8_t head_bytes[] = {1, 2, 1, 3};
	struct in part;
	uint64_t head;

	if (!read_le(in, head_bytes[format], &head))
		return false;
	z->literal_count = (size_t)(head >> (format % 2 ? 4 : 3));
	if (z->literal_count > BLOCK_MAX || !split(in, repeated ? 1 : z->literal_count, &part))
		return false;
	if (repeated)
		memset(z->literals, *part.at, z->literal_count);
	else
		memcpy(z->literals, part.at, z->literal_count);
	return true;
}

static bool read_literals(struct zstd *z, struct in *in)
{
	static const uint8_t head_bytes[] = {3, 3, 4, 5}, size_bits[] = {10, 10, 14, 18};
	unsigned type, format;
	uint64_t head, mask;
	struct in part;

	if (!left_of(in))
		return false;
	type = *in->at & 3;
	format = *in->at >> 2 & 3;
	if (type < 2)
		return plain_literals(z, in, format, type == 1);
	if (!read_le(in, head_bytes[format], &head))
		return false;
	mask = (1u << size_bits[format]) - 1;
	z->literal_count = (size_t)(head >> 4 & mask);
	if (z->literal_count > BLOCK_MAX ||
		!split(in, (size_t)(head >> (4 + size_bits[format]) & mask), &part))
		return false;
	if (type == 2 ? !read_codes(&part, &z->codes) : !z->codes.bits)
		return false;
	return unpack_streams(&z->codes, &part, z->literals, z->literal_count, format);
}

/* -- sequences: a number of literals, then a match (3.1.1.3.2) -- */

struct kind {
	unsigned bits_max, symbols, usual_bits;
	int16_t usual[SYMBOLS_MAX];
};

static const struct kind lengths_kind = {9, 36, 6,
	{4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1,
		1, 1, -1, -1, -1, -1}};
static const struct kind matches_kind = {9, 53, 6,
	{1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
		1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1}};
static const struct kind offsets_kind = {8, 32, 5,
	{1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1,
		-1}};

static bool read_kind(const struct zstd *z, struct in *in, unsigned mode, const struct kind *kind,
	struct states *s)
{
	uint64_t symbol;

	switch (mode) {
	case 0: fill_states(s, kind->usual, kind->symbols, kind->usual_bits); return true;
	case 1:
		if (!read_le(in, 1, &symbol) || symbol >= kind->symbols)
			return false;
		s->bits = s->more[0] = 0;
		s->base[0] = 0;
		s->symbol[0] = (uint8_t)symbol;
		return true;
	case 2: return read_states(in, kind->bits_max, kind->symbols, s);
	default: return z->has_states;
	}
}

static bool read_sequence_count(struct in *in, uint64_t *ret)
{
	uint64_t more;

	if (!read_le(in, 1, ret))
		return false;
	if (*ret < 128)
		return true;
	if (!read_le(in, *ret == 255 ? 2 : 1, &more))
		return false;
	*ret = *ret == 255 ? more + 0x7f00 : (*ret - 128) * 256 + more;
	return true;
}

static uint64_t literal_length(unsigned code, struct bits *b)
{
	static const uint32_t base[] = {16, 18, 20, 22, 24, 28, 32, 40, 48, 64, 128, 256, 512, 1024,
		2048, 4096, 8192, 16384, 32768, 65536};
	static const uint8_t more[] = {
		1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

	return code < 16 ? code : base[code - 16] + take(b, more[code - 16]);
}

static uint64_t match_length(unsigned code, struct bits *b)
{
	static const uint32_t base[] = {35, 37, 39, 41, 43, 47, 51, 59, 67, 83, 99, 131, 259, 515,
		1027, 2051, 4099, 8195, 16387, 32771, 65539};
	static const uint8_t more[] = {
		1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

	return code < 32 ? code + 3 : base[code - 32] + take(b, more[code - 32]);
}

/*
 * Returns the offset of a match (3.1.1.5). Values 1 to 3 mean one of the last three offsets; in a
 * sequence without literals they are shifted by one.
 */
static uint64_t offset_of(struct zstd *z, uint64_t value, bool has_literals)
{
	uint64_t *before = z->before, which = value - (has_literals ? 1 : 0), offset;

	if (value > 3)
		offset = value - 3;
	else if (which == 3)
		offset = before[0] - 1;
	else
		offset = before[which];
	if (value > 3 || which > 1)
		before[2] = before[1];
	if (value > 3 || which)
		before[1] = before[0];
	return before[0] = offset;
}

static bool put_bytes(struct out *out, const uint8_t *from, size_t count)
{
	if (count > (size_t)(out->end - out->at))
		return false;
	memcpy(out->at, from, count);
	out->at += count;
	return true;
}

/* Copies from `offset` bytes before the end of the output. The source may overlap the copy. */
static bool copy_match(struct out *out, uint64_t offset, uint64_t count)
{
	if (!offset || offset > (size_t)(out->at - out->start) ||
		count > (size_t)(out->end - out->at))
		return false;
	if (offset >= count) {
		memcpy(out->at, out->at - offset, count);
		out->at += count;
		return true;
	}
	for (const uint8_t *from = out->at - offset; count; count--)
		*out->at++ = *from++;
	return true;
}

static bool run_sequences(struct zstd *z, struct bits *b, uint64_t count, struct out *out)
{
	unsigned length = (unsigned)take(b, z->lengths.bits),
		 offset = (unsigned)take(b, z->offsets.bits),
		 match = (unsigned)take(b, z->matches.bits);
	size_t used = 0;

	for (uint64_t i = 0; i < count && b->left >= 0; i++) {
		unsigned code = z->offsets.symbol[offset];
		uint64_t value = (1ull << code) + take(b, code), bytes, literals;

		bytes = match_length(z->matches.symbol[match], b);
		literals = literal_length(z->lengths.symbol[length], b);
		if (literals > z->literal_count - used ||
			!put_bytes(out, z->literals + used, literals) ||
			!copy_match(out, offset_of(z, value, literals), bytes))
			return false;
		used += literals;
		if (i + 1 == count)
			break;
		next_state(&z->lengths, b, &length);
		next_state(&z->matches, b, &match);
		next_state(&z->offsets, b, &offset);
	}
	return !b->left && put_bytes(out, z->literals + used, z->literal_count - used);
}

static bool unpack_block(struct zstd *z, struct in *in, struct out *out)
{
	uint64_t count, modes;
	struct bits b;

	if (!read_literals(z, in) || !read_sequence_count(in, &count))
		return false;
	if (!count)
		return put_bytes(out, z->literals, z->literal_count);
	if (!read_le(in, 1, &modes) ||
		!read_kind(z, in, modes >> 6 & 3, &lengths_kind, &z->lengths) ||
		!read_kind(z, in, modes >> 4 & 3, &offsets_kind, &z->offsets) ||
		!read_kind(z, in, modes >> 2 & 3, &matches_kind, &z->matches) ||
		!begin_bits(in, &b))
		return false;
	z->has_states = true;
	return run_sequences(z, &b, count, out);
}

/* -- frames (3.1.1) -- */

static bool skip_head(struct in *in, bool *ret_check)
{
	static const uint8_t dictionary_bytes[] = {0, 1, 2, 4}, size_bytes[] = {0, 2, 4, 8};
	uint64_t flags, unused;
	bool one_segment;

	if (!read_le(in, 1, &flags))
		return false;
	one_segment = flags & 0x20;
	*ret_check = flags & 4;
	return read_le(in, !one_segment, &unused) &&
	       read_le(in, dictionary_bytes[flags & 3], &unused) &&
	       read_le(in, flags < 0x40 ? one_segment : size_bytes[flags >> 6], &unused);
}

static bool unpack_blocks(struct zstd *z, struct in *in, struct out *out)
{
	uint64_t head = 0;
	struct in part;

	while (!(head & 1)) {
		uint64_t bytes;

		if (!read_le(in, 3, &head))
			return false;
		bytes = head >> 3;
		switch (head >> 1 & 3) {
		case 0:
			if (!split(in, bytes, &part) || !put_bytes(out, part.at, bytes))
				return false;
			break;
		case 1:
			if (!split(in, 1, &part) || bytes > (size_t)(out->end - out->at))
				return false;
			memset(out->at, *part.at, bytes);
			out->at += bytes;
			break;
		case 2:
			if (!split(in, bytes, &part) || !unpack_block(z, &part, out))
				return false;
			break;
		default: return false;
		}
	}
	return true;
}

static bool unpack_frame(struct zstd *z, struct in *in, struct out *out)
{
	uint64_t magic, bytes;
	struct in part;
	bool check;

	if (!read_le(in, 4, &magic))
		return false;
	if ((magic & ~15ull) == SKIPPABLE)
		return read_le(in, 4, &bytes) && split(in, bytes, &part);
	z->codes.bits = 0;
	z->has_states = false;
	memcpy(z->before, (const uint64_t[]){1, 4, 8}, sizeof(z->before));
	out->start = out->at;
	return magic == MAGIC && skip_head(in, &check) && unpack_blocks(z, in, out) &&
	       split(in, check ? 4 : 0, &part);
}

bool td_unpack_zstd(const void *from, size_t len, void *to, size_t want)
{
	struct in in = {from, (const uint8_t *)from + len};
	struct out out = {to, to, (uint8_t *)to + want};
	struct zstd *z = malloc(sizeof(*z));
	bool good = z;

	while (good && left_of(&in))
		good = unpack_frame(z, &in, &out);
	free(z);
	return good && out.at == out.end;
}

/* -- LZ4 -- */

/* Reads the rest of a length: 15 means that more bytes follow, up to one that is not 255. */
static bool read_length(struct in *in, uint64_t nibble, size_t *ret)
{
	uint64_t more = nibble == 15 ? 255 : 0;

	for (*ret = (size_t)nibble; more == 255; *ret += (size_t)more)
		if (!read_le(in, 1, &more))
			return false;
	return true;
}

bool td_unpack_lz4(const void *from, size_t len, void *to, size_t want)
{
	struct in in = {from, (const uint8_t *)from + len}, part;
	struct out out = {to, to, (uint8_t *)to + want};
	uint64_t token, offset;
	size_t count;

	while (read_le(&in, 1, &token)) {
		if (!read_length(&in, token >> 4, &count) || !split(&in, count, &part) ||
			!put_bytes(&out, part.at, count))
			return false;
		if (!left_of(&in))
			break; /* the last sequence has no match */
		if (!read_le(&in, 2, &offset) || !read_length(&in, token & 15, &count) ||
			!copy_match(&out, offset, count + 4))
			return false;
	}
	return out.at == out.end;
}
