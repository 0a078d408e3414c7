/* Looks up functions of the driver by name. */
#include "softgpu/cudart/rt.h"

/* A name that is not found is not an error; the status tells it. */
static int find_entry_point(
	const char *name, void **ret, unsigned version, uint64_t flags, int *ret_status, bool ptsz)
{
	int status = 0, error = rt_driver_init();

	if (error)
		return error;
	if (!name || !ret)
		return cudaErrorInvalidValue;
	if (ptsz && flags == CU_GET_PROC_ADDRESS_DEFAULT)
		flags = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
	*ret = NULL;
	error = CU(cuGetProcAddress_v2)(name, ret, (int)version, flags, &status);
	if (error == CUDA_ERROR_NOT_FOUND)
		error = 0;
	if (!error && ret_status)
		*ret_status = status;
	return error;
}

#define ENTRY(suffix, ptsz)                                                                        \
	API int cudaGetDriverEntryPoint##suffix(                                                   \
		const char *name, void **ret, unsigned long long flags, int *status)               \
	{                                                                                          \
		return rt_done(find_entry_point(name, ret, CUDART_VERSION, flags, status, ptsz));  \
	}                                                                                          \
	API int cudaGetDriverEntryPointByVersion##suffix(const char *name, void **ret,             \
		unsigned version, unsigned long long flags, int *status)                           \
	{                                                                                          \
		return rt_done(find_entry_point(name, ret, version, flags, status, ptsz));         \
	}

ENTRY(, false)
ENTRY(_ptsz, true)
