/*
 * Modules whose images do not show their variables, on a driver of the test's own and without a
 * daemon: the free memory before and after shows their size, beside others that allocate.
 */
#include "test.h"

#include <string.h>

#include "cuda/objects.h"
#include "unit/preload/hooks_world.h"
#include "preload/base/settings.h"
#include "preload/link/client_internal.h"
#include "preload/outside/libraries.h"
#include "preload/outside/outside_table.h"

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

static const char little[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			     ".global .b8 a[131072];\n"
			     ".global .attribute(.managed) .b8 b[131072];\n";

static uint64_t free_bytes, module_bytes, others_bytes[8];
static unsigned loads, unloads;
static bool is_each_its_own; /* handle */
static CUresult answer;

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
	if (answer)
		return answer;
	free_bytes -= module_bytes + (loads < 8 ? others_bytes[loads] : 0);
	*ret = is_each_its_own ? (CUmodule)((uintptr_t)MODULE + loads) : MODULE;
	loads++;
	return CUDA_SUCCESS;
}

static CUresult unload(CUmodule module)
{
	CHECK(is_each_its_own || module == MODULE);
	if (answer)
		return answer;
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
	is_each_its_own = false;
	answer = CUDA_SUCCESS;
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

/* A thread may have a slot in hand that a fork has emptied. */
TEST(a_slot_without_a_context_is_no_device)
{
	begin("8m", 3 * MIB);
	for (unsigned slot = 1; slot < 16; slot++)
		CHECK_EQ(td_table_device(slot), -1);
}

TEST(what_others_took_meanwhile_is_not_counted)
{
	CUmodule module;

	begin("8m", 3 * MIB);
	others_bytes[0] = 100 * MIB;
	CHECK_EQ(td_hook_cuModuleLoadData(&module, &packed), CUDA_SUCCESS);
	CHECK_EQ(loads, 3);
	CHECK_EQ(demanded(), 3 * MIB);
	/* Memory that another process takes each time does not count, beyond the least of it. */
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

#define LITTLE  (256ull << 10)
#define AS_CODE (MIB / LITTLE)
#define IN_ALL  (AS_CODE + 8 * MIB / LITTLE)

static void load_until_refused(CUmodule modules[IN_ALL])
{
	CUmodule module;

	for (unsigned i = 0; i < IN_ALL; i++)
		CHECK_EQ(td_hook_cuModuleLoadData(&modules[i], little), CUDA_SUCCESS);
	CHECK_EQ(td_hook_cuModuleLoadData(&module, little), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(demanded(), 8 * MIB);
	CHECK_EQ(td_outside_bytes(TD_DEVICE_CURRENT, TD_OUTSIDE_LITTLE), MIB);
}

TEST(of_many_with_little_the_first_count_as_code_does_and_the_rest_is_asked_for)
{
	CUmodule modules[IN_ALL], module;

	begin("8m", 0);
	is_each_its_own = true;
	load_until_refused(modules);
	/* Room that one of the first leaves goes to another. */
	CHECK_EQ(td_hook_cuModuleUnload(modules[0]), CUDA_SUCCESS);
	CHECK_EQ(demanded(), 8 * MIB);
	CHECK_EQ(td_hook_cuModuleLoadData(&modules[0], little), CUDA_SUCCESS);
	CHECK_EQ(td_hook_cuModuleLoadData(&module, little), CUDA_ERROR_OUT_OF_MEMORY);
	/* A module that the driver does not unload is still there, of either sort. */
	answer = CUDA_ERROR_UNKNOWN;
	CHECK_EQ(td_hook_cuModuleUnload(modules[0]), CUDA_ERROR_UNKNOWN);
	CHECK_EQ(td_hook_cuModuleUnload(modules[AS_CODE]), CUDA_ERROR_UNKNOWN);
	answer = CUDA_SUCCESS;
	CHECK_EQ(td_hook_cuModuleLoadData(&module, little), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(td_hook_cuModuleUnload(modules[AS_CODE]), CUDA_SUCCESS);
	CHECK_EQ(td_hook_cuModuleLoadData(&modules[AS_CODE], little), CUDA_SUCCESS);
	for (unsigned i = 0; i < IN_ALL; i++)
		CHECK_EQ(td_hook_cuModuleUnload(modules[i]), CUDA_SUCCESS);
	CHECK_EQ(demanded(), 0);
	CHECK_EQ(td_outside_bytes(TD_DEVICE_CURRENT, TD_OUTSIDE_LITTLE), 0);
	/* A module that the driver does not load takes no room. */
	answer = CUDA_ERROR_UNKNOWN;
	for (unsigned i = 0; i < 2 * AS_CODE; i++)
		CHECK_EQ(td_hook_cuModuleLoadData(&module, little), CUDA_ERROR_UNKNOWN);
	answer = CUDA_SUCCESS;
	load_until_refused(modules);
}

/* PTX of 2 MiB in the same fatbin as what cannot be read. */
TEST(what_an_image_says_and_what_is_measured_beside_it_goes_with_the_module)
{
	static struct {
		uint32_t magic;
		uint16_t version, header;
		uint64_t bytes;
		struct {
			uint16_t kind, version;
			uint32_t header;
			uint64_t bytes;
			uint32_t zeros[6];
			uint64_t flags, more[2];
		} unread, text;
		char ptx[88];
	} both = {.magic = 0xba55ed50, .version = 1, .header = 16, .bytes = sizeof(both) - 16};
	CUmodule module;

	begin("16m", 5 * MIB);
	both.unread.kind = both.text.kind = 1;
	both.unread.header = both.text.header = 64;
	both.unread.flags = 0x8000;
	both.text.bytes = sizeof(both.ptx);
	strcpy(both.ptx,
		".version 7.0\n.target sm_70\n.address_size 64\n.global .b8 a[2097152];\n");
	CHECK_EQ(td_hook_cuModuleLoadData(&module, &both), CUDA_SUCCESS);
	CHECK_EQ(demanded(), 5 * MIB);
	CHECK_EQ(td_hook_cuModuleUnload(module), CUDA_SUCCESS);
	CHECK_EQ(demanded(), 0);
}
