/* Parses variables outside functions, .global, .const and .shared, and their initial values. */
#include <stdlib.h>

#include "ptx/parse/parse.h"

/* The position of the next initial value. */
struct initialiser {
	struct variable *v;
	uint32_t element_bytes, initial_capacity, byte_capacity;
	uint64_t at;
	bool is_float;
};

static void put_bytes(struct parser *p, struct initialiser *in, uint64_t value)
{
	struct variable *v = in->v;
	uint64_t end = in->at + in->element_bytes;

	if (end > v->pub.size) {
		sg_ptx_fail(p, p->lex.now.line, "too many initial values for \"%s\"", v->name);
		return;
	}
	if (end > UINT32_MAX / 2 ||
		!sg_ptx_reserve(p, &v->bytes, &in->byte_capacity, (uint32_t)end, 1))
		return;
	memcpy(v->bytes + in->at, &value, in->element_bytes);
	v->byte_count = in->at = end;
}

/*
 * Parses name or generic(name), each with an optional offset. The address is filled in when the
 * variables are bound.
 */
static void put_address(struct parser *p, struct initialiser *in)
{
	bool is_generic = sg_ptx_text_is(p->lex.now.at, p->lex.now.len, "generic");
	struct variable *v = in->v;
	struct initial initial = {.offset = in->at};
	const struct symbol *s;
	struct token t;
	bool minus;

	if (is_generic) {
		sg_ptx_lexer_next(&p->lex);
		sg_ptx_expect(p, '(');
	}
	t = p->lex.now;
	s = sg_ptx_is_name(p) ? sg_ptx_find_name(p, t.at, t.len) : NULL;
	if (s && s->kind == SYMBOL_FUNCTION && !s->function->is_entry && in->element_bytes == 8 &&
		!is_generic) {
		sg_ptx_lexer_next(&p->lex);
		put_bytes(p, in, sg_ptx_code_address(s->function));
		return;
	}
	if (!s || s->kind != SYMBOL_VARIABLE || in->element_bytes != 8) {
		sg_ptx_fail(p, t.line, "initial value \"%.*s\" is not supported", (int)t.len, t.at);
		return;
	}
	initial.variable = s->index;
	sg_ptx_lexer_next(&p->lex);
	if (is_generic)
		sg_ptx_expect(p, ')');
	minus = sg_ptx_token_is(&p->lex.now, '-');
	if (sg_ptx_accept(p, '+') || sg_ptx_accept(p, '-')) {
		initial.addend = (int64_t)sg_ptx_parse_number(p);
		if (minus)
			initial.addend = (int64_t)(0 - (uint64_t)initial.addend);
	}
	if (!sg_ptx_reserve(p, &v->initials, &in->initial_capacity, v->initial_count + 1,
		    sizeof(*v->initials)))
		return;
	v->initials[v->initial_count++] = initial;
	put_bytes(p, in, 0);
}

static void put_number(struct parser *p, struct initialiser *in)
{
	bool minus = sg_ptx_accept(p, '-');
	struct token t = p->lex.now;

	if (t.kind == TOKEN_INT && !in->is_float) {
		put_bytes(p, in, minus ? 0 - t.value : t.value);
	} else if (t.kind == TOKEN_F32 || t.kind == TOKEN_F64) {
		double d = t.kind == TOKEN_F32 ? (double)sg_ptx_f32(t.value) : sg_ptx_f64(t.value);

		d = minus ? -d : d;
		put_bytes(p, in,
			in->element_bytes == 8 ? sg_ptx_from_f64(d) : sg_ptx_from_f32((float)d));
	} else {
		sg_ptx_fail_token(p, "an initial value");
		return;
	}
	sg_ptx_lexer_next(&p->lex);
}

/*
 * Parses initial values. Nested braces only give the values an order; inner rows that are too short
 * would mean more, and are refused.
 */
static void parse_values(struct parser *p, struct initialiser *in)
{
	if (!sg_ptx_expect(p, '{') || sg_ptx_accept(p, '}'))
		return;
	do {
		if (sg_ptx_token_is(&p->lex.now, '{')) {
			sg_ptx_fail(p, p->lex.now.line,
				"nested initial values of \"%s\" are not supported", in->v->name);
			return;
		}
		if (sg_ptx_is_name(p))
			put_address(p, in);
		else if (!p->failed)
			put_number(p, in);
	} while (sg_ptx_accept(p, ','));
	sg_ptx_expect(p, '}');
}

static struct variable *new_variable(
	struct parser *p, const struct declaration *d, enum linkage linkage)
{
	struct sg_ptx_module *m = p->m;
	struct variable *v;

	if (!sg_ptx_reserve(p, &m->variables, &p->variable_capacity, m->variable_count + 1,
		    sizeof(struct variable *)))
		return NULL;
	v = calloc(1, sizeof(*v));
	if (!v) {
		sg_ptx_fail_memory(p);
		return NULL;
	}
	m->variables[m->variable_count++] = v;
	v->name = sg_ptx_copy_name(p, d->at, d->len);
	v->line = d->line;
	sg_ptx_declare_linked(p, d,
		&(struct symbol){.kind = SYMBOL_VARIABLE,
			.index = m->variable_count - 1,
			.type = d->type,
			.size = d->bytes},
		linkage);
	return p->failed ? NULL : v;
}

/* The variable that d defines; NULL: there is nothing to define, as another part does, or did. */
static struct variable *find_variable(
	struct parser *p, const struct declaration *d, enum linkage linkage)
{
	const struct symbol *s =
		linkage == LINKAGE_LOCAL ? NULL : sg_ptx_names_find(&p->linked, d->at, d->len);
	struct variable *v;

	if (!s)
		v = new_variable(p, d, linkage);
	else if (s->kind == SYMBOL_VARIABLE)
		v = p->m->variables[s->index];
	else
		v = NULL;
	if (!v || (v->is_defined && linkage == LINKAGE_VISIBLE)) {
		sg_ptx_fail(p, d->line, "\"%.*s\" is declared twice", (int)d->len, d->at);
		return NULL;
	}
	return v->is_defined || linkage == LINKAGE_EXTERN ? NULL : v;
}

static void skip_value(struct parser *p)
{
	while (p->lex.now.kind != TOKEN_END && !sg_ptx_token_is(&p->lex.now, ';'))
		sg_ptx_lexer_next(&p->lex);
	sg_ptx_expect(p, ';');
}

static void parse_initial(struct parser *p, struct variable *v, enum ptx_type type)
{
	struct initialiser in = {.v = v,
		.element_bytes = sg_ptx_type_bytes(type),
		.is_float = type == T_F32 || type == T_F64};

	v->pub.initialised = true;
	if (sg_ptx_token_is(&p->lex.now, '{'))
		parse_values(p, &in);
	else if (sg_ptx_is_name(p))
		put_address(p, &in);
	else if (!p->failed)
		put_number(p, &in);
}

void sg_ptx_parse_variable(struct parser *p, bool constant, enum linkage linkage)
{
	struct declaration d;
	bool managed = false;
	struct variable *v;

	if (sg_ptx_accept_dot(p, "attribute")) {
		sg_ptx_expect(p, '(');
		managed = sg_ptx_accept_dot(p, "managed");
		if (!managed)
			sg_ptx_fail_token(p, "\".managed\"");
		sg_ptx_expect(p, ')');
	}
	if (!sg_ptx_parse_declaration(p, &d))
		return;
	if (linkage != LINKAGE_EXTERN && (d.is_unsized || !d.bytes)) {
		sg_ptx_fail(
			p, d.line, "unsized variable \"%.*s\" is not supported", (int)d.len, d.at);
		return;
	}
	v = find_variable(p, &d, linkage);
	if (!v) {
		if (!p->failed)
			skip_value(p);
		return;
	}
	v->is_defined = true;
	v->pub = (struct sg_ptx_variable){.name = v->name,
		.size = d.bytes,
		.align = d.align,
		.constant = constant,
		.managed = managed};
	if (sg_ptx_accept(p, '='))
		parse_initial(p, v, d.type);
	sg_ptx_expect(p, ';');
}

void sg_ptx_parse_shared(struct parser *p, bool external)
{
	struct symbol s = {.kind = SYMBOL_SHARED};
	struct declaration d;
	uint64_t at;

	if (!sg_ptx_parse_declaration(p, &d))
		return;
	at = (p->m->shared_bytes + d.align - 1) & ~(d.align - 1);
	s.size = d.bytes;
	if (external && d.is_unsized) {
		s.kind = SYMBOL_SHARED_DYNAMIC;
	} else if (d.is_unsized || external || at + d.bytes > SG_PTX_MAX_SHARED_BYTES) {
		sg_ptx_fail(p, d.line, "shared variable \"%.*s\" is external, unsized or too large",
			(int)d.len, d.at);
	} else {
		s.index = (uint32_t)at;
		p->m->shared_bytes = (uint32_t)(at + d.bytes);
	}
	sg_ptx_declare(p, &d, &s);
	sg_ptx_expect(p, ';');
}
