/* Pool settings and queries: attributes, the pools of a device or location, and access. */
#include "softgpu/driver/memory/pool.h"

static struct sg_block *block_at(struct td_list *it)
{
	return td_container_of(it, struct sg_block, link);
}

static int set_attribute(struct CUmemPoolHandle_st *pool, int attribute, const void *value)
{
	switch (attribute) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] =
			*(const int *)value != 0;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		pool->threshold = *(const uint64_t *)value;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		/* cuda.h: "It is illegal to set this attribute to a non-zero value." */
		if (*(const uint64_t *)value)
			return CUDA_ERROR_INVALID_VALUE;
		if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)
			pool->reserved_high = pool->reserved;
		else
			pool->used_high = pool->used;
		return CUDA_SUCCESS;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

static int get_attribute(const struct CUmemPoolHandle_st *pool, int attribute, void *value)
{
	uint64_t *bytes = value;

	switch (attribute) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		*(int *)value =
			pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: *bytes = pool->threshold; return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: *bytes = pool->reserved; return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: *bytes = pool->reserved_high; return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: *bytes = pool->used; return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH: *bytes = pool->used_high; return CUDA_SUCCESS;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

API CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value)
{
	int r = sg_ready();

	if (r)
		return r;
	pthread_mutex_lock(&sg_pool_lock);
	r = value && sg_pool_is_live(pool) ? set_attribute(pool, attribute, value)
					   : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&sg_pool_lock);
	return r;
}

API CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value)
{
	int r = sg_ready();

	if (r)
		return r;
	pthread_mutex_lock(&sg_pool_lock);
	r = value && sg_pool_is_live(pool) ? get_attribute(pool, attribute, value)
					   : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&sg_pool_lock);
	return r;
}

/* -- the pools of a device -- */

static int device_pool(CUmemoryPool *ret, CUdevice device, bool current)
{
	int r = sg_ready();

	if (r)
		return r;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (device < 0 || device >= (int)sg.device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&sg_pool_lock);
	*ret = sg_pool_default((uint32_t)device);
	if (!*ret)
		r = CUDA_ERROR_OUT_OF_MEMORY;
	else if (current)
		*ret = *sg_pool_current((uint32_t)device);
	pthread_mutex_unlock(&sg_pool_lock);
	return r;
}

API CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *ret, CUdevice device)
{
	return device_pool(ret, device, false);
}

API CUresult cuDeviceGetMemPool(CUmemoryPool *ret, CUdevice device)
{
	return device_pool(ret, device, true);
}

API CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
	CUmemoryPool unused;
	int r = device_pool(&unused, device, false);

	if (r)
		return r;
	pthread_mutex_lock(&sg_pool_lock);
	/* cuda.h: "The memory pool must be local to the specified device." */
	if (sg_pool_is_live(pool) && pool->device == (uint32_t)device)
		*sg_pool_current((uint32_t)device) = pool;
	else
		r = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&sg_pool_lock);
	return r;
}

/* -- pools by location; only device memory is supported -- */

static int located(CUmemoryPool *ret, const CUmemLocation *location, int type, bool current)
{
	if (!location)
		return CUDA_ERROR_INVALID_VALUE;
	if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_NOT_SUPPORTED;
	return device_pool(ret, location->id, current);
}

API CUresult cuMemGetDefaultMemPool(CUmemoryPool *ret, const CUmemLocation *location, int type)
{
	return located(ret, location, type, false);
}

API CUresult cuMemGetMemPool(CUmemoryPool *ret, const CUmemLocation *location, int type)
{
	return located(ret, location, type, true);
}

API CUresult cuMemSetMemPool(const CUmemLocation *location, int type, CUmemoryPool pool)
{
	CUmemoryPool unused;
	int r = located(&unused, location, type, false);

	return r ? r : cuDeviceSetMemPool(location->id, pool);
}

/* -- access: a pool's own device always has it -- */

static int check_access(const struct CUmemPoolHandle_st *pool, const CUmemAccessDesc *access)
{
	if (access->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (access->location.id < 0 || access->location.id >= (int)sg.device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	if (access->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
		access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		return CUDA_ERROR_INVALID_VALUE; /* cuda.h: "PROT_READ is not supported" */
	return !access->flags && (uint32_t)access->location.id == pool->device
		       ? CUDA_ERROR_INVALID_VALUE
		       : CUDA_SUCCESS;
}

API CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t count)
{
	struct td_list *it;
	int r = sg_ready();

	if (r)
		return r;
	pthread_mutex_lock(&sg_pool_lock);
	if (!sg_pool_is_live(pool) || !access || !count)
		r = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; !r && i < count; i++)
		r = check_access(pool, &access[i]);
	for (size_t i = 0; !r && i < count; i++) {
		uint32_t bit = SG_DEVICE_BIT(access[i].location.id);

		pool->access = access[i].flags ? pool->access | bit : pool->access & ~bit;
	}
	if (!r)
		td_list_for_each (it, &pool->blocks)
			if (block_at(it)->accessible)
				sg_block_set_access(block_at(it), true);
	pthread_mutex_unlock(&sg_pool_lock);
	return r;
}

API CUresult cuMemPoolGetAccess(int *flags, CUmemoryPool pool, CUmemLocation *location)
{
	int r = sg_ready();

	if (r)
		return r;
	if (!flags || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	if (location->id < 0 || location->id >= (int)sg.device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&sg_pool_lock);
	if (!sg_pool_is_live(pool))
		r = CUDA_ERROR_INVALID_VALUE;
	else
		*flags = pool->access & SG_DEVICE_BIT(location->id)
				 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
				 : CU_MEM_ACCESS_FLAGS_PROT_NONE;
	pthread_mutex_unlock(&sg_pool_lock);
	return r;
}
