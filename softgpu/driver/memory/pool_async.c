/*
 * Stream-ordered allocation: cuMemAllocAsync, cuMemFreeAsync, and immediate frees of pool memory.
 * See pool.h.
 * sg_pool_lock is never held while work is queued: a block is taken, or marked as being freed,
 * beforehand.
 */
#include <stdlib.h>

#include "softgpu/driver/graph/graph.h"
#include "softgpu/driver/memory/pool.h"

struct pool_work {
	struct sg_work work;
	struct sg_block *block;
	bool accessible;
};

/* This also runs in a dead context, because the block belongs to the pool. */
static int run_access(struct CUstream_st *stream, struct sg_work *work)
{
	const struct pool_work *pool = (struct pool_work *)work;

	(void)stream;
	sg_block_set_access(pool->block, pool->accessible);
	return CUDA_SUCCESS;
}

static int submit_access(struct CUstream_st *stream, struct sg_block *block, bool accessible,
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

static int allocate(
	CUdeviceptr *ret, size_t bytes, CUmemoryPool pool, bool current, CUstream handle, bool ptsz)
{
	struct sg_dependency after;
	struct CUstream_st *stream;
	struct sg_block *block;
	uint64_t whole = (bytes + GRANULE - 1) & ~(GRANULE - 1);
	int r = sg_stream_find(handle, ptsz, &stream);

	if (!r && (!ret || !bytes || whole < bytes))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r && sg_stream_is_capturing(stream))
		return sg_capture_alloc(stream, bytes, ret);
	if (r)
		return r;
	pthread_mutex_lock(&sg_pool_lock);
	if (current && !sg_pool_default(stream->context->device))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	else if (current)
		pool = *sg_pool_current(stream->context->device);
	/*
	 * cuda.h: "The specified memory pool may be from a device different than that of the
	 * specified hStream."
	 */
	if (!r && !sg_pool_is_live(pool))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = sg_block_take(pool, whole, stream, &block, &after);
	pthread_mutex_unlock(&sg_pool_lock);
	if (r)
		return r;
	r = submit_access(stream, block, true, &after, NULL);
	if (r) {
		pthread_mutex_lock(&sg_pool_lock);
		sg_block_put(block, after.stream, after.ticket);
		pthread_mutex_unlock(&sg_pool_lock);
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
	const struct sg_block *block;
	void *pool;

	pthread_mutex_lock(&sg_pool_lock);
	block = sg_block_find(address);
	pool = block ? block->pool : NULL;
	pthread_mutex_unlock(&sg_pool_lock);
	return pool;
}

/* Marks the block as being freed. From now on only the queued work can find it. */
static struct sg_block *begin_free(uint64_t address)
{
	struct sg_allocation allocation;
	struct sg_block *block;

	pthread_mutex_lock(&sg_pool_lock);
	block = sg_block_find(address);
	if (block && block->freeing)
		block = NULL;
	if (block) {
		block->freeing = true;
		(void)sg_allocation_remove(address, &allocation);
	}
	pthread_mutex_unlock(&sg_pool_lock);
	return block;
}

struct free_work {
	struct sg_work work;
	uint64_t address;
};

static int run_free(struct CUstream_st *stream, struct sg_work *work)
{
	(void)sg_memory_release(stream->context, ((struct free_work *)work)->address);
	return CUDA_SUCCESS;
}

/*
 * Frees memory of cuMemAlloc in stream order. The CUDA Programming Guide allows cudaFreeAsync of
 * memory from cudaMalloc (section on the stream-ordered allocator). If the context dies first, the
 * memory is freed with the context.
 */
static int free_plain_async(struct CUstream_st *stream, uint64_t address)
{
	struct free_work *work;
	int r;

	if (!sg_allocation_set_freeing(address, true))
		return CUDA_ERROR_INVALID_VALUE;
	work = calloc(1, sizeof(*work));
	if (work) {
		work->work.bytes = sizeof(*work);
		work->work.run = run_free;
		work->address = address;
	}
	r = work ? sg_stream_submit(stream, &work->work, NULL) : CUDA_ERROR_OUT_OF_MEMORY;
	if (r)
		(void)sg_allocation_set_freeing(address, false);
	return r;
}

static int free_async(CUdeviceptr address, CUstream handle, bool ptsz)
{
	struct CUstream_st *stream;
	struct sg_block *block;
	uint64_t ticket = 0;
	int r = sg_stream_find(handle, ptsz, &stream);

	if (!r && sg_stream_is_capturing(stream))
		return sg_capture_free(stream, address);
	if (r)
		return r;
	block = begin_free(address);
	if (!block) {
		r = sg_graph_memory_free_async(stream, address);
		return r == CUDA_ERROR_NOT_FOUND ? free_plain_async(stream, address) : r;
	}
	r = submit_access(stream, block, false, NULL, &ticket);
	pthread_mutex_lock(&sg_pool_lock);
	sg_block_put(block, r ? NULL : stream, ticket);
	pthread_mutex_unlock(&sg_pool_lock);
	return r;
}

SG_BOTH(cuMemFreeAsync, (CUdeviceptr address, CUstream stream), free_async(address, stream, false),
	free_async(address, stream, true))

bool sg_pool_free(uint64_t address)
{
	struct sg_block *block = begin_free(address);

	if (!block)
		return false;
	sg_block_set_access(block, false);
	pthread_mutex_lock(&sg_pool_lock);
	sg_block_put(block, NULL, 0);
	pthread_mutex_unlock(&sg_pool_lock);
	return true;
}
