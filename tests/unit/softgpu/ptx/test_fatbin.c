/*
 * Fat binaries, made by hand and by nvcc: which entry is chosen, that it is unpacked, and that
 * false sizes are found.
 */
#include "unit/softgpu/ptx/ptx_bench.h"

#include "ptx/image/fatbin.h"

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

#define EXACT  0x100000u
#define FAMILY 0x200000u

static uint32_t choose(const struct image *i, uint32_t sm)
{
	struct sg_fatbin_ptx ptx;
	int r = sg_fatbin_find_ptx(i->bytes, i->len, sm, &ptx);

	if (r)
		CHECK_EQ(r, SG_FATBIN_NO_BINARY);
	return r ? 0 : (uint32_t)ptx.text[0];
}

TEST(an_exact_target_and_a_family_are_for_themselves)
{
	struct image i;

	image_init(&i);
	image_add(&i, 1, 90, EXACT, "a", 1);
	CHECK_EQ(choose(&i, 90), 'a');
	CHECK_EQ(choose(&i, 100), 0);
	image_add(&i, 1, 90, 0, "b", 1);
	CHECK_EQ(choose(&i, 90), 'b');
	CHECK_EQ(choose(&i, 100), 'b');
	image_add(&i, 1, 100, FAMILY, "f", 1);
	CHECK_EQ(choose(&i, 90), 'b');
	CHECK_EQ(choose(&i, 100), 'f');
	CHECK_EQ(choose(&i, 103), 'f');
	CHECK_EQ(choose(&i, 110), 'b');
	image_add(&i, 1, 103, EXACT, "c", 1);
	CHECK_EQ(choose(&i, 103), 'c');
	image_add(&i, 1, 103, FAMILY, "g", 1);
	CHECK_EQ(choose(&i, 103), 'g');
	CHECK_EQ(choose(&i, 101), 'f');
}

static uint8_t *read_image(const char *name, size_t *ret_len)
{
	uint8_t *bytes = malloc(1 << 18);
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/images/%s", PTX_DATA, name);
	f = fopen(path, "rb");
	CHECK(f && bytes);
	*ret_len = fread(bytes, 1, 1 << 18, f);
	fclose(f);
	return bytes;
}

/* The kernel in the text that a GPU is given doubles what it should. */
static void check_scales(const struct sg_fatbin_ptx *ptx)
{
	struct bench b = {0};

	bench_load(&b, ptx->text, ptx->len);
	struct {
		uint64_t x;
		float k;
		int n;
	} params = {bench_alloc(&b, 128), 2, 30};
	float *x = bench_host(&b, params.x);

	for (int n = 0; n < 32; n++)
		x[n] = (float)n;
	CHECK_EQ(bench_run(&b, "scale", &params), 0);
	for (int n = 0; n < 32; n++)
		CHECK(x[n] == (float)(n < 30 ? 2 * n : n));
	bench_deinit(&b);
}

/* Checks the image chosen for a GPU of each architecture; 0: none. */
static void check_image(const char *name, const uint32_t (*want)[2], size_t count)
{
	struct sg_fatbin_ptx ptx = {0};
	size_t len;
	uint8_t *bytes = read_image(name, &len);

	for (size_t n = 0; n < count; n++) {
		int r = sg_fatbin_find_ptx(bytes, len, want[n][0], &ptx);

		CHECK_EQ(r, want[n][1] ? 0 : SG_FATBIN_NO_BINARY);
		if (r)
			continue;
		CHECK_EQ(ptx.sm, want[n][1]);
		check_scales(&ptx);
		sg_fatbin_ptx_deinit(&ptx);
		CHECK(!ptx.owned);
	}
	free(bytes);
}

TEST(plain_and_machine_code_images_of_nvcc)
{
	check_image("none.fatbin", (const uint32_t[][2]){{75, 0}, {90, 90}, {100, 90}}, 3);
	check_image("machine_code.fatbin", (const uint32_t[][2]){{90, 0}, {100, 0}}, 2);
}

#if !defined(HAVE_ZSTD) || !defined(HAVE_LZ4)
TEST(packed_images_need_their_libraries)
{
	SKIP("built without libzstd or liblz4");
}
#else
TEST(packed_images_of_nvcc)
{
	check_image("speed.fatbin", (const uint32_t[][2]){{80, 0}, {90, 90}}, 2);
	check_image("size.fatbin", (const uint32_t[][2]){{80, 0}, {90, 90}}, 2);
	check_image("balance.fatbin", (const uint32_t[][2]){{80, 0}, {120, 90}}, 2);
}

TEST(nvccs_suffixes_are_understood)
{
	check_image("many.fatbin",
		(const uint32_t[][2]){{70, 0}, {75, 75}, {89, 75}, {90, 90}, {100, 100}, {103, 103},
			{107, 103}, {110, 90}, {120, 90}},
		9);
	check_image("only_90a.fatbin", (const uint32_t[][2]){{89, 0}, {90, 90}, {100, 0}}, 3);
}

TEST(packed_data_that_lies_is_malformed)
{
	static const char *const names[] = {"only_90a.fatbin", "speed.fatbin"};
	struct sg_fatbin_ptx ptx;

	for (int k = 0; k < 2; k++) {
		size_t len, at = 16;
		uint8_t *bytes = read_image(names[k], &len);

		while (bytes[at] != 1) {
			uint64_t payload;

			memcpy(&payload, bytes + at + 8, 8);
			at += bytes[at + 4] + payload;
		}
		bytes[at + 56]--;
		CHECK_EQ(sg_fatbin_find_ptx(bytes, len, 90, &ptx), SG_FATBIN_MALFORMED);
		bytes[at + 56] += 2;
		CHECK_EQ(sg_fatbin_find_ptx(bytes, len, 90, &ptx), SG_FATBIN_MALFORMED);
		bytes[at + 56]--;
		bytes[at + 62] = 1; /* more than any text */
		CHECK_EQ(sg_fatbin_find_ptx(bytes, len, 90, &ptx), SG_FATBIN_MALFORMED);
		bytes[at + 62] = 0;
		bytes[at + 18] = 1; /* more packed bytes than there are */
		CHECK_EQ(sg_fatbin_find_ptx(bytes, len, 90, &ptx), SG_FATBIN_MALFORMED);
		bytes[at + 18] = 0;
		bytes[len - 30] ^= 0x55;
		if (!sg_fatbin_find_ptx(bytes, len, 90, &ptx))
			sg_fatbin_ptx_deinit(
				&ptx); /* a letter changed: LZ4 has no sum of its own */
		free(bytes);
	}
}

/* Every kernel that CUB's host code could launch has instructions that run. */
TEST(cubs_device_wide_kernels_are_understood)
{
	struct sg_fatbin_ptx ptx = {0};
	struct sg_ptx_module *m = NULL;
	struct td_err err = {0};
	size_t len, kernels = 0;
	uint8_t *bytes = read_image("cub_device.fatbin", &len);

	CHECK_EQ(sg_fatbin_find_ptx(bytes, len, 90, &ptx), 0);
	if (sg_ptx_module_new(ptx.text, ptx.len, &err, &m))
		test_fail(__FILE__, __LINE__, "%s", err.msg);
	while (sg_ptx_module_function(m, kernels))
		kernels++;
	CHECK_EQ(kernels, 27);
	sg_ptx_module_free(m);
	sg_fatbin_ptx_deinit(&ptx);
	free(bytes);
}
#endif

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
