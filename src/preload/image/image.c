/*
 * Reads kernel images: the sections of a cubin, and PTX by image_ptx.c. Fatbins and cubins are read
 * as nvcc 13 makes them (fatBinaryCtl.h, and the files themselves). All lengths and offsets are
 * checked, because an image may be damaged.
 */
#include "preload/image/image.h"

#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "preload/image/image_ptx.h"
#include "preload/image/unpack.h"

#define WRAPPER_MAGIC 0x466243b1u
#define FATBIN_MAGIC  0xba55ed50u
#define ENTRY_PTX     1
#define ENTRY_ELF     2
#define LZ4           0x2000u
#define ZSTD          0x8000u
#define COMPRESSED    (LZ4 | ZSTD)
/*
 * At most this much of one image is unpacked, over all entries. It bounds the time (some seconds)
 * and the memory that this takes in the program.
 */
#define UNPACKED_MAX  (512ull << 20)
#define LINKED        2 /* version of a wrapper with a list of images, ended by NULL */
#define LINKED_MAX    65536
#define EM_CUBIN      190
#define OTHER_MANAGED 4 /* a managed variable's st_other, as nvcc 13 writes it */

struct fatbin {
	uint32_t magic;
	uint16_t version, header_bytes;
	uint64_t bytes; /* length of the data after the header */
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

/* -- cubins: managed variables lie in the usual sections; only their symbols tell them apart -- */

struct cubin {
	const char *image;
	size_t len;
	Elf64_Ehdr head;
	Elf64_Shdr names; /* the section names */
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

/* Returns whether this section holds variables: .nv.global or .nv.global.init. */
static bool holds_variables(const struct cubin *c, const Elf64_Shdr *s)
{
	static const char global[] = ".nv.global";

	return s->sh_flags & SHF_ALLOC &&
	       lies_within(s->sh_name, sizeof(global), c->names.sh_size) &&
	       !strncmp(c->image + c->names.sh_offset + s->sh_name, global, sizeof(global) - 1);
}

/* Returns the bytes of the managed variables in one symbol table. */
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
			sum = td_image_plus(sum, symbol.st_size);
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
		/*
		 * A file has one symbol table (System V ABI, sections). Of a file with thousands,
		 * only the first is read.
		 */
		if (s.sh_type == SHT_SYMTAB && !has_symbols)
			managed = managed_of(&c, &s);
		has_symbols |= s.sh_type == SHT_SYMTAB;
	}
	data.managed_bytes = managed < data.device_bytes ? managed : data.device_bytes;
	data.device_bytes -= data.managed_bytes;
	return data;
}

/* -- fatbins -- */

static bool is_code(const struct entry *entry)
{
	return entry->kind == ENTRY_ELF || entry->kind == ENTRY_PTX;
}

static struct td_image_data code_data(const struct entry *entry, const char *code, size_t len)
{
	return entry->kind == ENTRY_ELF ? elf_data(code, len) : td_image_ptx(code, len);
}

/* room: how many bytes may still be unpacked of the image. */
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

static void add_image_data(struct td_image_data *data, const struct td_image_data *of)
{
	if (of->device_bytes > data->device_bytes)
		data->device_bytes = of->device_bytes;
	if (of->managed_bytes > data->managed_bytes)
		data->managed_bytes = of->managed_bytes;
	data->unknown |= of->unknown;
}

/*
 * Returns the most data of any entry of a fatbin, by packed_data(). Where room is NULL, compressed
 * entries are not unpacked.
 */
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
		add_image_data(&data, &of);
	}
	return data;
}

static struct td_image_data wrapped_data(const struct wrapper *w, uint64_t *room)
{
	const void *const *list = w->version == LINKED ? w->more : NULL;
	struct td_image_data data = {0}, sum = {0}, of;

	if (w->data) {
		of = fatbin_data(w->data, SIZE_MAX, room);
		add_image_data(&data, &of);
	}
	for (unsigned i = 0; list && i < LINKED_MAX && list[i]; i++) {
		of = fatbin_data(list[i], SIZE_MAX, room);
		sum.device_bytes = td_image_plus(sum.device_bytes, of.device_bytes);
		sum.managed_bytes = td_image_plus(sum.managed_bytes, of.managed_bytes);
		sum.unknown |= of.unknown;
	}
	add_image_data(&data, &sum);
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
	return td_image_is_ptx(image, len) ? td_image_ptx(image, len) : none;
}
