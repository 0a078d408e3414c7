/* Arithmetic, comparisons and packing of f16 and bf16; the other decoders hand those types over. */
#include "ptx/parse/parse.h"

#define ONE_F16  0x3c00u
#define ONE_BF16 0x3f80u

static bool is_bf16(enum ptx_type type)
{
	return type == T_BF16 || type == T_BF16X2;
}

static bool is_pair(enum ptx_type type)
{
	return type == T_F16X2 || type == T_BF16X2;
}

static unsigned take_flags(struct statement *s)
{
	unsigned flags = 0;

	if (sg_ptx_take(s, "ftz"))
		flags |= HALF_FLUSH;
	if (sg_ptx_take(s, "sat"))
		flags |= HALF_SATURATE;
	if (sg_ptx_take(s, "relu"))
		flags |= HALF_RELU;
	if (sg_ptx_take(s, "NaN"))
		flags |= HALF_NAN_WINS;
	sg_ptx_take(s, "rn");
	sg_ptx_take(s, "approx");
	return flags;
}

void sg_ptx_emit_half(struct parser *p, struct statement *s, enum half_op op, enum ptx_type type)
{
	uint32_t sources = op == HALF_FMA ? 3
			   : op == HALF_ADD || op == HALF_SUB || op == HALF_MUL || op == HALF_MIN ||
					   op == HALF_MAX
				   ? 2
				   : 1;
	op_fn fn = sg_ptx_half_op(op, type);
	uint32_t slots[3] = {0}, d;
	unsigned flags = take_flags(s);
	struct insn *i;

	if (!fn) {
		sg_ptx_unsupported(p, s);
		return;
	}
	if (is_bf16(type))
		flags &=
			/* only ex2.approx.ftz has the flag, and none of its results is subnormal */
			~HALF_FLUSH;
	if (!sg_ptx_operands(p, s, sources + 1))
		return;
	for (uint32_t n = 0; n < sources; n++)
		slots[n] = sg_ptx_source(p, &s->operands[n + 1], type);
	d = sg_ptx_target(p, &s->operands[0], type);
	i = sg_ptx_emit(p, fn, d, slots[0], slots[1], slots[2]);
	if (i)
		i->imm.u = flags;
}

/* Emits one lane's comparison into a new predicate, combined with c. */
static uint32_t emit_lane(struct parser *p, const struct statement *s, uint64_t imm, op_fn combine,
	enum ptx_type type)
{
	uint32_t a = sg_ptx_source(p, &s->operands[1], type),
		 b = sg_ptx_source(p, &s->operands[2], type);
	uint32_t raw = sg_ptx_new_slots(p, 1, T_NONE), c;
	struct insn *i = sg_ptx_emit(p, sg_ptx_half_compare_op(), raw, a, b, 0);

	if (i)
		i->imm.u = imm;
	if (combine) {
		c = sg_ptx_source(p, &s->operands[3], T_PRED);
		sg_ptx_emit(p, combine, raw, raw, c, 0);
	}
	return raw;
}

/* Decodes setp.f16 p, and setp.f16x2 p|q, which compares each half. */
void sg_ptx_decode_half_setp(
	struct parser *p, struct statement *s, enum ptx_type type, enum compare cmp, op_fn combine)
{
	const struct operand *to = &s->operands[0];
	bool flush = sg_ptx_take(s, "ftz");
	uint32_t low, high;

	if (!sg_ptx_operands(p, s, combine ? 4 : 3))
		return;
	if (cmp == CMP_N || (is_pair(type) ? !to->second : to->second != 0)) {
		sg_ptx_unsupported(p, s);
		return;
	}
	low = emit_lane(
		p, s, sg_ptx_half_compare_imm(cmp, is_bf16(type), flush, false), combine, type);
	high = is_pair(type)
		       ? emit_lane(p, s, sg_ptx_half_compare_imm(cmp, is_bf16(type), flush, true),
				 combine, type)
		       : 0;
	sg_ptx_emit(p, sg_ptx_move_op(MOVE_COPY), sg_ptx_target(p, to, T_PRED), low, 0, 0);
	if (high)
		sg_ptx_emit(p, sg_ptx_move_op(MOVE_COPY), to->second, high, 0, 0);
}

/* Returns a lane's result where the comparison holds; 0: the type has none. */
static uint32_t true_value(enum ptx_type to, enum ptx_type type)
{
	switch (to) {
	case T_U16:
	case T_S16: return is_pair(type) ? 0 : 0xffff;
	case T_U32:
	case T_S32: return 0xffffffffu;
	case T_F16:
	case T_F16X2: return to == type ? ONE_F16 | ONE_F16 << 16 : 0;
	case T_BF16:
	case T_BF16X2: return to == type ? ONE_BF16 | ONE_BF16 << 16 : 0;
	default: return 0;
	}
}

void sg_ptx_decode_half_set(struct parser *p, struct statement *s, enum ptx_type to,
	enum ptx_type type, enum compare cmp, op_fn combine)
{
	bool flush = sg_ptx_take(s, "ftz");
	uint32_t ones = true_value(to, type), low, high = SLOT_ZERO;
	struct insn *i;

	if (!ones || cmp == CMP_N) {
		sg_ptx_unsupported(p, s);
		return;
	}
	if (!sg_ptx_operands(p, s, combine ? 4 : 3))
		return;
	low = emit_lane(
		p, s, sg_ptx_half_compare_imm(cmp, is_bf16(type), flush, false), combine, type);
	if (is_pair(type))
		high = emit_lane(p, s, sg_ptx_half_compare_imm(cmp, is_bf16(type), flush, true),
			combine, type);
	else if (to == T_U32 || to == T_S32)
		high = low;
	i = sg_ptx_emit(
		p, sg_ptx_half_mask_op(), sg_ptx_target(p, &s->operands[0], to), low, high, 0);
	if (i)
		i->imm.u = ones;
}

/* Decodes cvt.rn.f16x2.f32 d, a, b. */
void sg_ptx_decode_half_pack(
	struct parser *p, struct statement *s, enum ptx_type to, enum ptx_type from)
{
	enum rounding rounding = sg_ptx_take(s, "rz") ? ROUND_ZERO : ROUND_NEAREST;
	unsigned flags = (sg_ptx_take(s, "relu") ? HALF_RELU : 0) |
			 (sg_ptx_take(s, "satfinite") ? HALF_SATURATE : 0);
	uint32_t a, b;
	struct insn *i;

	if (from != T_F32 || (rounding == ROUND_NEAREST && !sg_ptx_take(s, "rn"))) {
		sg_ptx_unsupported(p, s);
		return;
	}
	if (!sg_ptx_operands(p, s, 3))
		return;
	a = sg_ptx_source(p, &s->operands[1], T_F32);
	b = sg_ptx_source(p, &s->operands[2], T_F32);
	i = sg_ptx_emit(p, sg_ptx_half_pack_op(), sg_ptx_target(p, &s->operands[0], to), a, b, 0);
	if (i)
		i->imm.u = sg_ptx_half_pack_imm(is_bf16(to), rounding, flags);
}
