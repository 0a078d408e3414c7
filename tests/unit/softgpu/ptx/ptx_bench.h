/*
 * A device for the PTX tests: memory at made-up addresses, a module from the committed PTX or from
 * text, and a launch with defaults. Each test has its own; nothing is freed on failure.
 */
#pragma once

#ifdef ON_THE_DRIVER
#include "unit/softgpu/ptx/ptx_bench_driver.h"
#else

#include "base/err.h"
#include "ptx/ptx.h"
#include "test.h"

#define BENCH_BASE   0x700000000000ull
#define BENCH_STRIDE (1ull << 24)
#define BENCH_AREAS  16

struct bench_area {
	uint8_t *host;
	uint64_t size; /* a multiple of 16 */
	bool is_host;
};

struct bench {
	struct bench_area areas[BENCH_AREAS];
	uint32_t area_count;
	uint32_t translations[3]; /* by access */
	uint32_t grain;           /* ranges of this many bytes; 0: whole areas */
	void (*on_sync)(struct bench *b, uint64_t now_ns);
	uint64_t syncs, jump_ns;
	struct sg_ptx_module *module;
	struct sg_ptx_launch launch;
	struct sg_ptx_result result;
};

static bool bench_translate(void *arg, uint64_t address, uint32_t bytes, enum sg_ptx_access access,
	struct sg_ptx_range *ret)
{
	struct bench *b = arg;
	uint64_t area = (address - BENCH_BASE) / BENCH_STRIDE;
	uint64_t at = (address - BENCH_BASE) % BENCH_STRIDE, first = 0, last;

	if (address < BENCH_BASE || area >= b->area_count || at + bytes > b->areas[area].size)
		return false;
	last = b->areas[area].size - 1;
	if (b->grain) {
		first = at / b->grain * b->grain;
		last = first + b->grain - 1 < last ? first + b->grain - 1 : last;
	}
	b->translations[access]++;
	ret->first = BENCH_BASE + area * BENCH_STRIDE + first;
	ret->last = ret->first + (last - first);
	ret->host = b->areas[area].host + first;
	ret->is_host = b->areas[area].is_host;
	return true;
}

static uint64_t bench_sync(void *arg, uint64_t now_ns)
{
	struct bench *b = arg;

	b->syncs++;
	if (b->on_sync)
		b->on_sync(b, now_ns);
	return now_ns + b->jump_ns;
}

/* A new area of zeros; its device address. */
static inline uint64_t bench_alloc(struct bench *b, uint64_t size)
{
	struct bench_area *a = &b->areas[b->area_count];

	a->size = (size + 15) & ~15ull;
	a->host = calloc(1, a->size);
	CHECK(a->host && b->area_count < BENCH_AREAS && a->size <= BENCH_STRIDE);
	return BENCH_BASE + b->area_count++ * BENCH_STRIDE;
}

static inline void *bench_host(const struct bench *b, uint64_t address)
{
	return b->areas[(address - BENCH_BASE) / BENCH_STRIDE].host;
}

static inline void bench_load(struct bench *b, const char *text, size_t len)
{
	struct td_err err = {0};

	if (sg_ptx_module_new(text, len, &err, &b->module))
		test_fail(__FILE__, __LINE__, "%s", err.msg);
	b->launch = (struct sg_ptx_launch){
		.module = b->module,
		.grid = {1, 1, 1},
		.block = {32, 1, 1},
		.memory = {.arg = b, .translate = bench_translate, .host_sync = bench_sync},
		.time = {.start_ns = 1000000, .instr_ps = 1000, .clock_mhz = 1000, .slots = 4},
	};
	for (size_t n = 0; sg_ptx_module_variable(b->module, n); n++) {
		uint64_t at = bench_alloc(b, sg_ptx_module_variable(b->module, n)->size);

		sg_ptx_module_bind(b->module, n, at);
	}
	for (size_t n = 0; sg_ptx_module_variable(b->module, n); n++)
		sg_ptx_module_initial(b->module, n, b->areas[n].host);
}

static inline struct bench *bench_load_file(struct bench *b, const char *name)
{
	static char text[1 << 20];
	char path[512];
	size_t len;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", PTX_DATA, name);
	f = fopen(path, "rb");
	CHECK(f);
	len = fread(text, 1, sizeof(text), f);
	fclose(f);
	bench_load(b, text, len);
	return b;
}

static inline void bench_grid(struct bench *b, uint32_t grid, uint32_t block)
{
	memcpy(b->launch.grid, (uint32_t[3]){grid, 1, 1}, sizeof(b->launch.grid));
	memcpy(b->launch.block, (uint32_t[3]){block, 1, 1}, sizeof(b->launch.block));
}

static inline int bench_run(struct bench *b, const char *name, const void *params)
{
	b->launch.function = sg_ptx_module_find_function(b->module, name);
	CHECK(b->launch.function);
	b->launch.params = params;
	return sg_ptx_run(&b->launch, &b->result);
}

static inline void bench_deinit(struct bench *b)
{
	for (uint32_t n = 0; n < b->area_count; n++)
		free(b->areas[n].host);
	sg_ptx_module_free(b->module);
}

#endif
