/* Allocates and frees memory, and answers queries about addresses. */
#include <string.h>

#include "softgpu/cudart/rt.h"

#define PITCH_ELEMENT_BYTES 4 /* cuMemAllocPitch: the pitch must suit elements of this size */

/* CU_POINTER_ATTRIBUTE_* of cuda.h */
enum {
	POINTER_MEMORY_TYPE = 2,
	POINTER_DEVICE_POINTER = 3,
	POINTER_HOST_POINTER = 4,
	POINTER_IS_MANAGED = 8,
	POINTER_DEVICE_ORDINAL = 9,
};
enum { MEMORY_TYPE_HOST = 1, MEMORY_TYPE_DEVICE = 2 };

/* Allocates memory. Allocating 0 bytes yields NULL and no error. */
static int allocate(void **ret, size_t bytes)
{
	if (!ret)
		return cudaErrorInvalidValue;
	*ret = NULL;
	return bytes ? CU(cuMemAlloc_v2)((CUdeviceptr *)ret, bytes) : 0;
}

ONE(cudaMalloc, (void **ret, size_t bytes), allocate(ret, bytes))

ONE(cudaMallocManaged, (void **ret, size_t bytes, unsigned flags),
	CU(cuMemAllocManaged)((CUdeviceptr *)ret, bytes, flags))

ONE(cudaFree, (void *address), address ? CU(cuMemFree_v2)((CUdeviceptr)address) : 0)

static int allocate_host(void **ret, size_t bytes, unsigned flags)
{
	if (!ret)
		return cudaErrorInvalidValue;
	*ret = NULL;
	return bytes ? CU(cuMemHostAlloc)(ret, bytes, flags) : 0;
}

ONE(cudaMallocHost, (void **ret, size_t bytes), allocate_host(ret, bytes, 0))
ONE(cudaHostAlloc, (void **ret, size_t bytes, unsigned flags), allocate_host(ret, bytes, flags))
ONE(cudaFreeHost, (void *address), address ? CU(cuMemFreeHost)(address) : 0)

static int allocate_pitch(void **ret, size_t *ret_pitch, size_t width, size_t height)
{
	if (!ret || !ret_pitch)
		return cudaErrorInvalidValue;
	*ret = NULL;
	*ret_pitch = 0;
	if (!width || !height)
		return 0;
	return CU(cuMemAllocPitch_v2)(
		(CUdeviceptr *)ret, ret_pitch, width, height, PITCH_ELEMENT_BYTES);
}

ONE(cudaMallocPitch, (void **ret, size_t *pitch, size_t width, size_t height),
	allocate_pitch(ret, pitch, width, height))

static int allocate_3d(struct cudaPitchedPtr *ret, struct cudaExtent extent)
{
	size_t rows;
	int error;

	if (!ret || __builtin_mul_overflow(extent.height, extent.depth, &rows))
		return cudaErrorInvalidValue;
	error = allocate_pitch(&ret->ptr, &ret->pitch, extent.width, rows);
	if (!error) {
		ret->xsize = extent.width;
		ret->ysize = extent.height;
	}
	return error;
}

ONE(cudaMalloc3D, (struct cudaPitchedPtr * ret, struct cudaExtent extent), allocate_3d(ret, extent))

/* An address that the driver does not know is the program's own memory; that is not an error. */
static int pointer_attributes(struct cudaPointerAttributes *ret, const void *address)
{
	int kinds[] = {POINTER_MEMORY_TYPE, POINTER_DEVICE_POINTER, POINTER_HOST_POINTER,
		POINTER_IS_MANAGED, POINTER_DEVICE_ORDINAL};
	unsigned type = 0, managed = 0;
	int device = cudaInvalidDeviceId;
	CUdeviceptr on_device = 0;
	void *on_host = NULL;
	void *values[] = {&type, &on_device, &on_host, &managed, &device};
	int error;

	if (!ret)
		return cudaErrorInvalidValue;
	error = CU(cuPointerGetAttributes)(5, kinds, values, (CUdeviceptr)address);
	if (error && error != CUDA_ERROR_INVALID_VALUE)
		return error;
	memset(ret, 0, sizeof(*ret));
	ret->device = cudaInvalidDeviceId;
	if (error || !type)
		return 0;
	ret->type = managed                    ? cudaMemoryTypeManaged
		    : type == MEMORY_TYPE_HOST ? cudaMemoryTypeHost
					       : cudaMemoryTypeDevice;
	ret->device = device;
	ret->devicePointer = (void *)on_device;
	ret->hostPointer = on_host;
	return 0;
}

ONE(cudaPointerGetAttributes, (struct cudaPointerAttributes * ret, const void *address),
	pointer_attributes(ret, address))
