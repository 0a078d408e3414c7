/* Translates an address in the program to the driver's handle of the function or variable. */
#include "softgpu/cudart/rt.h"

int rt_kernel(const void *key, void **ret)
{
	struct rt_symbol symbol;
	void *library;
	int error = rt_enter();

	if (error)
		return error;
	if (!rt_symbol_find(key, &symbol))
		return cudaErrorInvalidDeviceFunction;
	if (symbol.kind >= RT_DRIVER_FUNCTION || symbol.kernel) {
		*ret = symbol.kernel ? symbol.kernel : (void *)key;
		return 0;
	}
	if (symbol.kind != RT_FUNCTION)
		return cudaErrorInvalidDeviceFunction;
	error = rt_image_library(symbol.image, &library);
	if (!error)
		error = CU(cuLibraryGetKernel)(ret, library, symbol.name);
	if (error == CUDA_ERROR_NOT_FOUND)
		error = cudaErrorInvalidDeviceFunction;
	if (!error)
		rt_symbol_cache(key, *ret);
	return error;
}

int rt_function(const void *key, CUfunction *ret)
{
	struct rt_symbol symbol;
	void *kernel;
	int error = rt_kernel(key, &kernel);

	if (!error && rt_symbol_find(key, &symbol) && symbol.kind == RT_DRIVER_FUNCTION)
		*ret = kernel;
	else if (!error)
		error = CU(cuKernelGetFunction)(ret, kernel);
	return error;
}

int rt_variable(const void *key, CUdeviceptr *ret, size_t *ret_bytes)
{
	struct rt_symbol symbol;
	void *library;
	int error = rt_enter();

	if (error)
		return error;
	if ((!rt_symbol_find(key, &symbol) && !rt_symbol_find_managed(key, &symbol)) ||
		(symbol.kind != RT_VARIABLE && symbol.kind != RT_MANAGED))
		return cudaErrorInvalidSymbol;
	error = rt_image_library(symbol.image, &library);
	if (error)
		return error;
	error = symbol.kind == RT_MANAGED
			? CU(cuLibraryGetManaged)(ret, ret_bytes, library, symbol.name)
			: CU(cuLibraryGetGlobal)(ret, ret_bytes, library, symbol.name);
	return error == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidSymbol : error;
}

int rt_symbol_range(const void *symbol, size_t offset, size_t bytes, CUdeviceptr *ret)
{
	CUdeviceptr address;
	size_t size;
	int error = rt_variable(symbol, &address, &size);

	if (!error && (offset > size || bytes > size - offset))
		error = cudaErrorInvalidValue;
	if (!error)
		*ret = address + offset;
	return error;
}

API int cudaGetSymbolAddress(void **ret, const void *symbol)
{
	CUdeviceptr address;
	size_t bytes;
	int error = ret ? rt_variable(symbol, &address, &bytes) : cudaErrorInvalidValue;

	if (!error)
		*ret = (void *)address;
	return rt_done(error);
}

API int cudaGetSymbolSize(size_t *ret, const void *symbol)
{
	CUdeviceptr address;
	size_t bytes;
	int error = ret ? rt_variable(symbol, &address, &bytes) : cudaErrorInvalidValue;

	if (!error)
		*ret = bytes;
	return rt_done(error);
}

API int cudaGetFuncBySymbol(CUfunction *ret, const void *symbol)
{
	int error = ret ? rt_function(symbol, ret) : cudaErrorInvalidValue;

	if (!error)
		error = rt_symbol_add_handle(*ret, RT_DRIVER_FUNCTION);
	return rt_done(error);
}

API int cudaGetKernel(void **ret, const void *symbol)
{
	int error = ret ? rt_kernel(symbol, ret) : cudaErrorInvalidValue;

	if (!error)
		error = rt_symbol_add_handle(*ret, RT_DRIVER_KERNEL);
	return rt_done(error);
}

/*
 * The host code calls this once, before the first launch, and uses the result in all contexts. So
 * the handle belongs to no context.
 */
API int __cudaGetKernel(void **ret, const void *host)
{
	struct rt_symbol symbol;
	bool known = ret && rt_symbol_find(host, &symbol) && symbol.kind == RT_FUNCTION;

	if (known)
		*ret = (void *)host;
	return rt_done(known ? 0 : cudaErrorInvalidDeviceFunction);
}
