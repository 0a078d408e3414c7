/*
 * Integer arithmetic. Slots hold values of 16 to 64 bits; operations cast what they read to their
 * type, so what is above a value's width never matters. Overflow wraps: unsigned C types do the
 * arithmetic.
 */
#include "ptx/vm/ops.h"

typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef unsigned __int128 u128;
typedef __int128 s128;

#define OP(name, T, U, expr)                                                                       \
	static const struct insn *name##_##T(struct thread *t, uint64_t *r, const struct insn *i)  \
	{                                                                                          \
		T a = (T)r[i->a], b = (T)r[i->b], c = (T)r[i->c];                                  \
		(void)t, (void)a, (void)b, (void)c;                                                \
		r[i->d] = (U)(expr);                                                               \
		return i + 1;                                                                      \
	}

#define OP_UNSIGNED(name, expr)                                                                    \
	OP(name, u16, u16, expr) OP(name, u32, u32, expr) OP(name, u64, u64, expr)
#define OP_SIGNED(name, expr)                                                                      \
	OP(name, s16, u16, expr) OP(name, s32, u32, expr) OP(name, s64, u64, expr)

OP_UNSIGNED(add, a + b)
OP_UNSIGNED(sub, a - b)
OP(mul_lo, u16, u16, (u32)a *b)
OP(mul_lo, u32, u32, a *b)
OP(mul_lo, u64, u64, a *b)
OP(mad_lo, u16, u16, (u32)a *b + c)
OP(mad_lo, u32, u32, a *b + c)
OP(mad_lo, u64, u64, a *b + c)
OP_UNSIGNED(neg, 0u - a)
OP_UNSIGNED(and, a &b)
OP_UNSIGNED(or, a | b)
OP_UNSIGNED(xor, a ^ b)
OP_UNSIGNED(not, ~a)
OP_UNSIGNED(cnot, a == 0)

/* The high half, and whole products; the third operand of mad.wide has the result's width. */
OP(mul_hi, u16, u16, (u32)a *b >> 16)
OP(mul_hi, u32, u32, (u64)a *b >> 32)
OP(mul_hi, u64, u64, (u128)a *b >> 64)
OP(mul_hi, s16, u16, (s32)a *b >> 16)
OP(mul_hi, s32, u32, (s64)a *b >> 32)
OP(mul_hi, s64, u64, (u64)((s128)a *b >> 64))
OP(mad_hi, u16, u16, ((u32)a * b >> 16) + c)
OP(mad_hi, u32, u32, ((u64)a * b >> 32) + c)
OP(mad_hi, u64, u64, (u64)((u128)a *b >> 64) + c)
OP(mad_hi, s16, u16, ((s32)a * b >> 16) + c)
OP(mad_hi, s32, u32, (u64)((s64)a *b >> 32) + (u64)(s64)c)
OP(mad_hi, s64, u64, (u64)((s128)a *b >> 64) + (u64)c)
OP(mul_wide, u16, u32, (u32)a *b)
OP(mul_wide, u32, u64, (u64)a *b)
OP(mul_wide, s16, u32, (s32)a *b)
OP(mul_wide, s32, u64, (s64)a *b)
OP(mad_wide, u16, u32, (u32)a *b + (u32)r[i->c])
OP(mad_wide, u32, u64, (u64)a *b + r[i->c])
OP(mad_wide, s16, u32, (u32)((s32)a *b) + (u32)r[i->c])
OP(mad_wide, s32, u64, (u64)((s64)a *b) + r[i->c])

/* Products of 24 bits have 48: their low or their high 32. */
#define LOW24_U(x) ((u64)((x)&0xffffffu))
#define LOW24_S(x) ((s64)((s32)((u32)(x) << 8) >> 8))
OP(mul24_lo, u32, u32, LOW24_U(a) * LOW24_U(b))
OP(mul24_hi, u32, u32, LOW24_U(a) * LOW24_U(b) >> 16)
OP(mad24_lo, u32, u32, LOW24_U(a) * LOW24_U(b) + c)
OP(mad24_hi, u32, u32, (LOW24_U(a) * LOW24_U(b) >> 16) + c)
OP(mul24_lo, s32, u32, LOW24_S(a) * LOW24_S(b))
OP(mul24_hi, s32, u32, LOW24_S(a) * LOW24_S(b) >> 16)
OP(mad24_lo, s32, u32, LOW24_S(a) * LOW24_S(b) + c)
OP(mad24_hi, s32, u32, (LOW24_S(a) * LOW24_S(b) >> 16) + c)

/* Division by zero gives all ones, the remainder is then the dividend. */
OP_UNSIGNED(div, b ? (u64)(a / b) : -1ull)
OP_UNSIGNED(rem, b ? a % b : a)
OP_SIGNED(div, b == -1 ? 0 - (u64)(s64)a : b ? (u64)(s64)(a / b) : -1ull)
OP_SIGNED(rem, b == -1 ? 0 : b ? a % b : a)

OP_SIGNED(abs, a < 0 ? 0 - (u64)(s64)a : (u64)a)
OP_UNSIGNED(min, a < b ? a : b)
OP_UNSIGNED(max, a > b ? a : b)
OP_SIGNED(min, a < b ? a : b)
OP_SIGNED(max, a > b ? a : b)
OP_UNSIGNED(sad, c + (a < b ? b - a : a - b))
OP_SIGNED(sad, (u64)(s64)c + (a < b ? (u64)(s64)b - (u64)(s64)a : (u64)(s64)a - (u64)(s64)b))

/* Shift counts are 32 bits of their own and clamp at the width. */
OP(shl, u16, u16, (u32)r[i->b] > 15 ? 0 : (u32)a << (u32)r[i->b])
OP(shl, u32, u32, b > 31 ? 0 : a << b)
OP(shl, u64, u64, (u32)b > 63 ? 0 : a << (u32)b)
OP(shr, u16, u16, (u32)r[i->b] > 15 ? 0 : a >> (u32)r[i->b])
OP(shr, u32, u32, b > 31 ? 0 : a >> b)
OP(shr, u64, u64, (u32)b > 63 ? 0 : a >> (u32)b)
OP(shr, s16, u16, a >> ((u32)r[i->b] > 15 ? 15 : (u32)r[i->b]))
OP(shr, s32, u32, a >> ((u32)b > 31 ? 31 : (u32)b))
OP(shr, s64, u64, a >> ((u32)b > 63 ? 63 : (u32)b))

#define ROW_SAME(name)                                                                             \
	{                                                                                          \
		[T_U16] = name##_u16, [T_U32] = name##_u32, [T_U64] = name##_u64,                  \
		[T_S16] = name##_u16, [T_S32] = name##_u32, [T_S64] = name##_u64,                  \
	}
#define ROW_SIGN(name)                                                                             \
	{                                                                                          \
		[T_U16] = name##_u16, [T_U32] = name##_u32, [T_U64] = name##_u64,                  \
		[T_S16] = name##_s16, [T_S32] = name##_s32, [T_S64] = name##_s64,                  \
	}
#define ROW_WIDE(name)                                                                             \
	{                                                                                          \
		[T_U16] = name##_u16, [T_U32] = name##_u32, [T_S16] = name##_s16,                  \
		[T_S32] = name##_s32,                                                              \
	}
#define ROW_BITS(name)                                                                             \
	{                                                                                          \
		[T_B16] = name##_u16, [T_B32] = name##_u32, [T_B64] = name##_u64,                  \
	}
#define ROW_SIGNED(name)                                                                           \
	{                                                                                          \
		[T_S16] = name##_s16, [T_S32] = name##_s32, [T_S64] = name##_s64,                  \
	}
#define ROW_NEG(name)                                                                              \
	{                                                                                          \
		[T_S16] = name##_u16, [T_S32] = name##_u32, [T_S64] = name##_u64,                  \
	}

op_fn sg_ptx_int_op(enum int_op op, enum ptx_type type)
{
	static const op_fn table[INT_N][T_N] = {
		[INT_ADD] = ROW_SAME(add),
		[INT_SUB] = ROW_SAME(sub),
		[INT_MUL_LO] = ROW_SAME(mul_lo),
		[INT_MUL_HI] = ROW_SIGN(mul_hi),
		[INT_MUL_WIDE] = ROW_WIDE(mul_wide),
		[INT_MAD_LO] = ROW_SAME(mad_lo),
		[INT_MAD_HI] = ROW_SIGN(mad_hi),
		[INT_MAD_WIDE] = ROW_WIDE(mad_wide),
		[INT_DIV] = ROW_SIGN(div),
		[INT_REM] = ROW_SIGN(rem),
		[INT_ABS] = ROW_SIGNED(abs),
		[INT_NEG] = ROW_NEG(neg),
		[INT_MIN] = ROW_SIGN(min),
		[INT_MAX] = ROW_SIGN(max),
		[INT_AND] = ROW_BITS(and),
		[INT_OR] = ROW_BITS(or),
		[INT_XOR] = ROW_BITS(xor),
		[INT_NOT] = ROW_BITS(not ),
		[INT_CNOT] = ROW_BITS(cnot),
		[INT_SHL] = ROW_BITS(shl),
		[INT_SHR] = {[T_U16] = shr_u16,
			[T_U32] = shr_u32,
			[T_U64] = shr_u64,
			[T_S16] = shr_s16,
			[T_S32] = shr_s32,
			[T_S64] = shr_s64,
			[T_B16] = shr_u16,
			[T_B32] = shr_u32,
			[T_B64] = shr_u64},
		[INT_SAD] = ROW_SIGN(sad),
		[INT_MUL24_LO] = {[T_U32] = mul24_lo_u32, [T_S32] = mul24_lo_s32},
		[INT_MUL24_HI] = {[T_U32] = mul24_hi_u32, [T_S32] = mul24_hi_s32},
		[INT_MAD24_LO] = {[T_U32] = mad24_lo_u32, [T_S32] = mad24_lo_s32},
		[INT_MAD24_HI] = {[T_U32] = mad24_hi_u32, [T_S32] = mad24_hi_s32},
	};

	return table[op][type];
}
