/* The table of driver symbols: what a look-up means, and that nothing is missing. */
#include "test.h"

#include <string.h>

#include "cuda/symbols.h"
#include "cuda/types.h"

#define NEWEST 13000
#define OWN    CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM

static const char *found(const char *name, int version, uint64_t flags)
{
	const struct td_symbol *row = td_symbol_find(name, version, flags);

	return row ? row->symbol : "none";
}

TEST(every_symbol_is_found_by_its_export_and_under_its_own_version)
{
	CHECK_EQ(TD_SYMBOL_N, 637);
	for (size_t i = 0; i < TD_SYMBOL_N; i++) {
		const struct td_symbol *row = &td_symbols[i];
		uint64_t flags = row->flavour == TD_FLAVOUR_PLAIN ? 0 : OWN;
		char name[TD_SYMBOL_MAX] = "";

		memcpy(name, row->symbol, row->name_len);
		CHECK(td_symbol_by_export(row->symbol) == row);
		CHECK(td_symbol_find(name, row->since, flags) == row);
		/* A name that begins or goes on otherwise is another one. */
		name[row->name_len - 1] = '\0';
		CHECK(!td_symbol_find(name, NEWEST, flags) ||
			td_symbol_find(name, NEWEST, flags)->name_len == row->name_len - 1);
	}
}

/*
 * In cuda.h, a version with a per-thread flavour has that flavour from its beginning or from CUDA 7
 * on.
 */
TEST(the_flavours_of_a_name_are_of_the_same_version)
{
	for (size_t i = 0; i < TD_SYMBOL_N; i++) {
		const struct td_symbol *row = &td_symbols[i], *plain;
		char symbol[TD_SYMBOL_MAX];

		if (row->flavour == TD_FLAVOUR_PLAIN)
			continue;
		memcpy(symbol, row->symbol, sizeof(symbol));
		symbol[strlen(symbol) - strlen("_ptsz")] = '\0';
		plain = td_symbol_by_export(symbol);
		CHECK(plain);
		if (!plain)
			continue;
		CHECK_EQ(row->class, plain->class);
		CHECK_STR(row->kinds, plain->kinds);
		CHECK_EQ(row->since, plain->since < 7000 ? 7000 : plain->since);
	}
}

TEST(the_newest_that_is_not_too_new_is_meant)
{
	CHECK_STR(found("cuMemAlloc", NEWEST, 0), "cuMemAlloc_v2");
	CHECK_STR(found("cuMemAlloc", 3020, 0), "cuMemAlloc_v2");
	CHECK_STR(found("cuMemAlloc", 3010, 0), "cuMemAlloc");
	CHECK_STR(found("cuMemAlloc", 1000, 0), "none");
	CHECK_STR(found("cuCtxCreate", 11030, 0), "cuCtxCreate_v2");
	CHECK_STR(found("cuCtxCreate", 11040, 0), "cuCtxCreate_v3");
	CHECK_STR(found("cuCtxCreate", NEWEST, 0), "cuCtxCreate_v4");
	CHECK_STR(found("cuDeviceGetUuid", 11030, 0), "cuDeviceGetUuid");
	CHECK_STR(found("cuDeviceGetUuid", NEWEST, 0), "cuDeviceGetUuid_v2");
	/* cuda.h calls cuGraphInstantiateWithFlags so; the driver does not. */
	CHECK_STR(found("cuGraphInstantiate", NEWEST, 0), "cuGraphInstantiate_v2");
	/* cudart asks for these although there are newer ones. */
	CHECK_STR(found("cuDevicePrimaryCtxRelease", 7000, 0), "cuDevicePrimaryCtxRelease");
	CHECK_STR(found("cuDevicePrimaryCtxRelease", 11000, 0), "cuDevicePrimaryCtxRelease_v2");
	CHECK_STR(found("cuLinkCreate", 5050, 0), "cuLinkCreate");
	CHECK_STR(found("cuStreamGetCtx", 9020, OWN), "cuStreamGetCtx_ptsz");
	CHECK_STR(found("cuStreamWaitValue32", 8000, OWN), "cuStreamWaitValue32_ptsz");
	CHECK_STR(found("cuGetProcAddress", 11030, 0), "cuGetProcAddress");
}

TEST(flags_choose_the_flavour_where_there_is_one)
{
	CHECK_STR(found("cuLaunchKernel", NEWEST, 0), "cuLaunchKernel");
	CHECK_STR(found("cuLaunchKernel", NEWEST, OWN), "cuLaunchKernel_ptsz");
	CHECK_STR(found("cuLaunchKernel", NEWEST, CU_GET_PROC_ADDRESS_LEGACY_STREAM),
		"cuLaunchKernel");
	CHECK_STR(found("cuMemcpyHtoD", NEWEST, OWN), "cuMemcpyHtoD_v2_ptds");
	CHECK_STR(found("cuMemcpyHtoD", 6050, OWN), "cuMemcpyHtoD_v2");
	CHECK_STR(found("cuMemAlloc", NEWEST, OWN), "cuMemAlloc_v2");
}

TEST(what_is_no_symbol_is_not_found)
{
	static const char *const none[] = {"", "cu", "cuLaunchKernel_v9", "cuLaunchKernel_",
		"_ptsz", "_v2", "cuMemAlloc_v2_ptsz", "cudaMalloc", "zzz"};
	char longest[300];

	memset(longest, 'c', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		CHECK(!td_symbol_by_export(none[i]));
		CHECK_STR(found(none[i], NEWEST, 0), "none");
	}
	CHECK(!td_symbol_by_export(longest));
	/* cudart's first look-up. */
	CHECK_STR(found("", 0, 0), "none");
	/* An export is not a look-up name. */
	CHECK_STR(found("cuMemAlloc_v2", NEWEST, 0), "none");
}

static const char *kinds(const char *symbol)
{
	const struct td_symbol *row = td_symbol_by_export(symbol);

	return row ? row->kinds : "none";
}

TEST(each_parameter_has_a_kind)
{
	CHECK_STR(kinds("cuLaunchKernel"), "f-------s--");
	CHECK_STR(kinds("cuMemAlloc_v2"), "*d-");
	CHECK_STR(kinds("cuCtxSynchronize"), "");
	CHECK_STR(kinds("cuGraphLaunch"), "xs");
}

TEST(what_a_call_reads_through_a_pointer_is_told_from_what_it_writes)
{
	CHECK_STR(kinds("cuGraphAddKernelNode_v2"), "*ng&n-&%");
	CHECK_STR(kinds("cuGraphGetNodes"), "g*n-");
	/* cuda.h lacks const in these. */
	CHECK_STR(kinds("cuMemcpyBatchAsync_v2"), "&d&d--*%--s");
	CHECK_STR(kinds("cuMemPrefetchBatchAsync"), "&d--*%---s");
	CHECK_STR(kinds("cuGraphicsMapResources"), "-&rs");
	/* A pointer to handles that the driver keeps. */
	CHECK_STR(kinds("cuStreamGetCaptureInfo_v2"), "s--*g*&n-");
}

TEST(structs_that_hold_handles_are_told_from_those_that_do_not)
{
	CHECK_STR(kinds("cuMemcpy2DAsync_v2"), "&%s");
	CHECK_STR(kinds("cuLaunchKernelEx"), "&%f--");
	CHECK_STR(kinds("cuLaunchCooperativeKernelMultiDevice"), "*%--");
	/* A location names a device. */
	CHECK_STR(kinds("cuMemCreate"), "*h-&%-");
	CHECK_STR(kinds("cuMemPrefetchAsync_v2"), "d-%-s");
	CHECK_STR(kinds("cuArrayCreate_v2"), "*a-");
	CHECK_STR(kinds("cuTensorMapReplaceAddress"), "-d");
}
