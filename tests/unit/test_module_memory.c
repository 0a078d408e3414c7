/* Modules whose images say nothing of their variables, on a driver of the test's own and without a daemon: what is free before and after says it, beside others that allocate. */
#include "test.h"

#include <string.h>

#include "cuda/objects.h"
#include "hooks_world.h"
#include "preload/client_internal.h"
#include "preload/libraries.h"

#define MIB    (1ull << 20)
#define MODULE ((CUmodule)0x7000)

/* A fatbin of one entry that is compressed. */
static const struct {
	uint32_t magic;
	uint16_t version, header;
	uint64_t bytes;
	uint16_t kind, entry_version;
	uint32_t entry_header;
	uint64_t entry_bytes;
	uint32_t zeros[6];
	uint64_t flags, more[2], payload;
} packed = {0xba55ed50, 1, 16, 72, 1, 1, 64, 8, {0}, 0x8000, {0}, 0};

static uint64_t free_bytes, module_bytes, others_bytes[8];
static unsigned loads, unloads;

static CUresult context_of(CUcontext *ret)
{
	*ret = (CUcontext)0xc0;
	return CUDA_SUCCESS;
}

static CUresult info(size_t *ret_free, size_t *ret_total)
{
	*ret_free = free_bytes;
	*ret_total = 64 * BYTES;
	return CUDA_SUCCESS;
}

static CUresult load(CUmodule *ret, const void *image)
{
	(void)image;
	free_bytes -= module_bytes + others_bytes[loads++];
	*ret = MODULE;
	return CUDA_SUCCESS;
}

static CUresult unload(CUmodule module)
{
	CHECK(module == MODULE);
	free_bytes += module_bytes;
	unloads++;
	return CUDA_SUCCESS;
}

static void begin(const char *limit, uint64_t bytes)
{
	vmm_begin(64 * BYTES, 64 * BYTES);
	td_real.cuCtxGetCurrent = context_of;
	td_real.cuModuleLoadData = load;
	td_real.cuModuleUnload = unload;
	hooks_begin(&td_backend_plain);
	td_real.cuMemGetInfo_v2 = info;
	td_libraries_forked();
	td_client_forked();
	strcpy(td_settings.mem, limit);
	memset(others_bytes, 0, sizeof(others_bytes));
	free_bytes = 64 * BYTES;
	module_bytes = bytes;
	loads = unloads = 0;
}

TEST(what_a_module_takes_each_time_counts)
{
	CUmodule module;

	begin("8m", 3 * MIB);
	CHECK_EQ(td_hook_cuModuleLoadData(&module, &packed), CUDA_SUCCESS);
	CHECK_EQ(loads, 2);
	CHECK_EQ(demanded(), 3 * MIB);
	CHECK_EQ(td_hook_cuModuleUnload(module), CUDA_SUCCESS);
	CHECK_EQ(demanded(), 0);
	CHECK_EQ(free_bytes, 64 * BYTES);
}

TEST(what_others_took_meanwhile_is_not_counted)
{
	CUmodule module;

	begin("8m", 3 * MIB);
	others_bytes[0] = 100 * MIB;
	CHECK_EQ(td_hook_cuModuleLoadData(&module, &packed), CUDA_SUCCESS);
	CHECK_EQ(loads, 3);
	CHECK_EQ(demanded(), 3 * MIB);
	/* Nor what somebody takes each time, but for the least of it. */
	begin("8m", 3 * MIB);
	others_bytes[0] = 100 * MIB;
	others_bytes[1] = 4 * MIB;
	others_bytes[2] = 50 * MIB;
	CHECK_EQ(td_hook_cuModuleLoadData(&module, &packed), CUDA_SUCCESS);
	CHECK_EQ(demanded(), 7 * MIB);
}

TEST(a_module_that_does_not_fit_is_unloaded)
{
	CUmodule module;

	begin("8m", 9 * MIB);
	CHECK_EQ(td_hook_cuModuleLoadData(&module, &packed), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(loads, unloads);
	CHECK_EQ(free_bytes, 64 * BYTES);
	CHECK_EQ(demanded(), 0);
}

TEST(where_there_is_no_limit_or_little_to_count_it_is_loaded_once)
{
	CUmodule module;

	begin("", 9 * MIB);
	CHECK_EQ(td_hook_cuModuleLoadData(&module, &packed), CUDA_SUCCESS);
	CHECK_EQ(loads, 1);
	begin("8m", MIB / 2);
	CHECK_EQ(td_hook_cuModuleLoadData(&module, &packed), CUDA_SUCCESS);
	CHECK_EQ(loads, 1);
	CHECK_EQ(demanded(), 0);
}
