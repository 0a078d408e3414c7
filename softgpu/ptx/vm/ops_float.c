/*
 * Floating point. Plain operations round to nearest and keep subnormals; .ftz forms flush operands
 * and results (single precision only); other roundings run the plain form under another mode of the
 * host's unit. .approx forms are as exact as the host's libm.
 */
#include "ptx/vm/ops.h"

#include <fenv.h>
#include <math.h>

#define OP_F32(name, expr)                                                                         \
	static const struct insn *name##_f32(struct thread *t, uint64_t *r, const struct insn *i)  \
	{                                                                                          \
		float a = sg_ptx_f32(r[i->a]), b = sg_ptx_f32(r[i->b]), c = sg_ptx_f32(r[i->c]);   \
		(void)t, (void)a, (void)b, (void)c;                                                \
		r[i->d] = sg_ptx_from_f32(expr);                                                   \
		return i + 1;                                                                      \
	}                                                                                          \
	static const struct insn *name##_ftz(struct thread *t, uint64_t *r, const struct insn *i)  \
	{                                                                                          \
		float a = sg_ptx_flush(sg_ptx_f32(r[i->a]));                                       \
		float b = sg_ptx_flush(sg_ptx_f32(r[i->b]));                                       \
		float c = sg_ptx_flush(sg_ptx_f32(r[i->c]));                                       \
		(void)t, (void)a, (void)b, (void)c;                                                \
		r[i->d] = sg_ptx_from_f32(sg_ptx_flush(expr));                                     \
		return i + 1;                                                                      \
	}

#define OP_F64(name, expr)                                                                         \
	static const struct insn *name##_f64(struct thread *t, uint64_t *r, const struct insn *i)  \
	{                                                                                          \
		double a = sg_ptx_f64(r[i->a]), b = sg_ptx_f64(r[i->b]), c = sg_ptx_f64(r[i->c]);  \
		(void)t, (void)a, (void)b, (void)c;                                                \
		r[i->d] = sg_ptx_from_f64(expr);                                                   \
		return i + 1;                                                                      \
	}

/* If one operand is a NaN, returns the other. Minus zero is less than plus zero. */
static double least(double a, double b)
{
	if (isnan(a) || isnan(b))
		return isnan(a) ? b : a;
	if (a == 0 && b == 0) /* NOLINT: exactly zero */
		return signbit(a) ? a : b;
	return a < b ? a : b;
}

static double greatest(double a, double b)
{
	return -least(-a, -b);
}

static double least_or_nan(double a, double b)
{
	return isnan(a) || isnan(b) ? NAN : least(a, b);
}

static double greatest_or_nan(double a, double b)
{
	return isnan(a) || isnan(b) ? NAN : greatest(a, b);
}

/* NaN saturates to zero. */
static double saturate(double a)
{
	return a > 1 ? 1 : a > 0 ? a : 0;
}

OP_F32(add, a + b)
OP_F32(sub, a - b)
OP_F32(mul, a *b)
OP_F32(fma, fmaf(a, b, c))
OP_F32(div, a / b)
OP_F32(rcp, 1.0f / a)
OP_F32(sqrt, sqrtf(a))
OP_F32(rsqrt, 1.0f / sqrtf(a))
OP_F32(abs, fabsf(a))
OP_F32(neg, -a)
OP_F32(min, (float)least(a, b))
OP_F32(max, (float)greatest(a, b))
OP_F32(min_nan, (float)least_or_nan(a, b))
OP_F32(max_nan, (float)greatest_or_nan(a, b))
OP_F32(sin, sinf(a))
OP_F32(cos, cosf(a))
OP_F32(ex2, exp2f(a))
OP_F32(lg2, log2f(a))
OP_F32(tanh, tanhf(a))
OP_F32(copysign, copysignf(b, a))
OP_F32(sat, (float)saturate(a))

OP_F64(add, a + b)
OP_F64(sub, a - b)
OP_F64(mul, a *b)
OP_F64(fma, fma(a, b, c))
OP_F64(div, a / b)
OP_F64(rcp, 1.0 / a)
OP_F64(sqrt, sqrt(a))
OP_F64(rsqrt, 1.0 / sqrt(a))
OP_F64(abs, fabs(a))
OP_F64(neg, -a)
OP_F64(min, least(a, b))
OP_F64(max, greatest(a, b))
OP_F64(copysign, copysign(b, a))
OP_F64(sat, saturate(a))

#define ROW(name)                                                                                  \
	{                                                                                          \
		name##_f32, name##_ftz, name##_f64                                                 \
	}
#define ROW_SINGLE(name)                                                                           \
	{                                                                                          \
		name##_f32, name##_ftz, NULL                                                       \
	}

op_fn sg_ptx_float_op(enum float_op op, enum ptx_type type, bool flush)
{
	static const op_fn table[FLOAT_N][3] = {
		[FLOAT_ADD] = ROW(add),
		[FLOAT_SUB] = ROW(sub),
		[FLOAT_MUL] = ROW(mul),
		[FLOAT_FMA] = ROW(fma),
		[FLOAT_DIV] = ROW(div),
		[FLOAT_RCP] = ROW(rcp),
		[FLOAT_SQRT] = ROW(sqrt),
		[FLOAT_RSQRT] = ROW(rsqrt),
		[FLOAT_ABS] = ROW(abs),
		[FLOAT_NEG] = ROW(neg),
		[FLOAT_MIN] = ROW(min),
		[FLOAT_MAX] = ROW(max),
		[FLOAT_MIN_NAN] = ROW_SINGLE(min_nan),
		[FLOAT_MAX_NAN] = ROW_SINGLE(max_nan),
		[FLOAT_SIN] = ROW_SINGLE(sin),
		[FLOAT_COS] = ROW_SINGLE(cos),
		[FLOAT_EX2] = ROW_SINGLE(ex2),
		[FLOAT_LG2] = ROW_SINGLE(lg2),
		[FLOAT_TANH] = ROW_SINGLE(tanh),
		[FLOAT_COPYSIGN] = ROW(copysign),
		[FLOAT_SAT] = ROW(sat),
	};

	if (type != T_F32 && type != T_F64)
		return NULL;
	return table[op][type == T_F64 ? 2 : flush];
}

#define ROUND(name, mode)                                                                          \
	static const struct insn *name(struct thread *t, uint64_t *r, const struct insn *i)        \
	{                                                                                          \
		fesetround(mode);                                                                  \
		i->imm.fn(t, r, i);                                                                \
		fesetround(FE_TONEAREST);                                                          \
		return i + 1;                                                                      \
	}

ROUND(round_zero, FE_TOWARDZERO)
ROUND(round_down, FE_DOWNWARD)
ROUND(round_up, FE_UPWARD)

op_fn sg_ptx_round_op(enum rounding mode)
{
	static const op_fn table[ROUND_N] = {NULL, round_zero, round_down, round_up};

	return table[mode];
}

static bool in_class(enum float_test test, int class)
{
	switch (test) {
	case TEST_FINITE: return class != FP_NAN && class != FP_INFINITE;
	case TEST_INFINITE: return class == FP_INFINITE;
	case TEST_NUMBER: return class != FP_NAN;
	case TEST_NOTANUMBER: return class == FP_NAN;
	case TEST_NORMAL: return class == FP_NORMAL || class == FP_ZERO;
	case TEST_SUBNORMAL: return class == FP_SUBNORMAL;
	case TEST_N: break;
	}
	return false;
}

static const struct insn *test_f32(struct thread *t, uint64_t *r, const struct insn *i)
{
	(void)t;
	r[i->d] = in_class((enum float_test)i->imm.u, fpclassify(sg_ptx_f32(r[i->a])));
	return i + 1;
}

static const struct insn *test_f64(struct thread *t, uint64_t *r, const struct insn *i)
{
	(void)t;
	r[i->d] = in_class((enum float_test)i->imm.u, fpclassify(sg_ptx_f64(r[i->a])));
	return i + 1;
}

op_fn sg_ptx_test_op(enum ptx_type type)
{
	return type == T_F32 ? test_f32 : type == T_F64 ? test_f64 : NULL;
}
