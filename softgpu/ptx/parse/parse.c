/* Functions that all files of the parser share: errors, tokens, types, declarations. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "ptx/parse/parse.h"

int sg_ptx_fail(struct parser *p, uint32_t line, const char *format, ...)
{
	char text[TD_ERR_MSG_MAX];
	va_list args;

	if (p->failed)
		return p->failed;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	for (char *c = text; *c; c++)
		*c = *c >= ' ' && *c < 127 ? *c : '?';
	p->failed = td_err_set(p->err, -EINVAL, "line %u: %.230s", line, text);
	return p->failed;
}

int sg_ptx_refuse(struct parser *p, uint32_t line, const char *format, ...)
{
	char text[TD_ERR_MSG_MAX];
	va_list args;

	if (p->failed)
		return p->failed;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	p->refused_line = line;
	return sg_ptx_fail(p, line, "%s", text);
}

int sg_ptx_fail_memory(struct parser *p)
{
	if (!p->failed)
		p->failed = td_err_set(p->err, -ENOMEM, "out of memory");
	return p->failed;
}

int sg_ptx_fail_token(struct parser *p, const char *expected)
{
	const struct token *t = &p->lex.now;
	bool is_dot = t->kind == TOKEN_DOT;

	if (t->kind == TOKEN_END)
		return sg_ptx_fail(p, t->line, "the text ends where %s is expected", expected);
	return sg_ptx_fail(p, t->line, "\"%s%.*s\" where %s is expected", is_dot ? "." : "",
		(int)(t->len < 80 ? t->len : 80), t->at, expected);
}

bool sg_ptx_reserve(struct parser *p, void *array, uint32_t *capacity, uint32_t count, size_t size)
{
	uint32_t wanted = *capacity ? *capacity * 2 : 16;
	void *grown;

	if (p->failed)
		return false;
	if (count <= *capacity)
		return true;
	wanted = wanted < count ? count : wanted;
	grown = realloc(*(void **)array, wanted * size);
	if (!grown) {
		sg_ptx_fail_memory(p);
		return false;
	}
	*(void **)array = grown;
	*capacity = wanted;
	return true;
}

char *sg_ptx_copy_name(struct parser *p, const char *at, uint32_t len)
{
	char *copy = strndup(at, len);

	if (!copy)
		sg_ptx_fail_memory(p);
	return copy;
}

bool sg_ptx_text_is(const char *at, uint32_t len, const char *name)
{
	return strlen(name) == len && !memcmp(at, name, len);
}

bool sg_ptx_accept(struct parser *p, char c)
{
	if (p->failed || !sg_ptx_token_is(&p->lex.now, c))
		return false;
	sg_ptx_lexer_next(&p->lex);
	return true;
}

bool sg_ptx_accept_dot(struct parser *p, const char *name)
{
	const struct token *t = &p->lex.now;

	if (p->failed || t->kind != TOKEN_DOT || !sg_ptx_text_is(t->at, t->len, name))
		return false;
	sg_ptx_lexer_next(&p->lex);
	return true;
}

bool sg_ptx_expect(struct parser *p, char c)
{
	char expected[] = {'"', c, '"', 0};

	if (!p->failed && !sg_ptx_accept(p, c))
		sg_ptx_fail_token(p, expected);
	return !p->failed;
}

bool sg_ptx_is_name(const struct parser *p)
{
	return !p->failed && p->lex.now.kind == TOKEN_NAME;
}

/* An unsigned number. */
uint64_t sg_ptx_parse_number(struct parser *p)
{
	uint64_t v = p->lex.now.value;

	if (p->failed)
		return 0;
	if (p->lex.now.kind != TOKEN_INT) {
		sg_ptx_fail_token(p, "a number");
		return 0;
	}
	sg_ptx_lexer_next(&p->lex);
	return v;
}

static const struct {
	const char *name;
	uint32_t bytes;
} types[T_N] = {
	[T_NONE] = {"", 0},
	[T_U8] = {"u8", 1},
	[T_U16] = {"u16", 2},
	[T_U32] = {"u32", 4},
	[T_U64] = {"u64", 8},
	[T_S8] = {"s8", 1},
	[T_S16] = {"s16", 2},
	[T_S32] = {"s32", 4},
	[T_S64] = {"s64", 8},
	[T_B8] = {"b8", 1},
	[T_B16] = {"b16", 2},
	[T_B32] = {"b32", 4},
	[T_B64] = {"b64", 8},
	[T_F32] = {"f32", 4},
	[T_F64] = {"f64", 8},
	[T_F16] = {"f16", 2},
	[T_F16X2] = {"f16x2", 4},
	[T_BF16] = {"bf16", 2},
	[T_BF16X2] = {"bf16x2", 4},
	[T_PRED] = {"pred", 1},
};

enum ptx_type sg_ptx_type_of(const char *at, uint32_t len)
{
	for (unsigned n = 1; n < T_N; n++) {
		if (sg_ptx_text_is(at, len, types[n].name))
			return (enum ptx_type)n;
	}
	return T_NONE;
}

uint32_t sg_ptx_type_bytes(enum ptx_type type)
{
	return types[type].bytes;
}

/* Parses the bounds of an array, whose product stays below 2^40. */
static void parse_dimensions(struct parser *p, struct declaration *d)
{
	uint64_t count = 1;

	while (sg_ptx_accept(p, '[')) {
		if (sg_ptx_accept(p, ']')) {
			d->is_unsized = true;
			continue;
		}
		uint64_t n = sg_ptx_parse_number(p);

		if (n > 1ull << 40 || __builtin_mul_overflow(count, n, &count) ||
			count > 1ull << 40)
			sg_ptx_fail(p, d->line, "array \"%.*s\" is too large", (int)d->len, d->at);
		sg_ptx_expect(p, ']');
	}
	d->elements = count;
}

/* Skips ".ptr .global .align 1" behind a parameter's type, which is not needed. */
static void skip_pointer_hints(struct parser *p)
{
	if (!sg_ptx_accept_dot(p, "ptr"))
		return;
	if (sg_ptx_accept_dot(p, "global") || sg_ptx_accept_dot(p, "shared") ||
		sg_ptx_accept_dot(p, "const") || sg_ptx_accept_dot(p, "local")) {
	}
	if (sg_ptx_accept_dot(p, "align"))
		sg_ptx_parse_number(p);
}

bool sg_ptx_parse_declaration(struct parser *p, struct declaration *ret)
{
	struct declaration d = {.line = p->lex.now.line};
	const struct token *t = &p->lex.now;

	if (sg_ptx_accept_dot(p, "align")) {
		d.align = sg_ptx_parse_number(p);
		if (!d.align || d.align & (d.align - 1) || d.align > 4096)
			sg_ptx_fail(p, d.line, "alignment %llu is not a power of two up to 4096",
				(unsigned long long)d.align);
	}
	if (p->failed)
		return false;
	if (t->kind == TOKEN_DOT)
		d.type = sg_ptx_type_of(t->at, t->len);
	if (d.type == T_NONE || d.type == T_PRED) {
		if (t->kind == TOKEN_DOT)
			sg_ptx_fail(
				p, t->line, "type \".%.*s\" is not supported", (int)t->len, t->at);
		else
			sg_ptx_fail_token(p, "a type");
		return false;
	}
	sg_ptx_lexer_next(&p->lex);
	skip_pointer_hints(p);
	if (!sg_ptx_is_name(p)) {
		sg_ptx_fail_token(p, "a name");
		return false;
	}
	d.at = t->at;
	d.len = t->len;
	sg_ptx_lexer_next(&p->lex);
	parse_dimensions(p, &d);
	if (d.align < sg_ptx_type_bytes(d.type))
		d.align = sg_ptx_type_bytes(d.type);
	d.bytes = d.elements * sg_ptx_type_bytes(d.type);
	*ret = d;
	return !p->failed;
}

static void declare(struct parser *p, struct names *names, const struct declaration *d,
	const struct symbol *symbol)
{
	int r;

	if (p->failed)
		return;
	r = sg_ptx_names_add(names, d->at, d->len, symbol);
	if (r == -EEXIST)
		sg_ptx_fail(p, d->line, "\"%.*s\" is declared twice", (int)d->len, d->at);
	else if (r)
		sg_ptx_fail_memory(p);
}

void sg_ptx_declare(struct parser *p, const struct declaration *d, const struct symbol *symbol)
{
	declare(p, &p->names, d, symbol);
}

void sg_ptx_declare_linked(struct parser *p, const struct declaration *d,
	const struct symbol *symbol, enum linkage linkage)
{
	declare(p, linkage == LINKAGE_LOCAL ? &p->names : &p->linked, d, symbol);
}

struct symbol *sg_ptx_find_name(const struct parser *p, const char *at, uint32_t len)
{
	struct symbol *s = sg_ptx_names_find(&p->names, at, len);

	return s ? s : sg_ptx_names_find(&p->linked, at, len);
}
