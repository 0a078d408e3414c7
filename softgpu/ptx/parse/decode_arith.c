/* Decodes arithmetic, operations on bits, and floating point. */
#include "ptx/parse/parse.h"

static bool is_float(enum ptx_type type)
{
	return type == T_F32 || type == T_F64;
}

static enum rounding take_rounding(struct statement *s)
{
	static const char *const names[] = {"rn", "rz", "rm", "rp"};

	for (unsigned n = 0; n < ROUND_N; n++) {
		if (sg_ptx_take(s, names[n]))
			return (enum rounding)n;
	}
	sg_ptx_take(s, "approx");
	sg_ptx_take(s, "full");
	return ROUND_NEAREST;
}

/* Emits an instruction with a destination d and up to three sources of one type. */
static struct insn *emit(struct parser *p, struct statement *s, op_fn fn, enum ptx_type type,
	enum ptx_type to, uint32_t sources)
{
	uint32_t slots[3] = {0}, d;

	if (!fn) {
		sg_ptx_unsupported(p, s);
		return NULL;
	}
	if (!sg_ptx_operands(p, s, sources + 1))
		return NULL;
	for (uint32_t n = 0; n < sources; n++)
		slots[n] = sg_ptx_source(p, &s->operands[n + 1], type);
	d = sg_ptx_target(p, &s->operands[0], to);
	return sg_ptx_emit(p, fn, d, slots[0], slots[1], slots[2]);
}

/* Emits a float operation. Saturation is emitted as an instruction of its own. */
static void emit_float(struct parser *p, struct statement *s, enum float_op op, enum ptx_type type,
	uint32_t sources)
{
	bool saturate = sg_ptx_take(s, "sat"), flush = sg_ptx_take(s, "ftz");
	enum rounding rounding = take_rounding(s);
	op_fn fn = sg_ptx_float_op(op, type, flush);
	struct insn *i = emit(p, s, fn, type, type, sources);
	uint32_t d;

	if (!i)
		return;
	d = i->d;
	if (rounding != ROUND_NEAREST) {
		i->imm.fn = fn;
		i->fn = sg_ptx_round_op(rounding);
	}
	if (saturate)
		sg_ptx_emit(p, sg_ptx_float_op(FLOAT_SAT, type, false), d, d, 0, 0);
}

/* Emits add.cc, addc[.cc] and the like; the opcodes with four letters read the carry. */
static void emit_carry(
	struct parser *p, struct statement *s, enum carry_op op, enum ptx_type type, bool reads)
{
	bool writes = sg_ptx_take(s, "cc");
	struct insn *i = emit(p, s, sg_ptx_carry_op(op, type), type, type,
		op == CARRY_MAD_LO || op == CARRY_MAD_HI ? 3 : 2);

	if (i)
		i->imm.u = sg_ptx_carry_imm(reads, writes);
}

static bool has_carry(const struct statement *s)
{
	for (uint32_t n = 0; n < s->modifier_count; n++) {
		if (sg_ptx_text_is(s->modifiers[n].at, s->modifiers[n].len, "cc"))
			return true;
	}
	return false;
}

static void decode_carry(struct parser *p, struct statement *s, int op)
{
	enum ptx_type type = sg_ptx_take_type(s);

	if (op == CARRY_MAD_LO && sg_ptx_take(s, "hi"))
		op = CARRY_MAD_HI;
	else if (op == CARRY_MAD_LO && !sg_ptx_take(s, "lo"))
		sg_ptx_unsupported(p, s);
	emit_carry(p, s, (enum carry_op)op, type, s->len == 4);
}

/* Opcodes that exist for both integers and floats. */
enum both { ADD, SUB, DIV, ABS, NEG, MIN, MAX, BOTH_N };

static void decode_both(struct parser *p, struct statement *s, int arg)
{
	static const struct {
		enum int_op i;
		enum float_op f;
		enum half_op h;
		uint32_t sources;
	} rows[BOTH_N] = {
		[ADD] = {INT_ADD, FLOAT_ADD, HALF_ADD, 2},
		[SUB] = {INT_SUB, FLOAT_SUB, HALF_SUB, 2},
		[DIV] = {INT_DIV, FLOAT_DIV, HALF_N, 2},
		[ABS] = {INT_ABS, FLOAT_ABS, HALF_ABS, 1},
		[NEG] = {INT_NEG, FLOAT_NEG, HALF_NEG, 1},
		[MIN] = {INT_MIN, FLOAT_MIN, HALF_MIN, 2},
		[MAX] = {INT_MAX, FLOAT_MAX, HALF_MAX, 2},
	};
	enum float_op f = rows[arg].f;
	enum ptx_type type;

	if (arg <= SUB && has_carry(s)) {
		decode_carry(p, s, arg == ADD ? CARRY_ADD : CARRY_SUB);
		return;
	}
	type = sg_ptx_take_type(s);

	if (arg >= MIN && is_float(type) && sg_ptx_take(s, "NaN"))
		f = arg == MIN ? FLOAT_MIN_NAN : FLOAT_MAX_NAN;
	if (sg_ptx_is_half(type) && rows[arg].h != HALF_N)
		sg_ptx_emit_half(p, s, rows[arg].h, type);
	else if (is_float(type))
		emit_float(p, s, f, type, rows[arg].sources);
	else
		emit(p, s, sg_ptx_int_op(rows[arg].i, type), type, type, rows[arg].sources);
}

/* Decodes mul and mad. For integers a modifier says which half of the product is wanted. */
static void decode_mul(struct parser *p, struct statement *s, int is_mad)
{
	enum int_op op = is_mad ? INT_MAD_LO : INT_MUL_LO;
	uint32_t sources = is_mad ? 3 : 2;
	enum ptx_type type;

	if (is_mad && has_carry(s)) {
		decode_carry(p, s, CARRY_MAD_LO);
		return;
	}
	type = sg_ptx_take_type(s);

	if (is_float(type)) {
		emit_float(p, s, is_mad ? FLOAT_FMA : FLOAT_MUL, type, sources);
		return;
	}
	if (!is_mad && sg_ptx_is_half(type)) {
		sg_ptx_emit_half(p, s, HALF_MUL, type);
		return;
	}
	if (sg_ptx_take(s, "hi"))
		op = is_mad ? INT_MAD_HI : INT_MUL_HI;
	else if (sg_ptx_take(s, "wide"))
		op = is_mad ? INT_MAD_WIDE : INT_MUL_WIDE;
	else if (!sg_ptx_take(s, "lo"))
		op = INT_N;
	emit(p, s, op == INT_N ? NULL : sg_ptx_int_op(op, type), type, type, sources);
}

/* Multiplies the low 24 bits of each factor and takes the low or the high 32 bits of 48. */
static void decode_24(struct parser *p, struct statement *s, int is_mad)
{
	bool low = sg_ptx_take(s, "lo"), high = sg_ptx_take(s, "hi");
	enum ptx_type type = sg_ptx_take_type(s);
	enum int_op op = high     ? is_mad ? INT_MAD24_HI : INT_MUL24_HI
			 : is_mad ? INT_MAD24_LO
				  : INT_MUL24_LO;

	emit(p, s, low != high ? sg_ptx_int_op(op, type) : NULL, type, type, is_mad ? 3 : 2);
}

static void decode_int(struct parser *p, struct statement *s, int op)
{
	enum ptx_type type = sg_ptx_take_type(s);

	emit(p, s, sg_ptx_int_op((enum int_op)op, type), type, type, op == INT_SAD ? 3 : 2);
}

/* Decodes and, or, xor, not, also of predicates. */
static void decode_logic(struct parser *p, struct statement *s, int op)
{
	enum ptx_type type = sg_ptx_take_type(s);
	op_fn fn = sg_ptx_int_op((enum int_op)op, type);

	if (type == T_PRED)
		fn = sg_ptx_move_op(op == INT_AND   ? MOVE_PRED_AND
				    : op == INT_OR  ? MOVE_PRED_OR
				    : op == INT_XOR ? MOVE_PRED_XOR
						    : MOVE_PRED_NOT);
	emit(p, s, fn, type, type, op == INT_NOT || op == INT_CNOT ? 1 : 2);
}

static void decode_shift(struct parser *p, struct statement *s, int op)
{
	enum ptx_type type = sg_ptx_take_type(s);

	emit(p, s, sg_ptx_int_op((enum int_op)op, type), type, type, 2);
}

static void decode_float(struct parser *p, struct statement *s, int op)
{
	enum ptx_type type = sg_ptx_take_type(s);

	if (sg_ptx_is_half(type) && (op == FLOAT_FMA || op == FLOAT_EX2 || op == FLOAT_TANH)) {
		sg_ptx_emit_half(p, s,
			op == FLOAT_FMA   ? HALF_FMA
			: op == FLOAT_EX2 ? HALF_EX2
					  : HALF_TANH,
			type);
		return;
	}
	emit_float(p, s, (enum float_op)op, type,
		op == FLOAT_FMA        ? 3
		: op == FLOAT_COPYSIGN ? 2
				       : 1);
}

static void decode_bits(struct parser *p, struct statement *s, int op)
{
	enum ptx_type type = sg_ptx_take_type(s);

	if (op == BIT_BFIND && sg_ptx_take(s, "shiftamt"))
		op = BIT_BFIND_SHIFT;
	if (op == BIT_BMSK_CLAMP && !sg_ptx_take(s, "clamp") && sg_ptx_take(s, "wrap"))
		op = BIT_BMSK_WRAP;
	emit(p, s, sg_ptx_bit_op((enum bit_op)op, type), type, type,
		op == BIT_BFE || op == BIT_PRMT               ? 3
		: op == BIT_BMSK_CLAMP || op == BIT_BMSK_WRAP ? 2
							      : 1);
}

static void decode_shf(struct parser *p, struct statement *s, int arg)
{
	enum ptx_type type = sg_ptx_take_type(s);
	bool right = sg_ptx_take(s, "r"), left = sg_ptx_take(s, "l");
	bool wrap = sg_ptx_take(s, "wrap"), clamp = sg_ptx_take(s, "clamp");
	enum bit_op op = right  ? wrap ? BIT_SHF_R_WRAP : BIT_SHF_R_CLAMP
			 : wrap ? BIT_SHF_L_WRAP
				: BIT_SHF_L_CLAMP;

	(void)arg;
	emit(p, s, right != left && wrap != clamp ? sg_ptx_bit_op(op, type) : NULL, type, type, 3);
}

/* Decodes an instruction with four sources; the last one goes into the immediate. */
static void decode_four(struct parser *p, struct statement *s, int op)
{
	enum ptx_type type = sg_ptx_take_type(s);
	const struct operand *last = &s->operands[4];
	struct insn *i;
	uint32_t slot = SLOT_ZERO;

	if (!sg_ptx_operands(p, s, 5))
		return;
	if (op == BIT_BFI)
		slot = sg_ptx_source(p, last, T_U32);
	else if (last->kind != OPERAND_INT || last->value > 255)
		sg_ptx_unsupported(p, s);
	s->operand_count = 4;
	i = emit(p, s, sg_ptx_bit_op((enum bit_op)op, type), type, type, 3);
	if (i)
		i->imm.u = op == BIT_BFI ? slot : last->value;
}

/* Decodes dp4a.atype.btype d, a, b, c, and dp2a.lo and .hi. */
static void decode_dot(struct parser *p, struct statement *s, int op)
{
	bool high = op == DOT_DP2A && sg_ptx_take(s, "hi"),
	     low = op == DOT_DP2A && sg_ptx_take(s, "lo");
	enum ptx_type a = sg_ptx_take_type(s), b = sg_ptx_take_type(s);
	bool fits = (a == T_U32 || a == T_S32) && (b == T_U32 || b == T_S32) &&
		    (op == DOT_DP4A || high != low);
	struct insn *i = emit(p, s, fits ? sg_ptx_dot_op((enum dot_op)op) : NULL, T_B32, T_B32, 3);

	if (i)
		i->imm.u = sg_ptx_dot_imm(a == T_S32, b == T_S32, high);
}

/* Decodes vabsdiff4.dtype.atype.btype{.add} d, a, b, c. */
static void decode_differences(struct parser *p, struct statement *s, int arg)
{
	enum ptx_type d = sg_ptx_take_type(s), a = sg_ptx_take_type(s), b = sg_ptx_take_type(s);
	bool sums = sg_ptx_take(s, "add"), fits = (d == T_U32 || d == T_S32) &&
						  (a == T_U32 || a == T_S32) &&
						  (b == T_U32 || b == T_S32);
	struct insn *i = emit(p, s, fits ? sg_ptx_dot_op(DOT_DIFFERENCES) : NULL, T_B32, T_B32, 3);

	(void)arg;
	if (i)
		i->imm.u = sg_ptx_dot_imm(a == T_S32, b == T_S32, sums);
}

static void decode_szext(struct parser *p, struct statement *s, int arg)
{
	enum ptx_type type = sg_ptx_take_type(s);
	bool wrap = sg_ptx_take(s, "wrap"), clamp = sg_ptx_take(s, "clamp");
	enum dot_op op = wrap            ? type == T_S32 ? DOT_EXTEND_WRAP_S : DOT_EXTEND_WRAP_U
			 : type == T_S32 ? DOT_EXTEND_CLAMP_S
					 : DOT_EXTEND_CLAMP_U;

	(void)arg;
	emit(p, s, wrap != clamp && (type == T_U32 || type == T_S32) ? sg_ptx_dot_op(op) : NULL,
		T_B32, T_B32, 2);
}

static void decode_fns(struct parser *p, struct statement *s, int arg)
{
	(void)arg;
	emit(p, s, sg_ptx_take_type(s) == T_B32 ? sg_ptx_dot_op(DOT_FIND_NTH) : NULL, T_B32, T_B32,
		3);
}

static void decode_testp(struct parser *p, struct statement *s, int arg)
{
	static const char *const names[TEST_N] = {
		"finite", "infinite", "number", "notanumber", "normal", "subnormal"};
	enum ptx_type type = sg_ptx_take_type(s);
	unsigned test = 0;
	struct insn *i;

	(void)arg;
	while (test < TEST_N && !sg_ptx_take(s, names[test]))
		test++;
	i = emit(p, s, test < TEST_N ? sg_ptx_test_op(type) : NULL, type, T_PRED, 1);
	if (i)
		i->imm.u = test;
}

const struct opcode *sg_ptx_opcodes_arith(void)
{
	static const struct opcode table[] = {
		{"add", decode_both, ADD},
		{"sub", decode_both, SUB},
		{"div", decode_both, DIV},
		{"abs", decode_both, ABS},
		{"neg", decode_both, NEG},
		{"min", decode_both, MIN},
		{"max", decode_both, MAX},
		{"mul", decode_mul, false},
		{"mad", decode_mul, true},
		{"addc", decode_carry, CARRY_ADD},
		{"subc", decode_carry, CARRY_SUB},
		{"madc", decode_carry, CARRY_MAD_LO},
		{"fma", decode_float, FLOAT_FMA},
		{"rem", decode_int, INT_REM},
		{"sad", decode_int, INT_SAD},
		{"and", decode_logic, INT_AND},
		{"or", decode_logic, INT_OR},
		{"xor", decode_logic, INT_XOR},
		{"not", decode_logic, INT_NOT},
		{"cnot", decode_logic, INT_CNOT},
		{"shl", decode_shift, INT_SHL},
		{"shr", decode_shift, INT_SHR},
		{"rcp", decode_float, FLOAT_RCP},
		{"sqrt", decode_float, FLOAT_SQRT},
		{"rsqrt", decode_float, FLOAT_RSQRT},
		{"sin", decode_float, FLOAT_SIN},
		{"cos", decode_float, FLOAT_COS},
		{"ex2", decode_float, FLOAT_EX2},
		{"lg2", decode_float, FLOAT_LG2},
		{"tanh", decode_float, FLOAT_TANH},
		{"copysign", decode_float, FLOAT_COPYSIGN},
		{"testp", decode_testp, 0},
		{"popc", decode_bits, BIT_POPC},
		{"clz", decode_bits, BIT_CLZ},
		{"brev", decode_bits, BIT_BREV},
		{"bfe", decode_bits, BIT_BFE},
		{"bfind", decode_bits, BIT_BFIND},
		{"bmsk", decode_bits, BIT_BMSK_CLAMP},
		{"prmt", decode_bits, BIT_PRMT},
		{"shf", decode_shf, 0},
		{"dp4a", decode_dot, DOT_DP4A},
		{"dp2a", decode_dot, DOT_DP2A},
		{"vabsdiff4", decode_differences, 0},
		{"szext", decode_szext, 0},
		{"fns", decode_fns, 0},
		{"mul24", decode_24, false},
		{"mad24", decode_24, true},
		{"bfi", decode_four, BIT_BFI},
		{"lop3", decode_four, BIT_LOP3},
		{NULL, NULL, 0},
	};

	return table;
}
