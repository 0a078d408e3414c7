/* Pointer queries: cuPointerGetAttribute and related calls. */
#include <string.h>

#include "softgpu/driver/driver.h"

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

/* Returns the size of the attribute's value, 0 for an unsupported attribute. */
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

/*
 * cuda.h: "the access flags the device associated with the current context has on the corresponding
 * memory".
 */
static int access_flags(uint64_t address, int *ret)
{
	struct CUctx_st *context;
	uint64_t last;
	bool remote;
	int r = sg_current(&context);

	if (r)
		return r;
	*ret = !sg_is_device_address(address) ||
			       sg_memory_translate(context, address, &last, &remote)
		       ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
		       : CU_MEM_ACCESS_FLAGS_PROT_NONE;
	return CUDA_SUCCESS;
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
		/* Synchronous copies are always fully synchronous here. */
		*(int *)data = 1;
		return CUDA_SUCCESS;
	case POINTER_BUFFER_ID: *(uint64_t *)data = allocation.id; return CUDA_SUCCESS;
	case POINTER_IS_LEGACY_IPC_CAPABLE:
		*(int *)data = allocation.kind == SG_MEMORY_DEVICE && allocation.context;
		return CUDA_SUCCESS;
	case POINTER_ALLOWED_HANDLE_TYPES: *(uint64_t *)data = 0; return CUDA_SUCCESS;
	case POINTER_IS_RDMA_CAPABLE: *(int *)data = 0; return CUDA_SUCCESS;
	case POINTER_ACCESS_FLAGS: return access_flags(address, data);
	case POINTER_MEMPOOL_HANDLE:
		*(void **)data = sg_pool_of(allocation.base);
		return CUDA_SUCCESS;
	default: return CUDA_ERROR_NOT_SUPPORTED;
	}
}

/*
 * cuda.h: "will not return an error when the ptr is not a valid CUDA pointer. Instead, the
 * attributes are assigned default NULL values".
 */
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
		/* The default ordinal is CU_DEVICE_INVALID. */
		if (attributes[i] == POINTER_DEVICE_ORDINAL)
			*(int *)data[i] = -2;
		if (sg_memory_find(address, 1, &allocation))
			(void)cuPointerGetAttribute(data[i], attributes[i], address);
	}
	return CUDA_SUCCESS;
}

/*
 * Synchronous copies are always fully synchronous here. Setting SYNC_MEMOPS therefore has no
 * effect, and it cannot be cleared.
 */
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
