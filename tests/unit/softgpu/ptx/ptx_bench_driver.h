/*
 * The bench of ptx_bench.h on the driver: the same tests, as programs with -lcuda alone. Memory is
 * managed, so that host and device have one address. Each bench has a context of its own, because a
 * fault ends it.
 */
#pragma once

#include <stdbool.h>

#include "cuda/signatures.h"
#include "test.h"

#define SYMBOL(symbol, name, since, flavour, class, stream, kinds)                                 \
	CUresult symbol TD_PARAMS_##symbol;
#include "cuda/symbols.def"
#undef SYMBOL

#define BENCH_AREAS        16
#define MAX_DYNAMIC_SHARED 8 /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */

struct bench {
	CUcontext context;
	CUmodule module;
	CUdeviceptr areas[BENCH_AREAS];
	unsigned area_count;
	struct {
		uint32_t grid[3], block[3], dynamic_shared_bytes;
		bool cooperative;
	} launch;
};

static inline void bench_begin(struct bench *b)
{
	if (b->context)
		return;
	CHECK_EQ(cuInit(0), CUDA_SUCCESS);
	CHECK_EQ(cuCtxCreate_v2(&b->context, 0, 0), CUDA_SUCCESS);
}

static inline uint64_t bench_alloc(struct bench *b, uint64_t size)
{
	CUdeviceptr *area = &b->areas[b->area_count++];

	bench_begin(b);
	CHECK(b->area_count <= BENCH_AREAS);
	CHECK_EQ(cuMemAllocManaged(area, size, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
	memset((void *)*area, 0, size);
	return *area;
}

static inline void *bench_host(const struct bench *b, uint64_t address)
{
	(void)b;
	return (void *)address;
}

static inline void bench_load(struct bench *b, const char *text, size_t len)
{
	bench_begin(b);
	CHECK(!text[len - 1] || !text[len]); /* the driver looks for the end */
	CHECK_EQ(cuModuleLoadData(&b->module, text), CUDA_SUCCESS);
	for (int i = 0; i < 3; i++)
		b->launch.grid[i] = b->launch.block[i] = 1;
	b->launch.block[0] = 32;
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
	len = fread(text, 1, sizeof(text) - 1, f);
	text[len] = 0;
	fclose(f);
	bench_load(b, text, len);
	return b;
}

static inline void bench_grid(struct bench *b, uint32_t grid, uint32_t block)
{
	memcpy(b->launch.grid, (uint32_t[3]){grid, 1, 1}, sizeof(b->launch.grid));
	memcpy(b->launch.block, (uint32_t[3]){block, 1, 1}, sizeof(b->launch.block));
}

static inline size_t bench_param_bytes(CUfunction f)
{
	size_t bytes = 0, at, size;

	for (size_t i = 0; !cuFuncGetParamInfo(f, i, &at, &size); i++)
		bytes = at + size;
	return bytes;
}

/* Returns the final result of cuCtxSynchronize. */
static inline int bench_run(struct bench *b, const char *name, const void *params)
{
	CUlaunchAttribute cooperative = {
		.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value = {.cooperative = 1}};
	CUlaunchConfig config = {b->launch.grid[0], b->launch.grid[1], b->launch.grid[2],
		b->launch.block[0], b->launch.block[1], b->launch.block[2],
		b->launch.dynamic_shared_bytes, NULL, &cooperative, b->launch.cooperative};
	CUfunction f;
	size_t bytes;

	CHECK_EQ(cuModuleGetFunction(&f, b->module, name), CUDA_SUCCESS);
	bytes = bench_param_bytes(f);
	if (b->launch.dynamic_shared_bytes)
		CHECK_EQ(cuFuncSetAttribute(
				 f, MAX_DYNAMIC_SHARED, (int)b->launch.dynamic_shared_bytes),
			CUDA_SUCCESS);
	CHECK_EQ(cuLaunchKernelEx(&config, f, NULL,
			 (void *[]){CU_LAUNCH_PARAM_BUFFER_POINTER, (void *)params,
				 CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END}),
		CUDA_SUCCESS);
	return cuCtxSynchronize();
}

static inline void bench_deinit(struct bench *b)
{
	CHECK_EQ(cuCtxDestroy_v2(b->context), CUDA_SUCCESS);
}
