/*
 * A driver that does nothing, so that a benchmark measures the way to it. It has only the functions
 * that libtandem needs, the launch and a set.
 */
#include <stdatomic.h>
#include <string.h>

#include "cuda/types.h"
#include "unit/preload/stub_driver.h"

#define API      __attribute__((visibility("default")))
#define STUB(of) API __attribute__((alias(#of)))
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

API CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params, void **extra)
{
	(void)f, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared,
		(void)stream, (void)params, (void)extra;
	return CUDA_SUCCESS;
}

API CUresult cuCtxGetCurrent(CUcontext *context)
{
	*context = (CUcontext)8;
	return CUDA_SUCCESS;
}

STUB(stub_push) CUresult cuCtxPushCurrent_v2(CUcontext context);

API CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
	*context = (CUcontext)8;
	return CUDA_SUCCESS;
}

API CUresult cuCtxSynchronize(void)
{
	return CUDA_SUCCESS;
}

API CUresult cuStreamIsCapturing(CUstream stream, int *status)
{
	(void)stream;
	*status = 0;
	return CUDA_SUCCESS;
}

API CUresult cuEventCreate(CUevent *event, unsigned flags)
{
	(void)flags;
	*event = (CUevent)16;
	return CUDA_SUCCESS;
}

API CUresult cuEventRecord(CUevent event, CUstream stream)
{
	(void)event, (void)stream;
	return CUDA_SUCCESS;
}

API CUresult cuEventQuery(CUevent event)
{
	(void)event;
	return CUDA_SUCCESS;
}

API CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
	(void)start, (void)end;
	*ms = 0.01f;
	return CUDA_SUCCESS;
}

API CUresult cuEventDestroy_v2(CUevent event)
{
	(void)event;
	return CUDA_SUCCESS;
}

API CUresult cuCtxGetDevice(CUdevice *device)
{
	*device = 0;
	return CUDA_SUCCESS;
}

STUB(stub_uuid) CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device);
STUB(stub_total) CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device);
STUB(stub_info) CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes);

API CUresult cuDeviceGetName(char *name, int len, CUdevice device)
{
	(void)device;
	if (len > 4)
		strcpy(name, "null");
	return CUDA_SUCCESS;
}

/* Every block is at an address of its own, and nothing is there. */
static CUresult give_address(CUdeviceptr *address, size_t bytes)
{
	static _Atomic uint64_t next = 1ull << 40;

	*address = atomic_fetch_add(&next, (bytes + 511) & ~(size_t)511);
	return CUDA_SUCCESS;
}

API CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
	return give_address(address, bytes);
}

API CUresult cuMemFree_v2(CUdeviceptr address)
{
	(void)address;
	return CUDA_SUCCESS;
}

API CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	CUdeviceptr handle;

	(void)image;
	(void)give_address(&handle, 1);
	*module = (CUmodule)handle;
	return CUDA_SUCCESS;
}

API CUresult cuModuleUnload(CUmodule module)
{
	(void)module;
	return CUDA_SUCCESS;
}

API CUresult cuDeviceGetCount(int *count)
{
	*count = 1;
	return CUDA_SUCCESS;
}

/* Memory can be mapped and passed on; that is all it has. */
API CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
	(void)device;
	*value = attribute == 102 || attribute == 103;
	return CUDA_SUCCESS;
}

API CUresult cuMemGetAllocationGranularity(size_t *bytes, const void *prop, int option)
{
	(void)prop, (void)option;
	*bytes = 2u << 20;
	return CUDA_SUCCESS;
}

API CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment,
	CUdeviceptr at, unsigned long long flags)
{
	(void)alignment, (void)at, (void)flags;
	return give_address(address, bytes);
}

API CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
	(void)address, (void)bytes;
	return CUDA_SUCCESS;
}

API CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const void *prop,
	unsigned long long flags)
{
	(void)bytes, (void)prop, (void)flags;
	*handle = 24;
	return CUDA_SUCCESS;
}

API CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
	CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	(void)address, (void)bytes, (void)offset, (void)handle, (void)flags;
	return CUDA_SUCCESS;
}

API CUresult cuMemSetAccess(
	CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count)
{
	(void)address, (void)bytes, (void)access, (void)count;
	return CUDA_SUCCESS;
}

API CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
	(void)address, (void)bytes;
	return CUDA_SUCCESS;
}

API CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	(void)handle;
	return CUDA_SUCCESS;
}

API CUresult cuMemsetD8Async(
	CUdeviceptr address, unsigned char value, size_t count, CUstream stream)
{
	(void)address, (void)value, (void)count, (void)stream;
	return CUDA_SUCCESS;
}

API CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
	(void)flags;
	*stream = (CUstream)32;
	return CUDA_SUCCESS;
}

API CUresult cuStreamQuery(CUstream stream)
{
	(void)stream;
	return CUDA_SUCCESS;
}

API CUresult cuStreamSynchronize(CUstream stream)
{
	(void)stream;
	return CUDA_SUCCESS;
}

API CUresult cuEventSynchronize(CUevent event)
{
	(void)event;
	return CUDA_SUCCESS;
}
