/*
 * Kernel images: the sections of a cubin, and the declarations of PTX ("PTX ISA", 5.1 state spaces and 5.4 variables). Fatbins and cubins as nvcc 13 makes them
 * (fatBinaryCtl.h and what its files look like). Nothing is believed that does not lie within the image.
 */
#include "preload/image.h"

#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "preload/unpack.h"

#define WRAPPER_MAGIC 0x466243b1u
#define FATBIN_MAGIC  0xba55ed50u
#define ENTRY_PTX     1
#define ENTRY_ELF     2
#define LZ4           0x2000u
#define ZSTD          0x8000u
#define COMPRESSED    (LZ4 | ZSTD)
#define UNPACKED_MAX                                                                               \
	(512ull << 20) /* of one image, all of its entries: some seconds of its program's time, and so much of its memory */
#define LINKED        2 /* of a wrapper: images that a linker joins, in a list that NULL ends */
#define LINKED_MAX    65536
#define EM_CUBIN      190
#define OTHER_MANAGED 4 /* of a symbol's st_other, as nvcc 13 writes it */

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

static uint64_t plus(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* -- cubins: what is managed lies in the same sections, and its symbols say so -- */

struct cubin {
	const char *image;
	size_t len;
	Elf64_Ehdr head;
	Elf64_Shdr names; /* of sections */
};

static bool read_head(struct cubin *c)
{
	Elf64_Ehdr *e = &c->head;

	if (!lies_within(0, sizeof(*e), c->len))
		return false;
	memcpy(e, c->image, sizeof(*e));
	if (e->e_ident[EI_CLASS] != ELFCLASS64 || e->e_machine != EM_CUBIN ||
		e->e_shentsize != sizeof(c->names) || e->e_shstrndx >= e->e_shnum ||
		!lies_within(e->e_shoff, (uint64_t)e->e_shnum * sizeof(c->names), c->len))
		return false;
	memcpy(&c->names, c->image + e->e_shoff + e->e_shstrndx * sizeof(c->names),
		sizeof(c->names));
	return lies_within(c->names.sh_offset, c->names.sh_size, c->len);
}

static Elf64_Shdr section(const struct cubin *c, unsigned i)
{
	Elf64_Shdr s = {0};

	if (i < c->head.e_shnum)
		memcpy(&s, c->image + c->head.e_shoff + i * sizeof(s), sizeof(s));
	return s;
}

/* .nv.global, and .nv.global.init */
static bool holds_variables(const struct cubin *c, const Elf64_Shdr *s)
{
	static const char global[] = ".nv.global";

	return s->sh_flags & SHF_ALLOC &&
	       lies_within(s->sh_name, sizeof(global), c->names.sh_size) &&
	       !strncmp(c->image + c->names.sh_offset + s->sh_name, global, sizeof(global) - 1);
}

/* Of the symbols in one table. */
static uint64_t managed_of(const struct cubin *c, const Elf64_Shdr *table)
{
	uint64_t sum = 0;

	if (!lies_within(table->sh_offset, table->sh_size, c->len))
		return 0;
	for (uint64_t at = 0; table->sh_size - at >= sizeof(Elf64_Sym); at += sizeof(Elf64_Sym)) {
		Elf64_Sym symbol;
		Elf64_Shdr in;

		memcpy(&symbol, c->image + table->sh_offset + at, sizeof(symbol));
		in = section(c, symbol.st_shndx);
		if (symbol.st_other & OTHER_MANAGED && holds_variables(c, &in))
			sum = plus(sum, symbol.st_size);
	}
	return sum;
}

static struct td_image_data elf_data(const char *image, size_t len)
{
	struct cubin c = {.image = image, .len = len};
	struct td_image_data data = {0};
	bool has_symbols = false;
	uint64_t managed = 0;

	if (!read_head(&c))
		return data;
	for (unsigned i = 0; i < c.head.e_shnum; i++) {
		Elf64_Shdr s = section(&c, i);

		if (holds_variables(&c, &s) &&
			__builtin_add_overflow(data.device_bytes, s.sh_size, &data.device_bytes))
			return (struct td_image_data){0};
		/* "Currently, an object file may have only one section of each type" (System V ABI, sections): of what has thousands the first is read. */
		if (s.sh_type == SHT_SYMTAB && !has_symbols)
			managed = managed_of(&c, &s);
		has_symbols |= s.sh_type == SHT_SYMTAB;
	}
	data.managed_bytes = managed < data.device_bytes ? managed : data.device_bytes;
	data.device_bytes -= data.managed_bytes;
	return data;
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

/* Directives need no blank between them, nor behind a number. Instructions' parts stay together: what ld.global reads is no variable of its own. */
static bool begins_directive(const struct text *word, const struct text *t)
{
	char first = *word->at, after = t->at + 1 < t->end ? t->at[1] : 0;

	return *t->at == '.' && (first == '.' || (first >= '0' && first <= '9')) &&
	       ((after >= 'a' && after <= 'z') || (after >= 'A' && after <= 'Z'));
}

/* A word, or one other character; empty at the end. */
static struct text next(struct text *t)
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

/* Behind `.global`: what is declared up to the `;`. */
static void declared(struct text *t, struct td_image_data *data)
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
	sum = plus(sum, bytes);
	if (managed)
		data->managed_bytes = plus(data->managed_bytes, sum);
	else
		data->device_bytes = plus(data->device_bytes, sum);
}

static struct td_image_data ptx_data(const char *image, size_t len)
{
	struct text t = {image, image + (len == SIZE_MAX ? strlen(image) : strnlen(image, len))};
	struct text token, before = {NULL, NULL};
	struct td_image_data data = {0};

	for (token = next(&t); token.at < token.end; before = token, token = next(&t))
		if (is(token, ".global") &&
			!(before.at && (is(before, ".extern") || is(before, ".ptr"))))
			declared(&t, &data);
	return data;
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

static bool is_code(const struct entry *entry)
{
	return entry->kind == ENTRY_ELF || entry->kind == ENTRY_PTX;
}

static struct td_image_data code_data(const struct entry *entry, const char *code, size_t len)
{
	return entry->kind == ENTRY_ELF ? elf_data(code, len) : ptx_data(code, len);
}

/* room: what may still be unpacked of the image. */
static struct td_image_data packed_data(const struct entry *e, const char *payload, uint64_t *room)
{
	const struct td_image_data unknown = {.unknown = true};
	bool is_sound = e->header_bytes >= sizeof(*e) && e->compressed_bytes <= e->bytes &&
			e->uncompressed_bytes && e->uncompressed_bytes <= *room;
	size_t len = is_sound ? e->uncompressed_bytes : 0;
	char *code = len ? malloc(len) : NULL;
	struct td_image_data data;

	*room -= len;
	if (code && (e->flags & ZSTD ? td_unpack_zstd : td_unpack_lz4)(
			    payload, e->compressed_bytes, code, len))
		data = code_data(e, code, len);
	else
		data = unknown;
	free(code);
	return data;
}

static void add(struct td_image_data *data, const struct td_image_data *of)
{
	if (of->device_bytes > data->device_bytes)
		data->device_bytes = of->device_bytes;
	if (of->managed_bytes > data->managed_bytes)
		data->managed_bytes = of->managed_bytes;
	data->unknown |= of->unknown;
}

/* room: NULL: what is compressed is not looked into. */
static struct td_image_data fatbin_data(const char *image, size_t len, uint64_t *room)
{
	struct td_image_data data = {0}, of;
	struct fatbin f;
	struct entry e;

	if (!lies_within(0, sizeof(f), len))
		return data;
	memcpy(&f, image, sizeof(f));
	if (f.magic != FATBIN_MAGIC || !lies_within(f.header_bytes, f.bytes, len))
		return data;
	len = f.header_bytes + f.bytes;
	for (uint64_t at = f.header_bytes; lies_within(at, sizeof(e), len);
		at += e.header_bytes + e.bytes) {
		memcpy(&e, image + at, sizeof(e));
		if (e.header_bytes < sizeof(e) || !lies_within(at, e.header_bytes, len) ||
			!lies_within(at + e.header_bytes, e.bytes, len))
			break;
		if (!is_code(&e) || (e.flags & COMPRESSED && !room))
			continue;
		of = e.flags & COMPRESSED ? packed_data(&e, image + at + e.header_bytes, room)
					  : code_data(&e, image + at + e.header_bytes, e.bytes);
		add(&data, &of);
	}
	return data;
}

static struct td_image_data wrapped_data(const struct wrapper *w, uint64_t *room)
{
	const void *const *list = w->version == LINKED ? w->more : NULL;
	struct td_image_data data = {0}, sum = {0}, of;

	if (w->data) {
		of = fatbin_data(w->data, SIZE_MAX, room);
		add(&data, &of);
	}
	for (unsigned i = 0; list && i < LINKED_MAX && list[i]; i++) {
		of = fatbin_data(list[i], SIZE_MAX, room);
		sum.device_bytes = plus(sum.device_bytes, of.device_bytes);
		sum.managed_bytes = plus(sum.managed_bytes, of.managed_bytes);
		sum.unknown |= of.unknown;
	}
	add(&data, &sum);
	return data;
}

struct td_image_data td_image_data(const void *image, size_t len, bool unpack)
{
	const struct td_image_data none = {0};
	uint64_t room = UNPACKED_MAX;
	struct wrapper w;
	uint32_t magic;

	if (!image || len < sizeof(magic))
		return none;
	memcpy(&magic, image, sizeof(magic));
	if (magic == WRAPPER_MAGIC && len == SIZE_MAX) {
		memcpy(&w, image, sizeof(w));
		return wrapped_data(&w, unpack ? &room : NULL);
	}
	if (magic == FATBIN_MAGIC)
		return fatbin_data(image, len, unpack ? &room : NULL);
	if (!memcmp(image, ELFMAG, SELFMAG))
		return elf_data(image, len);
	return may_be_ptx(image, len) ? ptx_data(image, len) : none;
}
