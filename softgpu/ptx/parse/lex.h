/* Splits a PTX text into tokens. Comments and blanks are skipped; nothing is copied. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum token_kind {
	TOKEN_END,
	TOKEN_NAME, /* letters, digits, _ $ %; no dots */
	TOKEN_DOT,  /* ".global"; also "::" within a name; at and len exclude the dot */
	TOKEN_INT,
	TOKEN_F32, /* 0f3F800000 */
	TOKEN_F64, /* 0d..., or decimal with a point or exponent */
	TOKEN_STRING,
	TOKEN_PUNCT, /* one character, at[0] */
	TOKEN_BAD,
	TOKEN_N
};

struct token {
	enum token_kind kind;
	const char *at;
	uint32_t len, line;
	uint64_t value; /* a number's value: the integer, or the bits of the float */
};

struct lexer {
	const char *at, *end;
	uint32_t line;
	struct token now;
};

/* Makes the first token current. */
void sg_ptx_lexer_init(struct lexer *l, const char *text, size_t len);
void sg_ptx_lexer_next(struct lexer *l);

static inline bool sg_ptx_token_is(const struct token *t, char c)
{
	return t->kind == TOKEN_PUNCT && *t->at == c;
}
