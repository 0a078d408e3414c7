/* Parses function bodies: declarations, labels, guards, statements and their operands. */
#include <errno.h>
#include <stdlib.h>

#include "ptx/parse/parse.h"

/* Special registers. */
static const struct {
	const char *name;
	enum special special;
} specials[] = {
	{"%tid.x", SPECIAL_TID_X},
	{"%tid.y", SPECIAL_TID_Y},
	{"%tid.z", SPECIAL_TID_Z},
	{"%ntid.x", SPECIAL_NTID_X},
	{"%ntid.y", SPECIAL_NTID_Y},
	{"%ntid.z", SPECIAL_NTID_Z},
	{"%ctaid.x", SPECIAL_CTAID_X},
	{"%ctaid.y", SPECIAL_CTAID_Y},
	{"%ctaid.z", SPECIAL_CTAID_Z},
	{"%nctaid.x", SPECIAL_NCTAID_X},
	{"%nctaid.y", SPECIAL_NCTAID_Y},
	{"%nctaid.z", SPECIAL_NCTAID_Z},
	{"%laneid", SPECIAL_LANEID},
	{"%warpid", SPECIAL_WARPID},
	{"%nwarpid", SPECIAL_NWARPID},
	{"%smid", SPECIAL_SMID},
	{"%nsmid", SPECIAL_NSMID},
	{"%gridid", SPECIAL_GRIDID},
	{"%lanemask_eq", SPECIAL_LANEMASK_EQ},
	{"%lanemask_lt", SPECIAL_LANEMASK_LT},
	{"%lanemask_le", SPECIAL_LANEMASK_LE},
	{"%lanemask_gt", SPECIAL_LANEMASK_GT},
	{"%lanemask_ge", SPECIAL_LANEMASK_GE},
	{"%total_smem_size", SPECIAL_TOTAL_SHARED},
	{"%dynamic_smem_size", SPECIAL_DYNAMIC_SHARED_BYTES},
	{"%reserved_smem_offset_1", SPECIAL_RESERVED_SHARED},
	{"%envreg1", SPECIAL_GRID_HIGH},
	{"%envreg2", SPECIAL_GRID_LOW},
	/* Each block is a cluster of its own. */
	{"%clusterid.x", SPECIAL_CTAID_X},
	{"%clusterid.y", SPECIAL_CTAID_Y},
	{"%clusterid.z", SPECIAL_CTAID_Z},
	{"%nclusterid.x", SPECIAL_NCTAID_X},
	{"%nclusterid.y", SPECIAL_NCTAID_Y},
	{"%nclusterid.z", SPECIAL_NCTAID_Z},
	{"%cluster_ctaid.x", SPECIAL_ZERO},
	{"%cluster_ctaid.y", SPECIAL_ZERO},
	{"%cluster_ctaid.z", SPECIAL_ZERO},
	{"%cluster_nctaid.x", SPECIAL_ONE},
	{"%cluster_nctaid.y", SPECIAL_ONE},
	{"%cluster_nctaid.z", SPECIAL_ONE},
	{"%cluster_ctarank", SPECIAL_ZERO},
	{"%cluster_nctarank", SPECIAL_ONE},
	{"%is_explicit_cluster", SPECIAL_ZERO},
};

static const struct {
	const char *name;
	enum control_op op;
} clocks[] = {
	{"%clock", CONTROL_CLOCK32},
	{"%clock_hi", CONTROL_CLOCK_HI},
	{"%clock64", CONTROL_CLOCK64},
	{"%globaltimer", CONTROL_TIMER},
	{"%globaltimer_lo", CONTROL_TIMER_LO},
	{"%globaltimer_hi", CONTROL_TIMER_HI},
};

/* Finds a special name such as WARP_SZ, %tid.x or %clock64. Returns false if it is not one. */
static bool find_special(struct parser *p, struct operand *o)
{
	if (sg_ptx_text_is(o->at, o->len, "WARP_SZ")) {
		o->kind = OPERAND_INT;
		o->value = 32;
		return true;
	}
	for (unsigned n = 0; n < sizeof(clocks) / sizeof(clocks[0]); n++) {
		if (sg_ptx_text_is(o->at, o->len, clocks[n].name)) {
			o->kind = OPERAND_CLOCK;
			o->control = clocks[n].op;
			return true;
		}
	}
	for (unsigned n = 0; n < sizeof(specials) / sizeof(specials[0]); n++) {
		if (sg_ptx_text_is(o->at, o->len, specials[n].name)) {
			o->kind = OPERAND_SLOT;
			o->type = specials[n].special == SPECIAL_ZERO && o->at[1] == 'i' ? T_PRED
											 : T_NONE;
			o->slot = sg_ptx_special(p, specials[n].special);
			return true;
		}
	}
	return false;
}

/* Finds the family of a register and the number in it: %r12 belongs to .reg %r<18>. */
static const struct symbol *find_family(
	const struct parser *p, const struct operand *o, uint32_t *ret_number)
{
	const struct symbol *s;
	uint32_t len = o->len, number = 0;

	while (len && o->at[len - 1] >= '0' && o->at[len - 1] <= '9')
		len--;
	if (len == o->len || o->len - len > 6)
		return NULL;
	s = sg_ptx_names_find(&p->names, o->at, len);
	if (!s || s->kind != SYMBOL_REGISTERS)
		return NULL;
	for (uint32_t n = len; n < o->len; n++)
		number = number * 10 + (uint32_t)(o->at[n] - '0');
	*ret_number = number;
	return number < s->count ? s : NULL;
}

static bool is_register(struct operand *o, const struct symbol *s, uint32_t number)
{
	o->kind = OPERAND_SLOT;
	o->type = s->type;
	o->slot = s->index + number;
	return true;
}

/*
 * Finds the name of an operand. There may be both a register with exactly that name and a family of
 * registers with that number; the one in the inner scope is used.
 */
static bool find_name(struct parser *p, struct operand *o)
{
	const struct symbol *s = sg_ptx_find_name(p, o->at, o->len), *family;
	uint32_t number = 0;

	if (s && s->kind == SYMBOL_REGISTERS)
		s = NULL;
	family = find_family(p, o, &number);
	if (family && (!s || family->scope > s->scope))
		return is_register(o, family, number);
	if (s && s->kind == SYMBOL_REGISTER)
		return is_register(o, s, 0);
	if (s) {
		o->kind = OPERAND_SYMBOL;
		o->symbol = *s;
		return true;
	}
	if (sg_ptx_text_is(o->at, o->len, "_")) {
		o->kind = OPERAND_SINK;
		return true;
	}
	if (find_special(p, o))
		return true;
	if (*o->at == '%') {
		sg_ptx_fail(p, p->line, "register \"%.*s\" is not declared", (int)o->len, o->at);
		return false;
	}
	o->kind = OPERAND_NAME;
	return true;
}

/* The name at hand, with the ".x" of a special register. */
static bool parse_name(struct parser *p, struct operand *o)
{
	o->at = p->lex.now.at;
	o->len = p->lex.now.len;
	sg_ptx_lexer_next(&p->lex);
	if (*o->at == '%' && p->lex.now.kind == TOKEN_DOT && p->lex.now.at == o->at + o->len + 1) {
		o->len += 1 + p->lex.now.len;
		sg_ptx_lexer_next(&p->lex);
	}
	return find_name(p, o);
}

static bool parse_literal(struct parser *p, struct operand *o)
{
	bool minus = sg_ptx_accept(p, '-');
	const struct token *t = &p->lex.now;

	o->at = t->at;
	o->len = t->len;
	o->value = t->value;
	switch (t->kind) {
	case TOKEN_INT:
		o->kind = OPERAND_INT;
		if (minus)
			o->value = 0 - o->value;
		break;
	case TOKEN_F32:
		o->kind = OPERAND_FLOAT;
		o->is_single = true;
		o->value ^= (uint64_t)minus << 31;
		break;
	case TOKEN_F64:
		o->kind = OPERAND_FLOAT;
		o->value ^= (uint64_t)minus << 63;
		break;
	default: sg_ptx_fail_token(p, "an operand"); return false;
	}
	sg_ptx_lexer_next(&p->lex);
	return true;
}

/* + 4, + -4, - 4 */
static void parse_offset(struct parser *p, struct operand *o)
{
	struct operand n = {0};
	bool minus = sg_ptx_token_is(&p->lex.now, '-');

	if (!minus && !sg_ptx_accept(p, '+'))
		return;
	if (!parse_literal(p, &n))
		return;
	if (n.kind != OPERAND_INT || (int64_t)n.value != (int32_t)n.value)
		sg_ptx_fail(p, p->line, "offset \"%.*s\" is not supported", (int)n.len, n.at);
	o->value = n.value;
}

static bool parse_address(struct parser *p, struct operand *o)
{
	if (sg_ptx_is_name(p))
		parse_name(p, o);
	else
		parse_literal(p, o);
	if (p->failed)
		return false;
	if (o->kind != OPERAND_SLOT && o->kind != OPERAND_SYMBOL && o->kind != OPERAND_INT) {
		sg_ptx_fail(p, p->line, "\"%.*s\" is not an address", (int)o->len, o->at);
		return false;
	}
	o->base = o->kind;
	o->kind = OPERAND_ADDRESS;
	parse_offset(p, o);
	return sg_ptx_expect(p, ']');
}

static bool parse_vector(struct parser *p, struct operand *o)
{
	o->at = "{...}";
	o->len = 5;
	o->kind = OPERAND_VECTOR;
	do {
		struct operand e = {0};

		if (o->slot_count == 4) {
			sg_ptx_fail(p, p->line, "a vector of more than 4 elements");
			return false;
		}
		if (sg_ptx_accept(p, '{')) {
			sg_ptx_fail(p, p->line, "a vector in a vector");
			return false;
		}
		if (!sg_ptx_parse_operand(p, &e))
			return false;
		if (e.kind == OPERAND_SINK)
			o->slots[o->slot_count++] = SLOT_SCRAP;
		else
			o->slots[o->slot_count++] = sg_ptx_source(p, &e, T_B64);
		o->type = e.kind == OPERAND_SLOT && e.type != T_NONE ? e.type : o->type;
		o->is_negated |= e.kind != OPERAND_SLOT && e.kind != OPERAND_SINK;
	} while (sg_ptx_accept(p, ','));
	return sg_ptx_expect(p, '}');
}

bool sg_ptx_parse_operand(struct parser *p, struct operand *o)
{
	*o = (struct operand){0};
	if (p->failed)
		return false;
	if (sg_ptx_accept(p, '['))
		return parse_address(p, o);
	if (sg_ptx_accept(p, '{'))
		return parse_vector(p, o);
	if (sg_ptx_accept(p, '!')) {
		if (!sg_ptx_is_name(p)) {
			sg_ptx_fail_token(p, "a predicate");
			return false;
		}
		o->is_negated = true;
	}
	if (!sg_ptx_is_name(p))
		return parse_literal(p, o);
	if (!parse_name(p, o))
		return false;
	if (o->kind == OPERAND_SYMBOL)
		parse_offset(p, o);
	if (sg_ptx_accept(p, '|')) {
		struct operand q = {0};

		if (!sg_ptx_parse_operand(p, &q))
			return false;
		o->second = sg_ptx_target(p, &q, T_PRED);
	}
	return !p->failed;
}

/* Parses a declaration of registers within a body. */
static void declare_registers(struct parser *p)
{
	const struct token *t = &p->lex.now;
	enum ptx_type type = T_NONE;

	if (t->kind == TOKEN_DOT)
		type = sg_ptx_type_of(t->at, t->len);
	if (type == T_NONE) {
		if (t->kind == TOKEN_DOT)
			sg_ptx_refuse(
				p, t->line, "type \".%.*s\" is not supported", (int)t->len, t->at);
		else
			sg_ptx_fail_token(p, "a type");
		return;
	}
	sg_ptx_lexer_next(&p->lex);
	do {
		struct declaration d = {.line = t->line, .at = t->at, .len = t->len};
		struct symbol s = {.kind = SYMBOL_REGISTER, .type = type, .count = 1};

		if (!sg_ptx_is_name(p)) {
			sg_ptx_fail_token(p, "a register's name");
			return;
		}
		sg_ptx_lexer_next(&p->lex);
		if (sg_ptx_accept(p, '<')) {
			s.kind = SYMBOL_REGISTERS;
			s.count = t->kind == TOKEN_INT && t->value <= MAX_FRAME_SLOTS
					  ? (uint32_t)t->value
					  : UINT32_MAX;
			sg_ptx_lexer_next(&p->lex);
			sg_ptx_expect(p, '>');
		}
		s.index = sg_ptx_new_slots(p, s.count, type);
		sg_ptx_declare(p, &d, &s);
	} while (sg_ptx_accept(p, ','));
	sg_ptx_expect(p, ';');
}

static void declare_memory(struct parser *p, enum symbol_kind kind)
{
	struct symbol s = {.kind = kind};
	struct declaration d;

	if (!sg_ptx_parse_declaration(p, &d))
		return;
	if (d.is_unsized)
		sg_ptx_fail(p, d.line, "\"%.*s\" has no size", (int)d.len, d.at);
	s.size = d.bytes;
	s.type = d.type;
	s.index = sg_ptx_new_local(p, d.bytes, d.align);
	sg_ptx_declare(p, &d, &s);
	sg_ptx_expect(p, ';');
}

/*
 * Declares shared memory. An entry's own begins behind the module's; a device function's is part of
 * the module's.
 */
static void declare_shared(struct parser *p)
{
	bool is_entry = p->b.f->is_entry;
	uint32_t *end = is_entry ? &p->b.entry_shared_bytes : &p->m->shared_bytes;
	struct symbol s = {.kind = is_entry ? SYMBOL_SHARED_ENTRY : SYMBOL_SHARED};
	struct declaration d;
	uint64_t at;

	if (!sg_ptx_parse_declaration(p, &d))
		return;
	at = (*end + d.align - 1) & ~(d.align - 1);
	if (d.is_unsized || at + d.bytes > SG_PTX_MAX_SHARED_BYTES) {
		sg_ptx_fail(p, d.line, "shared variable \"%.*s\" is unsized or too large",
			(int)d.len, d.at);
		return;
	}
	*end = (uint32_t)(at + d.bytes);
	s.size = d.bytes;
	s.index = (uint32_t)at;
	sg_ptx_declare(p, &d, &s);
	sg_ptx_expect(p, ';');
}

static void skip_to_semicolon(struct parser *p)
{
	while (p->lex.now.kind != TOKEN_END && !sg_ptx_token_is(&p->lex.now, ';'))
		sg_ptx_lexer_next(&p->lex);
	sg_ptx_expect(p, ';');
}

/*
 * Skips to the end of a line such as .loc 1 20 5 [, function_name $L__info_string0, inlined_at 1 30
 * 2].
 */
static void skip_line(struct parser *p)
{
	uint32_t line = p->lex.now.line;

	while (p->lex.now.kind != TOKEN_END && p->lex.now.line == line)
		sg_ptx_lexer_next(&p->lex);
}

static void parse_declaration(struct parser *p)
{
	const struct token *t = &p->lex.now;

	if (sg_ptx_accept_dot(p, "reg"))
		declare_registers(p);
	else if (sg_ptx_accept_dot(p, "local"))
		declare_memory(p, SYMBOL_LOCAL);
	else if (sg_ptx_accept_dot(p, "param"))
		declare_memory(p, SYMBOL_FRAME_PARAM);
	else if (sg_ptx_accept_dot(p, "shared"))
		declare_shared(p);
	else if (sg_ptx_text_is(t->at, t->len, "loc"))
		skip_line(p);
	else if (sg_ptx_accept_dot(p, "pragma"))
		skip_to_semicolon(p);
	else
		sg_ptx_refuse(
			p, t->line, "directive \".%.*s\" is not supported", (int)t->len, t->at);
}

/* Statements. */
static void parse_modifiers(struct parser *p, struct statement *s)
{
	while (!p->failed && p->lex.now.kind == TOKEN_DOT) {
		if (s->modifier_count == MAX_MODIFIERS) {
			sg_ptx_fail(p, s->line, "too many modifiers");
			return;
		}
		s->modifiers[s->modifier_count++] =
			(struct modifier){.at = p->lex.now.at, .len = p->lex.now.len};
		sg_ptx_lexer_next(&p->lex);
	}
}

static void parse_operands(struct parser *p, struct statement *s)
{
	if (sg_ptx_accept(p, ';'))
		return;
	do {
		if (s->operand_count == MAX_OPERANDS) {
			sg_ptx_fail(p, s->line, "too many operands");
			return;
		}
		if (!sg_ptx_parse_operand(p, &s->operands[s->operand_count]))
			return;
		s->operand_count++;
	} while (sg_ptx_accept(p, ','));
	sg_ptx_expect(p, ';');
}

static void parse_instruction(struct parser *p)
{
	struct statement s = {.line = p->line, .at = p->lex.now.at, .len = p->lex.now.len};

	sg_ptx_lexer_next(&p->lex);
	parse_modifiers(p, &s);
	if (sg_ptx_text_is(s.at, s.len, "call")) {
		sg_ptx_decode_call(p, &s);
		p->b.plain_from = p->b.f->insn_count;
		return;
	}
	if (p->failed || !sg_ptx_find_opcode(p, &s))
		return;
	parse_operands(p, &s);
	if (!p->failed)
		sg_ptx_decode(p, &s);
	if (!p->failed)
		sg_ptx_note_plainness(p, &s);
}

/* Turns a guarded branch into one instruction, which takes the guard's place. */
static void guard_branch(struct parser *p, uint32_t at, bool negated, uint32_t plain_from)
{
	struct fixup *fixup = &p->b.fixups[p->b.fixup_count - 1];
	bool spins = sg_ptx_is_spin(p, at, plain_from, fixup->at, fixup->len);

	p->b.f->insn_count--;
	fixup->insn = at;
	p->b.f->insns[at].fn =
		spins ? sg_ptx_spin_op(negated)
		      : sg_ptx_control_op(negated ? CONTROL_BRANCH_IF_NOT : CONTROL_BRANCH_IF);
}

/*
 * Parses a statement with a guard, @%p or @!%p. One guard covers all instructions of the statement.
 */
static void parse_guarded(struct parser *p)
{
	bool negated = sg_ptx_accept(p, '!');
	struct operand o = {0};
	uint32_t at = p->b.f->insn_count, plain_from = p->b.plain_from, slot;

	if (!sg_ptx_parse_operand(p, &o))
		return;
	slot = sg_ptx_source(p, &o, T_PRED);
	sg_ptx_emit(
		p, sg_ptx_control_op(negated ? CONTROL_GUARD_NOT : CONTROL_GUARD), 0, slot, 0, 0);
	if (!sg_ptx_is_name(p)) {
		sg_ptx_fail_token(p, "an opcode");
		return;
	}
	parse_instruction(p);
	if (p->failed)
		return;
	if (p->b.f->insn_count == at + 2 &&
		p->b.f->insns[at + 1].fn == sg_ptx_control_op(CONTROL_BRANCH)) {
		guard_branch(p, at, negated, plain_from);
		return;
	}
	p->b.plain_from = p->b.f->insn_count; /* its result depends on more than its operands */
	sg_ptx_fix(p, at, NULL, p->b.f->insn_count);
}

static void define_label(struct parser *p, const struct token *name)
{
	struct symbol s = {.kind = SYMBOL_LABEL, .index = p->b.f->insn_count};
	int r = sg_ptx_names_add(&p->b.labels, name->at, name->len, &s);

	if (r == -EEXIST)
		sg_ptx_fail(
			p, name->line, "label \"%.*s\" is defined twice", (int)name->len, name->at);
	else if (r)
		sg_ptx_fail_memory(p);
}

/*
 * Parses what may follow a label: L: .branchtargets A, B; is a table for brx.idx. L: .callprototype
 * ...; is the form of a call, which is skipped, since the call's arguments show it.
 */
static void parse_labelled(struct parser *p, const struct token *name)
{
	struct build *b = &p->b;

	if (sg_ptx_accept_dot(p, "branchtargets")) {
		if (!sg_ptx_reserve(p, &b->tables, &b->table_capacity, b->table_count + 1,
			    sizeof(*b->tables)))
			return;
		b->tables[b->table_count++] = (struct table){name->at, name->len, p->lex};
		skip_to_semicolon(p);
	} else if (sg_ptx_accept_dot(p, "callprototype") || sg_ptx_accept_dot(p, "calltargets")) {
		skip_to_semicolon(p);
	} else {
		define_label(p, name);
	}
}

/* Parses a statement that begins with a name: a label if a colon follows, else an opcode. */
static void parse_named(struct parser *p)
{
	struct lexer ahead = p->lex;
	struct token name = p->lex.now;

	sg_ptx_lexer_next(&ahead);
	if (!sg_ptx_token_is(&ahead.now, ':')) {
		parse_instruction(p);
		return;
	}
	p->lex = ahead;
	sg_ptx_lexer_next(&p->lex);
	parse_labelled(p, &name);
}

void sg_ptx_parse_body(struct parser *p, struct function *f)
{
	uint32_t depth = 0;

	(void)f;
	do {
		p->line = p->lex.now.line;
		if (sg_ptx_accept(p, '{')) {
			depth++;
			sg_ptx_names_open(&p->names);
		} else if (sg_ptx_accept(p, '}')) {
			depth--;
			sg_ptx_names_close(&p->names);
		} else if (sg_ptx_accept(p, '@')) {
			parse_guarded(p);
		} else if (p->lex.now.kind == TOKEN_DOT) {
			parse_declaration(p);
		} else if (sg_ptx_is_name(p)) {
			parse_named(p);
		} else if (!sg_ptx_accept(p, ';')) {
			sg_ptx_fail_token(p, "a statement");
		}
	} while (depth && !p->failed);
	if (!p->failed)
		sg_ptx_build_end(p);
}
