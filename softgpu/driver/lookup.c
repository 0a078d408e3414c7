/* Names of errors, and which symbol a (name, version, flags) means. */
#include <stdio.h>
#include <string.h>

#include "softgpu/driver/driver.h"
#include "softgpu/driver/graph_abi.h"

#define X(name, number, text) {number, #name, text},
static const struct {
	int number;
	const char *name, *text;
} results[] = {CUDA_RESULTS(X) GRAPH_RESULTS(X)};
#undef X

API CUresult cuGetErrorName(CUresult error, const char **name)
{
	for (size_t i = 0; name && i < sizeof(results) / sizeof(results[0]); i++) {
		if (results[i].number == error) {
			*name = results[i].name;
			return CUDA_SUCCESS;
		}
	}
	if (name)
		*name = NULL;
	return CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuGetErrorString(CUresult error, const char **text)
{
	for (size_t i = 0; text && i < sizeof(results) / sizeof(results[0]); i++) {
		if (results[i].number == error) {
			*text = results[i].text;
			return CUDA_SUCCESS;
		}
	}
	if (text)
		*text = NULL;
	return CUDA_ERROR_INVALID_VALUE;
}

struct symbol {
	const char *name;
	const void *function;
};

const struct symbol *sg_symbols(size_t *ret_count); /* table.c */

static const void *find_symbol(const char *name)
{
	size_t count;
	const struct symbol *symbols = sg_symbols(&count);

	for (size_t i = 0; i < count; i++)
		if (!strcmp(symbols[i].name, name))
			return symbols[i].function;
	return NULL;
}

/* From which version of CUDA on a newer form is meant, newest first. Names not listed have had their newest form since 3.2 or 4.0. */
static const struct {
	const char *name, *suffix;
	int version;
} newer[] = {
	{"cuCtxCreate", "_v4", 12050},
	{"cuCtxCreate", "_v3", 11040},
	{"cuDeviceGetUuid", "_v2", 11040},
	{"cuEventElapsedTime", "_v2", 12080},
	{"cuGetProcAddress", "_v2", 12000},
	{"cuMemAdvise", "_v2", 12020},
	{"cuMemPrefetchAsync", "_v2", 12020},
	{"cuStreamBatchMemOp", "_v2", 11070},
	{"cuStreamGetCaptureInfo", "_v3", 12030},
	{"cuStreamGetCaptureInfo", "_v2", 11030},
	{"cuStreamBeginCapture", "_v2", 10010},
	{"cuGraphInstantiate", "_v2", 11000},
	{"cuGraphAddDependencies", "_v2", 12030},
	{"cuGraphAddKernelNode", "_v2", 12000},
	{"cuGraphExecKernelNodeSetParams", "_v2", 12000},
	{"cuGraphExecUpdate", "_v2", 12000},
	{"cuGraphGetEdges", "_v2", 12030},
	{"cuGraphKernelNodeGetParams", "_v2", 12000},
	{"cuGraphKernelNodeSetParams", "_v2", 12000},
	{"cuGraphNodeGetDependencies", "_v2", 12030},
	{"cuGraphNodeGetDependentNodes", "_v2", 12030},
	{"cuGraphRemoveDependencies", "_v2", 12030},
	{"cuStreamUpdateCaptureDependencies", "_v2", 12030},
	{"cuDevicePrimaryCtxRelease", "_v2", 11000},
	{"cuDevicePrimaryCtxReset", "_v2", 11000},
	{"cuDevicePrimaryCtxSetFlags", "_v2", 11000},
};

static const void *find_form(const char *name, const char *suffix, bool per_thread)
{
	static const char *const flavours[] = {"_ptsz", "_ptds", ""};
	char full[128];

	for (size_t i = per_thread ? 0 : 2; i < 3; i++) {
		const void *function;

		snprintf(full, sizeof(full), "%s%s%s", name, suffix, flavours[i]);
		function = find_symbol(full);
		if (function)
			return function;
	}
	return NULL;
}

static const void *find_version(const char *name, int version, bool per_thread)
{
	bool listed = false;
	const void *function;

	for (size_t i = 0; i < sizeof(newer) / sizeof(newer[0]); i++) {
		if (strcmp(newer[i].name, name))
			continue;
		listed = true;
		if (version >= newer[i].version)
			return find_form(name, newer[i].suffix, per_thread);
	}
	/* cuCtxCreate's oldest form that still works is _v2. */
	function =
		!listed || !strcmp(name, "cuCtxCreate") ? find_form(name, "_v2", per_thread) : NULL;
	return function ? function : find_form(name, "", per_thread);
}

API CUresult cuGetProcAddress_v2(
	const char *name, void **ret, int version, uint64_t flags, int *status)
{
	const void *function;

	if (!name || !ret || flags > 2)
		return CUDA_ERROR_INVALID_VALUE;
	function = *name ? find_version(name, version,
				   flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
			 : NULL;
	*ret = (void *)function;
	if (status)
		*status = function ? CU_GET_PROC_ADDRESS_SUCCESS
				   : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

API CUresult cuGetProcAddress(const char *name, void **ret, int version, uint64_t flags)
{
	return cuGetProcAddress_v2(name, ret, version, flags, NULL);
}
