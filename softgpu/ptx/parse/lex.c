/* The PTX lexer: bounded by the text's end, never by a NUL. */
#include "ptx/parse/lex.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

void sg_ptx_lexer_init(struct lexer *l, const char *text, size_t len)
{
	*l = (struct lexer){.at = text, .end = text + len, .line = 1};
	sg_ptx_lexer_next(l);
}

static int peek(const struct lexer *l, size_t n)
{
	return (size_t)(l->end - l->at) > n ? (unsigned char)l->at[n] : 0;
}

static void skip_block_comment(struct lexer *l)
{
	for (l->at += 2; l->at < l->end; l->at++) {
		if (*l->at == '\n')
			l->line++;
		if (peek(l, 0) == '*' && peek(l, 1) == '/') {
			l->at += 2;
			return;
		}
	}
}

static void skip_blanks(struct lexer *l)
{
	while (l->at < l->end) {
		if (*l->at == '\n') {
			l->line++;
			l->at++;
		} else if (isspace((unsigned char)*l->at)) {
			l->at++;
		} else if (peek(l, 0) == '/' && peek(l, 1) == '/') {
			while (l->at < l->end && *l->at != '\n')
				l->at++;
		} else if (peek(l, 0) == '/' && peek(l, 1) == '*') {
			skip_block_comment(l);
		} else {
			return;
		}
	}
}

static bool is_name(int c)
{
	return isalnum(c) || c == '_' || c == '$' || c == '%';
}

static void read_name(struct lexer *l, struct token *t)
{
	while (is_name(peek(l, 0)))
		l->at++;
	t->len = (uint32_t)(l->at - t->at);
	t->kind = TOKEN_NAME;
}

static void read_dot(struct lexer *l, struct token *t)
{
	t->at = ++l->at;
	while (is_name(peek(l, 0)) ||
		(peek(l, 0) == ':' && peek(l, 1) == ':' && is_name(peek(l, 2)))) {
		if (peek(l, 0) == ':')
			l->at++;
		l->at++;
	}
	t->len = (uint32_t)(l->at - t->at);
	t->kind = t->len ? TOKEN_DOT : TOKEN_BAD;
}

static int digit_of(int c)
{
	return isdigit(c) ? c - '0' : isxdigit(c) ? tolower(c) - 'a' + 10 : 99;
}

/* Reads the digits of a number. Returns false if there are none, or more than 64 bits. */
static bool read_digits(struct lexer *l, unsigned base, uint64_t *ret)
{
	const char *start = l->at;
	uint64_t v = 0;

	for (; digit_of(peek(l, 0)) < (int)base; l->at++) {
		if (__builtin_mul_overflow(v, base, &v) ||
			__builtin_add_overflow(v, (unsigned)digit_of(peek(l, 0)), &v))
			return false;
	}
	*ret = v;
	return l->at > start;
}

static bool read_prefixed(struct lexer *l, struct token *t)
{
	const char *start = l->at += 2;

	switch (l->at[-1]) {
	case 'x':
	case 'X': return read_digits(l, 16, &t->value);
	case 'b':
	case 'B': return read_digits(l, 2, &t->value);
	case 'f':
	case 'F': t->kind = TOKEN_F32; return read_digits(l, 16, &t->value) && l->at == start + 8;
	default: t->kind = TOKEN_F64; return read_digits(l, 16, &t->value) && l->at == start + 16;
	}
}

/* Reads a decimal number such as 1.5 or 1e3. strtod() needs a copy that ends with a NUL. */
static bool read_decimal(struct lexer *l, struct token *t)
{
	char copy[64];
	size_t n = 0;
	double v;

	l->at = t->at;
	while (n < sizeof(copy) - 1 && (isalnum(peek(l, n)) || peek(l, n) == '.' ||
					       ((peek(l, n) == '-' || peek(l, n) == '+') &&
						       tolower(peek(l, n - 1)) == 'e'))) {
		copy[n] = l->at[n];
		n++;
	}
	copy[n] = 0;
	char *end;

	v = strtod(copy, &end);
	l->at += end - copy;
	memcpy(&t->value, &v, sizeof(v));
	t->kind = TOKEN_F64;
	return end > copy;
}

static void read_number(struct lexer *l, struct token *t)
{
	bool ok;

	t->kind = TOKEN_INT;
	if (peek(l, 0) == '0' && peek(l, 1) && strchr("xXbBfFdD", peek(l, 1))) {
		ok = read_prefixed(l, t);
	} else {
		ok = read_digits(l, peek(l, 0) == '0' && isdigit(peek(l, 1)) ? 8 : 10, &t->value);
		if (peek(l, 0) == '.' || tolower(peek(l, 0)) == 'e')
			ok = read_decimal(l, t);
	}
	if (t->kind == TOKEN_INT && peek(l, 0) == 'U')
		l->at++;
	if (!ok || is_name(peek(l, 0)))
		t->kind = TOKEN_BAD;
	t->len = (uint32_t)(l->at - t->at);
}

static void read_string(struct lexer *l, struct token *t)
{
	t->at = ++l->at;
	while (l->at < l->end && *l->at != '"' && *l->at != '\n')
		l->at += peek(l, 0) == '\\' && peek(l, 1) && peek(l, 1) != '\n' ? 2 : 1;
	t->len = (uint32_t)(l->at - t->at);
	t->kind = peek(l, 0) == '"' ? TOKEN_STRING : TOKEN_BAD;
	if (t->kind == TOKEN_STRING)
		l->at++;
}

void sg_ptx_lexer_next(struct lexer *l)
{
	struct token *t = &l->now;

	skip_blanks(l);
	*t = (struct token){.kind = TOKEN_END, .at = l->at, .line = l->line};
	if (l->at >= l->end)
		return;
	if (isdigit(peek(l, 0))) {
		read_number(l, t);
	} else if (is_name(peek(l, 0))) {
		read_name(l, t);
	} else if (peek(l, 0) == '.') {
		read_dot(l, t);
	} else if (peek(l, 0) == '"') {
		read_string(l, t);
	} else {
		t->kind = strchr(",;:[]{}()<>+-*|@!=~&^", peek(l, 0)) && peek(l, 0) ? TOKEN_PUNCT
										    : TOKEN_BAD;
		t->len = 1;
		l->at++;
	}
}
