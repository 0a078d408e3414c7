/* Comparison, selection and moves. A predicate is 0 or 1 in its slot. */
#include "ptx/vm/ops.h"

#include <math.h>

#define CMP(name, T, READ, expr)                                                                   \
	static const struct insn *name##_##T(struct thread *t, uint64_t *r, const struct insn *i)  \
	{                                                                                          \
		T a = READ(r[i->a]), b = READ(r[i->b]);                                            \
		(void)t;                                                                           \
		r[i->d] = (expr);                                                                  \
		return i + 1;                                                                      \
	}

#define CMP_INT(T)                                                                                 \
	CMP(eq, T, (T), a == b)                                                                    \
	CMP(ne, T, (T), a != b)                                                                    \
	CMP(lt, T, (T), a < b)                                                                     \
	CMP(le, T, (T), a <= b) CMP(gt, T, (T), a > b) CMP(ge, T, (T), a >= b)

CMP_INT(uint16_t)
CMP_INT(uint32_t)
CMP_INT(uint64_t)
CMP_INT(int16_t)
CMP_INT(int32_t)
CMP_INT(int64_t)

/* Not-a-number is unequal to all and unordered, except for the forms that end in u. */
#define CMP_FLOAT(T, READ)                                                                         \
	CMP(eq, T, READ, a >= b && a <= b)                                                         \
	CMP(ne, T, READ, a<b || a> b)                                                              \
	CMP(lt, T, READ, a < b)                                                                    \
	CMP(le, T, READ, a <= b)                                                                   \
	CMP(gt, T, READ, a > b)                                                                    \
	CMP(ge, T, READ, a >= b)                                                                   \
	CMP(equ, T, READ, !(a < b || a > b))                                                       \
	CMP(neu, T, READ, !(a >= b && a <= b))                                                     \
	CMP(ltu, T, READ, !(a >= b))                                                               \
	CMP(leu, T, READ, !(a > b))                                                                \
	CMP(gtu, T, READ, !(a <= b))                                                               \
	CMP(geu, T, READ, !(a < b))                                                                \
	CMP(num, T, READ, !isnan(a) && !isnan(b)) CMP(nan, T, READ, isnan(a) || isnan(b))

typedef float flushed;

static float read_flushed(uint64_t slot)
{
	return sg_ptx_flush(sg_ptx_f32(slot));
}

CMP_FLOAT(float, sg_ptx_f32)
CMP_FLOAT(double, sg_ptx_f64)
CMP_FLOAT(flushed, read_flushed)

#define ROW_INT(T)                                                                                 \
	{                                                                                          \
		[CMP_EQ] = eq_##T, [CMP_NE] = ne_##T, [CMP_LT] = lt_##T, [CMP_LE] = le_##T,        \
		[CMP_GT] = gt_##T, [CMP_GE] = ge_##T,                                              \
	}
#define ROW_FLOAT(T)                                                                               \
	{                                                                                          \
		eq_##T, ne_##T, lt_##T, le_##T, gt_##T, ge_##T, equ_##T, neu_##T, ltu_##T,         \
			leu_##T, gtu_##T, geu_##T, num_##T, nan_##T,                               \
	}
#define ROW_BITS(T)                                                                                \
	{                                                                                          \
		[CMP_EQ] = eq_##T, [CMP_NE] = ne_##T,                                              \
	}

op_fn sg_ptx_setp_op(enum compare cmp, enum ptx_type type, bool flush)
{
	static const op_fn flushing[CMP_N] = ROW_FLOAT(flushed);
	static const op_fn table[T_N][CMP_N] = {
		[T_U16] = ROW_INT(uint16_t),
		[T_U32] = ROW_INT(uint32_t),
		[T_U64] = ROW_INT(uint64_t),
		[T_S16] = ROW_INT(int16_t),
		[T_S32] = ROW_INT(int32_t),
		[T_S64] = ROW_INT(int64_t),
		[T_B16] = ROW_BITS(uint16_t),
		[T_B32] = ROW_BITS(uint32_t),
		[T_B64] = ROW_BITS(uint64_t),
		[T_F32] = ROW_FLOAT(float),
		[T_F64] = ROW_FLOAT(double),
	};

	return flush && type == T_F32 ? flushing[cmp] : table[type][cmp];
}

#define MOVE(name, expr)                                                                           \
	static const struct insn *name(struct thread *t, uint64_t *r, const struct insn *i)        \
	{                                                                                          \
		(void)t;                                                                           \
		r[i->d] = (expr);                                                                  \
		return i + 1;                                                                      \
	}

MOVE(copy, r[i->a])
MOVE(select, r[i->c] ? r[i->a] : r[i->b])
MOVE(select_sign_s32, (int32_t)r[i->c] >= 0 ? r[i->a] : r[i->b])
MOVE(select_sign_f32, sg_ptx_f32(r[i->c]) >= 0 ? r[i->a] : r[i->b])
MOVE(pred_and, r[i->a] & r[i->b])
MOVE(pred_or, r[i->a] | r[i->b])
MOVE(pred_xor, r[i->a] ^ r[i->b])
MOVE(pred_not, !r[i->a])
MOVE(mask, r[i->a] ? 0xffffffffu : 0)
MOVE(mask_float, r[i->a] ? sg_ptx_from_f32(1.0f) : 0)
MOVE(add, r[i->a] + i->imm.u)
MOVE(window, (i->imm.u == SPACE_GLOBAL ? r[i->a] < SG_PTX_WINDOW_SHARED
				       : r[i->a] >> 56 == i->imm.u - SPACE_SHARED + 1))

static const struct insn *frame_address(struct thread *t, uint64_t *r, const struct insn *i)
{
	t->count--;
	r[i->d] = t->local_at + i->imm.u;
	return i + 1;
}

op_fn sg_ptx_move_op(enum move_op op)
{
	static const op_fn table[MOVE_N] = {
		[MOVE_COPY] = copy,
		[MOVE_SELECT] = select,
		[MOVE_SELECT_SIGN_S32] = select_sign_s32,
		[MOVE_SELECT_SIGN_F32] = select_sign_f32,
		[MOVE_PRED_AND] = pred_and,
		[MOVE_PRED_OR] = pred_or,
		[MOVE_PRED_XOR] = pred_xor,
		[MOVE_PRED_NOT] = pred_not,
		[MOVE_MASK] = mask,
		[MOVE_MASK_FLOAT] = mask_float,
		[MOVE_ADD] = add,
		[MOVE_FRAME_ADDRESS] = frame_address,
		[MOVE_WINDOW] = window,
	};

	return table[op];
}
