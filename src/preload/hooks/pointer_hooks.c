/*
 * Queries about an address. For the backend's chunks the answers are those for cuMemAlloc memory;
 * the program does not see the mappings that they are made of. The driver answers everything else.
 */
#include <stddef.h>
#include <string.h>

#include "cuda/objects.h"
#include "preload/driver/driver.h"
#include "preload/driver/real.h"
#include "preload/ipc/ipc.h"
#include "preload/outside/outside.h"
#include "preload/rehome/rehome.h"
#include "preload/swap/peers.h"
#include "preload/swap/swap.h"

/* Returns the size of the attribute's value; 0: only the driver answers it. */
static size_t bytes_of(int attribute)
{
	switch (attribute) {
	case TD_POINTER_MEMORY_TYPE:
	case TD_POINTER_DEVICE_ORDINAL:
	case TD_POINTER_ACCESS_FLAGS: return sizeof(int);
	/* cuda.h calls these booleans, and drivers write four bytes. */
	case TD_POINTER_IS_MANAGED:
	case TD_POINTER_IS_LEGACY_IPC_CAPABLE:
	case TD_POINTER_MAPPED:
	case TD_POINTER_IS_HW_DECOMPRESS_CAPABLE: return sizeof(int);
	case TD_POINTER_CONTEXT:
	case TD_POINTER_DEVICE_POINTER:
	case TD_POINTER_HOST_POINTER:
	case TD_POINTER_BUFFER_ID:
	case TD_POINTER_RANGE_START_ADDR:
	case TD_POINTER_RANGE_SIZE:
	case TD_POINTER_ALLOWED_HANDLE_TYPES:
	case TD_POINTER_MEMPOOL_HANDLE:
	case TD_POINTER_MAPPING_SIZE:
	case TD_POINTER_MAPPING_BASE_ADDR:
	case TD_POINTER_MEMORY_BLOCK_ID: return sizeof(uint64_t);
	default: return 0;
	}
}

/*
 * Returns the access flags that the current context's device has to memory of `device`. During a
 * move the two are different GPUs, which the program sees as one.
 */
static uint64_t access_from_here(CUdevice device)
{
	CUdevice here;

	return !td_driver()->ctx_get_device(&here) &&
			       (td_rehome_device_shown(here) == td_rehome_device_shown(device) ||
				       td_peers_reach(here, device))
		       ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
		       : CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

static int describe(uint64_t address, struct td_swap_info *ret)
{
	int r = td_swap_describe(address, ret);

	return r == TD_BACKEND_NOT_MINE ? td_ipc_describe(address, ret) : r;
}

/*
 * Gets an attribute of the backend's memory. Returns false if cuMemAlloc memory does not have it.
 */
static bool value_of(
	const struct td_swap_info *info, CUdeviceptr address, int attribute, uint64_t *ret)
{
	switch (attribute) {
	case TD_POINTER_CONTEXT:
		*ret = (uint64_t)(info->imported
					  ? info->context
					  : td_outside_context_at(TD_KEY_BACKEND, info->base));
		return true;
	case TD_POINTER_MEMORY_TYPE: *ret = TD_MEMORY_TYPE_DEVICE; return true;
	case TD_POINTER_DEVICE_POINTER: *ret = address; return true;
	case TD_POINTER_BUFFER_ID: *ret = info->id; return true;
	case TD_POINTER_DEVICE_ORDINAL:
		*ret = (uint64_t)td_rehome_device_shown(info->device);
		return true;
	case TD_POINTER_RANGE_START_ADDR: *ret = info->base; return true;
	case TD_POINTER_RANGE_SIZE: *ret = info->bytes; return true;
	case TD_POINTER_MAPPED: *ret = 1; return true;
	case TD_POINTER_ACCESS_FLAGS: *ret = access_from_here(info->device); return true;
	case TD_POINTER_MAPPING_BASE_ADDR: *ret = info->mapped_base; return true;
	case TD_POINTER_MAPPING_SIZE: *ret = info->mapped_bytes; return true;
	case TD_POINTER_MEMORY_BLOCK_ID: *ret = info->mapped_id; return true;
	case TD_POINTER_IS_LEGACY_IPC_CAPABLE:
		*ret = !info->imported && td_chunk_has_handles();
		return true;
	case TD_POINTER_IS_MANAGED:
	case TD_POINTER_ALLOWED_HANDLE_TYPES:
	case TD_POINTER_MEMPOOL_HANDLE:
	case TD_POINTER_IS_HW_DECOMPRESS_CAPABLE: *ret = 0; return true;
	default: return false;
	}
}

CUresult td_hook_cuPointerGetAttribute(void *data, int attribute, CUdeviceptr address)
{
	struct td_swap_info info;
	uint64_t value;
	int r = describe(address, &info);

	if (r == TD_BACKEND_NOT_MINE || (!r && !bytes_of(attribute)))
		return td_real.cuPointerGetAttribute(data, attribute, address);
	if (r || !data || !value_of(&info, address, attribute, &value))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(data, &value, bytes_of(attribute));
	return CUDA_SUCCESS;
}

/* In this call a missing attribute is no error: its value is 0, and the device -2. */
CUresult td_hook_cuPointerGetAttributes(
	unsigned count, int *attributes, void **data, CUdeviceptr address)
{
	struct td_swap_info info;
	int r = describe(address, &info);

	if (r == TD_BACKEND_NOT_MINE || !attributes || !data)
		return td_real.cuPointerGetAttributes(count, attributes, data, address);
	for (unsigned i = 0; i < count; i++) {
		uint64_t value = attributes[i] == TD_POINTER_DEVICE_ORDINAL
					 ? (uint64_t)TD_DEVICE_INVALID
					 : 0;
		size_t bytes = bytes_of(attributes[i]);

		if (!bytes) {
			int told = td_real.cuPointerGetAttributes(
				1, &attributes[i], &data[i], address);

			if (told)
				return told;
			continue;
		}
		if (!r)
			(void)value_of(&info, address, attributes[i], &value);
		memcpy(data[i], &value, bytes);
	}
	return CUDA_SUCCESS;
}

bool td_is_no_mapping(uint64_t address, size_t bytes)
{
	struct td_swap_info info;

	return describe(address, &info) != TD_BACKEND_NOT_MINE ||
	       (bytes && describe(address + bytes - 1, &info) != TD_BACKEND_NOT_MINE);
}

/* -- calls for the program's own mappings: memory of cuMemAlloc is none -- */

CUresult td_hook_cuMemSetAccess(CUdeviceptr a0, size_t a1, const CUmemAccessDesc *a2, size_t a3)
{
	return td_is_no_mapping(a0, a1) ? CUDA_ERROR_INVALID_VALUE
					: td_real.cuMemSetAccess(a0, a1, a2, a3);
}

CUresult td_hook_cuMemGetAccess(unsigned long long *a0, const CUmemLocation *a1, CUdeviceptr a2)
{
	return td_is_no_mapping(a2, 0) ? CUDA_ERROR_INVALID_VALUE
				       : td_real.cuMemGetAccess(a0, a1, a2);
}

CUresult td_hook_cuMemAddressFree(CUdeviceptr a0, size_t a1)
{
	return td_is_no_mapping(a0, a1) ? CUDA_ERROR_INVALID_VALUE
					: td_real.cuMemAddressFree(a0, a1);
}

/*
 * cuMemAlloc memory has no handle. A chunk behind the backend's address has one, but it covers only
 * a part and may change.
 */
CUresult td_hook_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *a0, void *a1)
{
	struct td_swap_info info;
	CUresult r;

	if (describe((uint64_t)a1, &info) != TD_BACKEND_NOT_MINE)
		return CUDA_ERROR_INVALID_VALUE;
	r = td_real.cuMemRetainAllocationHandle(a0, a1);
	if (!r && a0)
		td_outside_alias_mapping((uint64_t)a1, TD_KEY_HANDLE, *a0);
	return r;
}
