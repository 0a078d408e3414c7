/* Bits: counts, fields, permutations, funnel shifts, and packing of registers into wider ones. */
#include "ptx/vm/ops.h"

#define OP(name, expr)                                                                             \
	static const struct insn *name(struct thread *t, uint64_t *r, const struct insn *i)        \
	{                                                                                          \
		uint64_t a = r[i->a], b = r[i->b], c = r[i->c];                                    \
		(void)t, (void)a, (void)b, (void)c;                                                \
		r[i->d] = expr;                                                                    \
		return i + 1;                                                                      \
	}

static uint64_t low_mask(uint64_t bits)
{
	return bits > 63 ? ~0ull : (1ull << bits) - 1;
}

static uint64_t reverse(uint64_t v)
{
	v = (v >> 1 & 0x5555555555555555ull) | (v & 0x5555555555555555ull) << 1;
	v = (v >> 2 & 0x3333333333333333ull) | (v & 0x3333333333333333ull) << 2;
	v = (v >> 4 & 0x0f0f0f0f0f0f0f0full) | (v & 0x0f0f0f0f0f0f0f0full) << 4;
	return __builtin_bswap64(v);
}

/*
 * Returns the bits [at, at + len) of a value of `width` bits. A signed field is extended by its top
 * bit, or by the value's own if the field reaches beyond it.
 */
static uint64_t extract(uint64_t a, uint64_t at, uint64_t len, unsigned width, bool is_signed)
{
	uint64_t value = a & low_mask(width), sign, top;

	at &= 0xff;
	len &= 0xff;
	if (!len)
		return 0;
	top = at + len - 1 < width ? at + len - 1 : width - 1;
	sign = is_signed && (value >> top & 1) ? ~0ull : 0;
	value = at > 63 ? 0 : value >> at;
	value = (value & low_mask(len)) | (sign & ~low_mask(len));
	if (sign && at + len > width)
		value |= at >= width ? ~0ull : ~low_mask(width - at);
	return value & low_mask(width);
}

/* Inserts the low len bits of a into b at `at`. */
static uint64_t insert(uint64_t a, uint64_t b, uint64_t at, uint64_t len, unsigned width)
{
	uint64_t mask;

	at &= 0xff;
	len &= 0xff;
	mask = at > 63 ? 0 : low_mask(len) << at;
	mask &= low_mask(width);
	return (b & ~mask & low_mask(width)) | (at > 63 ? 0 : a << at & mask);
}

/*
 * Returns the number of the highest bit that differs from the sign (as_shift: its distance from the
 * top bit), or all ones if there is none.
 */
static uint64_t find_high(uint64_t a, unsigned width, bool is_signed, bool as_shift)
{
	uint64_t v = a & low_mask(width);
	unsigned at;

	if (is_signed && v >> (width - 1))
		v = ~v & low_mask(width);
	if (!v)
		return 0xffffffffu;
	at = 63 - (unsigned)__builtin_clzll(v);
	return as_shift ? width - 1 - at : at;
}

OP(popc_b32, (uint64_t)__builtin_popcount((uint32_t)a))
OP(popc_b64, (uint64_t)__builtin_popcountll(a))
OP(clz_b32, (uint32_t)a ? (uint64_t)__builtin_clz((uint32_t)a) : 32)
OP(clz_b64, a ? (uint64_t)__builtin_clzll(a) : 64)
OP(brev_b32, reverse(a) >> 32)
OP(brev_b64, reverse(a))
OP(bfe_u32, extract(a, b, c, 32, false))
OP(bfe_u64, extract(a, b, c, 64, false))
OP(bfe_s32, extract(a, b, c, 32, true))
OP(bfe_s64, extract(a, b, c, 64, true))
OP(bfi_b32, insert(a, b, c, r[i->imm.u], 32))
OP(bfi_b64, insert(a, b, c, r[i->imm.u], 64))
OP(bfind_u32, find_high(a, 32, false, false))
OP(bfind_u64, find_high(a, 64, false, false))
OP(bfind_s32, find_high(a, 32, true, false))
OP(bfind_s64, find_high(a, 64, true, false))
OP(bfind_shift_u32, find_high(a, 32, false, true))
OP(bfind_shift_u64, find_high(a, 64, false, true))
OP(bfind_shift_s32, find_high(a, 32, true, true))
OP(bfind_shift_s64, find_high(a, 64, true, true))
OP(bmsk_clamp, (uint32_t)a > 31 ? 0 : (uint32_t)(low_mask((uint32_t)b) << a))
OP(bmsk_wrap, (uint32_t)(low_mask(b & 31) << (a & 31)))

#define PAIR  ((uint64_t)(uint32_t)b << 32 | (uint32_t)a)
#define CLAMP ((uint32_t)c > 32 ? 32 : (uint32_t)c)
OP(shf_l_wrap, PAIR << (c & 31) >> 32)
OP(shf_l_clamp, CLAMP == 32 ? (uint32_t)a : PAIR << CLAMP >> 32)
OP(shf_r_wrap, (uint32_t)(PAIR >> (c & 31)))
OP(shf_r_clamp, (uint32_t)(PAIR >> CLAMP))

OP(pack2_b32, (uint16_t)a | (uint32_t)(uint16_t)b << 16)
OP(pack2_b64, PAIR)
OP(pack2_b16, (uint8_t)a | (uint32_t)(uint8_t)b << 8)
OP(pack4_b64,
	(uint16_t)a | (uint64_t)(uint16_t)b << 16 | (uint64_t)(uint16_t)c << 32 | r[i->imm.u] << 48)
OP(pack4_b32, (uint8_t)a | (uint32_t)(uint8_t)b << 8 | (uint32_t)(uint8_t)c << 16 |
		      (uint32_t)(uint8_t)r[i->imm.u] << 24)

#define UNPACK2(name, T, bits)                                                                     \
	static const struct insn *name(struct thread *t, uint64_t *r, const struct insn *i)        \
	{                                                                                          \
		uint64_t a = r[i->a];                                                              \
		(void)t;                                                                           \
		r[i->d] = (T)a;                                                                    \
		r[i->c] = (T)(a >> (bits));                                                        \
		return i + 1;                                                                      \
	}

#define UNPACK4(name, T, bits)                                                                     \
	static const struct insn *name(struct thread *t, uint64_t *r, const struct insn *i)        \
	{                                                                                          \
		uint64_t a = r[i->a];                                                              \
		(void)t;                                                                           \
		r[i->d] = (T)a;                                                                    \
		r[i->b] = (T)(a >> (bits));                                                        \
		r[i->c] = (T)(a >> 2 * (bits));                                                    \
		r[i->imm.u] = (T)(a >> 3 * (bits));                                                \
		return i + 1;                                                                      \
	}

UNPACK2(unpack2_b16, uint8_t, 8)
UNPACK2(unpack2_b32, uint16_t, 16)
UNPACK2(unpack2_b64, uint32_t, 32)
UNPACK4(unpack4_b32, uint8_t, 8)
UNPACK4(unpack4_b64, uint16_t, 16)

static const struct insn *lop3(struct thread *t, uint64_t *r, const struct insn *i)
{
	uint32_t a = (uint32_t)r[i->a], b = (uint32_t)r[i->b], c = (uint32_t)r[i->c], v = 0;

	(void)t;
	for (unsigned row = 0; row < 8; row++) {
		if (i->imm.u >> row & 1)
			v |= (row & 4 ? a : ~a) & (row & 2 ? b : ~b) & (row & 1 ? c : ~c);
	}
	r[i->d] = v;
	return i + 1;
}

/* Each nibble of c picks one of eight bytes; its top bit asks for that byte's sign instead. */
static const struct insn *prmt(struct thread *t, uint64_t *r, const struct insn *i)
{
	uint64_t a = r[i->a], b = r[i->b];
	uint64_t bytes = PAIR;
	uint32_t v = 0;

	(void)t;
	for (unsigned n = 0; n < 4; n++) {
		unsigned pick = (unsigned)(r[i->c] >> 4 * n) & 15;
		uint8_t byte = (uint8_t)(bytes >> 8 * (pick & 7));

		if (pick & 8)
			byte = byte & 0x80 ? 0xff : 0;
		v |= (uint32_t)byte << 8 * n;
	}
	r[i->d] = v;
	return i + 1;
}

op_fn sg_ptx_bit_op(enum bit_op op, enum ptx_type type)
{
	static const op_fn table[BIT_N][T_N] = {
		[BIT_POPC] = {[T_B32] = popc_b32, [T_B64] = popc_b64},
		[BIT_CLZ] = {[T_B32] = clz_b32, [T_B64] = clz_b64},
		[BIT_BREV] = {[T_B32] = brev_b32, [T_B64] = brev_b64},
		[BIT_BFE] = {[T_U32] = bfe_u32,
			[T_U64] = bfe_u64,
			[T_S32] = bfe_s32,
			[T_S64] = bfe_s64},
		[BIT_BFI] = {[T_B32] = bfi_b32, [T_B64] = bfi_b64},
		[BIT_BFIND] = {[T_U32] = bfind_u32,
			[T_U64] = bfind_u64,
			[T_S32] = bfind_s32,
			[T_S64] = bfind_s64},
		[BIT_BFIND_SHIFT] = {[T_U32] = bfind_shift_u32,
			[T_U64] = bfind_shift_u64,
			[T_S32] = bfind_shift_s32,
			[T_S64] = bfind_shift_s64},
		[BIT_BMSK_CLAMP] = {[T_B32] = bmsk_clamp},
		[BIT_BMSK_WRAP] = {[T_B32] = bmsk_wrap},
		[BIT_LOP3] = {[T_B32] = lop3},
		[BIT_PRMT] = {[T_B32] = prmt},
		[BIT_SHF_L_WRAP] = {[T_B32] = shf_l_wrap},
		[BIT_SHF_L_CLAMP] = {[T_B32] = shf_l_clamp},
		[BIT_SHF_R_WRAP] = {[T_B32] = shf_r_wrap},
		[BIT_SHF_R_CLAMP] = {[T_B32] = shf_r_clamp},
		[BIT_PACK2] = {[T_B16] = pack2_b16, [T_B32] = pack2_b32, [T_B64] = pack2_b64},
		[BIT_UNPACK2] =
			{[T_B16] = unpack2_b16, [T_B32] = unpack2_b32, [T_B64] = unpack2_b64},
		[BIT_PACK4] = {[T_B32] = pack4_b32, [T_B64] = pack4_b64},
		[BIT_UNPACK4] = {[T_B32] = unpack4_b32, [T_B64] = unpack4_b64},
	};

	return table[op][type];
}
