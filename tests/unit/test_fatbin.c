/* Fat binaries made by hand: which entry is chosen, and that sizes which lie are found out. */
#include "test.h"

#include "ptx/fatbin.h"

struct image {
	uint8_t bytes[1024];
	size_t len;
};

static void put(struct image *i, size_t at, uint64_t value, unsigned bytes)
{
	memcpy(i->bytes + at, &value, bytes);
}

static void image_init(struct image *i)
{
	*i = (struct image){.len = 16};
	put(i, 0, SG_FATBIN_MAGIC, 4);
	put(i, 4, 1, 2);
	put(i, 6, 16, 2);
}

static void image_add(
	struct image *i, unsigned kind, uint32_t sm, uint64_t flags, const char *text, size_t len)
{
	size_t at = i->len;

	put(i, at, kind, 2);
	put(i, at + 4, 64, 4);
	put(i, at + 8, len, 8);
	put(i, at + 28, sm, 4);
	put(i, at + 40, flags, 8);
	memcpy(i->bytes + at + 64, text, len);
	i->len += 64 + len;
	put(i, 8, i->len - 16, 8);
}

TEST(the_newest_ptx_that_the_gpu_runs_is_chosen)
{
	struct sg_fatbin_ptx ptx;
	struct image i;

	image_init(&i);
	image_add(&i, 1, 52, 0, "old\0\0\0", 6);
	image_add(&i, 2, 75, 0, "cubin", 5);
	image_add(&i, 1, 75, 0, "right\0", 6);
	image_add(&i, 1, 90, 0, "new", 3);
	CHECK_EQ(sg_fatbin_find_ptx(i.bytes, i.len, 80, &ptx), 0);
	CHECK_EQ(ptx.sm, 75);
	CHECK_EQ(ptx.len, 5);
	CHECK(!memcmp(ptx.text, "right", 5));
	CHECK_EQ(sg_fatbin_find_ptx(i.bytes, SIZE_MAX, 100, &ptx), 0);
	CHECK_EQ(ptx.sm, 90);
	CHECK_EQ(ptx.len, 3);
	CHECK_EQ(sg_fatbin_find_ptx(i.bytes, i.len, 50, &ptx), SG_FATBIN_NO_BINARY);
}

TEST(machine_code_alone_is_no_binary)
{
	struct sg_fatbin_ptx ptx;
	struct image i;

	image_init(&i);
	CHECK_EQ(sg_fatbin_find_ptx(i.bytes, i.len, 90, &ptx), SG_FATBIN_NO_BINARY);
	image_add(&i, 2, 90, 0, "cubin", 5);
	CHECK_EQ(sg_fatbin_find_ptx(i.bytes, i.len, 90, &ptx), SG_FATBIN_NO_BINARY);
}

TEST(compressed_ptx_is_told_apart)
{
	struct sg_fatbin_ptx ptx;
	struct image i;

	image_init(&i);
	image_add(&i, 1, 75, 0x2000, "lz4", 3);
	CHECK_EQ(sg_fatbin_find_ptx(i.bytes, i.len, 90, &ptx), SG_FATBIN_COMPRESSED);
	image_add(&i, 1, 80, 0, "plain", 5);
	CHECK_EQ(sg_fatbin_find_ptx(i.bytes, i.len, 90, &ptx), 0);
	image_add(&i, 1, 90, 0x8000, "zstd", 4);
	CHECK_EQ(sg_fatbin_find_ptx(i.bytes, i.len, 90, &ptx), SG_FATBIN_COMPRESSED);
}

TEST(sizes_that_lie_are_malformed)
{
	struct sg_fatbin_ptx ptx;
	struct image good, i;

	image_init(&good);
	image_add(&good, 1, 75, 0, "text", 4);
	for (size_t len = 0; len < good.len; len++)
		CHECK_EQ(sg_fatbin_find_ptx(good.bytes, len, 90, &ptx), SG_FATBIN_MALFORMED);
	i = good;
	put(&i, 16 + 8, 5, 8);
	CHECK_EQ(sg_fatbin_find_ptx(i.bytes, i.len, 90, &ptx), SG_FATBIN_MALFORMED);
	i = good;
	put(&i, 16 + 8, UINT64_MAX, 8);
	CHECK_EQ(sg_fatbin_find_ptx(i.bytes, i.len, 90, &ptx), SG_FATBIN_MALFORMED);
	i = good;
	put(&i, 16 + 4, 0, 4);
	CHECK_EQ(sg_fatbin_find_ptx(i.bytes, i.len, 90, &ptx), SG_FATBIN_MALFORMED);
	i = good;
	put(&i, 0, 0, 4);
	CHECK_EQ(sg_fatbin_find_ptx(i.bytes, i.len, 90, &ptx), SG_FATBIN_MALFORMED);
}

TEST(wrappers_hold_one_image_or_a_list)
{
	struct sg_fatbin_wrapper w = {SG_FATBIN_WRAPPER_MAGIC, 1, NULL, NULL};
	struct sg_fatbin_ptx ptx;
	struct image i, k;
	const void *list[] = {&i.bytes, &k.bytes, NULL};

	image_init(&i);
	image_add(&i, 1, 75, 0, "one", 3);
	image_init(&k);
	image_add(&k, 1, 80, 0, "two", 3);
	CHECK_EQ(sg_fatbin_wrapper_count(&w), 0);
	w.data = i.bytes;
	CHECK_EQ(sg_fatbin_wrapper_count(&w), 1);
	CHECK_EQ(sg_fatbin_wrapper_find_ptx(&w, 0, 90, &ptx), 0);
	CHECK_EQ(ptx.sm, 75);
	CHECK_EQ(sg_fatbin_wrapper_find_ptx(&w, 1, 90, &ptx), SG_FATBIN_MALFORMED);
	w.version = 2;
	w.filename_or_fatbins = list;
	CHECK_EQ(sg_fatbin_wrapper_count(&w), 2);
	CHECK_EQ(sg_fatbin_wrapper_find_ptx(&w, 1, 90, &ptx), 0);
	CHECK_EQ(ptx.sm, 80);
	w.magic++;
	CHECK_EQ(sg_fatbin_wrapper_count(&w), 0);
	CHECK_EQ(sg_fatbin_wrapper_find_ptx(&w, 0, 90, &ptx), SG_FATBIN_MALFORMED);
}
