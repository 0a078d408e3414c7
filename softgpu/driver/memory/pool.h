/*
 * Memory pools and stream-ordered allocation. Each block occupies granules (2 MiB) of its own. Its
 * addresses are known when the call returns, but memory is mapped there only from the allocation to
 * the free in stream order. Work that is not ordered after the one and before the other faults.
 * (NVIDIA's driver packs small blocks together and does not detect such work.)
 * used --cuMemFreeAsync--> free at a position of a stream --reused after that position--> used
 *                          free --over the release threshold at a synchronisation--> released
 * pool.c: pools and their blocks. pool_async.c: allocation and free in stream order.
 * pool_settings.c: attributes, the pools of devices, access.
 * Pool memory is charged to the process, not to a context, because pools belong to devices.
 */
#pragma once

#include "softgpu/driver/driver.h"
#include "softgpu/driver/memory/pool_abi.h"

struct sg_block {
	struct td_list link; /* in pool->blocks */
	struct CUmemPoolHandle_st *pool;
	uint64_t base, bytes;
	uint8_t *host;
	bool used, freeing, accessible;
	struct CUstream_st *stream; /* where it was freed; NULL: reusable at once */
	uint64_t ticket;
};

struct CUmemPoolHandle_st {
	struct td_list link, blocks;
	uint32_t device, access; /* access: devices that may use it, one bit each */
	bool is_default, destroyed;
	int reuse[3]; /* CU_MEMPOOL_ATTR_REUSE_* 1 to 3 */
	uint64_t threshold, max_bytes;
	uint64_t reserved, reserved_high, used, used_high;
};

extern pthread_mutex_t sg_pool_lock;

/* -- all with sg_pool_lock held -- */
/* Returns the device's default pool, which is created at first use. NULL if there is no memory. */
struct CUmemPoolHandle_st *sg_pool_default(uint32_t device);
/* The pool that cuMemAllocAsync allocates from. sg_pool_default() must have succeeded before. */
struct CUmemPoolHandle_st **sg_pool_current(uint32_t device);
bool sg_pool_is_live(CUmemoryPool pool);
/* Returns the block in use at that address, or NULL. */
struct sg_block *sg_block_find(uint64_t address);
/*
 * Takes a free block or a new one. If ret_after has a stream, work on the block must come after
 * that position.
 */
int sg_block_take(struct CUmemPoolHandle_st *pool, uint64_t bytes, const struct CUstream_st *stream,
	struct sg_block **ret, struct sg_dependency *ret_after);
/* Frees a block from that position of the stream on; with stream NULL at once. */
void sg_block_put(struct sg_block *block, struct CUstream_st *stream, uint64_t ticket);
void sg_block_set_access(struct sg_block *block, bool accessible);
