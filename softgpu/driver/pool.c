/*
 * Memory pools and stream-ordered allocation. A block is some granules of its own: its addresses are known at once, but nothing is behind
 * them before the stream reaches the allocation nor after it has reached the free: work that is not ordered after the one and before the other
 * faults. (NVIDIA's driver packs small blocks together and lets such work pass; here each costs 2 MiB.)
 *
 *	used --cuMemFreeAsync--> free at a position of a stream --reused, in that order--> used
 *	                                                       --above the release threshold at a synchronisation--> gone
 *
 * Memory is the process's, as pools belong to devices. pool_lock is never held while work is queued.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/driver/graph.h"
#include "softgpu/driver/pool_abi.h"

struct block {
	struct td_list link; /* in pool->blocks */
	struct CUmemPoolHandle_st *pool;
	uint64_t base, bytes;
	uint8_t *host;
	bool used, freeing, accessible;
	struct CUstream_st *stream; /* freed there; NULL: nothing to wait for */
	uint64_t ticket;
};

struct CUmemPoolHandle_st {
	struct td_list link, blocks;
	uint32_t device, access; /* access: devices that may use it; bits */
	bool is_default, destroyed;
	int reuse[3]; /* CU_MEMPOOL_ATTR_REUSE_*, in that order */
	uint64_t threshold, max_bytes;
	uint64_t reserved, reserved_high, used, used_high;
};

struct pool_work {
	struct sg_work work;
	struct block *block;
	bool accessible;
};

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static struct td_list pools = {&pools, &pools};
static struct CUmemPoolHandle_st *defaults[SG_GPU_MAX], *currents[SG_GPU_MAX];

static struct block *block_at(struct td_list *it)
{
	return td_container_of(it, struct block, link);
}

/* -- pool_lock is held in all of these -- */

static struct CUmemPoolHandle_st *new_pool(uint32_t device, uint64_t max_bytes)
{
	struct CUmemPoolHandle_st *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return NULL;
	pool->device = device;
	pool->access = SG_DEVICE_BIT(device);
	pool->max_bytes = max_bytes ? max_bytes : UINT64_MAX;
	pool->reuse[0] = pool->reuse[1] = pool->reuse[2] = 1;
	td_list_init(&pool->blocks);
	td_list_append(&pools, &pool->link);
	return pool;
}

static struct CUmemPoolHandle_st *default_pool(uint32_t device)
{
	if (!defaults[device]) {
		defaults[device] = currents[device] = new_pool(device, 0);
		if (defaults[device])
			defaults[device]->is_default = true;
	}
	return defaults[device];
}

static bool is_live(CUmemoryPool pool)
{
	struct td_list *it;

	td_list_for_each (it, &pools)
		if (td_container_of(it, struct CUmemPoolHandle_st, link) == pool)
			return !pool->destroyed;
	return false;
}

static bool is_free(const struct block *block)
{
	bool reached;

	if (block->used || block->freeing)
		return false;
	if (!block->stream)
		return true;
	pthread_mutex_lock(&block->stream->context->lock);
	reached = sg_stream_reached(block->stream, block->ticket);
	pthread_mutex_unlock(&block->stream->context->lock);
	return reached;
}

static void set_access(struct block *block, bool accessible)
{
	block->accessible = accessible;
	sg_granules_set(block->base, block->bytes,
		&(struct sg_granule){.host = block->host,
			.home = (uint8_t)block->pool->device,
			.devices = accessible ? block->pool->access : 0});
}

static void give_back(struct block *block)
{
	struct CUmemPoolHandle_st *pool = block->pool;

	sg_granules_set(block->base, block->bytes, &(struct sg_granule){0});
	sg_address_release(block->base, block->bytes);
	sg_pages_free(block->host, block->bytes);
	sg_release(pool->device, 0, block->bytes);
	pool->reserved -= block->bytes;
	td_list_remove(&block->link);
	free(block);
}

/* Until no more than keep_bytes are held, or nothing is free. */
static void trim(struct CUmemPoolHandle_st *pool, uint64_t keep_bytes)
{
	struct td_list *it, *tmp;

	td_list_for_each_safe (it, tmp, &pool->blocks)
		if (pool->reserved > keep_bytes && is_free(block_at(it)))
			give_back(block_at(it));
}

/* A destroyed pool goes with its last block. */
static void bury(struct CUmemPoolHandle_st *pool)
{
	trim(pool, 0);
	if (!td_list_empty(&pool->blocks))
		return;
	td_list_remove(&pool->link);
	free(pool);
}

static struct block *find_block(uint64_t address)
{
	struct td_list *p, *b;

	td_list_for_each (p, &pools)
		td_list_for_each (b, &td_container_of(p, struct CUmemPoolHandle_st, link)->blocks)
			if (block_at(b)->used && block_at(b)->base == address)
				return block_at(b);
	return NULL;
}

/* May a block be used again in this stream, and what must it come after? Same stream: its order is enough. */
static bool may_reuse(const struct block *block, const struct CUstream_st *stream, bool *ret_after)
{
	*ret_after = false;
	if (block->used || block->freeing)
		return false;
	if (!block->stream || block->stream == stream)
		return true;
	if (is_free(block))
		return block->pool->reuse[1]; /* opportunistic */
	*ret_after = true;
	return block->pool->reuse[2] && block->stream->context == stream->context;
}

static struct block *take_free(struct CUmemPoolHandle_st *pool, uint64_t bytes,
	const struct CUstream_st *stream, struct sg_dependency *ret_after)
{
	struct td_list *it;
	bool after;

	*ret_after = (struct sg_dependency){0};
	td_list_for_each (it, &pool->blocks) {
		struct block *block = block_at(it);

		if (block->bytes != bytes || !may_reuse(block, stream, &after))
			continue;
		if (after)
			*ret_after = (struct sg_dependency){block->stream, block->ticket};
		return block;
	}
	return NULL;
}

static int reserve(struct CUmemPoolHandle_st *pool, uint64_t bytes)
{
	struct td_list *it;
	int r;

	if (bytes > pool->max_bytes || pool->reserved > pool->max_bytes - bytes)
		trim(pool, pool->max_bytes > bytes ? pool->max_bytes - bytes : 0);
	if (bytes > pool->max_bytes || pool->reserved > pool->max_bytes - bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = sg_reserve(pool->device, 0, bytes);
	if (r != CUDA_ERROR_OUT_OF_MEMORY)
		return r;
	td_list_for_each (it, &pools) {
		struct CUmemPoolHandle_st *other =
			td_container_of(it, struct CUmemPoolHandle_st, link);

		if (other->device == pool->device)
			trim(other, 0);
	}
	return sg_reserve(pool->device, 0, bytes);
}

static int new_block(struct CUmemPoolHandle_st *pool, uint64_t bytes, struct block **ret)
{
	struct block *block;
	int r = reserve(pool, bytes);

	if (r)
		return r;
	block = calloc(1, sizeof(*block));
	if (block)
		block->host = sg_pages_new(bytes);
	if (block && block->host)
		block->base = sg_address_reserve(bytes, GRANULE);
	if (!block || !block->base) {
		if (block && block->host)
			sg_pages_free(block->host, bytes);
		free(block);
		sg_release(pool->device, 0, bytes);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	block->pool = pool;
	block->bytes = bytes;
	td_list_append(&pool->blocks, &block->link);
	pool->reserved += bytes;
	if (pool->reserved > pool->reserved_high)
		pool->reserved_high = pool->reserved;
	*ret = block;
	return CUDA_SUCCESS;
}

/* -- work -- */

/* In a dead context too: the block is the pool's, not the context's. */
static int run_access(struct CUstream_st *stream, struct sg_work *work)
{
	const struct pool_work *pool = (struct pool_work *)work;

	(void)stream;
	set_access(pool->block, pool->accessible);
	return CUDA_SUCCESS;
}

static int submit_access(struct CUstream_st *stream, struct block *block, bool accessible,
	const struct sg_dependency *after, uint64_t *ret_ticket)
{
	struct pool_work *work = calloc(1, sizeof(*work));

	if (!work)
		return CUDA_ERROR_OUT_OF_MEMORY;
	work->work.bytes = sizeof(*work);
	work->work.run = run_access;
	work->work.when_dead = true;
	work->block = block;
	work->accessible = accessible;
	if (after && after->stream) {
		work->work.after = calloc(1, sizeof(*after));
		if (!work->work.after) {
			free(work);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		work->work.after[0] = *after;
		work->work.after_count = 1;
	}
	return sg_stream_submit(stream, &work->work, ret_ticket);
}

static int take_block(struct CUmemPoolHandle_st *pool, uint64_t bytes,
	const struct CUstream_st *stream, struct block **ret, struct sg_dependency *ret_after)
{
	int r = CUDA_SUCCESS;

	*ret = take_free(pool, bytes, stream, ret_after);
	if (!*ret)
		r = new_block(pool, bytes, ret);
	if (r)
		return r;
	(*ret)->used = true;
	pool->used += bytes;
	if (pool->used > pool->used_high)
		pool->used_high = pool->used;
	return CUDA_SUCCESS;
}

static void put_block(struct block *block, struct CUstream_st *stream, uint64_t ticket)
{
	struct CUmemPoolHandle_st *pool = block->pool;

	block->used = block->freeing = false;
	block->stream = stream;
	block->ticket = ticket;
	pool->used -= block->bytes;
	if (pool->destroyed)
		bury(pool);
}

static int allocate(
	CUdeviceptr *ret, size_t bytes, CUmemoryPool pool, bool current, CUstream handle, bool ptsz)
{
	struct sg_dependency after;
	struct CUstream_st *stream;
	struct CUctx_st *context;
	struct block *block;
	uint64_t whole = (bytes + GRANULE - 1) & ~(GRANULE - 1);
	int r = sg_current(&context);

	if (!r)
		r = sg_stream_find(context, handle, ptsz, &stream);
	if (!r && (!ret || !bytes || whole < bytes))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r && sg_stream_is_capturing(stream))
		return sg_capture_alloc(stream, bytes, ret);
	if (r)
		return r;
	pthread_mutex_lock(&pool_lock);
	if (current && !default_pool(context->device))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	else if (current)
		pool = currents[context->device];
	if (!r && (!is_live(pool) || pool->device != context->device))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = take_block(pool, whole, stream, &block, &after);
	pthread_mutex_unlock(&pool_lock);
	if (r)
		return r;
	r = submit_access(stream, block, true, &after, NULL);
	if (r) {
		pthread_mutex_lock(&pool_lock);
		put_block(block, after.stream, after.ticket);
		pthread_mutex_unlock(&pool_lock);
		return r;
	}
	sg_allocation_add(&(struct sg_allocation){.base = block->base,
		.bytes = bytes,
		.kind = SG_MEMORY_DEVICE,
		.device = pool->device});
	*ret = block->base;
	return CUDA_SUCCESS;
}

SG_BOTH(cuMemAllocAsync, (CUdeviceptr * ret, size_t bytes, CUstream stream),
	allocate(ret, bytes, NULL, true, stream, false),
	allocate(ret, bytes, NULL, true, stream, true))
SG_BOTH(cuMemAllocFromPoolAsync,
	(CUdeviceptr * ret, size_t bytes, CUmemoryPool pool, CUstream stream),
	allocate(ret, bytes, pool, false, stream, false),
	allocate(ret, bytes, pool, false, stream, true))

void *sg_pool_of(uint64_t address)
{
	const struct block *block;
	void *pool;

	pthread_mutex_lock(&pool_lock);
	block = find_block(address);
	pool = block ? block->pool : NULL;
	pthread_mutex_unlock(&pool_lock);
	return pool;
}

/* From now on nobody finds it but work that is queued. */
static struct block *begin_free(uint64_t address)
{
	struct sg_allocation allocation;
	struct block *block;

	pthread_mutex_lock(&pool_lock);
	block = find_block(address);
	if (block && block->freeing)
		block = NULL;
	if (block) {
		block->freeing = true;
		(void)sg_allocation_remove(address, &allocation);
	}
	pthread_mutex_unlock(&pool_lock);
	return block;
}

static int free_async(CUdeviceptr address, CUstream handle, bool ptsz)
{
	struct CUstream_st *stream;
	struct CUctx_st *context;
	struct block *block;
	uint64_t ticket = 0;
	int r = sg_current(&context);

	if (!r)
		r = sg_stream_find(context, handle, ptsz, &stream);
	if (!r && sg_stream_is_capturing(stream))
		return sg_capture_free(stream, address);
	if (r)
		return r;
	block = begin_free(address);
	if (!block) {
		r = sg_graph_memory_free_async(stream, address);
		return r == CUDA_ERROR_NOT_FOUND ? CUDA_ERROR_INVALID_VALUE : r;
	}
	r = submit_access(stream, block, false, NULL, &ticket);
	pthread_mutex_lock(&pool_lock);
	put_block(block, r ? NULL : stream, ticket);
	pthread_mutex_unlock(&pool_lock);
	return r;
}

SG_BOTH(cuMemFreeAsync, (CUdeviceptr address, CUstream stream), free_async(address, stream, false),
	free_async(address, stream, true))

bool sg_pool_free(uint64_t address)
{
	struct block *block = begin_free(address);

	if (!block)
		return false;
	set_access(block, false);
	pthread_mutex_lock(&pool_lock);
	put_block(block, NULL, 0);
	pthread_mutex_unlock(&pool_lock);
	return true;
}

/* "the allocator will try to release memory back to the OS on the next call to stream, event or context synchronize" */
void sg_pools_synchronized(void)
{
	struct td_list *it, *tmp;

	pthread_mutex_lock(&pool_lock);
	td_list_for_each_safe (it, tmp, &pools) {
		struct CUmemPoolHandle_st *pool =
			td_container_of(it, struct CUmemPoolHandle_st, link);

		if (pool->destroyed)
			bury(pool);
		else if (pool->reserved > pool->threshold)
			trim(pool, pool->threshold);
	}
	pthread_mutex_unlock(&pool_lock);
}

/* -- pools -- */

static int check_props(const CUmemPoolProps *props)
{
	static const unsigned char zeros[sizeof(props->reserved)];

	if (props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED || props->usage ||
		memcmp(props->reserved, zeros, sizeof(zeros)))
		return CUDA_ERROR_INVALID_VALUE;
	switch (props->location.type) {
	case CU_MEM_LOCATION_TYPE_DEVICE: break;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA: return CUDA_ERROR_NOT_SUPPORTED;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
	if (props->location.id < 0 || props->location.id >= (int)sg.device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	return props->handleTypes ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

API CUresult cuMemPoolCreate(CUmemoryPool *ret, const CUmemPoolProps *props)
{
	int r = sg_ready();

	if (!r && (!ret || !props))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = check_props(props);
	if (r)
		return r;
	pthread_mutex_lock(&pool_lock);
	*ret = new_pool((uint32_t)props->location.id, props->maxSize);
	pthread_mutex_unlock(&pool_lock);
	return *ret ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

API CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	int r = sg_ready();

	if (r)
		return r;
	pthread_mutex_lock(&pool_lock);
	if (!is_live(pool) || pool->is_default) {
		r = CUDA_ERROR_INVALID_VALUE; /* "A device's default memory pool cannot be destroyed." */
	} else {
		if (currents[pool->device] == pool)
			currents[pool->device] = defaults[pool->device];
		pool->destroyed = true;
		bury(pool);
	}
	pthread_mutex_unlock(&pool_lock);
	return r;
}

API CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep_bytes)
{
	int r = sg_ready();

	if (r)
		return r;
	pthread_mutex_lock(&pool_lock);
	if (is_live(pool))
		trim(pool, keep_bytes);
	else
		r = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&pool_lock);
	return r;
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
		/* "It is illegal to set this attribute to a non-zero value." */
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
	pthread_mutex_lock(&pool_lock);
	r = value && is_live(pool) ? set_attribute(pool, attribute, value)
				   : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&pool_lock);
	return r;
}

API CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value)
{
	int r = sg_ready();

	if (r)
		return r;
	pthread_mutex_lock(&pool_lock);
	r = value && is_live(pool) ? get_attribute(pool, attribute, value)
				   : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&pool_lock);
	return r;
}

static int device_pool(CUmemoryPool *ret, CUdevice device, struct CUmemPoolHandle_st **table)
{
	int r = sg_ready();

	if (r)
		return r;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (device < 0 || device >= (int)sg.device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&pool_lock);
	if (default_pool((uint32_t)device))
		*ret = table[device];
	else
		r = CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_unlock(&pool_lock);
	return r;
}

API CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *ret, CUdevice device)
{
	return device_pool(ret, device, defaults);
}

API CUresult cuDeviceGetMemPool(CUmemoryPool *ret, CUdevice device)
{
	return device_pool(ret, device, currents);
}

API CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
	CUmemoryPool unused;
	int r = device_pool(&unused, device, defaults);

	if (r)
		return r;
	pthread_mutex_lock(&pool_lock);
	/* "The memory pool must be local to the specified device." */
	if (is_live(pool) && pool->device == (uint32_t)device)
		currents[device] = pool;
	else
		r = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&pool_lock);
	return r;
}

/* -- by location: device memory only -- */

static int located(CUmemoryPool *ret, const CUmemLocation *location, int type,
	struct CUmemPoolHandle_st **table)
{
	if (!location)
		return CUDA_ERROR_INVALID_VALUE;
	if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_NOT_SUPPORTED;
	return device_pool(ret, location->id, table);
}

API CUresult cuMemGetDefaultMemPool(CUmemoryPool *ret, const CUmemLocation *location, int type)
{
	return located(ret, location, type, defaults);
}

API CUresult cuMemGetMemPool(CUmemoryPool *ret, const CUmemLocation *location, int type)
{
	return located(ret, location, type, currents);
}

API CUresult cuMemSetMemPool(const CUmemLocation *location, int type, CUmemoryPool pool)
{
	CUmemoryPool unused;
	int r = located(&unused, location, type, defaults);

	return r ? r : cuDeviceSetMemPool(location->id, pool);
}

/* -- access: the pool's own device always has it -- */

static int check_access(const struct CUmemPoolHandle_st *pool, const CUmemAccessDesc *access)
{
	if (access->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (access->location.id < 0 || access->location.id >= (int)sg.device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	if (access->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
		access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		return CUDA_ERROR_INVALID_VALUE; /* "PROT_READ is not supported" */
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
	pthread_mutex_lock(&pool_lock);
	if (!is_live(pool) || !access || !count)
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
				set_access(block_at(it), true);
	pthread_mutex_unlock(&pool_lock);
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
	pthread_mutex_lock(&pool_lock);
	if (!is_live(pool))
		r = CUDA_ERROR_INVALID_VALUE;
	else
		*flags = pool->access & SG_DEVICE_BIT(location->id)
				 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
				 : CU_MEM_ACCESS_FLAGS_PROT_NONE;
	pthread_mutex_unlock(&pool_lock);
	return r;
}
