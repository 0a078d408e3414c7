/* Cubins of nvcc are recognised and named; what only looks like one is not. */
#include "test.h"

#include "ptx/image/cubin.h"

static uint8_t *read_image(const char *name, size_t *ret_len)
{
	uint8_t *bytes = malloc(8192);
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/images/%s", PTX_DATA, name);
	f = fopen(path, "rb");
	CHECK(f && bytes);
	*ret_len = fread(bytes, 1, 8192, f);
	fclose(f);
	return bytes;
}

TEST(a_cubin_tells_its_architecture_and_kernels)
{
	struct sg_cubin cubin;
	size_t len;
	uint8_t *bytes = read_image("scale_90.cubin", &len);

	CHECK(sg_cubin_read(bytes, len, &cubin));
	CHECK_EQ(cubin.sm, 90);
	CHECK_EQ(cubin.kernels, 1);
	CHECK(!cubin.is_relocatable);
	CHECK_STR(sg_cubin_kernel(bytes, len, 0), "scale");
	CHECK(!sg_cubin_kernel(bytes, len, 1));
	CHECK(sg_cubin_read(bytes, SIZE_MAX, &cubin));
	free(bytes);
	bytes = read_image("relocatable_80.cubin", &len);
	CHECK(sg_cubin_read(bytes, len, &cubin));
	CHECK_EQ(cubin.sm, 80);
	CHECK(cubin.is_relocatable);
	free(bytes);
}

TEST(the_older_layout_has_its_architecture_elsewhere)
{
	struct sg_cubin cubin;
	size_t len;
	uint8_t *bytes = read_image("scale_90.cubin", &len);

	bytes[8] = 7;
	memcpy(bytes + 48, (uint32_t[]){75 | 75 << 16 | 5 << 8}, 4);
	CHECK(sg_cubin_read(bytes, len, &cubin));
	CHECK_EQ(cubin.sm, 75);
	free(bytes);
}

TEST(no_other_elf_and_no_part_of_one_is_a_cubin)
{
	struct sg_cubin cubin;
	size_t len;
	uint8_t *bytes = read_image("scale_90.cubin", &len);

	for (size_t n = 0; n < len; n++) {
		uint8_t *part = malloc(n ? n : 1);

		memcpy(part, bytes, n);
		if (sg_cubin_read(part, n, &cubin))
			CHECK(n >= 64 && cubin.sm == 90);
		free(part);
	}
	CHECK(!sg_cubin_read(bytes, 1000, &cubin));
	bytes[18] = 62; /* x86-64 */
	CHECK(!sg_cubin_read(bytes, len, &cubin));
	bytes[18] = 190;
	bytes[62] = 255; /* the section of names */
	CHECK(!sg_cubin_read(bytes, len, &cubin));
	free(bytes);
}
