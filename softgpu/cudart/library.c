/*
 * Libraries of kernels that the program loads itself. Their kernels are the driver's handles, so
 * the handles are registered for launches.
 */
#include "softgpu/cudart/rt.h"

static int get_kernel(void **ret, void *library, const char *name)
{
	int error = CU(cuLibraryGetKernel)(ret, library, name);

	return error ? error : rt_symbol_add_handle(*ret, RT_DRIVER_KERNEL);
}

static int enumerate(void **ret, unsigned count, void *library)
{
	unsigned there = 0;
	int error = CU(cuLibraryGetKernelCount)(&there, library);

	if (!error)
		error = CU(cuLibraryEnumerateKernels)(ret, count, library);
	for (unsigned i = 0; !error && i < count && i < there; i++)
		error = rt_symbol_add_handle(ret[i], RT_DRIVER_KERNEL);
	return error;
}

ONE(cudaLibraryGetKernel, (void **kernel, void *library, const char *name),
	get_kernel(kernel, library, name))
ONE(cudaLibraryEnumerateKernels, (void **kernels, unsigned count, void *library),
	enumerate(kernels, count, library))

static int set_attribute(void *kernel, int attribute, int value, int device)
{
	struct rt_symbol symbol;
	int error = rt_check_device(device);

	if (!error && (!rt_symbol_find(kernel, &symbol) || symbol.kind != RT_DRIVER_KERNEL))
		error = cudaErrorInvalidResourceHandle;
	return error ? error : CU(cuKernelSetAttribute)(attribute, value, kernel, device);
}

ONE(cudaKernelSetAttributeForDevice, (void *kernel, int attribute, int value, int device),
	set_attribute(kernel, attribute, value, device))
