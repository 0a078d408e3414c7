/* Memory pools and their blocks: creation, reuse, release. See pool.h. */
#include "softgpu/driver/memory/pool.h"

#include <stdlib.h>
#include <string.h>

pthread_mutex_t sg_pool_lock = PTHREAD_MUTEX_INITIALIZER;
static struct td_list pools = {&pools, &pools};
static struct CUmemPoolHandle_st *defaults[SG_GPU_MAX], *currents[SG_GPU_MAX];

static struct sg_block *block_at(struct td_list *it)
{
	return td_container_of(it, struct sg_block, link);
}

/* -- called with sg_pool_lock held -- */

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

struct CUmemPoolHandle_st *sg_pool_default(uint32_t device)
{
	if (!defaults[device]) {
		defaults[device] = currents[device] = new_pool(device, 0);
		if (defaults[device])
			defaults[device]->is_default = true;
	}
	return defaults[device];
}

struct CUmemPoolHandle_st **sg_pool_current(uint32_t device)
{
	return &currents[device];
}

bool sg_pool_is_live(CUmemoryPool pool)
{
	struct td_list *it;

	td_list_for_each (it, &pools)
		if (td_container_of(it, struct CUmemPoolHandle_st, link) == pool)
			return !pool->destroyed;
	return false;
}

static bool is_free(const struct sg_block *block)
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

void sg_block_set_access(struct sg_block *block, bool accessible)
{
	block->accessible = accessible;
	sg_granules_set(block->base, block->bytes,
		&(struct sg_granule){.host = block->host,
			.home = (uint8_t)block->pool->device,
			.devices = accessible ? block->pool->access : 0});
}

static void give_back(struct sg_block *block)
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

/* Releases free blocks until at most keep_bytes are reserved, or no block is free. */
static void trim(struct CUmemPoolHandle_st *pool, uint64_t keep_bytes)
{
	struct td_list *it, *tmp;

	td_list_for_each_safe (it, tmp, &pool->blocks)
		if (pool->reserved > keep_bytes && is_free(block_at(it)))
			give_back(block_at(it));
}

/* Frees a destroyed pool once its last block is gone. */
static void bury(struct CUmemPoolHandle_st *pool)
{
	trim(pool, 0);
	if (!td_list_empty(&pool->blocks))
		return;
	td_list_remove(&pool->link);
	free(pool);
}

struct sg_block *sg_block_find(uint64_t address)
{
	struct td_list *p, *b;

	td_list_for_each (p, &pools)
		td_list_for_each (b, &td_container_of(p, struct CUmemPoolHandle_st, link)->blocks)
			if (block_at(b)->used && block_at(b)->base == address)
				return block_at(b);
	return NULL;
}

/*
 * Tells whether a block may be reused in this stream. *ret_after says whether the new work must be
 * ordered after the free. In the same stream it always is.
 */
static bool may_reuse(
	const struct sg_block *block, const struct CUstream_st *stream, bool *ret_after)
{
	*ret_after = false;
	if (block->used || block->freeing)
		return false;
	if (!block->stream || block->stream == stream)
		return true;
	if (is_free(block))
		return block->pool->reuse[1]; /* REUSE_ALLOW_OPPORTUNISTIC */
	*ret_after = true;
	return block->pool->reuse[2] && block->stream->context == stream->context;
}

static struct sg_block *take_free(struct CUmemPoolHandle_st *pool, uint64_t bytes,
	const struct CUstream_st *stream, struct sg_dependency *ret_after)
{
	struct td_list *it;
	bool after;

	*ret_after = (struct sg_dependency){0};
	td_list_for_each (it, &pool->blocks) {
		struct sg_block *block = block_at(it);

		if (block->bytes != bytes || !may_reuse(block, stream, &after))
			continue;
		if (after)
			*ret_after = (struct sg_dependency){block->stream, block->ticket};
		return block;
	}
	return NULL;
}

static void trim_all(uint32_t device)
{
	struct td_list *it;

	td_list_for_each (it, &pools) {
		struct CUmemPoolHandle_st *pool =
			td_container_of(it, struct CUmemPoolHandle_st, link);

		if (pool->device == device)
			trim(pool, 0);
	}
}

static int reserve(struct CUmemPoolHandle_st *pool, uint64_t bytes)
{
	int r;

	if (bytes > pool->max_bytes || pool->reserved > pool->max_bytes - bytes)
		trim(pool, pool->max_bytes > bytes ? pool->max_bytes - bytes : 0);
	if (bytes > pool->max_bytes || pool->reserved > pool->max_bytes - bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = sg_reserve_what_is_free(pool->device, 0, bytes);
	if (r != CUDA_ERROR_OUT_OF_MEMORY)
		return r;
	trim_all(pool->device);
	return sg_reserve_what_is_free(pool->device, 0, bytes);
}

static int new_block(struct CUmemPoolHandle_st *pool, uint64_t bytes, struct sg_block **ret)
{
	struct sg_block *block;
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

int sg_block_take(struct CUmemPoolHandle_st *pool, uint64_t bytes, const struct CUstream_st *stream,
	struct sg_block **ret, struct sg_dependency *ret_after)
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

void sg_block_put(struct sg_block *block, struct CUstream_st *stream, uint64_t ticket)
{
	struct CUmemPoolHandle_st *pool = block->pool;

	block->used = block->freeing = false;
	block->stream = stream;
	block->ticket = ticket;
	pool->used -= block->bytes;
	if (pool->destroyed)
		bury(pool);
}

/* -- the calls -- */

void sg_pools_trim(uint32_t device)
{
	pthread_mutex_lock(&sg_pool_lock);
	trim_all(device);
	pthread_mutex_unlock(&sg_pool_lock);
}

/*
 * cuda.h: "the allocator will try to release memory back to the OS on the next call to stream,
 * event or context synchronize".
 */
void sg_pools_synchronized(void)
{
	struct td_list *it, *tmp;

	pthread_mutex_lock(&sg_pool_lock);
	td_list_for_each_safe (it, tmp, &pools) {
		struct CUmemPoolHandle_st *pool =
			td_container_of(it, struct CUmemPoolHandle_st, link);

		if (pool->destroyed)
			bury(pool);
		else if (pool->reserved > pool->threshold)
			trim(pool, pool->threshold);
	}
	pthread_mutex_unlock(&sg_pool_lock);
}

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
	pthread_mutex_lock(&sg_pool_lock);
	*ret = new_pool((uint32_t)props->location.id, props->maxSize);
	pthread_mutex_unlock(&sg_pool_lock);
	return *ret ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

API CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	int r = sg_ready();

	if (r)
		return r;
	pthread_mutex_lock(&sg_pool_lock);
	if (!sg_pool_is_live(pool) || pool->is_default) {
		/* cuda.h: "A device's default memory pool cannot be destroyed." */
		r = CUDA_ERROR_INVALID_VALUE;
	} else {
		if (currents[pool->device] == pool)
			currents[pool->device] = defaults[pool->device];
		pool->destroyed = true;
		bury(pool);
	}
	pthread_mutex_unlock(&sg_pool_lock);
	return r;
}

API CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep_bytes)
{
	int r = sg_ready();

	if (r)
		return r;
	pthread_mutex_lock(&sg_pool_lock);
	if (sg_pool_is_live(pool))
		trim(pool, keep_bytes);
	else
		r = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&sg_pool_lock);
	return r;
}
