/* The allocation calls for device and pinned memory; what is behind a pointer. Managed memory is in managed.c. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softgpu/driver/driver.h"
#include "softgpu/driver/fault.h"

API CUresult cuMemAlloc_v2(CUdeviceptr *ret, size_t bytes)
{
	struct CUctx_st *context;
	uint64_t address;
	int r = sg_current_unsafe(&context);

	if (!r && (!ret || !bytes))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = sg_memory_alloc(context, bytes, &address);
	if (!r)
		*ret = address;
	return r;
}

API CUresult cuMemAllocPitch_v2(
	CUdeviceptr *ret, size_t *pitch, size_t width, size_t height, unsigned element)
{
	size_t row = (width + 511) & ~(size_t)511;
	CUresult r;

	if (!pitch || !width || !height || (element != 4 && element != 8 && element != 16) ||
		row > SIZE_MAX / height)
		return CUDA_ERROR_INVALID_VALUE;
	r = cuMemAlloc_v2(ret, row * height);
	if (!r)
		*pitch = row;
	return r;
}

/* Waits for the context's work, as the real call does: nothing may still use what is freed. */
API CUresult cuMemFree_v2(CUdeviceptr address)
{
	struct CUctx_st *context;
	int r = sg_current_unsafe(&context);

	if (r || !address)
		return r;
	r = sg_context_synchronize(context);
	if (r)
		return r;
	if (sg_pool_free(address))
		return CUDA_SUCCESS;
	r = sg_graph_memory_free(address);
	return r == CUDA_ERROR_NOT_FOUND ? sg_memory_release(context, address) : r;
}

API CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
	struct CUctx_st *context;
	struct sg_msg msg = {.type = SG_MEMORY_INFO};
	int r = sg_current(&context);

	if (r)
		return r;
	msg.gpu = context->device;
	if (sg_client_request(sg.client, &msg, NULL, 0, NULL))
		return SG_LOST;
	if (free_bytes)
		*free_bytes = msg.value;
	if (total_bytes)
		*total_bytes = msg.value2;
	return CUDA_SUCCESS;
}

API CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
	struct sg_allocation allocation;
	struct CUctx_st *context;
	int r = sg_current(&context);

	if (r)
		return r;
	if (!sg_memory_find(address, 1, &allocation))
		return CUDA_ERROR_NOT_FOUND;
	if (base)
		*base = allocation.base;
	if (bytes)
		*bytes = allocation.bytes;
	return CUDA_SUCCESS;
}

static int alloc_host(void **ret, size_t bytes)
{
	struct sg_allocation allocation = {.bytes = bytes, .kind = SG_MEMORY_PINNED};
	struct CUctx_st *context;
	int r = sg_current_unsafe(&context);

	if (r)
		return r;
	if (!ret || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sg_fault_take_pinned(bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	allocation.base = (uint64_t)sg_pages_new(bytes);
	if (!allocation.base) {
		sg_fault_give_pinned(bytes);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	allocation.context = context;
	allocation.device = context->device;
	sg_allocation_add(&allocation);
	*ret = (void *)allocation.base;
	return CUDA_SUCCESS;
}

API CUresult cuMemAllocHost_v2(void **ret, size_t bytes)
{
	return alloc_host(ret, bytes);
}

API CUresult cuMemHostAlloc(void **ret, size_t bytes, unsigned flags)
{
	return flags & ~7u ? CUDA_ERROR_INVALID_VALUE : alloc_host(ret, bytes);
}

API CUresult cuMemFreeHost(void *pointer)
{
	struct sg_allocation allocation;
	struct CUctx_st *context;
	int r = sg_current_unsafe(&context);

	if (r || !pointer)
		return r;
	if (!sg_memory_find((uint64_t)pointer, 1, &allocation) ||
		allocation.base != (uint64_t)pointer || allocation.kind != SG_MEMORY_PINNED ||
		allocation.registered)
		return CUDA_ERROR_INVALID_VALUE;
	r = sg_context_synchronize(context);
	(void)sg_allocation_remove(allocation.base, &allocation);
	sg_fault_give_pinned(allocation.bytes);
	sg_pages_free(pointer, allocation.bytes);
	return r;
}

API CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *ret, void *pointer, unsigned flags)
{
	struct sg_allocation allocation;
	struct CUctx_st *context;
	int r = sg_current(&context);

	if (r)
		return r;
	if (!ret || flags || !sg_memory_find((uint64_t)pointer, 1, &allocation) ||
		allocation.kind != SG_MEMORY_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = (uint64_t)pointer;
	return CUDA_SUCCESS;
}

API CUresult cuMemHostGetFlags(unsigned *flags, void *pointer)
{
	struct sg_allocation allocation;

	if (!flags || !sg_memory_find((uint64_t)pointer, 1, &allocation) ||
		allocation.kind != SG_MEMORY_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = 2; /* mapped */
	return CUDA_SUCCESS;
}

API CUresult cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned flags)
{
	struct sg_allocation allocation = {.base = (uint64_t)pointer,
		.bytes = bytes,
		.kind = SG_MEMORY_PINNED,
		.registered = true};
	struct CUctx_st *context;
	int r = sg_current_unsafe(&context);

	if (r)
		return r;
	if (!pointer || !bytes || flags & ~0xfu || bytes > UINTPTR_MAX - allocation.base)
		return CUDA_ERROR_INVALID_VALUE;
	if (sg_is_device_address(allocation.base))
		return CUDA_ERROR_INVALID_VALUE;
	if (sg_memory_overlaps(allocation.base, bytes))
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	if (!sg_fault_take_pinned(bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	allocation.context = context;
	allocation.device = context->device;
	sg_allocation_add(&allocation);
	return CUDA_SUCCESS;
}

API CUresult cuMemHostUnregister(void *pointer)
{
	struct sg_allocation allocation;
	struct CUctx_st *context;
	int r = sg_current_unsafe(&context);

	if (r)
		return r;
	if (!sg_memory_find((uint64_t)pointer, 1, &allocation) ||
		allocation.base != (uint64_t)pointer || !allocation.registered)
		return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	r = sg_context_synchronize(context);
	(void)sg_allocation_remove(allocation.base, &allocation);
	sg_fault_give_pinned(allocation.bytes);
	return r;
}

enum {
	POINTER_CONTEXT = 1,
	POINTER_MEMORY_TYPE = 2,
	POINTER_DEVICE_POINTER = 3,
	POINTER_HOST_POINTER = 4,
	POINTER_SYNC_MEMOPS = 6,
	POINTER_BUFFER_ID = 7,
	POINTER_IS_MANAGED = 8,
	POINTER_DEVICE_ORDINAL = 9,
	POINTER_IS_LEGACY_IPC_CAPABLE = 10,
	POINTER_RANGE_START_ADDR = 11,
	POINTER_RANGE_SIZE = 12,
	POINTER_MAPPED = 13,
	POINTER_ALLOWED_HANDLE_TYPES = 14,
	POINTER_IS_RDMA_CAPABLE = 15,
	POINTER_ACCESS_FLAGS = 16,
	POINTER_MEMPOOL_HANDLE = 17,
};

/* The size of the attribute's value; 0: not there. */
static size_t attribute_bytes(int attribute)
{
	switch (attribute) {
	case POINTER_MEMORY_TYPE:
	case POINTER_IS_MANAGED:
	case POINTER_DEVICE_ORDINAL:
	case POINTER_SYNC_MEMOPS:
	case POINTER_IS_LEGACY_IPC_CAPABLE:
	case POINTER_IS_RDMA_CAPABLE:
	case POINTER_ACCESS_FLAGS:
	case POINTER_MAPPED: return 4;
	case POINTER_CONTEXT:
	case POINTER_DEVICE_POINTER:
	case POINTER_HOST_POINTER:
	case POINTER_RANGE_START_ADDR:
	case POINTER_BUFFER_ID:
	case POINTER_ALLOWED_HANDLE_TYPES:
	case POINTER_MEMPOOL_HANDLE:
	case POINTER_RANGE_SIZE: return 8;
	default: return 0;
	}
}

API CUresult cuPointerGetAttribute(void *data, int attribute, CUdeviceptr address)
{
	struct sg_allocation allocation;
	int r = sg_ready();

	if (r)
		return r;
	if (!data || !sg_memory_find(address, 1, &allocation))
		return CUDA_ERROR_INVALID_VALUE;
	switch (attribute) {
	case POINTER_CONTEXT: *(CUcontext *)data = allocation.context; return CUDA_SUCCESS;
	case POINTER_MEMORY_TYPE:
		*(unsigned *)data =
			allocation.kind == SG_MEMORY_PINNED || allocation.kind == SG_MEMORY_REMOTE
				? 1
				: 2;
		return CUDA_SUCCESS;
	case POINTER_DEVICE_POINTER: *(CUdeviceptr *)data = address; return CUDA_SUCCESS;
	case POINTER_HOST_POINTER:
		if (allocation.kind == SG_MEMORY_DEVICE || allocation.kind == SG_MEMORY_REMOTE)
			return CUDA_ERROR_INVALID_VALUE;
		*(void **)data = (void *)address;
		return CUDA_SUCCESS;
	case POINTER_IS_MANAGED:
		*(unsigned *)data = allocation.kind == SG_MEMORY_MANAGED;
		return CUDA_SUCCESS;
	case POINTER_DEVICE_ORDINAL: *(int *)data = (int)allocation.device; return CUDA_SUCCESS;
	case POINTER_RANGE_START_ADDR: *(CUdeviceptr *)data = allocation.base; return CUDA_SUCCESS;
	case POINTER_RANGE_SIZE: *(size_t *)data = allocation.bytes; return CUDA_SUCCESS;
	case POINTER_MAPPED: *(int *)data = 1; return CUDA_SUCCESS;
	case POINTER_SYNC_MEMOPS:
		/* Synchronous operations always are. */
		*(int *)data = 1;
		return CUDA_SUCCESS;
	case POINTER_BUFFER_ID: *(uint64_t *)data = allocation.id; return CUDA_SUCCESS;
	case POINTER_IS_LEGACY_IPC_CAPABLE:
		*(int *)data = allocation.kind == SG_MEMORY_DEVICE && allocation.context;
		return CUDA_SUCCESS;
	case POINTER_ALLOWED_HANDLE_TYPES: *(uint64_t *)data = 0; return CUDA_SUCCESS;
	case POINTER_IS_RDMA_CAPABLE: *(int *)data = 0; return CUDA_SUCCESS;
	case POINTER_ACCESS_FLAGS:
		*(int *)data = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
		return CUDA_SUCCESS;
	case POINTER_MEMPOOL_HANDLE:
		*(void **)data = sg_pool_of(allocation.base);
		return CUDA_SUCCESS;
	default: return CUDA_ERROR_NOT_SUPPORTED;
	}
}

/* "will not return an error when the ptr is not a valid CUDA pointer. Instead, the attributes are assigned default NULL values" */
API CUresult cuPointerGetAttributes(
	unsigned count, int *attributes, void **data, CUdeviceptr address)
{
	struct sg_allocation allocation;
	int r = sg_ready();

	if (r)
		return r;
	if (!attributes || !data)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count; i++) {
		size_t bytes = attribute_bytes(attributes[i]);

		if (!bytes)
			return CUDA_ERROR_NOT_SUPPORTED;
		memset(data[i], 0, bytes);
		/* The ordinal of no device is CU_DEVICE_INVALID. */
		if (attributes[i] == POINTER_DEVICE_ORDINAL)
			*(int *)data[i] = -2;
		if (sg_memory_find(address, 1, &allocation))
			(void)cuPointerGetAttribute(data[i], attributes[i], address);
	}
	return CUDA_SUCCESS;
}

/* Synchronous operations are synchronous here in any case: setting that changes nothing, and it cannot be taken away. */
API CUresult cuPointerSetAttribute(const void *value, int attribute, CUdeviceptr address)
{
	struct sg_allocation allocation;
	int r = sg_ready();

	if (r)
		return r;
	return !value || attribute != POINTER_SYNC_MEMOPS ||
			       !sg_memory_find(address, 1, &allocation)
		       ? CUDA_ERROR_INVALID_VALUE
		       : CUDA_SUCCESS;
}
