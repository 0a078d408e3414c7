/*
 * Arithmetic on f16 and bf16 and on pairs of them. Operands become doubles, in which products are
 * exact; a sum that is not exact keeps a sign of it in its last bit (rounding to odd), so that the
 * one rounding to 16 bits comes out as if from the exact value.
 */
#include "ptx/vm/half.h"

#include <math.h>

static bool rounds_up(
	enum rounding mode, bool is_negative, uint64_t kept, uint64_t rest, unsigned drop)
{
	uint64_t tie = 1ull << (drop - 1);

	switch (mode) {
	case ROUND_NEAREST: return rest > tie || (rest == tie && (kept & 1));
	case ROUND_DOWN: return is_negative && rest;
	case ROUND_UP: return !is_negative && rest;
	default: return false;
	}
}

uint16_t sg_ptx_to_half(double v, bool is_bf16, enum rounding mode)
{
	unsigned mantissa = is_bf16 ? 7 : 10, drop = 52 - mantissa;
	int least = is_bf16 ? -126 : -14, exponent;
	uint64_t bits = sg_ptx_from_f64(v), m = bits & ((1ull << 52) - 1), kept, result;
	uint64_t infinity = (is_bf16 ? 255ull : 31ull) << mantissa;
	unsigned sign = bits >> 63 ? 0x8000 : 0;

	if (isnan(v))
		return HALF_NAN;
	if (isinf(v))
		return (uint16_t)(sign | infinity);
	exponent = (int)(bits >> 52 & 0x7ff) - 1023;
	if (exponent == -1023)
		exponent = -1022;
	else
		m |= 1ull << 52;
	if (exponent < least) {
		drop = drop + (unsigned)(least - exponent) < 63
			       ? drop + (unsigned)(least - exponent)
			       : 63;
		exponent = least;
	}
	kept = m >> drop;
	kept += rounds_up(mode, sign, kept, m & ((1ull << drop) - 1), drop);
	/* The leading one of a normal number adds one to the exponent. */
	result = ((uint64_t)(exponent - least) << mantissa) + kept;
	if (result >= infinity)
		result = mode == ROUND_NEAREST || mode == (sign ? ROUND_DOWN : ROUND_UP)
				 ? infinity
				 : infinity - 1;
	return (uint16_t)(sign | result);
}

/* Returns x + y; its last bit is set if the sum is not exact. */
static double sum(double x, double y)
{
	double s = x + y, part = s - x, error = (x - (s - part)) + (y - part);
	uint64_t bits = sg_ptx_from_f64(s);

	if (!(error < 0 || error > 0) || bits & 1)
		return s;
	return sg_ptx_f64((error > 0) == (s > 0) ? bits + 1 : bits - 1);
}

static double lesser(double a, double b)
{
	if (isnan(a) || isnan(b))
		return isnan(a) ? b : a;
	return a < b || (a <= b && signbit(a)) ? a : b;
}

static double value_of(enum half_op op, double a, double b, double c)
{
	switch (op) {
	case HALF_ADD: return sum(a, b);
	case HALF_SUB: return sum(a, -b);
	case HALF_MUL: return a * b;
	case HALF_FMA: return sum(a * b, c);
	case HALF_MIN: return lesser(a, b);
	case HALF_MAX: return -lesser(-a, -b);
	case HALF_EX2: return exp2(a);
	case HALF_TANH: return tanh(a);
	default: return a;
	}
}

static uint16_t apply(
	enum half_op op, bool is_bf16, unsigned flags, uint16_t a, uint16_t b, uint16_t c)
{
	uint16_t result;
	double v;

	if (flags & HALF_FLUSH) {
		a = sg_ptx_flush_half(a);
		b = sg_ptx_flush_half(b);
		c = sg_ptx_flush_half(c);
	}
	if (op == HALF_NEG)
		return a ^ 0x8000;
	if (op == HALF_ABS)
		return a & 0x7fff;
	v = value_of(op, sg_ptx_from_half(a, is_bf16), sg_ptx_from_half(b, is_bf16),
		sg_ptx_from_half(c, is_bf16));
	if (flags & HALF_NAN_WINS &&
		(isnan(sg_ptx_from_half(a, is_bf16)) || isnan(sg_ptx_from_half(b, is_bf16))))
		v = NAN;
	if (flags & HALF_SATURATE)
		v = v > 1 ? 1 : v > 0 ? v : 0;
	if (flags & HALF_RELU && v < 0)
		v = 0;
	result = sg_ptx_to_half(v, is_bf16, ROUND_NEAREST);
	return flags & HALF_FLUSH ? sg_ptx_flush_half(result) : result;
}

static inline __attribute__((always_inline)) const struct insn *run(
	uint64_t *r, const struct insn *i, enum half_op op, bool is_bf16, bool is_pair)
{
	uint64_t a = r[i->a], b = r[i->b], c = r[i->c];
	unsigned flags = (unsigned)i->imm.u;
	uint32_t d = apply(op, is_bf16, flags, (uint16_t)a, (uint16_t)b, (uint16_t)c);

	if (is_pair)
		d |= (uint32_t)apply(op, is_bf16, flags, (uint16_t)(a >> 16), (uint16_t)(b >> 16),
			     (uint16_t)(c >> 16))
		     << 16;
	r[i->d] = d;
	return i + 1;
}

#define HANDLER(name, op, is_bf16, is_pair)                                                        \
	static const struct insn *name(struct thread *t, uint64_t *r, const struct insn *i)        \
	{                                                                                          \
		(void)t;                                                                           \
		return run(r, i, op, is_bf16, is_pair);                                            \
	}

#define OP(name, op)                                                                               \
	HANDLER(name##_f16, op, false, false)                                                      \
	HANDLER(name##_f16x2, op, false, true)                                                     \
	HANDLER(name##_bf16, op, true, false)                                                      \
	HANDLER(name##_bf16x2, op, true, true)

OP(add, HALF_ADD)
OP(sub, HALF_SUB)
OP(mul, HALF_MUL)
OP(fma, HALF_FMA)
OP(neg, HALF_NEG)
OP(abs, HALF_ABS)
OP(min, HALF_MIN)
OP(max, HALF_MAX)
OP(ex2, HALF_EX2)
OP(tanh, HALF_TANH)

#define ROW(name)                                                                                  \
	{                                                                                          \
		name##_f16, name##_f16x2, name##_bf16, name##_bf16x2                               \
	}

op_fn sg_ptx_half_op(enum half_op op, enum ptx_type type)
{
	static const op_fn table[HALF_N][4] = {
		[HALF_ADD] = ROW(add),
		[HALF_SUB] = ROW(sub),
		[HALF_MUL] = ROW(mul),
		[HALF_FMA] = ROW(fma),
		[HALF_NEG] = ROW(neg),
		[HALF_ABS] = ROW(abs),
		[HALF_MIN] = ROW(min),
		[HALF_MAX] = ROW(max),
		[HALF_EX2] = ROW(ex2),
		[HALF_TANH] = ROW(tanh),
	};

	return sg_ptx_is_half(type) ? table[op][type - T_F16] : NULL;
}

/* Comparisons: one lane of a and b, by its number in the immediate. */
uint64_t sg_ptx_half_compare_imm(enum compare cmp, bool is_bf16, bool flush, bool is_high)
{
	return (uint64_t)cmp | (uint64_t)is_bf16 << 8 | (uint64_t)flush << 9 |
	       (uint64_t)is_high << 10;
}

static bool compare(enum compare cmp, double a, double b)
{
	bool unordered = isnan(a) || isnan(b);

	switch (cmp) {
	case CMP_EQ: return a >= b && a <= b;
	case CMP_NE: return a < b || a > b;
	case CMP_LT: return a < b;
	case CMP_LE: return a <= b;
	case CMP_GT: return a > b;
	case CMP_GE: return a >= b;
	case CMP_EQU: return unordered || (a >= b && a <= b);
	case CMP_NEU: return unordered || a < b || a > b;
	case CMP_LTU: return unordered || a < b;
	case CMP_LEU: return unordered || a <= b;
	case CMP_GTU: return unordered || a > b;
	case CMP_GEU: return unordered || a >= b;
	case CMP_NUM: return !unordered;
	case CMP_NAN: return unordered;
	case CMP_N: break;
	}
	return false;
}

static const struct insn *compare_lane(struct thread *t, uint64_t *r, const struct insn *i)
{
	bool is_bf16 = i->imm.u >> 8 & 1;
	unsigned shift = i->imm.u >> 10 & 1 ? 16 : 0;
	uint16_t a = (uint16_t)(r[i->a] >> shift), b = (uint16_t)(r[i->b] >> shift);

	(void)t;
	if (i->imm.u >> 9 & 1) {
		a = sg_ptx_flush_half(a);
		b = sg_ptx_flush_half(b);
	}
	r[i->d] = compare((enum compare)(i->imm.u & 0xff), sg_ptx_from_half(a, is_bf16),
		sg_ptx_from_half(b, is_bf16));
	return i + 1;
}

op_fn sg_ptx_half_compare_op(void)
{
	return compare_lane;
}

/* d is a mask: the low 16 bits of imm if a is true, and its high 16 bits if b is true. */
static const struct insn *pair_of(struct thread *t, uint64_t *r, const struct insn *i)
{
	(void)t;
	r[i->d] = (r[i->a] ? i->imm.u & 0xffff : 0) | (r[i->b] ? i->imm.u & 0xffff0000u : 0);
	return i + 1;
}

op_fn sg_ptx_half_mask_op(void)
{
	return pair_of;
}

/* Implements cvt.f16x2.f32 d, a, b, where a becomes the upper half. */
uint64_t sg_ptx_half_pack_imm(bool is_bf16, enum rounding rounding, unsigned flags)
{
	return flags | (uint64_t)is_bf16 << 8 | (uint64_t)rounding << 16;
}

static uint16_t packed(uint64_t slot, uint64_t imm)
{
	double v = sg_ptx_f32(slot);
	bool is_bf16 = imm >> 8 & 1;

	if (imm & HALF_RELU && v < 0)
		v = 0;
	if (imm & HALF_SATURATE && !isnan(v)) {
		double most = is_bf16 ? 0x1.fep127 : 65504;

		v = v > most ? most : v < -most ? -most : v;
	}
	return sg_ptx_to_half(v, is_bf16, (enum rounding)(imm >> 16 & 3));
}

static const struct insn *pack(struct thread *t, uint64_t *r, const struct insn *i)
{
	(void)t;
	r[i->d] = packed(r[i->b], i->imm.u) | (uint32_t)packed(r[i->a], i->imm.u) << 16;
	return i + 1;
}

op_fn sg_ptx_half_pack_op(void)
{
	return pack;
}

uint64_t sg_ptx_half_add(enum ptx_type type, uint64_t a, uint64_t b)
{
	bool is_bf16 = type == T_BF16 || type == T_BF16X2;
	uint32_t d = apply(HALF_ADD, is_bf16, 0, (uint16_t)a, (uint16_t)b, 0);

	if (type == T_F16X2 || type == T_BF16X2)
		d |= (uint32_t)apply(
			     HALF_ADD, is_bf16, 0, (uint16_t)(a >> 16), (uint16_t)(b >> 16), 0)
		     << 16;
	return d;
}
