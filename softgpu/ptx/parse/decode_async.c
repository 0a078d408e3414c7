/* Decodes cp.async and mbarrier; ops_async.c describes their effect. */
#include "ptx/parse/parse.h"

static void take_order(struct statement *s)
{
	static const char *const names[] = {"relaxed", "acquire", "release", "cta", "cluster"};

	for (unsigned n = 0; n < sizeof(names) / sizeof(names[0]); n++)
		sg_ptx_take(s, names[n]);
}

static bool take_shared(struct statement *s)
{
	return sg_ptx_take(s, "shared::cta") || sg_ptx_take(s, "shared") ||
	       sg_ptx_take(s, "shared::cluster");
}

static void emit_nop(struct parser *p)
{
	sg_ptx_emit(p, sg_ptx_control_op(CONTROL_NOP), 0, 0, 0, 0);
}

/* The mbarrier that operand o names; its offset, and flag, go to the immediate. */
static void emit_barrier(struct parser *p, const struct operand *o, enum async_op op, uint32_t d,
	uint32_t b, uint32_t c, bool flag)
{
	enum ptx_space space = o->base == OPERAND_SYMBOL ? SPACE_SHARED : SPACE_GENERIC;
	int32_t offset;
	uint32_t a = sg_ptx_address(p, o, &space, 8, &offset);
	struct insn *i = sg_ptx_emit(p, sg_ptx_async_op(op), d, a, b, c);

	if (i)
		i->imm.u = (uint32_t)offset | (uint64_t)flag << 32;
}

/* Emits a copy with the slots and offsets of its operands [to], [from]. */
static struct insn *emit_copy(struct parser *p, const struct statement *s, enum async_op op,
	uint32_t d, uint32_t c, uint32_t bytes)
{
	enum ptx_space to = op == ASYNC_BULK_OUT ? SPACE_GLOBAL : SPACE_SHARED;
	enum ptx_space from = op == ASYNC_BULK_OUT ? SPACE_SHARED : SPACE_GLOBAL;
	int32_t to_offset, from_offset;
	uint32_t a = sg_ptx_address(p, &s->operands[0], &to, bytes, &to_offset);
	uint32_t b = sg_ptx_address(p, &s->operands[1], &from, bytes, &from_offset);
	struct insn *i = sg_ptx_emit(p, sg_ptx_async_op(op), d, a, b, c);

	if (i)
		i->imm.u = (uint32_t)to_offset | (uint64_t)(uint32_t)from_offset << 32;
	return i;
}

/*
 * Decodes cp.async.bulk: from global memory, with an mbarrier that counts bytes; or to global
 * memory, in a group.
 */
static void decode_bulk(struct parser *p, struct statement *s)
{
	bool has_hint = sg_ptx_take(s, "L2::cache_hint"), is_in;
	uint32_t operands, size;

	if (sg_ptx_take(s, "commit_group") || sg_ptx_take(s, "wait_group")) {
		sg_ptx_take(s, "read");
		emit_nop(p);
		return;
	}
	if (sg_ptx_take(s, "prefetch")) {
		sg_ptx_take(s, "L2");
		sg_ptx_take(s, "global");
		if (sg_ptx_operands(p, s, 2 + (has_hint || sg_ptx_take(s, "L2::cache_hint")))) {
			size = sg_ptx_source(p, &s->operands[1], T_U32);
			sg_ptx_emit(p, sg_ptx_async_op(ASYNC_BULK_PREFETCH), 0, 0, 0, size);
		}
		return;
	}
	is_in = sg_ptx_take(s, "mbarrier::complete_tx::bytes");
	if (!sg_ptx_take(s, "global") || !take_shared(s) || is_in == sg_ptx_take(s, "bulk_group")) {
		sg_ptx_unsupported(p, s);
		return;
	}
	operands = is_in ? 4 : 3;
	if (!sg_ptx_operands(p, s, operands + has_hint))
		return;
	size = sg_ptx_source(p, &s->operands[2], T_U32);
	emit_copy(p, s, is_in ? ASYNC_BULK_IN : ASYNC_BULK_OUT, 0, size, 16);
	if (is_in)
		emit_barrier(p, &s->operands[3], ASYNC_BYTES, 0, size, 0, true);
}

/*
 * Decodes cp.async.ca.shared.global [to], [from], size {, source size or a predicate to ignore
 * it}{, policy}.
 */
static void decode_copy(struct parser *p, struct statement *s)
{
	static const char *const hints[] = {"ca", "cg", "L2::64B", "L2::128B", "L2::256B"};
	bool has_hint = sg_ptx_take(s, "L2::cache_hint");
	const struct operand *size = &s->operands[2], *given = &s->operands[3];
	uint32_t c;

	for (unsigned n = 0; n < sizeof(hints) / sizeof(hints[0]); n++)
		sg_ptx_take(s, hints[n]);
	if (!take_shared(s) || !sg_ptx_take(s, "global") || s->operand_count < 3u + has_hint ||
		s->operand_count > 4u + has_hint || size->kind != OPERAND_INT ||
		(size->value != 4 && size->value != 8 && size->value != 16)) {
		sg_ptx_unsupported(p, s);
		return;
	}
	if (s->operand_count == 3u + has_hint) {
		c = sg_ptx_constant(p, size->value);
	} else if (given->kind == OPERAND_SLOT && given->type == T_PRED) {
		uint32_t ignore = sg_ptx_source(p, given, T_PRED);

		c = sg_ptx_new_slots(p, 1, T_NONE);
		sg_ptx_emit(p, sg_ptx_move_op(MOVE_SELECT), c, SLOT_ZERO,
			sg_ptx_constant(p, size->value), ignore);
	} else {
		c = sg_ptx_source(p, given, T_U32);
	}
	emit_copy(p, s, ASYNC_COPY, (uint32_t)size->value, c, (uint32_t)size->value);
}

static void decode_cp(struct parser *p, struct statement *s, int arg)
{
	(void)arg;
	if (!sg_ptx_take(s, "async")) {
		sg_ptx_unsupported(p, s);
	} else if (sg_ptx_take(s, "bulk")) {
		decode_bulk(p, s);
	} else if (sg_ptx_take(s, "commit_group") || sg_ptx_take(s, "wait_group") ||
		   sg_ptx_take(s, "wait_all")) {
		emit_nop(p);
	} else if (sg_ptx_take(s, "mbarrier") && sg_ptx_take(s, "arrive")) {
		bool arrives = sg_ptx_take(s, "noinc");

		/* Without .noinc, one more arrival is expected, and it is made at once. */
		take_shared(s);
		sg_ptx_take_type(s);
		if (sg_ptx_operands(p, s, 1))
			emit_barrier(p, &s->operands[0], ASYNC_ARRIVE, SLOT_SCRAP,
				arrives ? sg_ptx_constant(p, 1) : SLOT_ZERO, SLOT_ZERO, false);
	} else {
		decode_copy(p, s);
	}
}

/* Decodes the operands [state | _,] [barrier] [, count or bytes]. */
static void decode_arrive(struct parser *p, struct statement *s, bool drops)
{
	bool expects = sg_ptx_take(s, "expect_tx");
	bool has_state = s->operand_count && s->operands[0].kind != OPERAND_ADDRESS;
	const struct operand *o = &s->operands[has_state];
	uint32_t d = SLOT_SCRAP, n, one = sg_ptx_constant(p, 1);

	sg_ptx_take(s, "noComplete");
	if (s->operand_count < 1u + has_state + expects || s->operand_count > 2u + has_state) {
		sg_ptx_unsupported(p, s);
		return;
	}
	n = s->operand_count == 2u + has_state ? sg_ptx_source(p, o + 1, T_U32) : one;
	if (has_state)
		d = sg_ptx_target(p, &s->operands[0], T_B64);
	emit_barrier(p, o, ASYNC_ARRIVE, d, expects ? one : n, expects ? n : SLOT_ZERO, drops);
}

static void decode_test(struct parser *p, struct statement *s)
{
	bool is_parity = sg_ptx_take(s, "parity");
	uint32_t b;

	if (s->operand_count != 4 && !sg_ptx_operands(p, s, 3))
		return; /* the fourth operand, how long it may wait, is ignored */
	b = sg_ptx_source(p, &s->operands[2], is_parity ? T_U32 : T_B64);
	emit_barrier(p, &s->operands[1], ASYNC_TEST, sg_ptx_target(p, &s->operands[0], T_PRED), b,
		SLOT_ZERO, is_parity);
}

static void decode_mbarrier(struct parser *p, struct statement *s, int arg)
{
	bool come = false;

	(void)arg;
	take_order(s);
	take_shared(s);
	if (sg_ptx_take_type(s) != T_B64)
		sg_ptx_unsupported(p, s);
	if (sg_ptx_take(s, "init")) {
		if (sg_ptx_operands(p, s, 2))
			emit_barrier(p, &s->operands[0], ASYNC_INIT, 0,
				sg_ptx_source(p, &s->operands[1], T_U32), 0, false);
	} else if (sg_ptx_take(s, "inval")) {
		if (sg_ptx_operands(p, s, 1))
			emit_barrier(p, &s->operands[0], ASYNC_INVALIDATE, 0, 0, 0, false);
	} else if (sg_ptx_take(s, "arrive")) {
		decode_arrive(p, s, false);
	} else if (sg_ptx_take(s, "arrive_drop")) {
		decode_arrive(p, s, true);
	} else if (sg_ptx_take(s, "test_wait") || sg_ptx_take(s, "try_wait")) {
		decode_test(p, s);
	} else if (sg_ptx_take(s, "expect_tx") || (come = sg_ptx_take(s, "complete_tx"))) {
		if (sg_ptx_operands(p, s, 2))
			emit_barrier(p, &s->operands[0], ASYNC_BYTES, 0,
				sg_ptx_source(p, &s->operands[1], T_U32), 0, come);
	} else if (sg_ptx_take(s, "pending_count")) {
		if (sg_ptx_operands(p, s, 2))
			sg_ptx_emit(p, sg_ptx_async_op(ASYNC_PENDING),
				sg_ptx_target(p, &s->operands[0], T_U32),
				sg_ptx_source(p, &s->operands[1], T_B64), 0, 0);
	} else {
		sg_ptx_unsupported(p, s);
	}
}

const struct opcode *sg_ptx_opcodes_async(void)
{
	static const struct opcode table[] = {
		{"cp", decode_cp, 0},
		{"mbarrier", decode_mbarrier, 0},
		{NULL, NULL, 0},
	};

	return table;
}
