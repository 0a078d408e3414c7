/*
 * Allocation calls for device and pinned memory. Managed memory is in managed.c, pointer queries
 * are in pointer.c.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softgpu/driver/driver.h"
#include "softgpu/driver/device/fault.h"

enum {
	CU_MEMHOSTALLOC_DEVICEMAP = 2,
	CU_MEMHOSTREGISTER_IOMEMORY = 4,
	CU_MEMHOSTREGISTER_READ_ONLY = 8,
};

API CUresult cuMemAlloc_v2(CUdeviceptr *ret, size_t bytes)
{
	struct CUctx_st *context;
	uint64_t address;
	int r = sg_current_unsafe(&context);

	if (!r && (!ret || !bytes))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = sg_memory_alloc(context, bytes, false, &address);
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

/*
 * Like the real call, this waits for the work of the current context and of the context that owns
 * the memory, so nothing still uses what is freed.
 */
API CUresult cuMemFree_v2(CUdeviceptr address)
{
	struct sg_allocation allocation;
	struct CUctx_st *context;
	int r = sg_current_unsafe(&context);

	if (r || !address)
		return r;
	if (sg_memory_find(address, 1, &allocation) && (allocation.owned || allocation.freeing))
		return CUDA_ERROR_INVALID_VALUE;
	r = sg_context_synchronize(context);
	if (!r && sg_memory_find(address, 1, &allocation) && allocation.context &&
		allocation.context != context)
		r = sg_context_synchronize(allocation.context);
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

static int alloc_host(void **ret, size_t bytes, unsigned flags)
{
	struct sg_allocation allocation = {.bytes = bytes,
		.kind = SG_MEMORY_PINNED,
		.host_flags = flags | CU_MEMHOSTALLOC_DEVICEMAP};
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
	return alloc_host(ret, bytes, 0);
}

API CUresult cuMemHostAlloc(void **ret, size_t bytes, unsigned flags)
{
	return flags & ~7u ? CUDA_ERROR_INVALID_VALUE : alloc_host(ret, bytes, flags);
}

/* Registered memory is only unpinned; its pages belong to the program. */
static void free_pinned(uint64_t address)
{
	struct sg_allocation allocation;

	if (!sg_allocation_remove(address, &allocation))
		return;
	sg_fault_give_pinned(allocation.bytes);
	if (!allocation.registered)
		sg_pages_free((void *)address, allocation.bytes);
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
	free_pinned(allocation.base);
	return r;
}

void sg_pinned_context_gone(struct CUctx_st *context)
{
	uint64_t address;

	while ((address = sg_allocation_of_context(context, SG_MEMORY_PINNED)))
		free_pinned(address);
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

	int r = sg_ready();

	if (r)
		return r;
	/*
	 * cuda.h: "will fail if the pointer does not reside in an allocation performed by
	 * cuMemAllocHost() or cuMemHostAlloc()".
	 */
	if (!flags || !sg_memory_find((uint64_t)pointer, 1, &allocation) ||
		allocation.kind != SG_MEMORY_PINNED || allocation.registered)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = allocation.host_flags; /* unified addressing: all pinned memory is mapped */
	return CUDA_SUCCESS;
}

/*
 * True if the program has memory mapped in the whole range. mincore() fails on unmapped pages; the
 * residency it returns is not used.
 */
static bool is_mapped(uint64_t address, uint64_t bytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), end = address + bytes;
	unsigned char resident[1024];

	for (uint64_t at = address & ~(page - 1); at < end; at += sizeof(resident) * page) {
		uint64_t left = end - at, room = sizeof(resident) * page;

		if (mincore((void *)at, left < room ? left : room, resident))
			return false;
	}
	return true;
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
	/*
	 * The device does not support read-only registration, and there is no I/O memory of other
	 * devices.
	 */
	if (flags & (CU_MEMHOSTREGISTER_READ_ONLY | CU_MEMHOSTREGISTER_IOMEMORY))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (sg_is_device_address(allocation.base) || !is_mapped(allocation.base, bytes))
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
	free_pinned(allocation.base);
	return r;
}
