/* Names of errors, and the lookup of a symbol by name, version and flags (cuGetProcAddress). */
#include <limits.h>

#include "cuda/signatures.h"
#include "cuda/symbols.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/graph/graph_abi.h"

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

const void *const *sg_functions(void); /* in table.c; indexed like td_symbols */

API CUresult cuGetProcAddress_v2(
	const char *name, void **ret, int version, uint64_t flags, int *status)
{
	const struct td_symbol *symbol;
	int why;

	/*
	 * cuda.h: "If the specified CUDA version is greater than the driver version, the API will
	 * return CUDA_ERROR_INVALID_VALUE."
	 */
	if (!name || !ret || flags > 2 || version > TD_SYMBOLS_CUDA_VERSION)
		return CUDA_ERROR_INVALID_VALUE;
	symbol = td_symbol_find(name, version, flags);
	if (symbol)
		why = CU_GET_PROC_ADDRESS_SUCCESS;
	else if (td_symbol_find(name, INT_MAX, flags))
		why = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
	else
		why = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	*ret = symbol ? (void *)sg_functions()[symbol - td_symbols] : NULL;
	if (status)
		*status = why;
	return symbol ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

API CUresult cuGetProcAddress(const char *name, void **ret, int version, uint64_t flags)
{
	return cuGetProcAddress_v2(name, ret, version, flags, NULL);
}
