/* Extended precision: add, sub and mad that write (.cc) or read (addc, subc, madc) the carry. */
#include "ptx/vm/ops.h"

#define READS  1u
#define WRITES 2u

uint64_t sg_ptx_carry_imm(bool reads, bool writes)
{
	return (reads ? READS : 0) | (writes ? WRITES : 0);
}

#define CARRY(T, bits, W)                                                                          \
	static T sum_##T(struct thread *t, const struct insn *i, T x, T y)                         \
	{                                                                                          \
		W sum = (W)x + y + (i->imm.u & READS ? t->carry : 0u);                             \
		if (i->imm.u & WRITES)                                                             \
			t->carry = (sum >> (bits)) != 0;                                           \
		return (T)sum;                                                                     \
	}                                                                                          \
	static const struct insn *add_##T(struct thread *t, uint64_t *r, const struct insn *i)     \
	{                                                                                          \
		r[i->d] = sum_##T(t, i, (T)r[i->a], (T)r[i->b]);                                   \
		return i + 1;                                                                      \
	}                                                                                          \
	static const struct insn *sub_##T(struct thread *t, uint64_t *r, const struct insn *i)     \
	{                                                                                          \
		W b = (W)(T)r[i->b] + (i->imm.u & READS ? t->carry : 0u);                          \
		if (i->imm.u & WRITES)                                                             \
			t->carry = (T)r[i->a] < b;                                                 \
		r[i->d] = (T)((T)r[i->a] - b);                                                     \
		return i + 1;                                                                      \
	}                                                                                          \
	static const struct insn *mad_lo_##T(struct thread *t, uint64_t *r, const struct insn *i)  \
	{                                                                                          \
		r[i->d] = sum_##T(t, i, (T)((T)r[i->a] * (T)r[i->b]), (T)r[i->c]);                 \
		return i + 1;                                                                      \
	}

#define CARRY_HIGH(name, S, T, bits, W)                                                            \
	static const struct insn *name(struct thread *t, uint64_t *r, const struct insn *i)        \
	{                                                                                          \
		r[i->d] = sum_##T(t, i, (T)((W)(S)r[i->a] * (S)r[i->b] >> (bits)), (T)r[i->c]);    \
		return i + 1;                                                                      \
	}

typedef unsigned __int128 u128;

CARRY(uint32_t, 32, uint64_t)
CARRY(uint64_t, 64, u128)
CARRY_HIGH(mad_hi_u32, uint32_t, uint32_t, 32, uint64_t)
CARRY_HIGH(mad_hi_s32, int32_t, uint32_t, 32, int64_t)
CARRY_HIGH(mad_hi_u64, uint64_t, uint64_t, 64, u128)
CARRY_HIGH(mad_hi_s64, int64_t, uint64_t, 64, __int128)

#define ROW(name)                                                                                  \
	{                                                                                          \
		[T_U32] = name##_uint32_t, [T_S32] = name##_uint32_t, [T_B32] = name##_uint32_t,   \
		[T_U64] = name##_uint64_t, [T_S64] = name##_uint64_t, [T_B64] = name##_uint64_t,   \
	}

op_fn sg_ptx_carry_op(enum carry_op op, enum ptx_type type)
{
	static const op_fn table[CARRY_N][T_N] = {
		[CARRY_ADD] = ROW(add),
		[CARRY_SUB] = ROW(sub),
		[CARRY_MAD_LO] = ROW(mad_lo),
		[CARRY_MAD_HI] = {[T_U32] = mad_hi_u32,
			[T_S32] = mad_hi_s32,
			[T_U64] = mad_hi_u64,
			[T_S64] = mad_hi_s64},
	};

	return table[op][type];
}
