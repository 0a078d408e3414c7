/*
 * Implements cvt. Between integers it is an extension or a truncation, with one instruction per
 * type. All other conversions use the general form, whose immediate describes the conversion.
 */
#include "ptx/vm/half.h"

#include <fenv.h>
#include <math.h>

#define EXTEND(T)                                                                                  \
	static const struct insn *extend_##T(struct thread *t, uint64_t *r, const struct insn *i)  \
	{                                                                                          \
		(void)t;                                                                           \
		r[i->d] = (uint64_t)(T)r[i->a];                                                    \
		return i + 1;                                                                      \
	}

EXTEND(uint8_t)
EXTEND(uint16_t)
EXTEND(uint32_t)
EXTEND(uint64_t)
EXTEND(int8_t)
EXTEND(int16_t)
EXTEND(int32_t)

op_fn sg_ptx_extend_op(enum ptx_type type)
{
	static const op_fn table[T_N] = {
		[T_U8] = extend_uint8_t,
		[T_U16] = extend_uint16_t,
		[T_U32] = extend_uint32_t,
		[T_U64] = extend_uint64_t,
		[T_S8] = extend_int8_t,
		[T_S16] = extend_int16_t,
		[T_S32] = extend_int32_t,
		[T_S64] = extend_uint64_t,
		[T_B8] = extend_uint8_t,
		[T_B16] = extend_uint16_t,
		[T_B32] = extend_uint32_t,
		[T_B64] = extend_uint64_t,
	};

	return table[type];
}

static bool is_signed(enum ptx_type type)
{
	return type >= T_S8 && type <= T_S64;
}

static unsigned width_bits(enum ptx_type type)
{
	return 8u << ((type - T_U8) & 3);
}

static int64_t read_signed(enum ptx_type type, uint64_t slot)
{
	unsigned drop = 64 - width_bits(type);

	return (int64_t)(slot << drop) >> drop;
}

static uint64_t read_unsigned(enum ptx_type type, uint64_t slot)
{
	unsigned drop = 64 - width_bits(type);

	return slot << drop >> drop;
}

static double round_whole(double v, enum cvt_rounding rounding)
{
	switch (rounding) {
	case CVT_RNI: return rint(v);
	case CVT_RZI: return trunc(v);
	case CVT_RMI: return floor(v);
	case CVT_RPI: return ceil(v);
	default: return v;
	}
}

/* Floats beyond an integer's range become its nearest end; NaN becomes 0, or 1 << 63 in 64 bits. */
static uint64_t to_integer(double v, enum ptx_type type)
{
	unsigned bits = width_bits(type);
	double limit = ldexp(1, (int)bits - is_signed(type));

	if (isnan(v))
		return bits == 64 ? 1ull << 63 : 0;
	if (is_signed(type)) {
		if (v >= limit)
			return (1ull << (bits - 1)) - 1;
		return v < -limit ? (uint64_t)-1 << (bits - 1) : (uint64_t)(int64_t)v;
	}
	if (v >= limit)
		return bits == 64 ? ~0ull : (1ull << bits) - 1;
	return v <= 0 ? 0 : (uint64_t)v;
}

static uint64_t clamp_integer(uint64_t slot, enum ptx_type to, enum ptx_type from)
{
	unsigned bits = width_bits(to) - is_signed(to);
	uint64_t top = bits == 64 ? ~0ull : (1ull << bits) - 1;

	if (is_signed(from) && read_signed(from, slot) < 0) {
		int64_t v = read_signed(from, slot), least = is_signed(to) ? -(int64_t)top - 1 : 0;

		return (uint64_t)(v < least ? least : v);
	}
	slot = read_unsigned(from, slot);
	return slot > top ? top : slot;
}

struct cvt {
	enum ptx_type to, from;
	enum cvt_rounding rounding;
	bool flush, saturate, relu;
};

uint64_t sg_ptx_cvt_imm(enum ptx_type to, enum ptx_type from, enum cvt_rounding rounding,
	bool flush, bool saturate, bool relu)
{
	return (uint64_t)to | (uint64_t)from << 8 | (uint64_t)rounding << 16 |
	       (uint64_t)flush << 24 | (uint64_t)saturate << 32 | (uint64_t)relu << 33;
}

static struct cvt decode(uint64_t imm)
{
	return (struct cvt){.to = imm & 0xff,
		.from = imm >> 8 & 0xff,
		.rounding = imm >> 16 & 0xff,
		.flush = imm >> 24 & 1,
		.saturate = imm >> 32 & 1,
		.relu = imm >> 33 & 1};
}

static double read_float(const struct cvt *c, uint64_t slot)
{
	double v;

	if (c->from == T_F64)
		return sg_ptx_f64(slot);
	if (c->from == T_F16 || c->from == T_BF16)
		return sg_ptx_from_half((uint16_t)slot, c->from == T_BF16);
	v = c->flush ? sg_ptx_flush(sg_ptx_f32(slot)) : sg_ptx_f32(slot);
	return v;
}

static uint64_t write_float(const struct cvt *c, double v)
{
	if (c->saturate)
		v = v > 1 ? 1 : v > 0 ? v : 0;
	if (c->relu && v < 0)
		v = 0;
	if (c->to == T_F64)
		return sg_ptx_from_f64(v);
	if (c->to == T_F16 || c->to == T_BF16)
		return sg_ptx_to_half(v, c->to == T_BF16,
			c->rounding < CVT_RNI ? (enum rounding)c->rounding : ROUND_NEAREST);
	return sg_ptx_from_f32(c->flush ? sg_ptx_flush((float)v) : (float)v);
}

/*
 * Exact up to 53 bits. The lowest bit of a larger number shows whether bits were lost, which
 * suffices for the rounding to a half.
 */
static double to_odd_double(const struct cvt *c, uint64_t slot)
{
	bool is_negative = is_signed(c->from) && read_signed(c->from, slot) < 0;
	uint64_t v = is_negative ? 0 - (uint64_t)read_signed(c->from, slot)
				 : read_unsigned(c->from, slot);

	if (v >> 53)
		v = (v & ~0x7ffull) | (v & 0x7ff ? 0x800 : 0);
	return is_negative ? -(double)v : (double)v;
}

/* Integers go to the float type in one rounding. */
static uint64_t integer_to_float(const struct cvt *c, uint64_t slot)
{
	if (c->to == T_F16 || c->to == T_BF16)
		return write_float(c, to_odd_double(c, slot));
	if (c->to == T_F64)
		return write_float(c, is_signed(c->from) ? (double)read_signed(c->from, slot)
							 : (double)read_unsigned(c->from, slot));
	return write_float(c, is_signed(c->from) ? (double)(float)read_signed(c->from, slot)
						 : (double)(float)read_unsigned(c->from, slot));
}

static bool is_float(enum ptx_type type)
{
	return type == T_F32 || type == T_F64 || type == T_F16 || type == T_BF16;
}

static uint64_t convert(const struct cvt *c, uint64_t slot)
{
	if (!is_float(c->from))
		return is_float(c->to) ? integer_to_float(c, slot)
				       : clamp_integer(slot, c->to, c->from);
	if (!is_float(c->to))
		return to_integer(round_whole(read_float(c, slot), c->rounding), c->to);
	return write_float(c, round_whole(read_float(c, slot), c->rounding));
}

static const struct insn *cvt_nearest(struct thread *t, uint64_t *r, const struct insn *i)
{
	struct cvt c = decode(i->imm.u);

	(void)t;
	r[i->d] = convert(&c, r[i->a]);
	return i + 1;
}

/* Not inlined, so that no conversion moves across the change of mode. */
static __attribute__((noinline)) uint64_t convert_call(const struct cvt *c, uint64_t slot)
{
	return convert(c, slot);
}

static const struct insn *cvt_directed(struct thread *t, uint64_t *r, const struct insn *i)
{
	static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
	struct cvt c = decode(i->imm.u);

	(void)t;
	fesetround(modes[c.rounding & 3]);
	r[i->d] = convert_call(&c, r[i->a]);
	fesetround(FE_TONEAREST);
	return i + 1;
}

op_fn sg_ptx_cvt_op(enum cvt_rounding rounding)
{
	return rounding == CVT_RZ || rounding == CVT_RM || rounding == CVT_RP ? cvt_directed
									      : cvt_nearest;
}

static const struct insn *tf32(struct thread *t, uint64_t *r, const struct insn *i)
{
	uint32_t bits = (uint32_t)r[i->a], even = bits >> 13 & 1;

	(void)t;
	if ((bits & 0x7f800000u) == 0x7f800000u)
		/* keeps it a NaN after its low bits are cut */
		bits |= bits & 0x1fff ? 1u << 22 : 0;
	else if (i->imm.u == CVT_N)
		bits += 0x1000;
	else if (i->imm.u == CVT_RN)
		bits += 0xfff + even;
	r[i->d] = bits & ~0x1fffu;
	return i + 1;
}

op_fn sg_ptx_tf32_op(void)
{
	return tf32;
}
