/*
 * Fat binaries. Header: u32 magic, u16 version, u16 header size, u64 size of what follows. Entries:
 * u16 kind (1 PTX, 2 ELF), u32 header size at 4, u64 payload size at 8, u32 compressed size at 16,
 * u32 sm at 28, u64 flags at 40. Images are read byte by byte: files align nothing.
 */
#include "ptx/fatbin.h"

#include <stdbool.h>
#include <string.h>

#define KIND_PTX       1u
#define FLAG_LZ4       0x2000u
#define FLAG_ZSTD      0x8000u
#define HEADER_BYTES   16u
#define ENTRY_BYTES    64u
#define MAX_FATBINS    65536u
#define WRAPPER_LINKED 2u

static uint64_t read_le(const uint8_t *at, unsigned bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | at[bytes];
	return v;
}

struct entry {
	uint32_t kind, sm;
	uint64_t flags, header_bytes, payload_bytes, compressed_bytes;
};

/* false: no whole entry at `at`. */
static bool read_entry(const uint8_t *at, uint64_t left, struct entry *ret)
{
	if (left < ENTRY_BYTES)
		return false;
	*ret = (struct entry){.kind = (uint32_t)read_le(at, 2),
		.sm = (uint32_t)read_le(at + 28, 4),
		.flags = read_le(at + 40, 8),
		.header_bytes = read_le(at + 4, 4),
		.payload_bytes = read_le(at + 8, 8),
		.compressed_bytes = read_le(at + 16, 4)};
	return ret->header_bytes >= ENTRY_BYTES && ret->header_bytes <= left &&
	       ret->payload_bytes <= left - ret->header_bytes;
}

static bool is_better(const struct entry *e, uint32_t sm, bool found, uint32_t best_sm)
{
	return e->kind == KIND_PTX && e->sm <= sm && (!found || e->sm > best_sm);
}

int sg_fatbin_find_ptx(const void *image, size_t len, uint32_t sm, struct sg_fatbin_ptx *ret)
{
	struct sg_fatbin_ptx best = {0};
	const uint8_t *at = image;
	uint64_t left, header_bytes;
	bool found = false, compressed = false;
	struct entry e;

	if (len < HEADER_BYTES || read_le(at, 4) != SG_FATBIN_MAGIC || read_le(at + 4, 2) != 1)
		return SG_FATBIN_MALFORMED;
	header_bytes = read_le(at + 6, 2);
	left = read_le(at + 8, 8);
	if (header_bytes < HEADER_BYTES || header_bytes > len || left > len - header_bytes)
		return SG_FATBIN_MALFORMED;
	for (at += header_bytes; left;
		at += e.header_bytes + e.payload_bytes, left -= e.header_bytes + e.payload_bytes) {
		if (!read_entry(at, left, &e))
			return SG_FATBIN_MALFORMED;
		if (!is_better(&e, sm, found, best.sm))
			continue;
		found = true;
		compressed = e.flags & (FLAG_LZ4 | FLAG_ZSTD);
		best = (struct sg_fatbin_ptx){.text = (const char *)at + e.header_bytes,
			.len = e.payload_bytes,
			.sm = e.sm};
	}
	if (!found)
		return SG_FATBIN_NO_BINARY;
	if (compressed)
		return SG_FATBIN_COMPRESSED;
	best.len = strnlen(best.text, best.len);
	*ret = best;
	return 0;
}

size_t sg_fatbin_wrapper_count(const struct sg_fatbin_wrapper *wrapper)
{
	const void *const *list;
	size_t count = 0;

	if (wrapper->magic != SG_FATBIN_WRAPPER_MAGIC)
		return 0;
	if (wrapper->version != WRAPPER_LINKED)
		return wrapper->version == 1 && wrapper->data;
	list = wrapper->filename_or_fatbins;
	while (list && count < MAX_FATBINS && list[count])
		count++;
	return count;
}

int sg_fatbin_wrapper_find_ptx(const struct sg_fatbin_wrapper *wrapper, size_t index, uint32_t sm,
	struct sg_fatbin_ptx *ret)
{
	const void *const *list = wrapper->filename_or_fatbins;

	if (index >= sg_fatbin_wrapper_count(wrapper))
		return SG_FATBIN_MALFORMED;
	return sg_fatbin_find_ptx(wrapper->version == WRAPPER_LINKED ? list[index] : wrapper->data,
		SIZE_MAX, sm, ret);
}
