/*
 * Reads PTX declarations ("PTX ISA", 5.1 state spaces and 5.4 variables) to find how much device
 * memory the variables take. A declaration whose size cannot be read is unknown; the caller
 * measures it when loading.
 */
#include "preload/image/image_ptx.h"

#include <string.h>

struct text {
	const char *at, *end;
};

/* Skips blanks and comments. */
static void skip(struct text *t)
{
	while (t->at < t->end) {
		size_t left = (size_t)(t->end - t->at);

		if (strchr(" \t\r\n\f\v", *t->at)) {
			t->at++;
		} else if (left > 1 && t->at[0] == '/' && t->at[1] == '/') {
			while (t->at < t->end && *t->at != '\n')
				t->at++;
		} else if (left > 1 && t->at[0] == '/' && t->at[1] == '*') {
			const char *end = memmem(t->at + 2, left - 2, "*/", 2);

			t->at = end ? end + 2 : t->end;
		} else {
			return;
		}
	}
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '$' || c == '.' || c == '%';
}

/*
 * Directives may follow each other, or a number, without a blank. The parts of an instruction are
 * not directives: `ld.global` declares no variable.
 */
static bool begins_directive(const struct text *word, const struct text *t)
{
	char first = *word->at, after = t->at + 1 < t->end ? t->at[1] : 0;

	return *t->at == '.' && (first == '.' || (first >= '0' && first <= '9')) &&
	       ((after >= 'a' && after <= 'z') || (after >= 'A' && after <= 'Z'));
}

/* Returns the next word, or one other character; empty at the end. */
static struct text next_token(struct text *t)
{
	struct text token;

	skip(t);
	token.at = t->at;
	if (t->at < t->end && *t->at == '"') {
		for (t->at++; t->at < t->end && *t->at != '"'; t->at++)
			t->at += *t->at == '\\' && t->at + 1 < t->end;
		t->at += t->at < t->end;
	} else if (t->at < t->end && !is_word(*t->at)) {
		t->at++;
	} else if (t->at < t->end) {
		for (t->at++; t->at < t->end && is_word(*t->at) && !begins_directive(&token, t);)
			t->at++;
	}
	token.end = t->at;
	return token;
}

static bool is(struct text token, const char *word)
{
	return (size_t)(token.end - token.at) == strlen(word) &&
	       !memcmp(token.at, word, strlen(word));
}

/* Returns the value of a digit in any base; 36 if the character is none. */
static unsigned digit(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	if (c >= 'a' && c <= 'z')
		return (unsigned)(c - 'a') + 10;
	return c >= 'A' && c <= 'Z' ? (unsigned)(c - 'A') + 10 : 36;
}

/*
 * Reads a decimal, octal, hexadecimal or binary number with an optional U ("PTX ISA", 4.5.1 integer
 * constants). Returns UINT64_MAX on overflow. *ret_end is the rest of the token.
 */
static uint64_t number(struct text token, const char **ret_end)
{
	unsigned base = 10;
	bool is_more = false;
	uint64_t n = 0;

	if (token.end - token.at > 1 && *token.at == '0') {
		char mark = token.at[1] | 0x20;

		base = mark == 'x' ? 16 : mark == 'b' ? 2 : 8;
		token.at += base == 8 ? 1 : 2;
	}
	for (; token.at < token.end && digit(*token.at) < base; token.at++)
		is_more |= __builtin_mul_overflow(n, base, &n) ||
			   __builtin_add_overflow(n, digit(*token.at), &n);
	*ret_end = token.at;
	return is_more ? UINT64_MAX : n;
}

/*
 * -- constant expressions ("PTX ISA", 4.5.5 and 4.5.6): integers of 64 bits, signed unless one
 * operand is unsigned --
 */

#define NESTED_MAX 8 /* bounds the recursion, which uses the program's stack */

struct value {
	uint64_t bits;
	bool is_unsigned;
};

struct expression {
	struct text *t;
	unsigned nested;
	bool fails; /* the expression cannot be read or has no value */
};

static struct value ternary(struct expression *e);

static bool takes(struct expression *e, const char *word)
{
	size_t len = strlen(word);

	skip(e->t);
	if ((size_t)(e->t->end - e->t->at) < len || memcmp(e->t->at, word, len))
		return false;
	e->t->at += len;
	return true;
}

static struct value fail(struct expression *e)
{
	e->fails = true;
	return (struct value){0, false};
}

static struct value literal(struct expression *e)
{
	struct text token = {e->t->at, e->t->at};
	struct value v = {0, false};
	const char *end;

	while (token.end < e->t->end && (digit(*token.end) < 36 || *token.end == '_'))
		token.end++;
	e->t->at = token.end;
	if (is(token, "WARP_SZ"))
		return (struct value){32, false};
	if (token.at == token.end || digit(*token.at) > 9)
		return fail(e);
	v.bits = number(token, &end);
	v.is_unsigned = v.bits > INT64_MAX || (end < token.end && *end == 'U');
	end += end < token.end && *end == 'U';
	return end < token.end ? fail(e) : v;
}

static struct value primary(struct expression *e);

/* After `(`: reads a cast or an expression in parentheses. */
static struct value in_parentheses(struct expression *e)
{
	struct value v;

	if (takes(e, ".u64") || takes(e, ".s64")) {
		bool is_unsigned = e->t->at[-3] == 'u';

		v = takes(e, ")") ? primary(e) : fail(e);
		v.is_unsigned = is_unsigned;
		return v;
	}
	v = ternary(e);
	return takes(e, ")") ? v : fail(e);
}

static struct value primary(struct expression *e)
{
	struct value v;

	if (e->nested == NESTED_MAX || e->fails)
		return fail(e);
	e->nested++;
	if (takes(e, "(")) {
		v = in_parentheses(e);
	} else if (takes(e, "+")) {
		v = primary(e);
	} else if (takes(e, "-")) {
		v = primary(e);
		v.bits = -v.bits;
	} else if (takes(e, "~")) {
		v = primary(e);
		v.bits = ~v.bits;
	} else if (takes(e, "!")) {
		v = (struct value){!primary(e).bits, false};
	} else {
		v = literal(e);
	}
	e->nested--;
	return v;
}

enum operator_kind {
	SHIFT_LEFT,
	SHIFT_RIGHT,
	AT_MOST,
	AT_LEAST,
	EQUAL,
	UNEQUAL,
	AND_ALSO,
	OR_ELSE,
	TIMES,
	OVER,
	MODULO,
	PLUS,
	MINUS,
	LESS,
	MORE,
	AND,
	XOR,
	OR,
	OPERATORS,
};

/*
 * The operators of PTX. Those of two characters stand first, because the first that matches is
 * taken.
 */
static const struct {
	char word[3];
	uint8_t binds;
} operators[OPERATORS] = {{"<<", 8}, {">>", 8}, {"<=", 7}, {">=", 7}, {"==", 6}, {"!=", 6},
	{"&&", 2}, {"||", 1}, {"*", 10}, {"/", 10}, {"%", 10}, {"+", 9}, {"-", 9}, {"<", 7},
	{">", 7}, {"&", 5}, {"^", 4}, {"|", 3}};

static bool is_less(struct value a, struct value b)
{
	return a.is_unsigned || b.is_unsigned ? a.bits < b.bits : (int64_t)a.bits < (int64_t)b.bits;
}

static struct value divide(
	struct expression *e, enum operator_kind op, struct value a, struct value b)
{
	bool is_unsigned = a.is_unsigned || b.is_unsigned;

	/* INT64_MIN / -1 has no value either. */
	if (!b.bits || (!is_unsigned && b.bits == UINT64_MAX))
		return fail(e);
	if (is_unsigned)
		return (struct value){op == OVER ? a.bits / b.bits : a.bits % b.bits, true};
	return (struct value){op == OVER ? (uint64_t)((int64_t)a.bits / (int64_t)b.bits)
					 : (uint64_t)((int64_t)a.bits % (int64_t)b.bits),
		false};
}

static struct value apply(
	struct expression *e, enum operator_kind op, struct value a, struct value b)
{
	bool is_unsigned = a.is_unsigned || b.is_unsigned;
	uint64_t by = b.bits < 63 ? b.bits : 63;

	switch (op) {
	case TIMES: return (struct value){a.bits * b.bits, is_unsigned};
	case OVER:
	case MODULO: return divide(e, op, a, b);
	case PLUS: return (struct value){a.bits + b.bits, is_unsigned};
	case MINUS: return (struct value){a.bits - b.bits, is_unsigned};
	case SHIFT_LEFT: return (struct value){b.bits < 64 ? a.bits << b.bits : 0, a.is_unsigned};
	case SHIFT_RIGHT:
		return (struct value){
			a.is_unsigned ? a.bits >> by : (uint64_t)((int64_t)a.bits >> by),
			a.is_unsigned};
	case LESS: return (struct value){is_less(a, b), false};
	case MORE: return (struct value){is_less(b, a), false};
	case AT_MOST: return (struct value){!is_less(b, a), false};
	case AT_LEAST: return (struct value){!is_less(a, b), false};
	case EQUAL: return (struct value){a.bits == b.bits, false};
	case UNEQUAL: return (struct value){a.bits != b.bits, false};
	case AND: return (struct value){a.bits & b.bits, is_unsigned};
	case XOR: return (struct value){a.bits ^ b.bits, is_unsigned};
	case OR: return (struct value){a.bits | b.bits, is_unsigned};
	case AND_ALSO: return (struct value){a.bits && b.bits, false};
	case OR_ELSE: return (struct value){a.bits || b.bits, false};
	case OPERATORS: break;
	}
	return fail(e);
}

/* Reads operators that bind at least as tightly as `least`. */
static struct value binary(struct expression *e, unsigned least)
{
	struct value v = primary(e);
	const char *before;
	unsigned op;

	while (!e->fails) {
		skip(e->t);
		before = e->t->at;
		for (op = 0; op < OPERATORS && !takes(e, operators[op].word);)
			op++;
		if (op == OPERATORS || operators[op].binds < least) {
			e->t->at = before;
			break;
		}
		v = apply(e, (enum operator_kind)op, v, binary(e, operators[op].binds + 1u));
	}
	return v;
}

static struct value ternary(struct expression *e)
{
	struct value v = binary(e, 1), yes, no;

	if (e->fails || !takes(e, "?"))
		return v;
	if (e->nested++ == NESTED_MAX)
		return fail(e);
	yes = ternary(e);
	no = takes(e, ":") ? ternary(e) : fail(e);
	e->nested--;
	return v.bits ? yes : no;
}

/* Reads a number of elements and the token after it. Returns false if it cannot be read. */
static bool count_of(struct text *t, bool is_literal, const char *end, uint64_t *ret)
{
	struct expression e = {.t = t};
	struct value v = is_literal ? primary(&e) : ternary(&e);

	if (!takes(&e, end) || e.fails || (!v.is_unsigned && (int64_t)v.bits < 0))
		return false;
	*ret = v.bits;
	return true;
}

/* Returns the size of a type in bytes; 0 if the token is no type. */
static uint64_t type_bytes(struct text token)
{
	static const struct {
		const char *name;
		unsigned bytes;
	} types[] = {{".b8", 1}, {".u8", 1}, {".s8", 1}, {".e4m3x2", 2}, {".e5m2x2", 2},
		{".b16", 2}, {".u16", 2}, {".s16", 2}, {".f16", 2}, {".bf16", 2}, {".b32", 4},
		{".u32", 4}, {".s32", 4}, {".f32", 4}, {".f16x2", 4}, {".bf16x2", 4}, {".tf32", 4},
		{".b64", 8}, {".u64", 8}, {".s64", 8}, {".f64", 8}, {".b128", 16}, {".texref", 8},
		{".samplerref", 8}, {".surfref", 8}};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (is(token, types[i].name))
			return types[i].bytes;
	return 0;
}

static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* The parts of a declaration behind `.global`, as far as it has been read. */
struct declaration {
	uint64_t element, vector, bytes, sum, values;
	bool managed, has_value, is_open, is_nested, is_unknown;
	unsigned depth;
};

/*
 * Reads a dimension after `[`. If it cannot be read, the module is measured when it is loaded
 * (modules.c).
 */
static void dimension(struct declaration *d, struct text *t)
{
	struct expression e = {.t = t};
	struct text token;
	uint64_t n;

	if (takes(&e, "]")) {
		d->is_open = true;
	} else if (count_of(t, false, "]", &n)) {
		d->bytes = times(d->bytes, n);
	} else {
		d->is_unknown = true;
		do
			token = next_token(t);
		while (token.at < token.end && !is(token, "]") && !is(token, ";"));
		t->at -= is(token, ";");
	}
}

/*
 * Reads name<N>, which declares name0, name1 and so on ("PTX ISA", 5.4.6 parameterized variable
 * names).
 */
static void parameter(struct declaration *d, struct text *t)
{
	uint64_t n;

	if (count_of(t, true, ">", &n))
		d->bytes = times(d->bytes, n);
	else
		d->is_unknown = true;
}

/* Ends a variable: one with `[]` has as many elements as initial values. */
static void end_variable(struct declaration *d)
{
	if (d->is_open)
		d->bytes = times(d->is_nested ? d->bytes : times(d->element, d->vector), d->values);
	d->sum = td_image_plus(d->sum, d->bytes);
	d->bytes = d->values = 0;
	d->has_value = d->is_open = d->is_nested = false;
}

/* Handles a token that opens, closes or lies within braces or parentheses. */
static void inside(struct declaration *d, struct text token)
{
	if (is(token, "{") || is(token, "(")) {
		d->values += d->has_value && !d->depth;
		d->is_nested |= d->has_value && d->depth && is(token, "{");
		d->depth++;
	} else if (is(token, "}") || is(token, ")")) {
		d->depth--;
	} else {
		d->values += d->has_value && d->depth == 1 && is(token, ",");
		d->managed |= !d->has_value && is(token, ".managed");
	}
}

/* Reads what `.global` declares, up to the `;`. */
static void declared(struct text *t, struct td_image_data *data)
{
	struct declaration d = {.vector = 1};
	struct text token = next_token(t);

	for (; token.at < token.end && !is(token, ";"); token = next_token(t)) {
		if (d.depth || is(token, "{") || is(token, "("))
			inside(&d, token);
		else if (is(token, ","))
			end_variable(&d);
		else if (is(token, "="))
			d.has_value = true;
		else if (d.has_value)
			continue;
		else if (is(token, ".align"))
			(void)next_token(t);
		else if (is(token, ".v2") || is(token, ".v4"))
			d.vector = (uint64_t)(token.at[2] - '0');
		else if (*token.at == '.')
			d.element = type_bytes(token) ? type_bytes(token) : d.element;
		else if (is(token, "["))
			dimension(&d, t);
		else if (is(token, "<"))
			parameter(&d, t);
		else if (is_word(*token.at))
			d.bytes = times(d.element, d.vector);
	}
	end_variable(&d);
	data->unknown |= d.is_unknown;
	if (d.managed)
		data->managed_bytes = td_image_plus(data->managed_bytes, d.sum);
	else
		data->device_bytes = td_image_plus(data->device_bytes, d.sum);
}

struct td_image_data td_image_ptx(const char *image, size_t len)
{
	struct text t = {image, image + (len == SIZE_MAX ? strlen(image) : strnlen(image, len))};
	struct text token, before = {NULL, NULL};
	struct td_image_data data = {0};

	for (token = next_token(&t); token.at < token.end; before = token, token = next_token(&t))
		if (is(token, ".global") &&
			!(before.at && (is(before, ".extern") || is(before, ".ptr"))))
			declared(&t, &data);
	return data;
}

bool td_image_is_ptx(const char *image, size_t len)
{
	struct text t = {image, image};

	if (!strchr("./ \t\r\n\f\v", *image))
		return false;
	t.end += len == SIZE_MAX ? strlen(image) : strnlen(image, len);
	skip(&t);
	return t.end - t.at > 8 && !memcmp(t.at, ".version", 8);
}
