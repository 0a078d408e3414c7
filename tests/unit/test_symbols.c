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

		CHECK(td_symbol_by_export(row->symbol) == row);
		CHECK(td_symbol_find(row->name, row->since, flags) == row);
		CHECK(!strncmp(row->symbol, row->name, strlen(row->name)));
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
	CHECK_STR(found("cuGraphInstantiate", NEWEST, 0), "cuGraphInstantiate_v2");
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

TEST(each_parameter_has_a_kind)
{
	const struct td_symbol *launch = &td_symbols[TD_SYMBOL_cuLaunchKernel];

	CHECK_STR(launch->kinds, "f-------s--");
	CHECK_EQ(launch->class, TD_CLASS_OF_SUBMIT);
	CHECK_STR(td_symbols[TD_SYMBOL_cuMemAlloc_v2].kinds, "*d-");
	CHECK_STR(td_symbols[TD_SYMBOL_cuCtxSynchronize].kinds, "");
	CHECK_STR(td_symbols[TD_SYMBOL_cuGraphLaunch].kinds, "xs");
}
