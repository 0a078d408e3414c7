/* Parses the parts of a module outside of function bodies. */
#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "ptx/parse/parse.h"

struct signature {
	struct declaration list[256];
	uint32_t result_count, count;
};

static void parse_param_list(struct parser *p, struct signature *s)
{
	if (!sg_ptx_expect(p, '(') || sg_ptx_accept(p, ')'))
		return;
	do {
		if (!sg_ptx_accept_dot(p, "param")) {
			sg_ptx_fail_token(p, "\".param\"");
			return;
		}
		if (s->count == sizeof(s->list) / sizeof(s->list[0])) {
			sg_ptx_fail(p, p->lex.now.line, "too many parameters");
			return;
		}
		if (!sg_ptx_parse_declaration(p, &s->list[s->count]))
			return;
		if (s->list[s->count].is_unsized || s->list[s->count].bytes > MAX_PARAM_BYTES) {
			sg_ptx_fail(p, p->lex.now.line, "parameter is unsized or too large");
			return;
		}
		s->count++;
	} while (sg_ptx_accept(p, ','));
	sg_ptx_expect(p, ')');
}

static void lay_out_entry(struct parser *p, struct function *f, const struct signature *s)
{
	uint64_t at = 0;

	f->params = calloc(s->count ? s->count : 1, sizeof(*f->params));
	if (!f->params) {
		sg_ptx_fail_memory(p);
		return;
	}
	for (uint32_t n = 0; n < s->count; n++) {
		const struct declaration *d = &s->list[n];

		at = (at + d->align - 1) & ~(d->align - 1);
		f->params[n] =
			(struct sg_ptx_param){(uint32_t)at, (uint32_t)d->bytes, (uint32_t)d->align};
		sg_ptx_declare(p, d,
			&(struct symbol){
				.kind = SYMBOL_PARAM, .index = (uint32_t)at, .size = d->bytes});
		at += d->bytes;
	}
	if (at > MAX_PARAM_BYTES)
		sg_ptx_fail(p, p->line, "parameters of \"%s\" need more than %u bytes", f->name,
			MAX_PARAM_BYTES);
	f->pub.params = f->params;
	f->pub.param_count = s->count;
	f->pub.param_bytes = (uint32_t)at;
}

/* Formal parameters live in the frame's local memory; a call copies them. */
static void lay_out_device(struct parser *p, struct function *f, const struct signature *s)
{
	struct formal *formals = calloc(s->count ? s->count : 1, sizeof(*formals));

	if (!formals) {
		sg_ptx_fail_memory(p);
		return;
	}
	for (uint32_t n = 0; n < s->count && !p->failed; n++) {
		const struct declaration *d = &s->list[n];

		formals[n].size = (uint32_t)d->bytes;
		formals[n].offset = sg_ptx_new_local(p, d->bytes, d->align);
		sg_ptx_declare(p, d,
			&(struct symbol){.kind = SYMBOL_FRAME_PARAM,
				.index = formals[n].offset,
				.size = d->bytes});
	}
	free(f->formals);
	f->formals = formals;
	f->formal_count = s->count;
	f->result_count = s->result_count;
}

static struct function *new_function(
	struct parser *p, const struct token *name, bool is_entry, enum linkage linkage)
{
	struct sg_ptx_module *m = p->m;
	struct symbol s = {.kind = SYMBOL_FUNCTION};
	struct declaration d = {.at = name->at, .len = name->len, .line = name->line};

	if (!sg_ptx_reserve(p, &m->functions, &p->function_capacity, m->function_count + 1,
		    sizeof(struct function *)))
		return NULL;
	s.function = calloc(1, sizeof(*s.function));
	if (!s.function) {
		sg_ptx_fail_memory(p);
		return NULL;
	}
	m->functions[m->function_count++] = s.function;
	s.function->number = m->function_count;
	s.function->is_entry = is_entry;
	s.function->name = sg_ptx_copy_name(p, name->at, name->len);
	s.function->pub.name = s.function->name;
	s.function->pub.max_threads = SG_PTX_MAX_THREADS;
	sg_ptx_declare_linked(p, &d, &s, linkage);
	return p->failed ? NULL : s.function;
}

/*
 * Returns the function of that name, which a prototype may have declared before. NULL without a
 * failure means that another part has defined it too, which .weak permits.
 */
static struct function *find_function(struct parser *p, bool is_entry, enum linkage linkage)
{
	struct token t = p->lex.now;
	const struct symbol *s;

	if (!sg_ptx_is_name(p)) {
		sg_ptx_fail_token(p, "a function's name");
		return NULL;
	}
	sg_ptx_lexer_next(&p->lex);
	s = sg_ptx_names_find(&p->names, t.at, t.len);
	if (!s && linkage != LINKAGE_LOCAL)
		s = sg_ptx_names_find(&p->linked, t.at, t.len);
	if (!s)
		return new_function(p, &t, is_entry, linkage);
	if (s->kind == SYMBOL_FUNCTION && s->function->is_entry == is_entry) {
		if (!s->function->is_defined)
			return s->function;
		if (linkage == LINKAGE_WEAK || linkage == LINKAGE_EXTERN)
			return NULL;
	}
	sg_ptx_fail(p, t.line, "\"%.*s\" is declared twice", (int)t.len, t.at);
	return NULL;
}

static uint64_t parse_extent(struct parser *p)
{
	uint64_t threads = 1;

	do {
		uint64_t n = sg_ptx_parse_number(p);

		threads = n && n <= 65536 && threads <= 65536 ? threads * n : 0;
	} while (sg_ptx_accept(p, ','));
	return threads;
}

static void parse_performance(struct parser *p, struct function *f)
{
	for (;;) {
		uint32_t line = p->lex.now.line;

		if (sg_ptx_accept_dot(p, "maxntid") || sg_ptx_accept_dot(p, "reqntid")) {
			uint64_t threads = parse_extent(p);

			if (!threads || threads > SG_PTX_MAX_THREADS)
				sg_ptx_fail(p, line, "function \"%s\" asks for too many threads",
					f->name);
			f->pub.max_threads = (uint32_t)threads;
		} else if (sg_ptx_accept_dot(p, "minnctapersm") ||
			   sg_ptx_accept_dot(p, "maxnctapersm") ||
			   sg_ptx_accept_dot(p, "maxnreg")) {
			sg_ptx_parse_number(p);
		} else if (sg_ptx_accept_dot(p, "noreturn")) {
			continue;
		} else if (sg_ptx_accept_dot(p, "pragma")) {
			while (p->lex.now.kind == TOKEN_STRING || sg_ptx_token_is(&p->lex.now, ','))
				sg_ptx_lexer_next(&p->lex);
			sg_ptx_expect(p, ';');
		} else {
			return;
		}
		if (p->failed)
			return;
	}
}

static void free_calls(struct function *f)
{
	while (f->calls) {
		struct call *call = f->calls;

		f->calls = call->next;
		free(call);
	}
}

/* Skips from '{' to its '}'. */
static void skip_body(struct parser *p)
{
	uint32_t depth = 0;

	do {
		depth += sg_ptx_token_is(&p->lex.now, '{');
		depth -= sg_ptx_token_is(&p->lex.now, '}');
		if (p->lex.now.kind == TOKEN_END) {
			sg_ptx_fail_token(p, "\"}\"");
			return;
		}
		sg_ptx_lexer_next(&p->lex);
	} while (depth);
}

/*
 * Keeps the function with one instruction that ends the run, so that the rest of the module works.
 */
static void refuse_function(struct parser *p, struct function *f)
{
	f->refusal = strdup(p->err->msg);
	f->pub.refusal = f->refusal;
	*p->err = (struct td_err){0};
	p->failed = 0;
	p->line = p->refused_line;
	p->refused_line = 0;
	if (!f->refusal)
		sg_ptx_fail_memory(p);
	free_calls(f);
	f->insn_count = 0;
	p->b.fixup_count = 0;
	sg_ptx_emit(p, sg_ptx_control_op(CONTROL_REFUSED), 0, 0, 0, 0);
	sg_ptx_build_end(p);
}

static void parse_definition(struct parser *p, struct function *f)
{
	const struct lexer start = p->lex;
	uint32_t scope = p->names.scope;

	sg_ptx_parse_body(p, f);
	if (!p->refused_line)
		return;
	while (p->names.scope > scope)
		sg_ptx_names_close(&p->names);
	refuse_function(p, f);
	p->lex = start;
	skip_body(p);
}

/* Parses the rest after the name: parameters, directives, and a body unless it is a prototype. */
static void parse_rest(struct parser *p, struct function *f, struct signature *s)
{
	if (sg_ptx_token_is(&p->lex.now, '('))
		parse_param_list(p, s);
	if (p->failed)
		return;
	parse_performance(p, f);
	free(f->params);
	f->params = NULL;
	f->pub.local_bytes = 0;
	sg_ptx_build_begin(p, f);
	if (f->is_entry)
		lay_out_entry(p, f, s);
	else
		lay_out_device(p, f, s);
	if (!p->failed && sg_ptx_token_is(&p->lex.now, '{'))
		parse_definition(p, f);
	else
		sg_ptx_expect(p, ';');
	if (!f->is_defined) {
		free(f->frame);
		f->frame = NULL;
		f->slot_count = 0;
	}
	sg_ptx_build_deinit(&p->b);
}

/* Parses the rest like parse_rest(), but drops it: the function has been defined before. */
static void skip_rest(struct parser *p, struct signature *s)
{
	struct function unused = {.name = (char[]){""}};

	if (sg_ptx_token_is(&p->lex.now, '('))
		parse_param_list(p, s);
	if (!p->failed)
		parse_performance(p, &unused);
	if (!p->failed && sg_ptx_token_is(&p->lex.now, '{'))
		skip_body(p);
	else
		sg_ptx_expect(p, ';');
}

/* Parses a function. After a failure its scopes stay open, but the module is discarded then. */
static void parse_function(struct parser *p, bool is_entry, enum linkage linkage)
{
	struct signature *s = calloc(1, sizeof(*s));
	struct function *f = NULL;

	if (!s) {
		sg_ptx_fail_memory(p);
		return;
	}
	p->line = p->lex.now.line;
	if (!is_entry && sg_ptx_token_is(&p->lex.now, '('))
		parse_param_list(p, s);
	s->result_count = s->count;
	if (!p->failed)
		f = find_function(p, is_entry, linkage);
	sg_ptx_names_open(&p->names);
	if (f)
		parse_rest(p, f, s);
	else if (!p->failed)
		skip_rest(p, s);
	sg_ptx_names_close(&p->names);
	free(s);
}

/* Skips .file 1 "x.cu" and .section .debug_info { ... }. */
static void skip_section(struct parser *p)
{
	while (!p->failed && p->lex.now.kind != TOKEN_END && !sg_ptx_token_is(&p->lex.now, '{'))
		sg_ptx_lexer_next(&p->lex);
	sg_ptx_expect(p, '{');
	while (!p->failed && p->lex.now.kind != TOKEN_END && !sg_ptx_token_is(&p->lex.now, '}'))
		sg_ptx_lexer_next(&p->lex);
	sg_ptx_expect(p, '}');
}

static void skip_file(struct parser *p)
{
	sg_ptx_parse_number(p);
	if (!p->failed && p->lex.now.kind != TOKEN_STRING)
		sg_ptx_fail_token(p, "a file's name");
	if (p->failed)
		return;
	sg_ptx_lexer_next(&p->lex);
	while (sg_ptx_accept(p, ','))
		sg_ptx_parse_number(p);
}

/* Parses ".version 9.0"; the lexer reads the number as a decimal. */
static void parse_version(struct parser *p)
{
	const struct token *t = &p->lex.now;
	double version;

	if (t->kind != TOKEN_F64) {
		sg_ptx_fail_token(p, "a version");
		return;
	}
	version = sg_ptx_f64(t->value);
	if (!(version >= 1 && version < 100)) {
		sg_ptx_fail_token(p, "a version");
		return;
	}
	/* Another part begins, so names that only the last part knew are forgotten. */
	if (p->m->version)
		sg_ptx_names_deinit(&p->names);
	if ((uint32_t)(version * 10 + 0.5) > p->m->version)
		p->m->version = (uint32_t)(version * 10 + 0.5);
	sg_ptx_lexer_next(&p->lex);
}

static void parse_target(struct parser *p)
{
	do {
		const struct token *t = &p->lex.now;

		if (!sg_ptx_is_name(p)) {
			sg_ptx_fail_token(p, "a target");
			return;
		}
		if (t->len > 3 && t->len < 8 && !memcmp(t->at, "sm_", 3)) {
			uint32_t target = 0, n = 3;

			for (; n < t->len && t->at[n] >= '0' && t->at[n] <= '9'; n++)
				target = target * 10 + (uint32_t)(t->at[n] - '0');
			p->m->target = target > p->m->target ? target : p->m->target;
			if (n < t->len && p->m->suffix != 'a')
				/* the narrower suffix applies to all parts */
				p->m->suffix = t->at[n];
		}
		sg_ptx_lexer_next(&p->lex);
	} while (sg_ptx_accept(p, ','));
}

static void parse_linked(struct parser *p, enum linkage linkage)
{
	if (sg_ptx_accept_dot(p, "entry"))
		parse_function(p, true, linkage);
	else if (sg_ptx_accept_dot(p, "func"))
		parse_function(p, false, linkage);
	else if (sg_ptx_accept_dot(p, "global"))
		sg_ptx_parse_variable(p, false, linkage);
	else if (sg_ptx_accept_dot(p, "const"))
		sg_ptx_parse_variable(p, true, linkage);
	else if (sg_ptx_accept_dot(p, "shared"))
		sg_ptx_parse_shared(p, linkage == LINKAGE_EXTERN);
	else if (p->lex.now.kind == TOKEN_DOT)
		sg_ptx_fail(p, p->lex.now.line, "directive \".%.*s\" is not supported",
			(int)p->lex.now.len, p->lex.now.at);
	else
		sg_ptx_fail_token(p, "a directive");
}

static void parse_directive(struct parser *p)
{
	p->line = p->lex.now.line;
	if (sg_ptx_accept_dot(p, "version"))
		parse_version(p);
	else if (sg_ptx_accept_dot(p, "target"))
		parse_target(p);
	else if (sg_ptx_accept_dot(p, "address_size"))
		sg_ptx_parse_number(p);
	else if (sg_ptx_accept_dot(p, "file"))
		skip_file(p);
	else if (sg_ptx_accept_dot(p, "section"))
		skip_section(p);
	else if (sg_ptx_accept_dot(p, "extern"))
		parse_linked(p, LINKAGE_EXTERN);
	else if (sg_ptx_accept_dot(p, "visible"))
		parse_linked(p, LINKAGE_VISIBLE);
	else if (sg_ptx_accept_dot(p, "weak") || sg_ptx_accept_dot(p, "common"))
		parse_linked(p, LINKAGE_WEAK);
	else
		parse_linked(p, LINKAGE_LOCAL);
}

static void free_function(struct function *f)
{
	free_calls(f);
	free(f->params);
	free(f->refusal);
	free(f->name);
	free(f->insns);
	free(f->lines);
	free(f->frame);
	free(f->specials);
	free(f->relocs);
	free(f->formals);
	free(f);
}

void sg_ptx_module_free(struct sg_ptx_module *m)
{
	if (!m)
		return;
	for (uint32_t n = 0; n < m->function_count; n++)
		free_function(m->functions[n]);
	for (uint32_t n = 0; n < m->variable_count; n++) {
		free(m->variables[n]->name);
		free(m->variables[n]->bytes);
		free(m->variables[n]->initials);
		free(m->variables[n]);
	}
	free(m->functions);
	free(m->variables);
	free(m);
}

int sg_ptx_module_new(const char *text, size_t len, struct td_err *err, struct sg_ptx_module **ret)
{
	struct td_err unseen = {0};
	struct parser p = {.err = err ? err : &unseen};

	while (len && !text[len - 1])
		len--;
	if (len > UINT32_MAX / 2)
		return td_err_set(err, -EINVAL, "the text is longer than 2 GiB");
	p.m = calloc(1, sizeof(*p.m));
	if (!p.m)
		return td_err_set(err, -ENOMEM, "out of memory");
	sg_ptx_lexer_init(&p.lex, text, len);
	while (!p.failed && p.lex.now.kind != TOKEN_END)
		parse_directive(&p);
	if (!p.failed && !p.m->version)
		sg_ptx_fail(&p, 1, "the text has no \".version\"");
	if (!p.failed)
		sg_ptx_link(&p);
	sg_ptx_build_deinit(&p.b);
	sg_ptx_names_deinit(&p.names);
	sg_ptx_names_deinit(&p.linked);
	if (p.failed)
		sg_ptx_module_free(p.m);
	else
		*ret = p.m;
	return p.failed;
}
