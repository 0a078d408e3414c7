/*
 * Fat binaries. Header: u32 magic, u16 version, u16 header size, u64 size of what follows. Entries:
 * u16 kind (1 PTX, 2 ELF), u32 header size at 4, u64 payload size at 8, u32 compressed size at 16,
 * u32 sm at 28, u64 flags at 40, u64 size when unpacked at 56. Images are read byte by byte: files
 * align nothing.
 */
#include "ptx/image/fatbin.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/image/unpack.h"

#define KIND_PTX       1u
#define FLAG_LZ4       0x2000u
#define FLAG_ZSTD      0x8000u
#define FLAG_EXACT     0x100000u /* sm_90a */
#define FLAG_FAMILY    0x200000u /* sm_100f */
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
	const uint8_t *payload;
	uint32_t kind, sm;
	uint64_t flags, header_bytes, payload_bytes, compressed_bytes, unpacked_bytes;
};

/* Reads the entry at `at`. Returns false if it is not complete. */
static bool read_entry(const uint8_t *at, uint64_t left, struct entry *ret)
{
	if (left < ENTRY_BYTES)
		return false;
	*ret = (struct entry){.kind = (uint32_t)read_le(at, 2),
		.sm = (uint32_t)read_le(at + 28, 4),
		.flags = read_le(at + 40, 8),
		.header_bytes = read_le(at + 4, 4),
		.payload_bytes = read_le(at + 8, 8),
		.compressed_bytes = read_le(at + 16, 4),
		.unpacked_bytes = read_le(at + 56, 8)};
	if (ret->header_bytes < ENTRY_BYTES || ret->header_bytes > left ||
		ret->payload_bytes > left - ret->header_bytes)
		return false;
	ret->payload = at + ret->header_bytes;
	return true;
}

static bool fits(const struct entry *e, uint32_t sm)
{
	if (e->kind != KIND_PTX)
		return false;
	if (e->flags & FLAG_EXACT)
		return e->sm == sm;
	if (e->flags & FLAG_FAMILY)
		return e->sm <= sm && e->sm / 10 == sm / 10;
	return e->sm <= sm;
}

/* The plain one first, then the family's. */
static unsigned rank(const struct entry *e)
{
	return e->flags & FLAG_EXACT ? 0 : e->flags & FLAG_FAMILY ? 1 : 2;
}

static bool is_better(const struct entry *e, const struct entry *best)
{
	return !best->payload || e->sm > best->sm || (e->sm == best->sm && rank(e) > rank(best));
}

/* Returns 0, -ENOMEM or an outcome of fatbin.h. */
static int take_text(const struct entry *e, struct sg_fatbin_ptx *ret)
{
	struct sg_fatbin_ptx ptx = {
		.text = (const char *)e->payload, .len = e->payload_bytes, .sm = e->sm};
	int r;

	if (e->flags & (FLAG_LZ4 | FLAG_ZSTD)) {
		if (e->compressed_bytes > e->payload_bytes ||
			e->unpacked_bytes > SG_FATBIN_MAX_TEXT)
			return SG_FATBIN_MALFORMED;
		ptx.len = e->unpacked_bytes;
		ptx.text = ptx.owned = malloc(ptx.len ? ptx.len : 1);
		if (!ptx.owned)
			return -ENOMEM;
		r = sg_unpack(e->flags & FLAG_ZSTD ? SG_UNPACK_ZSTD : SG_UNPACK_LZ4, e->payload,
			e->compressed_bytes, ptx.owned, ptx.len);
		if (r) {
			free(ptx.owned);
			return r == -ENOTSUP ? SG_FATBIN_COMPRESSED : SG_FATBIN_MALFORMED;
		}
	}
	ptx.len = strnlen(ptx.text, ptx.len);
	*ret = ptx;
	return 0;
}

int sg_fatbin_find_ptx(const void *image, size_t len, uint32_t sm, struct sg_fatbin_ptx *ret)
{
	struct entry e, best = {0};
	const uint8_t *at = image;
	uint64_t left, header_bytes;

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
		if (fits(&e, sm) && is_better(&e, &best))
			best = e;
	}
	return best.payload ? take_text(&best, ret) : SG_FATBIN_NO_BINARY;
}

void sg_fatbin_ptx_deinit(struct sg_fatbin_ptx *ptx)
{
	if (!ptx)
		return;
	free(ptx->owned);
	*ptx = (struct sg_fatbin_ptx){0};
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
