/* Moves, comparisons, conversions, memory and atomics. */
#include "ptx/parse/parse.h"

static uint32_t element_bits(enum ptx_type type, uint32_t count)
{
	return sg_ptx_type_bytes(type) * 8 / count;
}

/* Decodes mov.b64 d, {a, b} and mov.b64 {d, e}, a. */
static void decode_pack(struct parser *p, struct statement *s, enum ptx_type type)
{
	bool unpack = s->operands[0].kind == OPERAND_VECTOR;
	const struct operand *v = &s->operands[unpack ? 0 : 1];
	enum bit_op op = v->slot_count == 2 ? unpack ? BIT_UNPACK2 : BIT_PACK2
			 : unpack           ? BIT_UNPACK4
					    : BIT_PACK4;
	op_fn fn = sg_ptx_bit_op(op, type);
	uint32_t other;
	struct insn *i;

	if (!fn || (v->slot_count != 2 && v->slot_count != 4) || (unpack && v->is_negated) ||
		element_bits(type, v->slot_count) < 8) {
		sg_ptx_unsupported(p, s);
		return;
	}
	if (!unpack) {
		other = sg_ptx_target(p, &s->operands[0], type);
		i = sg_ptx_emit(p, fn, other, v->slots[0], v->slots[1], v->slots[2]);
	} else {
		other = sg_ptx_source(p, &s->operands[1], type);
		i = v->slot_count == 2
			    ? sg_ptx_emit(p, fn, v->slots[0], other, 0, v->slots[1])
			    : sg_ptx_emit(p, fn, v->slots[0], other, v->slots[1], v->slots[2]);
	}
	if (i)
		i->imm.u = v->slots[3];
}

static void decode_move(struct parser *p, struct statement *s, int arg)
{
	enum ptx_type type = sg_ptx_take_type(s);
	uint32_t a, d;

	(void)arg;
	if (type == T_NONE || !sg_ptx_operands(p, s, 2)) {
		sg_ptx_unsupported(p, s);
		return;
	}
	if (s->operands[0].kind == OPERAND_VECTOR || s->operands[1].kind == OPERAND_VECTOR) {
		decode_pack(p, s, type);
		return;
	}
	a = sg_ptx_source(p, &s->operands[1], type);
	d = sg_ptx_target(p, &s->operands[0], type);
	sg_ptx_emit(p, sg_ptx_move_op(MOVE_COPY), d, a, 0, 0);
}

static const char *const compares[CMP_N] = {
	"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
static const struct {
	const char *name;
	enum compare cmp;
} unsigned_compares[] = {{"lo", CMP_LT}, {"ls", CMP_LE}, {"hi", CMP_GT}, {"hs", CMP_GE}};

static enum compare take_compare(struct statement *s)
{
	for (unsigned n = 0; n < CMP_N; n++) {
		if (sg_ptx_take(s, compares[n]))
			return (enum compare)n;
	}
	for (unsigned n = 0; n < 4; n++) {
		if (sg_ptx_take(s, unsigned_compares[n].name))
			return unsigned_compares[n].cmp;
	}
	return CMP_N;
}

static op_fn take_combine(struct statement *s)
{
	if (sg_ptx_take(s, "and"))
		return sg_ptx_move_op(MOVE_PRED_AND);
	if (sg_ptx_take(s, "or"))
		return sg_ptx_move_op(MOVE_PRED_OR);
	return sg_ptx_take(s, "xor") ? sg_ptx_move_op(MOVE_PRED_XOR) : NULL;
}

/* Compares operands 1 and 2 into d; with .and etc. combines with operand 3; second: the complement
 * (of the comparison, then combined). */
static void emit_compare(
	struct parser *p, struct statement *s, enum ptx_type type, uint32_t d, uint32_t second)
{
	enum compare cmp = take_compare(s);
	op_fn combine = take_combine(s), fn;
	uint32_t a, b, c, raw = d;

	fn = cmp == CMP_N ? NULL : sg_ptx_setp_op(cmp, type, sg_ptx_take(s, "ftz"));
	if (!fn) {
		sg_ptx_unsupported(p, s);
		return;
	}
	if (!sg_ptx_operands(p, s, combine ? 4 : 3))
		return;
	a = sg_ptx_source(p, &s->operands[1], type);
	b = sg_ptx_source(p, &s->operands[2], type);
	c = combine ? sg_ptx_source(p, &s->operands[3], T_PRED) : 0;
	if (combine || second)
		raw = sg_ptx_new_slots(p, 1, T_NONE);
	sg_ptx_emit(p, fn, raw, a, b, 0);
	if (raw == d)
		return;
	if (second) {
		uint32_t inverse = sg_ptx_new_slots(p, 1, T_NONE);

		sg_ptx_emit(p, sg_ptx_move_op(MOVE_PRED_NOT), inverse, raw, 0, 0);
		sg_ptx_emit(
			p, combine ? combine : sg_ptx_move_op(MOVE_COPY), inverse, inverse, c, 0);
		sg_ptx_emit(p, combine ? combine : sg_ptx_move_op(MOVE_COPY), d, raw, c, 0);
		sg_ptx_emit(p, sg_ptx_move_op(MOVE_COPY), second, inverse, 0, 0);
		return;
	}
	sg_ptx_emit(p, combine, d, raw, c, 0);
}

static void decode_setp(struct parser *p, struct statement *s, int arg)
{
	enum ptx_type type = sg_ptx_take_type(s);
	uint32_t d;

	(void)arg;
	if (!s->operand_count) {
		sg_ptx_operands(p, s, 3);
		return;
	}
	if (sg_ptx_is_half(type)) {
		enum compare cmp = take_compare(s);

		sg_ptx_decode_half_setp(p, s, type, cmp, take_combine(s));
		return;
	}
	d = sg_ptx_target(p, &s->operands[0], T_PRED);
	emit_compare(p, s, type, d, s->operands[0].second);
}

/* Decodes set.lt.u32.f32 and the like, whose result is all ones or 1.0f. */
static void decode_set(struct parser *p, struct statement *s, int arg)
{
	enum ptx_type to = sg_ptx_take_type(s), type = sg_ptx_take_type(s);
	uint32_t d, raw;

	(void)arg;
	if (sg_ptx_is_half(type)) {
		enum compare cmp = take_compare(s);

		sg_ptx_decode_half_set(p, s, to, type, cmp, take_combine(s));
		return;
	}
	raw = sg_ptx_new_slots(p, 1, T_NONE);
	if (!s->operand_count || (to != T_U32 && to != T_S32 && to != T_F32)) {
		sg_ptx_unsupported(p, s);
		return;
	}
	emit_compare(p, s, type, raw, 0);
	d = sg_ptx_target(p, &s->operands[0], to);
	sg_ptx_emit(p, sg_ptx_move_op(to == T_F32 ? MOVE_MASK_FLOAT : MOVE_MASK), d, raw, 0, 0);
}

static void decode_select(struct parser *p, struct statement *s, int is_slct)
{
	enum ptx_type type = sg_ptx_take_type(s), sign = is_slct ? sg_ptx_take_type(s) : T_PRED;
	enum move_op op = !is_slct        ? MOVE_SELECT
			  : sign == T_F32 ? MOVE_SELECT_SIGN_F32
					  : MOVE_SELECT_SIGN_S32;
	uint32_t a, b, c, d;

	if (is_slct)
		sg_ptx_take(s, "ftz");
	if (type == T_NONE || type == T_PRED || (is_slct && sign != T_F32 && sign != T_S32)) {
		sg_ptx_unsupported(p, s);
		return;
	}
	if (!sg_ptx_operands(p, s, 4))
		return;
	a = sg_ptx_source(p, &s->operands[1], type);
	b = sg_ptx_source(p, &s->operands[2], type);
	c = sg_ptx_source(p, &s->operands[3], sign);
	d = sg_ptx_target(p, &s->operands[0], type);
	sg_ptx_emit(p, sg_ptx_move_op(op), d, a, b, c);
}

static bool is_float(enum ptx_type type)
{
	return type == T_F32 || type == T_F64 || type == T_F16 || type == T_BF16;
}

static enum cvt_rounding take_cvt_rounding(struct statement *s)
{
	static const char *const names[CVT_N] = {
		"rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi"};

	for (unsigned n = 0; n < CVT_N; n++) {
		if (sg_ptx_take(s, names[n]))
			return (enum cvt_rounding)n;
	}
	return CVT_RN;
}

/* Decodes cvt.rna.tf32.f32, whose result is single precision with 10 bits of mantissa. */
static void decode_tf32(struct parser *p, struct statement *s, enum ptx_type from)
{
	enum cvt_rounding rounding = sg_ptx_take(s, "rna") ? CVT_N : take_cvt_rounding(s);
	uint32_t a, d;
	struct insn *i;

	if (from != T_F32 || (rounding != CVT_N && rounding != CVT_RN && rounding != CVT_RZ)) {
		sg_ptx_unsupported(p, s);
		return;
	}
	if (!sg_ptx_operands(p, s, 2))
		return;
	a = sg_ptx_source(p, &s->operands[1], T_F32);
	d = sg_ptx_target(p, &s->operands[0], T_B32);
	i = sg_ptx_emit(p, sg_ptx_tf32_op(), d, a, 0, 0);
	if (i)
		i->imm.u = rounding;
}

static void decode_cvt(struct parser *p, struct statement *s, int arg)
{
	enum ptx_type to = sg_ptx_take_type(s), from = sg_ptx_take_type(s);
	enum cvt_rounding rounding;
	bool flush, saturate, relu, plain;
	uint32_t a, d;
	struct insn *i;
	op_fn fn;

	(void)arg;
	if (sg_ptx_take(s, "tf32")) {
		decode_tf32(p, s, to);
		return;
	}
	if (to == T_F16X2 || to == T_BF16X2) {
		sg_ptx_decode_half_pack(p, s, to, from);
		return;
	}
	rounding = take_cvt_rounding(s);
	flush = sg_ptx_take(s, "ftz");
	saturate = sg_ptx_take(s, "sat");
	relu = (to == T_F16 || to == T_BF16) && sg_ptx_take(s, "relu");
	plain = !is_float(to) && !is_float(from) && !saturate;
	if (to == T_NONE || from == T_NONE || to >= T_PRED || from >= T_PRED || from == T_F16X2 ||
		from == T_BF16X2 || (to >= T_B8 && to <= T_B64) ||
		(from >= T_B8 && from <= T_B64)) {
		sg_ptx_unsupported(p, s);
		return;
	}
	if (!sg_ptx_operands(p, s, 2))
		return;
	fn = plain ? sg_ptx_extend_op(sg_ptx_type_bytes(to) > sg_ptx_type_bytes(from) ? from : to)
		   : sg_ptx_cvt_op(rounding);
	a = sg_ptx_source(p, &s->operands[1], from);
	d = sg_ptx_target(p, &s->operands[0], to);
	i = sg_ptx_emit(p, fn, d, a, 0, 0);
	if (i && !plain)
		i->imm.u = sg_ptx_cvt_imm(to, from, rounding, flush, saturate, relu);
}

static enum ptx_space take_space(struct statement *s, bool *ret_constant)
{
	*ret_constant = false;
	if (sg_ptx_take(s, "global"))
		return SPACE_GLOBAL;
	if (sg_ptx_take(s, "shared") || sg_ptx_take(s, "shared::cta") ||
		sg_ptx_take(s, "shared::cluster"))
		return SPACE_SHARED;
	if (sg_ptx_take(s, "local"))
		return SPACE_LOCAL;
	if (sg_ptx_take(s, "param") || sg_ptx_take(s, "param::entry") ||
		sg_ptx_take(s, "param::func"))
		return SPACE_PARAM;
	*ret_constant = sg_ptx_take(s, "const");
	return *ret_constant ? SPACE_GLOBAL : SPACE_GENERIC;
}

/* Global addresses are generic ones; the others live in their windows. */
static int64_t window_of(const struct parser *p, enum ptx_space space)
{
	switch (space) {
	case SPACE_SHARED: return (int64_t)SG_PTX_WINDOW_SHARED;
	case SPACE_LOCAL: return (int64_t)SG_PTX_WINDOW_LOCAL;
	case SPACE_PARAM:
		return (int64_t)(p->b.f->is_entry ? SG_PTX_WINDOW_PARAM : SG_PTX_WINDOW_LOCAL);
	default: return 0;
	}
}

static void decode_cvta(struct parser *p, struct statement *s, int arg)
{
	bool to = sg_ptx_take(s, "to"), constant;
	enum ptx_space space = take_space(s, &constant);
	enum ptx_type type = sg_ptx_take_type(s);
	int64_t window = window_of(p, space);
	uint32_t a, d;
	struct insn *i;

	(void)arg;
	if (type != T_U64 || space == SPACE_GENERIC) {
		sg_ptx_unsupported(p, s);
		return;
	}
	if (!sg_ptx_operands(p, s, 2))
		return;
	a = sg_ptx_source(p, &s->operands[1], type);
	d = sg_ptx_target(p, &s->operands[0], type);
	i = sg_ptx_emit(p, sg_ptx_move_op(MOVE_ADD), d, a, 0, 0);
	if (i)
		i->imm.s = to ? -window : window;
}

static void decode_isspacep(struct parser *p, struct statement *s, int arg)
{
	bool constant;
	enum ptx_space space = take_space(s, &constant);
	uint32_t a, d;
	struct insn *i;

	(void)arg;
	if (constant || space == SPACE_GENERIC) {
		sg_ptx_unsupported(p, s);
		return;
	}
	if (!sg_ptx_operands(p, s, 2))
		return;
	a = sg_ptx_source(p, &s->operands[1], T_U64);
	d = sg_ptx_target(p, &s->operands[0], T_PRED);
	i = sg_ptx_emit(p, sg_ptx_move_op(MOVE_WINDOW), d, a, 0, 0);
	if (i)
		i->imm.u = space;
}

/* Orders, scopes and cache hints: threads run one at a time on the host's own order, so none of
 * them changes what a thread sees. */
static void take_hints(struct statement *s)
{
	static const char *const names[] = {"volatile", "relaxed", "acquire", "release", "acq_rel",
		"weak", "mmio", "cta", "cluster", "gpu", "sys", "nc", "ca", "cg", "cs", "lu", "cv",
		"wb", "wt", "L1::evict_normal", "L1::evict_unchanged", "L1::evict_first",
		"L1::evict_last", "L1::no_allocate", "L2::64B", "L2::128B", "L2::256B",
		"L2::evict_normal", "L2::evict_first", "L2::evict_last", "unified", "noftz"};

	for (unsigned n = 0; n < sizeof(names) / sizeof(names[0]); n++)
		sg_ptx_take(s, names[n]);
	/* The policy is the last operand. */
	if (sg_ptx_take(s, "L2::cache_hint") && s->operand_count)
		s->operand_count--;
}

static unsigned take_vector(struct statement *s)
{
	return sg_ptx_take(s, "v2") ? 2 : sg_ptx_take(s, "v4") ? 4 : 1;
}

/* The registers that a load fills or a store reads. */
static bool value_slots(struct parser *p, struct statement *s, const struct operand *o,
	enum ptx_type type, unsigned vector, bool is_store, uint32_t slots[4])
{
	if (vector == 1 && o->kind != OPERAND_VECTOR) {
		slots[0] = is_store ? sg_ptx_source(p, o, type) : sg_ptx_target(p, o, type);
		return !p->failed;
	}
	if (o->kind != OPERAND_VECTOR || o->slot_count != vector || (!is_store && o->is_negated)) {
		sg_ptx_unsupported(p, s);
		return false;
	}
	for (unsigned n = 0; n < vector; n++)
		slots[n] = o->slots[n];
	return true;
}

static void decode_memory(struct parser *p, struct statement *s, int is_store)
{
	unsigned vector = take_vector(s);
	enum ptx_type type = sg_ptx_take_type(s);
	uint32_t slots[4] = {0}, a;
	enum ptx_space space;
	struct insn *i;
	int32_t offset;
	bool constant;
	op_fn fn;

	take_hints(s);
	space = take_space(s, &constant);
	if (type == T_NONE || type == T_PRED || sg_ptx_is_half(type) || (constant && is_store)) {
		sg_ptx_unsupported(p, s);
		return;
	}
	if (!sg_ptx_operands(p, s, 2) ||
		!value_slots(p, s, &s->operands[is_store ? 1 : 0], type, vector, is_store, slots))
		return;
	a = sg_ptx_address(p, &s->operands[is_store ? 0 : 1], &space,
		sg_ptx_type_bytes(type) * vector, &offset);
	fn = is_store ? sg_ptx_store_op(space, type, vector) : sg_ptx_load_op(space, type, vector);
	i = sg_ptx_emit(p, fn, slots[0], a, slots[1], slots[2]);
	if (i)
		i->imm.u = (uint32_t)offset | (uint64_t)slots[3] << 32;
}

static const char *const atomics[ATOMIC_N] = {
	"add", "min", "max", "exch", "cas", "and", "or", "xor", "inc", "dec"};

/* Emits one element of an atomic: element `index` of the value, the old value to d. */
static void emit_atomic(struct parser *p, const struct operand *value, op_fn fn, uint32_t d,
	uint32_t a, uint64_t imm, uint32_t index)
{
	enum ptx_type type = imm >> 40 & 0xff;
	uint32_t c = 0, b = value->kind == OPERAND_VECTOR ? value->slots[index]
							  : sg_ptx_source(p, value, type);
	struct insn *i;

	if ((enum atomic_op)(imm >> 32 & 0xff) == ATOMIC_CAS)
		c = sg_ptx_source(p, value + 1, type);
	i = sg_ptx_emit(p, fn, d, a, b, c);
	if (i)
		i->imm.u = imm;
}

static bool is_vector_of(const struct operand *o, unsigned count)
{
	return count > 1 ? o->kind == OPERAND_VECTOR && o->slot_count == count
			 : o->kind != OPERAND_VECTOR;
}

/* Decodes atom and red. PTX defines a vector as one atomic operation for each of its elements. */
static void decode_atomic(struct parser *p, struct statement *s, int is_red)
{
	unsigned vector = take_vector(s);
	enum ptx_type type = sg_ptx_take_type(s);
	uint32_t a, d = SLOT_SCRAP, first = is_red ? 0 : 1;
	enum ptx_space space;
	unsigned op = 0;
	int32_t offset;
	bool constant;
	op_fn fn;

	take_hints(s);
	space = take_space(s, &constant);
	while (op < ATOMIC_N && !sg_ptx_take(s, atomics[op]))
		op++;
	if (op == ATOMIC_N || constant || !sg_ptx_atomic_op(space, (enum atomic_op)op, type) ||
		(is_red && (op == ATOMIC_CAS || op == ATOMIC_EXCH)) ||
		(vector > 1 && op != ATOMIC_ADD)) {
		sg_ptx_unsupported(p, s);
		return;
	}
	if (!sg_ptx_operands(p, s, first + (op == ATOMIC_CAS ? 3 : 2)))
		return;
	a = sg_ptx_address(
		p, &s->operands[first], &space, sg_ptx_type_bytes(type) * vector, &offset);
	fn = sg_ptx_atomic_op(space, (enum atomic_op)op, type);
	if (!p->failed &&
		(!fn || !is_vector_of(&s->operands[first + 1], vector) ||
			(!is_red && (!is_vector_of(&s->operands[0], vector) ||
					    (vector > 1 && s->operands[0].is_negated))))) {
		sg_ptx_unsupported(p, s);
		return;
	}
	/*
	 * A register may be both a value and a result, so the results are copied after all of them
	 * are there.
	 */
	if (!is_red)
		d = vector > 1 ? sg_ptx_new_slots(p, vector, T_NONE)
			       : sg_ptx_target(p, &s->operands[0], type);
	for (uint32_t n = 0; n < vector; n++)
		emit_atomic(p, &s->operands[first + 1], fn, is_red ? d : d + n, a,
			sg_ptx_atomic_imm(offset + (int32_t)(n * sg_ptx_type_bytes(type)),
				(enum atomic_op)op, type),
			n);
	for (uint32_t n = 0; n < vector && vector > 1 && !is_red; n++)
		sg_ptx_emit(p, sg_ptx_move_op(MOVE_COPY), s->operands[0].slots[n], d + n, 0, 0);
}

/* Decodes the creation of a cache policy, which has no effect here: no cache is modelled. */
static void decode_policy(struct parser *p, struct statement *s, int arg)
{
	(void)arg;
	for (uint32_t n = 0; n < s->modifier_count; n++)
		s->modifiers[n].is_taken = true;
	if (s->operand_count < 1) {
		sg_ptx_unsupported(p, s);
		return;
	}
	sg_ptx_emit(p, sg_ptx_move_op(MOVE_COPY), sg_ptx_target(p, &s->operands[0], T_B64),
		SLOT_ZERO, 0, 0);
}

/* Decodes prefetch hints, which have no effect here. */
static void decode_prefetch(struct parser *p, struct statement *s, int arg)
{
	bool constant;

	(void)arg;
	take_space(s, &constant);
	if (!sg_ptx_take(s, "L1") && !sg_ptx_take(s, "L2"))
		sg_ptx_unsupported(p, s);
	sg_ptx_emit(p, sg_ptx_control_op(CONTROL_NOP), 0, 0, 0, 0);
}

const struct opcode *sg_ptx_opcodes_data(void)
{
	static const struct opcode table[] = {
		{"ld", decode_memory, false},
		{"ldu", decode_memory, false},
		{"st", decode_memory, true},
		{"mov", decode_move, 0},
		{"setp", decode_setp, 0},
		{"set", decode_set, 0},
		{"selp", decode_select, false},
		{"slct", decode_select, true},
		{"cvt", decode_cvt, 0},
		{"cvta", decode_cvta, 0},
		{"isspacep", decode_isspacep, 0},
		{"atom", decode_atomic, false},
		{"red", decode_atomic, true},
		{"prefetch", decode_prefetch, 0},
		{"createpolicy", decode_policy, 0},
		{NULL, NULL, 0},
	};

	return table;
}
