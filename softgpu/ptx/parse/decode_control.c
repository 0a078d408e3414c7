/*
 * Decodes branches, calls, barriers, warp operations, and instructions that end or delay a thread.
 */
#include <stdlib.h>

#include "ptx/parse/parse.h"

static void decode_branch(struct parser *p, struct statement *s, int arg)
{
	(void)arg;
	sg_ptx_take(s, "uni");
	if (!sg_ptx_operands(p, s, 1))
		return;
	if (s->operands[0].kind != OPERAND_NAME) {
		sg_ptx_unsupported(p, s);
		return;
	}
	if (sg_ptx_emit(p, sg_ptx_control_op(CONTROL_BRANCH), 0, 0, 0, 0))
		sg_ptx_fix(p, p->b.f->insn_count - 1, &s->operands[0], 0);
}

/* Decodes brx.idx a, table, into one branch for each of the table's labels. */
static void decode_indexed(struct parser *p, struct statement *s, int arg)
{
	const struct operand *name = &s->operands[1];
	const struct table *table = NULL;
	uint32_t at = p->b.f->insn_count, count = 0;
	struct parser list;

	(void)arg;
	sg_ptx_take(s, "uni");
	if (!sg_ptx_take(s, "idx")) {
		sg_ptx_unsupported(p, s);
		return;
	}
	if (!sg_ptx_operands(p, s, 2))
		return;
	for (uint32_t n = 0; n < p->b.table_count; n++) {
		if (p->b.tables[n].len == name->len &&
			!memcmp(p->b.tables[n].at, name->at, name->len))
			table = &p->b.tables[n];
	}
	if (!table || name->kind != OPERAND_NAME) {
		sg_ptx_fail(p, s->line, "table \"%.*s\" is not defined", (int)name->len, name->at);
		return;
	}
	sg_ptx_emit(p, sg_ptx_control_op(CONTROL_JUMP), 0, sg_ptx_source(p, &s->operands[0], T_U32),
		0, 0);
	list.lex = table->list;
	while (!p->failed && list.lex.now.kind == TOKEN_NAME) {
		struct operand label = {.at = list.lex.now.at, .len = list.lex.now.len};

		if (sg_ptx_emit(p, sg_ptx_control_op(CONTROL_BRANCH), 0, 0, 0, 0))
			sg_ptx_fix(p, p->b.f->insn_count - 1, &label, 0);
		count++;
		sg_ptx_lexer_next(&list.lex);
		if (!sg_ptx_token_is(&list.lex.now, ','))
			break;
		sg_ptx_lexer_next(&list.lex);
	}
	if (!p->failed)
		p->b.f->insns[at].imm.u = count;
}

/* Decodes a hint, which permits something and requires nothing. */
static void decode_hint(struct parser *p, struct statement *s, int arg)
{
	static const char *const names[] = {"launch_dependents", "wait", "inc", "dec", "sync",
		"aligned", "u32", "global", "L2", "L2::evict_normal"};

	(void)arg;
	for (unsigned n = 0; n < sizeof(names) / sizeof(names[0]); n++)
		sg_ptx_take(s, names[n]);
	sg_ptx_emit(p, sg_ptx_control_op(CONTROL_NOP), 0, 0, 0, 0);
}

static void decode_plain(struct parser *p, struct statement *s, int op)
{
	if (op == CONTROL_RETURN)
		sg_ptx_take(s, "uni");
	if (sg_ptx_operands(p, s, 0))
		sg_ptx_emit(p, sg_ptx_control_op((enum control_op)op), 0, 0, 0, 0);
}

/* Threads run one at a time, in the host's order, so a fence has nothing to order. */
static void decode_fence(struct parser *p, struct statement *s, int arg)
{
	static const char *const names[] = {"cta", "gl", "sys", "gpu", "cluster", "sc", "acq_rel",
		"acquire", "release", "mbarrier_init", "proxy", "alias", "async", "async::generic",
		"sync_restrict::shared::cta", "sync_restrict::shared::cluster", "global",
		"shared::cta", "shared::cluster"};

	(void)arg;
	for (unsigned n = 0; n < sizeof(names) / sizeof(names[0]); n++)
		sg_ptx_take(s, names[n]);
	decode_plain(p, s, CONTROL_NOP);
}

static void decode_nanosleep(struct parser *p, struct statement *s, int arg)
{
	uint32_t a;

	(void)arg;
	if (sg_ptx_take_type(s) != T_U32) {
		sg_ptx_unsupported(p, s);
		return;
	}
	if (!sg_ptx_operands(p, s, 1))
		return;
	a = sg_ptx_source(p, &s->operands[0], T_U32);
	sg_ptx_emit(p, sg_ptx_control_op(CONTROL_NANOSLEEP), 0, a, 0, 0);
}

static void emit_barrier(
	struct parser *p, enum barrier_op op, uint32_t d, uint32_t a, uint32_t b, uint32_t c)
{
	struct insn *i = sg_ptx_emit(p, sg_ptx_control_op(CONTROL_BARRIER), d, a, b, c);

	if (i)
		i->imm.u = op;
}

static void emit_warp(struct parser *p, enum warp_op op, uint32_t d, const uint32_t sources[3],
	uint32_t second, uint32_t mask)
{
	struct insn *i = sg_ptx_emit(
		p, sg_ptx_control_op(CONTROL_WARP), d, sources[0], sources[1], sources[2]);

	if (i)
		i->imm.u = sg_ptx_warp_imm(op, second, mask);
}

/* Decodes bar.red.op d, a [, b], [!]c. */
static void decode_reduction(struct parser *p, struct statement *s)
{
	enum ptx_type type = sg_ptx_take_type(s);
	enum barrier_op op = sg_ptx_take(s, "popc")  ? BARRIER_POPC
			     : sg_ptx_take(s, "and") ? BARRIER_AND
			     : sg_ptx_take(s, "or")  ? BARRIER_OR
						     : BARRIER_N;
	uint32_t last = s->operand_count - 1, a, b = SLOT_ZERO, c, d;

	if (op == BARRIER_N || type != (op == BARRIER_POPC ? T_U32 : T_PRED) ||
		s->operand_count < 3 || s->operand_count > 4) {
		sg_ptx_unsupported(p, s);
		return;
	}
	a = sg_ptx_source(p, &s->operands[1], T_U32);
	if (last == 3)
		b = sg_ptx_source(p, &s->operands[2], T_U32);
	c = sg_ptx_source(p, &s->operands[last], T_PRED);
	d = sg_ptx_target(p, &s->operands[0], type);
	emit_barrier(p, op, d, a, b, c);
}

static void decode_barrier(struct parser *p, struct statement *s, int arg)
{
	bool sync = sg_ptx_take(s, "sync"), arrive = sg_ptx_take(s, "arrive");
	uint32_t a, b = SLOT_ZERO;

	(void)arg;
	sg_ptx_take(s, "cta");
	sg_ptx_take(s, "aligned");
	if (sg_ptx_take(s, "red")) {
		decode_reduction(p, s);
		return;
	}
	if (sync && sg_ptx_take(s, "warp")) {
		if (sg_ptx_operands(p, s, 1))
			emit_warp(p, WARP_BAR, SLOT_SCRAP, (uint32_t[3]){0}, SLOT_SCRAP,
				sg_ptx_source(p, &s->operands[0], T_U32));
		return;
	}
	if (sync == arrive || s->operand_count < (arrive ? 2u : 1u) || s->operand_count > 2) {
		sg_ptx_unsupported(p, s);
		return;
	}
	a = sg_ptx_source(p, &s->operands[0], T_U32);
	if (s->operand_count == 2)
		b = sg_ptx_source(p, &s->operands[1], T_U32);
	emit_barrier(p, arrive ? BARRIER_ARRIVE : BARRIER_SYNC, SLOT_SCRAP, a, b, SLOT_ZERO);
}

/* Emits an instruction with the operands d[|p], sources, mask. */
static void emit_lanes(struct parser *p, struct statement *s, enum warp_op op, enum ptx_type type,
	enum ptx_type to, uint32_t sources)
{
	uint32_t slots[3] = {0}, second = SLOT_SCRAP, mask, d;

	if (!sg_ptx_operands(p, s, sources + 2))
		return;
	for (uint32_t n = 0; n < sources; n++)
		slots[n] = sg_ptx_source(p, &s->operands[n + 1], n ? T_B32 : type);
	mask = sg_ptx_source(p, &s->operands[sources + 1], T_B32);
	d = sg_ptx_target(p, &s->operands[0], to);
	if (s->operands[0].second)
		second = s->operands[0].second;
	emit_warp(p, op, d, slots, second, mask);
}

static enum warp_op take_warp_op(
	struct statement *s, const char *const *names, const enum warp_op *ops)
{
	for (; *names; names++, ops++) {
		if (sg_ptx_take(s, *names))
			return *ops;
	}
	return WARP_N;
}

static void decode_shfl(struct parser *p, struct statement *s, int arg)
{
	static const char *const names[] = {"up", "down", "bfly", "idx", NULL};
	static const enum warp_op ops[] = {
		WARP_SHFL_UP, WARP_SHFL_DOWN, WARP_SHFL_BFLY, WARP_SHFL_IDX};
	enum ptx_type type = sg_ptx_take_type(s);
	enum warp_op op = take_warp_op(s, names, ops);

	(void)arg;
	if (!sg_ptx_take(s, "sync") || op == WARP_N || type != T_B32)
		sg_ptx_unsupported(p, s);
	else
		emit_lanes(p, s, op, T_B32, T_B32, 3);
}

static void decode_vote(struct parser *p, struct statement *s, int arg)
{
	static const char *const names[] = {"all", "any", "uni", "ballot", NULL};
	static const enum warp_op ops[] = {
		WARP_VOTE_ALL, WARP_VOTE_ANY, WARP_VOTE_UNI, WARP_VOTE_BALLOT};
	enum ptx_type type = sg_ptx_take_type(s);
	enum warp_op op = take_warp_op(s, names, ops);

	(void)arg;
	if (!sg_ptx_take(s, "sync") || op == WARP_N ||
		type != (op == WARP_VOTE_BALLOT ? T_B32 : T_PRED))
		sg_ptx_unsupported(p, s);
	else
		emit_lanes(p, s, op, T_PRED, type, 1);
}

static void decode_match(struct parser *p, struct statement *s, int arg)
{
	enum ptx_type type = sg_ptx_take_type(s);
	bool any = sg_ptx_take(s, "any"), all = sg_ptx_take(s, "all");
	enum warp_op op = any             ? type == T_B64 ? WARP_MATCH_ANY_64 : WARP_MATCH_ANY_32
			  : type == T_B64 ? WARP_MATCH_ALL_64
					  : WARP_MATCH_ALL_32;

	(void)arg;
	if (!sg_ptx_take(s, "sync") || any == all || (type != T_B32 && type != T_B64))
		sg_ptx_unsupported(p, s);
	else
		emit_lanes(p, s, op, type, T_B32, 1);
}

static void decode_redux(struct parser *p, struct statement *s, int arg)
{
	static const char *const names[] = {"add", "and", "or", "xor", "min", "max", NULL};
	static const enum warp_op unsigned_ops[] = {WARP_REDUX_ADD, WARP_REDUX_AND, WARP_REDUX_OR,
		WARP_REDUX_XOR, WARP_REDUX_MIN_U, WARP_REDUX_MAX_U};
	static const enum warp_op signed_ops[] = {WARP_REDUX_ADD, WARP_REDUX_AND, WARP_REDUX_OR,
		WARP_REDUX_XOR, WARP_REDUX_MIN_S, WARP_REDUX_MAX_S};
	enum ptx_type type = sg_ptx_take_type(s);
	enum warp_op op = take_warp_op(s, names, type == T_S32 ? signed_ops : unsigned_ops);

	(void)arg;
	if (!sg_ptx_take(s, "sync") || op == WARP_N ||
		(type != T_U32 && type != T_S32 && type != T_B32))
		sg_ptx_unsupported(p, s);
	else
		emit_lanes(p, s, op, type, T_B32, 1);
}

static void decode_elect(struct parser *p, struct statement *s, int arg)
{
	(void)arg;
	if (!sg_ptx_take(s, "sync"))
		sg_ptx_unsupported(p, s);
	else
		emit_lanes(p, s, WARP_ELECT, T_B32, T_B32, 0);
}

static void decode_activemask(struct parser *p, struct statement *s, int arg)
{
	(void)arg;
	if (sg_ptx_take_type(s) != T_B32) {
		sg_ptx_unsupported(p, s);
		return;
	}
	if (sg_ptx_operands(p, s, 1))
		sg_ptx_emit(p, sg_ptx_control_op(CONTROL_ACTIVEMASK),
			sg_ptx_target(p, &s->operands[0], T_B32), 0, 0, 0);
}

/* Parses "(a, b)", variables of .param space, and adds them to the copies of *call. */
static void parse_arguments(
	struct parser *p, struct statement *s, struct call **call, uint32_t *count)
{
	sg_ptx_expect(p, '(');
	if (sg_ptx_accept(p, ')'))
		return;
	do {
		struct operand o;
		struct call *grown;

		if (!sg_ptx_parse_operand(p, &o))
			return;
		if (o.kind != OPERAND_SYMBOL || o.symbol.kind != SYMBOL_FRAME_PARAM || o.value) {
			sg_ptx_fail(
				p, s->line, "argument \"%.*s\" is not supported", (int)o.len, o.at);
			return;
		}
		grown = realloc(*call, sizeof(*grown) + (*count + 1) * sizeof(grown->copies[0]));
		if (!grown) {
			sg_ptx_fail_memory(p);
			return;
		}
		*call = grown;
		grown->copies[(*count)++] =
			(struct call_copy){.at = o.symbol.index, .size = (uint32_t)o.symbol.size};
	} while (sg_ptx_accept(p, ','));
	sg_ptx_expect(p, ')');
}

/* Parses the callee: returns a function, or NULL if the call is through an address in a slot. */
static struct function *parse_callee(struct parser *p, struct statement *s, uint32_t *ret_slot)
{
	struct operand o;

	if (!sg_ptx_parse_operand(p, &o))
		return NULL;
	if (o.kind == OPERAND_SLOT && o.type != T_NONE && sg_ptx_type_bytes(o.type) == 8) {
		*ret_slot = sg_ptx_source(p, &o, T_B64);
		return NULL;
	}
	if (o.kind == OPERAND_SYMBOL && o.symbol.kind == SYMBOL_FUNCTION &&
		!o.symbol.function->is_entry)
		return o.symbol.function;
	sg_ptx_fail(p, s->line, "call of \"%.*s\" is not supported", (int)o.len, o.at);
	return NULL;
}

/*
 * Returns whether the call is to vprintf(const char *, va_list), which nvcc declares and no module
 * defines.
 */
static bool is_print(const struct call *call)
{
	return call->callee && !strcmp(call->callee->name, "vprintf") &&
	       !call->callee->is_defined && call->result_count == 1 && call->copy_count == 3 &&
	       call->copies[0].size == 4 && call->copies[1].size == 8 && call->copies[2].size == 8;
}

/* The callee may come later: link.c checks that what it gets fits. */
static void emit_call(struct parser *p, struct call *call, uint32_t slot)
{
	enum control_op op = call->callee ? CONTROL_CALL : CONTROL_CALL_AT;
	struct function *f = p->b.f;
	struct insn *i;

	/* A failed assert() calls this function, which nvcc declares and no module defines. */
	if (call->callee && !strcmp(call->callee->name, "__assertfail")) {
		free(call);
		sg_ptx_emit(p, sg_ptx_control_op(CONTROL_ASSERT), 0, 0, 0, 0);
		return;
	}
	call->next = f->calls;
	f->calls = call;
	if (is_print(call)) {
		op = CONTROL_PRINT;
		call->callee = NULL; /* print.c implements it, so nothing is left to link */
	}
	i = sg_ptx_emit(p, sg_ptx_control_op(op), 0, slot, 0, 0);
	if (i)
		i->imm.call = call;
}

/* Decodes call[.uni] [(results),] name [, (arguments)]; */
void sg_ptx_decode_call(struct parser *p, struct statement *s)
{
	struct call *call = calloc(1, sizeof(*call));
	struct function *callee;
	uint32_t count = 0, result_count, slot = 0;

	if (!call) {
		sg_ptx_fail_memory(p);
		return;
	}
	if (s->modifier_count > sg_ptx_take(s, "uni"))
		sg_ptx_unsupported(p, s);
	if (sg_ptx_token_is(&p->lex.now, '(')) {
		parse_arguments(p, s, &call, &count);
		sg_ptx_expect(p, ',');
	}
	result_count = count;
	callee = parse_callee(p, s, &slot);
	if (sg_ptx_accept(p, ',') && (sg_ptx_token_is(&p->lex.now, '(') || callee))
		parse_arguments(p, s, &call, &count);
	/* The prototype or the list of targets of a call by address. */
	if (!callee && (sg_ptx_accept(p, ',') || sg_ptx_is_name(p)))
		sg_ptx_lexer_next(&p->lex);
	sg_ptx_expect(p, ';');
	call->callee = callee;
	call->line = s->line;
	call->result_count = result_count;
	call->copy_count = count;
	if (p->failed)
		free(call);
	else
		emit_call(p, call, slot);
}

const struct opcode *sg_ptx_opcodes_control(void)
{
	static const struct opcode table[] = {
		{"bra", decode_branch, 0},
		{"brx", decode_indexed, 0},
		{"ret", decode_plain, CONTROL_RETURN},
		{"exit", decode_plain, CONTROL_EXIT},
		{"trap", decode_plain, CONTROL_TRAP},
		{"brkpt", decode_plain, CONTROL_TRAP},
		{"membar", decode_fence, 0},
		{"fence", decode_fence, 0},
		{"nanosleep", decode_nanosleep, 0},
		{"bar", decode_barrier, 0},
		{"barrier", decode_barrier, 0},
		{"shfl", decode_shfl, 0},
		{"vote", decode_vote, 0},
		{"match", decode_match, 0},
		{"redux", decode_redux, 0},
		{"activemask", decode_activemask, 0},
		{"elect", decode_elect, 0},
		{"griddepcontrol", decode_hint, 0},
		{"setmaxnreg", decode_hint, 0},
		{"applypriority", decode_hint, 0},
		{"discard", decode_hint, 0},
		{NULL, NULL, 0},
	};

	return table;
}
