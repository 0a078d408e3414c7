/*
 * Kernel images: the sections of a cubin, and the declarations of PTX ("PTX ISA", 5.1 state spaces and 5.4 variables). Fatbins and cubins as nvcc 13 makes them
 * (fatBinaryCtl.h and what its files look like). Nothing is believed that does not lie within the image.
 */
#include "preload/image.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>

#define WRAPPER_MAGIC 0x466243b1u
#define FATBIN_MAGIC  0xba55ed50u
#define ENTRY_PTX     1
#define ENTRY_ELF     2
#define COMPRESSED    (0x2000u | 0x8000u) /* LZ4, ZSTD */
#define EM_CUBIN      190

struct fatbin {
	uint32_t magic;
	uint16_t version, header_bytes;
	uint64_t bytes; /* behind the header */
};

struct entry {
	uint16_t kind, version;
	uint32_t header_bytes;
	uint64_t bytes;
	uint32_t compressed_bytes, unknown[5];
	uint64_t flags, unknown2, uncompressed_bytes;
};

struct wrapper {
	uint32_t magic, version;
	const void *data, *more;
};

static bool lies_within(uint64_t at, uint64_t bytes, size_t len)
{
	return at <= len && bytes <= len - at;
}

/* -- cubins -- */

static uint64_t elf_bytes(const char *image, size_t len)
{
	Elf64_Ehdr e;
	Elf64_Shdr s, names;
	uint64_t sum = 0;

	if (!lies_within(0, sizeof(e), len))
		return 0;
	memcpy(&e, image, sizeof(e));
	if (e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_machine != EM_CUBIN ||
		e.e_shentsize != sizeof(s) || e.e_shstrndx >= e.e_shnum ||
		!lies_within(e.e_shoff, (uint64_t)e.e_shnum * sizeof(s), len))
		return 0;
	memcpy(&names, image + e.e_shoff + e.e_shstrndx * sizeof(s), sizeof(names));
	if (!lies_within(names.sh_offset, names.sh_size, len))
		return 0;
	for (unsigned i = 0; i < e.e_shnum; i++) {
		static const char global[] = ".nv.global";

		memcpy(&s, image + e.e_shoff + i * sizeof(s), sizeof(s));
		/* .nv.global, and .nv.global.init */
		if (s.sh_flags & SHF_ALLOC &&
			lies_within(s.sh_name, sizeof(global), names.sh_size) &&
			!strncmp(image + names.sh_offset + s.sh_name, global, sizeof(global) - 1) &&
			__builtin_add_overflow(sum, s.sh_size, &sum))
			return 0;
	}
	return sum;
}

/* -- PTX -- */

struct text {
	const char *at, *end;
};

/* Blanks and comments. */
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

/* A word, or one other character; empty at the end. */
static struct text next(struct text *t)
{
	struct text token;

	skip(t);
	token.at = t->at;
	if (t->at < t->end && *t->at == '"') {
		for (t->at++; t->at < t->end && *t->at != '"'; t->at++)
			;
		t->at += t->at < t->end;
	} else if (t->at < t->end && !is_word(*t->at)) {
		t->at++;
	} else {
		while (t->at < t->end && is_word(*t->at))
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

/* 36: none, in any base. */
static unsigned digit(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	if (c >= 'a' && c <= 'z')
		return (unsigned)(c - 'a') + 10;
	return c >= 'A' && c <= 'Z' ? (unsigned)(c - 'A') + 10 : 36;
}

/* Of decimal, octal, hexadecimal and binary digits, up to the U ("PTX ISA", 4.5.1 integer constants); UINT64_MAX: too many. */
static uint64_t number(struct text token)
{
	unsigned base = 10;
	uint64_t n = 0;

	if (token.end - token.at > 1 && *token.at == '0') {
		char mark = token.at[1] | 0x20;

		base = mark == 'x' ? 16 : mark == 'b' ? 2 : 8;
		token.at += base == 8 ? 1 : 2;
	}
	for (; token.at < token.end && digit(*token.at) < base; token.at++)
		if (__builtin_mul_overflow(n, base, &n) ||
			__builtin_add_overflow(n, digit(*token.at), &n))
			return UINT64_MAX;
	return n;
}

/* 0: it is no type. */
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

/* Behind `[`: past the `]`. Of what is no plain number nothing is known: 1. */
static uint64_t dimension(struct text *t)
{
	struct text token = next(t);
	uint64_t n =
		token.at < token.end && *token.at >= '0' && *token.at <= '9' ? number(token) : 1;

	while (token.at < token.end && !is(token, "]"))
		token = next(t);
	return n;
}

static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Behind `.global`: what is declared up to the `;`. */
static uint64_t declared(struct text *t)
{
	uint64_t element = 0, vector = 1, bytes = 0, sum = 0;
	struct text token = next(t);
	bool managed = false, value = false;
	unsigned depth = 0;

	for (; token.at < token.end && !is(token, ";"); token = next(t)) {
		if (is(token, "{") || is(token, "("))
			depth++;
		else if ((is(token, "}") || is(token, ")")) && depth)
			depth--;
		else if (depth)
			managed |= is(token, ".managed");
		else if (is(token, ".align"))
			(void)next(t);
		else if (is(token, ".v2") || is(token, ".v4"))
			vector = (uint64_t)(token.at[2] - '0');
		else if (*token.at == '.')
			element = type_bytes(token) ? type_bytes(token) : element;
		else if (is(token, "[") && !value)
			bytes = times(bytes, dimension(t));
		else if (is(token, "="))
			value = true;
		else if (is(token, ",") || (is_word(*token.at) && !value)) {
			sum = plus(sum, bytes);
			value = false;
			bytes = is(token, ",") ? 0 : times(element, vector);
		}
	}
	return managed ? 0 : plus(sum, bytes);
}

static uint64_t ptx_bytes(const char *image, size_t len)
{
	struct text t = {image, image + (len == SIZE_MAX ? strlen(image) : strnlen(image, len))};
	struct text token, before = {NULL, NULL};
	uint64_t sum = 0;

	for (token = next(&t); token.at < token.end; before = token, token = next(&t))
		if (is(token, ".global") &&
			!(before.at && (is(before, ".extern") || is(before, ".ptr"))))
			sum = plus(sum, declared(&t));
	return sum;
}

/* Of what does not begin as a text does nobody looks for the end. */
static bool may_be_ptx(const char *image, size_t len)
{
	struct text t = {image, image};

	if (!strchr("./ \t\r\n\f\v", *image))
		return false;
	t.end += len == SIZE_MAX ? strlen(image) : strnlen(image, len);
	skip(&t);
	return t.end - t.at > 8 && !memcmp(t.at, ".version", 8);
}

/* -- fatbins -- */

static uint64_t entry_bytes(const char *payload, const struct entry *entry)
{
	if (entry->flags & COMPRESSED)
		return 0;
	return entry->kind == ENTRY_ELF   ? elf_bytes(payload, entry->bytes)
	       : entry->kind == ENTRY_PTX ? ptx_bytes(payload, entry->bytes)
					  : 0;
}

static uint64_t fatbin_bytes(const char *image, size_t len)
{
	struct fatbin f;
	struct entry e;
	uint64_t most = 0, at;

	if (!lies_within(0, sizeof(f), len))
		return 0;
	memcpy(&f, image, sizeof(f));
	if (!lies_within(f.header_bytes, f.bytes, len))
		return 0;
	len = f.header_bytes + f.bytes;
	for (at = f.header_bytes; lies_within(at, sizeof(e), len);) {
		uint64_t bytes;

		memcpy(&e, image + at, sizeof(e));
		if (e.header_bytes < sizeof(e) || !lies_within(at, e.header_bytes, len) ||
			!lies_within(at + e.header_bytes, e.bytes, len))
			break;
		bytes = entry_bytes(image + at + e.header_bytes, &e);
		most = bytes > most ? bytes : most;
		at += e.header_bytes + e.bytes;
	}
	return most;
}

uint64_t td_image_data_bytes(const void *image, size_t len)
{
	struct wrapper w;
	uint32_t magic;

	if (!image || len < sizeof(magic))
		return 0;
	memcpy(&magic, image, sizeof(magic));
	if (magic == WRAPPER_MAGIC && len == SIZE_MAX) {
		memcpy(&w, image, sizeof(w));
		return w.data ? fatbin_bytes(w.data, len) : 0;
	}
	if (magic == FATBIN_MAGIC)
		return fatbin_bytes(image, len);
	if (!memcmp(image, ELFMAG, SELFMAG))
		return elf_bytes(image, len);
	return may_be_ptx(image, len) ? ptx_bytes(image, len) : 0;
}
