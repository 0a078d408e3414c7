/* Bytes and half words side by side: dot products, differences; and two searches among bits. */
#include "ptx/vm/ops.h"

#define SIGNED_A 1u
#define SIGNED_B 2u
#define HIGH     4u
#define SUMS     8u

uint64_t sg_ptx_dot_imm(bool signed_a, bool signed_b, bool flag)
{
	return (signed_a ? SIGNED_A : 0) | (signed_b ? SIGNED_B : 0) | (flag ? HIGH | SUMS : 0);
}

static int64_t part_of(uint32_t v, unsigned at, unsigned bits, bool is_signed)
{
	uint32_t part = v >> at << (32 - bits);

	return is_signed ? (int32_t)part >> (32 - bits) : (int64_t)(part >> (32 - bits));
}

#define HANDLER(name)                                                                              \
	static const struct insn *name(struct thread *t, uint64_t *r, const struct insn *i)

HANDLER(dp4a)
{
	uint32_t a = (uint32_t)r[i->a], b = (uint32_t)r[i->b];
	int64_t sum = (int32_t)r[i->c];

	(void)t;
	for (unsigned n = 0; n < 4; n++)
		sum += part_of(a, 8 * n, 8, i->imm.u & SIGNED_A) *
		       part_of(b, 8 * n, 8, i->imm.u & SIGNED_B);
	r[i->d] = (uint32_t)sum;
	return i + 1;
}

/* Multiplies two half words of a by two bytes of b, the lower or the higher ones. */
HANDLER(dp2a)
{
	uint32_t a = (uint32_t)r[i->a], b = (uint32_t)r[i->b];
	unsigned first = i->imm.u & HIGH ? 16 : 0;
	int64_t sum = (int32_t)r[i->c];

	(void)t;
	for (unsigned n = 0; n < 2; n++)
		sum += part_of(a, 16 * n, 16, i->imm.u & SIGNED_A) *
		       part_of(b, first + 8 * n, 8, i->imm.u & SIGNED_B);
	r[i->d] = (uint32_t)sum;
	return i + 1;
}

/* |a - b| of four bytes, side by side or summed onto c. */
HANDLER(differences)
{
	uint32_t a = (uint32_t)r[i->a], b = (uint32_t)r[i->b], bytes = 0, sum = (uint32_t)r[i->c];

	(void)t;
	for (unsigned n = 0; n < 4; n++) {
		int64_t d = part_of(a, 8 * n, 8, i->imm.u & SIGNED_A) -
			    part_of(b, 8 * n, 8, i->imm.u & SIGNED_B);

		d = d < 0 ? -d : d;
		bytes |= ((uint32_t)d & 0xff) << 8 * n;
		sum += (uint32_t)d;
	}
	r[i->d] = i->imm.u & SUMS ? sum : bytes;
	return i + 1;
}

/* Finds the c-th set bit of a from bit b on, upwards, or downwards if c is negative. */
HANDLER(find_nth)
{
	uint32_t mask = (uint32_t)r[i->a], at = (uint32_t)r[i->b];
	int32_t count = (int32_t)r[i->c];

	(void)t;
	if (!count && at < 32) {
		r[i->d] = mask >> at & 1 ? at : UINT32_MAX;
		return i + 1;
	}
	for (; count && at<32; at += count> 0 ? 1 : UINT32_MAX) {
		if (!(mask >> at & 1))
			continue;
		count += count > 0 ? -1 : 1;
		if (!count)
			break;
	}
	r[i->d] = count ? UINT32_MAX : at;
	return i + 1;
}

/* Returns the low `bits` bits of a, extended. */
static uint32_t extended(uint32_t a, uint32_t bits, bool is_signed)
{
	if (!bits || bits > 31)
		return bits ? a : 0;
	return (uint32_t)part_of(a, 0, bits, is_signed);
}

#define EXTEND(name, bits, is_signed)                                                              \
	HANDLER(name)                                                                              \
	{                                                                                          \
		uint32_t b = (uint32_t)r[i->b];                                                    \
		(void)t;                                                                           \
		r[i->d] = extended((uint32_t)r[i->a], bits, is_signed);                            \
		return i + 1;                                                                      \
	}

EXTEND(extend_wrap_u32, b & 31, false)
EXTEND(extend_wrap_s32, b & 31, true)
EXTEND(extend_clamp_u32, b > 32 ? 32 : b, false)
EXTEND(extend_clamp_s32, b > 32 ? 32 : b, true)

op_fn sg_ptx_dot_op(enum dot_op op)
{
	static const op_fn table[DOT_N] = {
		[DOT_DP4A] = dp4a,
		[DOT_DP2A] = dp2a,
		[DOT_DIFFERENCES] = differences,
		[DOT_FIND_NTH] = find_nth,
		[DOT_EXTEND_WRAP_U] = extend_wrap_u32,
		[DOT_EXTEND_WRAP_S] = extend_wrap_s32,
		[DOT_EXTEND_CLAMP_U] = extend_clamp_u32,
		[DOT_EXTEND_CLAMP_S] = extend_clamp_s32,
	};

	return table[op];
}
