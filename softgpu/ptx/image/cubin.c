/*
 * ELF64, little-endian. Kernels are the sections ".text.NAME". The flags hold the architecture in
 * their low byte (files of nvcc 12 and before, ABI 7) or in the one above it (ABI 8).
 */
#include "ptx/image/cubin.h"

#include <string.h>

#define ELF_BYTES     64u
#define SECTION_BYTES 64u
#define TYPE_RELOC    1u
#define ABI_AT        8u
#define ABI_NEW       8u
#define PREFIX        ".text."

static uint64_t read_le(const uint8_t *at, unsigned bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | at[bytes];
	return v;
}

/* The section headers and the names of the sections. */
struct tables {
	const uint8_t *sections;
	size_t count;
	const char *names;
	size_t name_bytes;
};

static bool lies_within(uint64_t at, uint64_t bytes, size_t len)
{
	return at <= len && bytes <= len - at;
}

static bool read_tables(const uint8_t *image, size_t len, struct tables *ret)
{
	uint64_t at = read_le(image + 40, 8), names, bytes;
	size_t count = read_le(image + 60, 2), index = read_le(image + 62, 2);

	if (read_le(image + 58, 2) != SECTION_BYTES || index >= count ||
		!lies_within(at, count * SECTION_BYTES, len))
		return false;
	names = read_le(image + at + index * SECTION_BYTES + 24, 8);
	bytes = read_le(image + at + index * SECTION_BYTES + 32, 8);
	/* The table of names must end with a NUL, so that each name is a C string. */
	if (!bytes || !lies_within(names, bytes, len) || image[names + bytes - 1])
		return false;
	*ret = (struct tables){image + at, count, (const char *)image + names, bytes};
	return true;
}

static const char *kernel_of(const struct tables *t, size_t section)
{
	uint64_t name = read_le(t->sections + section * SECTION_BYTES, 4);

	if (name >= t->name_bytes || strncmp(t->names + name, PREFIX, strlen(PREFIX)) != 0)
		return NULL;
	return t->names + name + strlen(PREFIX);
}

bool sg_cubin_read(const void *image, size_t len, struct sg_cubin *ret)
{
	const uint8_t *at = image;
	struct sg_cubin cubin = {0};
	struct tables tables;
	uint32_t flags;

	if (len < ELF_BYTES || memcmp(at, "\177ELF\2\1", 6) != 0 ||
		read_le(at + 18, 2) != SG_CUBIN_MACHINE || !read_tables(at, len, &tables))
		return false;
	flags = (uint32_t)read_le(at + 48, 4);
	cubin.sm = at[ABI_AT] >= ABI_NEW ? flags >> 8 & 0xff : flags & 0xff;
	cubin.is_relocatable = read_le(at + 16, 2) == TYPE_RELOC;
	for (size_t n = 0; n < tables.count; n++)
		cubin.kernels += kernel_of(&tables, n) != NULL;
	*ret = cubin;
	return true;
}

const char *sg_cubin_kernel(const void *image, size_t len, size_t index)
{
	struct tables tables;

	if (len < ELF_BYTES || !read_tables(image, len, &tables))
		return NULL;
	for (size_t n = 0; n < tables.count; n++) {
		const char *name = kernel_of(&tables, n);

		if (name && !index--)
			return name;
	}
	return NULL;
}
