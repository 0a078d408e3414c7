/* The bytes of the variables of kernel images, from their text or their sections. */
#include "test.h"

#include <elf.h>
#include <stdint.h>

#include "preload/image/extent.h"
#include "preload/image/image.h"

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"

static uint64_t device_bytes(const void *image, size_t len)
{
	return td_image_data(image, len, true).device_bytes;
}

static uint64_t bytes_of(const char *ptx)
{
	uint64_t bytes = device_bytes(ptx, SIZE_MAX);

	CHECK_EQ(device_bytes(ptx, strlen(ptx)), bytes); /* a file has no end mark */
	return bytes;
}

TEST(declarations_at_any_place_count_and_words_that_look_like_them_do_not)
{
	CHECK_EQ(bytes_of(HEAD ".global .align 1 .b8 a[20971520];\n"), 20971520);
	CHECK_EQ(
		bytes_of("// a comment\n" HEAD ".visible .global .u64 one;.weak .global .f32 two;"),
		12);
	CHECK_EQ(bytes_of(HEAD ".global .align 8 .v4 .f32 a[3][0x10], b, c[2] ;"),
		16 * (48 + 1 + 2));
	CHECK_EQ(bytes_of(HEAD ".global .s32 a[] = {1, 2}, b = 7, c[4] = {3, d[9]};"),
		4 * (2 + 1 + 4));
	CHECK_EQ(bytes_of(HEAD ".extern .global .b8 there[100];\n.global .texref t;"), 8);
	CHECK_EQ(bytes_of(HEAD ".global .attribute(.managed) .b32 m[100];"), 0);
	CHECK_EQ(td_image_data(HEAD ".global .attribute(.managed) .b32 m[100], n; .global .b8 a;",
			 SIZE_MAX, true)
			 .managed_bytes,
		404);
	CHECK_EQ(bytes_of(HEAD "/* .global .b8 a[9]; */ .file 1 \".global .b8 a[9];\"\n"), 0);
	CHECK_EQ(bytes_of(HEAD ".entry f(.param .u64 .ptr .global .align 4 p) { ld.global.u32 %r1, "
			       "[%rd1]; }"),
		0);
	CHECK_EQ(bytes_of(HEAD ".const .b8 c[100]; .shared .b8 s[100];"), 0);
	/* No blanks between directives; a quote in a string. */
	CHECK_EQ(bytes_of(HEAD ".visible.global.align 4.b32 w[100];.global.f32 x = 1.5;"), 404);
	CHECK_EQ(bytes_of(HEAD ".file 1 \"a\\\"b\"\n.global .b32 w[100];//\"\n"), 400);
}

TEST(sizes_are_written_in_any_base)
{
	CHECK_EQ(bytes_of(HEAD ".global .b8 a[0b1111000000000000000000000]; .global .b8 b[0B11U];"),
		31457280 + 3);
	CHECK_EQ(bytes_of(HEAD ".global .b8 a[0x1fU], b[017], c[0], d[20U], e[0XA];"),
		31 + 15 + 20 + 10);
	CHECK_EQ(bytes_of(HEAD ".global .b8 a[0b" /* 60 digits, and 68 */
			       "100000000000000000000000000000000000000000000000000000000001];"),
		(1ull << 59) + 1);
	CHECK_EQ(bytes_of(HEAD ".global .b8 a[0b1000000000000000000000000000000000000000000000000"
			       "0000000000000000000];"),
		UINT64_MAX);
}

TEST(sizes_may_be_constant_expressions)
{
	static const struct {
		const char *size;
		uint64_t bytes;
	} sizes[] = {{"1024*1024 * 20", 20 << 20}, {"(2+3)*4", 20}, {"2+3*4", 14}, {"100-10-1", 89},
		{"7 / 2 % 2 + 5 % 3", 3}, {"1<<20", 1 << 20}, {"1 << 4 + 1", 32}, {"256>>2>>1", 32},
		{"6 & 3 | 8 ^ 1", 11}, {"~0 & 0xff", 255}, {"-8 / 2 + 100", 96},
		{"(-1 > 0U) + 1", 2}, {"(-1 > 0) + 1", 1}, {"3 > 2 && 0 || !0", 1},
		{"1 ? 2 ? 30 : 40 : 50", 30}, {"0 ? 20 : 1 <= 1 == 1", 1}, {"WARP_SZ * 2", 64},
		{"(.u64)5 * (.s64) 2", 10}, {"/* a */ 5 // b\n + 5", 10}, {"+5 != 5 >= 1", 1},
		{"(0 - 1 >= 0) + (.u64)(0 - 1 >= (.u64)0) + 3", 4}};
	char text[256];

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		snprintf(text, sizeof(text), HEAD ".global .b8 a[%s], b[3];", sizes[i].size);
		if (bytes_of(text) != sizes[i].bytes + 3)
			test_fail(__FILE__, __LINE__, "%s: %llu", sizes[i].size,
				(unsigned long long)bytes_of(text) - 3);
		CHECK(!td_image_data(text, SIZE_MAX, true).unknown);
	}
	CHECK_EQ(bytes_of(HEAD ".global .v2 .f64 name<1000>, other<10>[2 + 1], last;"),
		16 * (1000 + 30 + 1));
}

/* They are measured when they are loaded. */
TEST(of_sizes_that_cannot_be_told_it_is_known_that_they_cannot)
{
	static const char *const sizes[] = {"n", "4 / 0", "4 % (2 - 2)", "-1", "3 - 4", "12abc",
		"1.5", "09", "1 +", "(1", "1 2", "\"1\"", "1 ? 2", "((((((((((1))))))))))", "4, 5",
		"(.f64)3", "(-9223372036854775807 - 1) / -1"};
	char text[256];

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		snprintf(text, sizeof(text), HEAD ".global .b8 a[%s]; .global .b8 b[100];",
			sizes[i]);
		CHECK(td_image_data(text, SIZE_MAX, true).unknown);
		CHECK(bytes_of(text) >= 100); /* what follows is read */
	}
	CHECK(td_image_data(HEAD ".global .b8 a<n>;", SIZE_MAX, true).unknown);
	CHECK(!td_image_data(HEAD ".global .b8 a = 1 / 0;", SIZE_MAX, true).unknown);
}

TEST(without_a_size_there_are_as_many_as_there_are_values)
{
	CHECK_EQ(bytes_of(HEAD ".global .b64 a[] = {1, 2, (3, 4), 5}, b;"), 8 * (4 + 1));
	CHECK_EQ(bytes_of(HEAD ".global .b32 a[][2] = {{1, 2}, {3, 4}, {5}};"), 4 * 6);
	CHECK_EQ(bytes_of(HEAD ".global .b32 a[][2] = {1, 2, 3, 4};"), 4 * 4);
	CHECK_EQ(bytes_of(HEAD ".global .v4 .f32 a[] = {{1, 2, 3, 4}, {5, 6, 7, 8}};"), 32);
	CHECK_EQ(bytes_of(HEAD
			 ".global .attribute(.managed, .unified(1, 2)) .b8 a[]; .global .b8 b;"),
		1);
}

TEST(a_comment_of_any_length_hides_nothing)
{
	static char text[3 << 20];

	memset(text, 'x', sizeof(text) - 1);
	memcpy(text, "/*", 2);
	memcpy(text + (2 << 20), "*/", 2);
	strcpy(text + (2 << 20) + 2, HEAD ".global .b8 a[20971520];\n");
	CHECK_EQ(bytes_of(text), 20971520);
}

TEST(what_is_no_image_has_nothing)
{
	CHECK_EQ(device_bytes(NULL, SIZE_MAX), 0);
	CHECK_EQ(bytes_of(".global .b8 a[100];"), 0);
	CHECK_EQ(device_bytes("\x7f"
			      "EL",
			 3),
		0);
	CHECK(device_bytes(HEAD ".global .b8 a[", sizeof(HEAD) + 13) <= 1);
	CHECK_EQ(bytes_of(HEAD ".global .b64 a[9223372036854775807];"), UINT64_MAX);
}

struct cubin {
	Elf64_Ehdr head;
	char names[64];
	Elf64_Shdr sections[4];
};

static struct cubin cubin(uint64_t zeros, uint64_t values)
{
	struct cubin c = {.names = "\0.nv.global\0.nv.global.init\0.names"};

	memcpy(c.head.e_ident, ELFMAG, SELFMAG);
	c.head.e_ident[EI_CLASS] = ELFCLASS64;
	c.head.e_machine = 190;
	c.head.e_shoff = offsetof(struct cubin, sections);
	c.head.e_shentsize = sizeof(Elf64_Shdr);
	c.head.e_shnum = 4;
	c.head.e_shstrndx = 3;
	c.sections[1] = (Elf64_Shdr){
		.sh_name = 1, .sh_type = SHT_NOBITS, .sh_flags = SHF_ALLOC, .sh_size = zeros};
	c.sections[2] = (Elf64_Shdr){
		.sh_name = 12, .sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC, .sh_size = values};
	c.sections[3] = (Elf64_Shdr){.sh_name = 28,
		.sh_type = SHT_STRTAB,
		.sh_offset = offsetof(struct cubin, names),
		.sh_size = sizeof(c.names)};
	return c;
}

TEST(sections_of_variables_count)
{
	struct cubin c = cubin(20 << 20, 4096);

	CHECK_EQ(device_bytes(&c, sizeof(c)), (20 << 20) + 4096);
	CHECK_EQ(device_bytes(&c, SIZE_MAX), (20 << 20) + 4096);
	CHECK_EQ(device_bytes(&c, sizeof(c) - 1), 0);
	c.sections[1].sh_flags = 0;
	CHECK_EQ(device_bytes(&c, sizeof(c)), 4096);
	c.head.e_machine = EM_X86_64;
	CHECK_EQ(device_bytes(&c, sizeof(c)), 0);
}

/* As nvcc 13 writes it: in the same section, with 4 in the symbol's other bits. */
TEST(variables_that_are_managed_are_told_apart)
{
	struct {
		struct cubin c;
		Elf64_Sym symbols[5];
	} managed = {.c = cubin(20 << 20, 4096)}, another;
	struct td_image_data data;

	managed.c.sections[0] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
		.sh_offset = sizeof(managed.c),
		.sh_size = sizeof(managed.symbols)};
	managed.symbols[0] = (Elf64_Sym){.st_shndx = 1, .st_size = 4 << 20, .st_other = 4};
	managed.symbols[1] = (Elf64_Sym){.st_shndx = 2, .st_size = 16, .st_other = 0x24};
	managed.symbols[2] = (Elf64_Sym){.st_shndx = 1, .st_size = 16 << 20};
	managed.symbols[3] = (Elf64_Sym){.st_shndx = 3, .st_size = 1 << 20, .st_other = 4};
	managed.symbols[4] = (Elf64_Sym){.st_shndx = 0xfff2, .st_size = 1 << 20, .st_other = 4};
	data = td_image_data(&managed, sizeof(managed), true);
	CHECK_EQ(data.device_bytes, (16 << 20) + 4096 - 16);
	CHECK_EQ(data.managed_bytes, (4 << 20) + 16);
	/* Only the first of several tables counts. */
	another = managed;
	another.c.sections[2].sh_type = SHT_SYMTAB;
	another.c.sections[2].sh_offset = sizeof(managed.c);
	another.c.sections[2].sh_size = sizeof(managed.symbols[0]);
	CHECK_EQ(td_image_data(&another, sizeof(another), true).managed_bytes, (4 << 20) + 16);
	/* Symbols that say more than there is, and tables that lie elsewhere. */
	managed.symbols[0].st_size = UINT64_MAX;
	data = td_image_data(&managed, sizeof(managed), true);
	CHECK_EQ(data.device_bytes, 0);
	CHECK_EQ(data.managed_bytes, (20 << 20) + 4096);
	managed.c.sections[0].sh_size = UINT64_MAX;
	CHECK_EQ(td_image_data(&managed, sizeof(managed), true).managed_bytes, 0);
}

struct fat_entry {
	uint16_t kind, version;
	uint32_t header;
	uint64_t bytes;
	uint32_t zeros[6];
	uint64_t flags, more[2];
};

/* Two cubins, and one that is said to be compressed, and is not. */
TEST(of_a_fatbin_the_largest_counts)
{
	struct {
		uint32_t magic;
		uint16_t version, header;
		uint64_t bytes;
		struct {
			struct fat_entry e;
			struct cubin c;
		} entries[3];
	} f = {0xba55ed50, 1, 16, sizeof(f.entries),
		{{.c = cubin(100, 1)}, {.c = cubin(5000, 2)}, {.c = cubin(9000, 3)}}};
	struct {
		uint32_t magic, version;
		const void *data, *more;
	} wrapper = {0x466243b1, 1, &f, NULL};

	for (unsigned i = 0; i < 3; i++) {
		f.entries[i].e = (struct fat_entry){.kind = 2,
			.header = sizeof(struct fat_entry),
			.bytes = sizeof(struct cubin)};
		f.entries[i].e.flags = i == 2 ? 0x8000 : 0;
	}
	CHECK_EQ(device_bytes(&f, sizeof(f)), 5002);
	CHECK(td_image_data(&f, sizeof(f), true).unknown);
	CHECK(!td_image_data(&f, sizeof(f), false).unknown);
	CHECK_EQ(device_bytes(&wrapper, SIZE_MAX), 5002);
	CHECK_EQ(device_bytes(&wrapper, sizeof(wrapper)), 0); /* a file has no pointers */
	f.entries[1].e.bytes = 1ull << 60;
	CHECK_EQ(device_bytes(&f, sizeof(f)), 101);
	CHECK_EQ(device_bytes(&f, 60), 0);
	CHECK(!td_image_data(&f, sizeof(f), true).unknown);
	f.entries[0].e.flags = 0x2000;
	f.entries[1].e.bytes = sizeof(struct cubin);
	f.entries[1].e.kind = 9; /* neither code nor PTX */
	CHECK(td_image_data(&f, sizeof(f), true).unknown);
}

/* A cubin in a frame of Zstandard, as it is, beside one with less that is not compressed. */
TEST(what_is_compressed_counts_where_it_is_looked_into)
{
	struct {
		uint32_t magic;
		uint16_t version, header;
		uint64_t bytes;
		struct fat_entry plain;
		struct cubin little;
		struct fat_entry packed;
		struct __attribute__((packed)) {
			uint32_t magic;
			uint8_t one_segment;
			uint32_t bytes;
			uint8_t block[3];
			struct cubin c;
		} frame;
	} f = {0xba55ed50, 1, 16, sizeof(f) - 16, .little = cubin(10, 1)};
	const void *list[] = {&f, &f, NULL};
	struct {
		uint32_t magic, version;
		const void *data, *more;
	} wrapper = {0x466243b1, 2, NULL, list};
	const uint32_t block = sizeof(struct cubin) << 3 | 1;

	f.plain = (struct fat_entry){
		.kind = 2, .header = sizeof(struct fat_entry), .bytes = sizeof(struct cubin)};
	f.packed = (struct fat_entry){.kind = 2,
		.header = sizeof(struct fat_entry),
		.bytes = sizeof(f) - offsetof(typeof(f), frame),
		.flags = 0x8000,
		.zeros = {sizeof(f.frame)}};
	f.packed.more[1] = sizeof(struct cubin);
	f.frame.magic = 0xfd2fb528;
	f.frame.one_segment = 0xa0;
	f.frame.bytes = sizeof(struct cubin);
	memcpy(f.frame.block, &block, 3);
	f.frame.c = cubin(20 << 20, 4096);
	CHECK_EQ(td_image_data(&f, sizeof(f), true).device_bytes, (20 << 20) + 4096);
	CHECK(!td_image_data(&f, sizeof(f), true).unknown);
	CHECK_EQ(td_image_data(&f, sizeof(f), false).device_bytes, 11);
	/* Those that a linker joins. */
	CHECK_EQ(device_bytes(&wrapper, SIZE_MAX), 2 * ((20 << 20) + 4096));
	wrapper.version = 1;
	CHECK_EQ(device_bytes(&wrapper, SIZE_MAX), 0);
	f.packed.more[1]++;
	CHECK(td_image_data(&f, sizeof(f), true).unknown);
	f.packed.more[1] = UINT64_MAX;
	CHECK(td_image_data(&f, sizeof(f), true).unknown);
	f.packed.more[1] = sizeof(struct cubin);
	f.packed.zeros[0] = UINT32_MAX;
	CHECK(td_image_data(&f, sizeof(f), true).unknown);
}

/* nvcc's wrapper: magic, version 1, then a pointer to the fatbin. */
TEST(of_a_wrapper_the_fatbin_within_is_the_image)
{
	static const struct {
		uint32_t magic;
		uint16_t version, header_bytes;
		uint64_t bytes;
	} fatbin = {0xba55ed50, 1, 16, 72};
	struct {
		uint32_t magic, version;
		const void *data;
	} wrapper = {0x466243b1, 1, &fatbin};
	size_t bytes = 0;

	CHECK(td_image_extent(&fatbin, &bytes) == &fatbin);
	CHECK_EQ(bytes, 88);
	bytes = 0;
	CHECK(td_image_extent(&wrapper, &bytes) == &fatbin);
	CHECK_EQ(bytes, 88);
	wrapper.version = 2; /* several fatbins */
	CHECK(!td_image_extent(&wrapper, &bytes));
	CHECK(td_image_extent(HEAD, &bytes) && bytes == strlen(HEAD));
}
