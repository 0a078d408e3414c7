/*
 * Memory pools and stream-ordered allocation. A block is some granules of its own: its addresses are known at once, but nothing is behind
 * them before the stream reaches the allocation nor after it has reached the free: work that is not ordered after the one and before the other
 * faults. (NVIDIA's driver packs small blocks together and lets such work pass; here each costs 2 MiB.)
 *
 *	used --cuMemFreeAsync--> free at a position of a stream --reused, in that order--> used
 *	                                                       --above the release threshold at a synchronisation--> gone
 *
 * pool.c: pools and their blocks. pool_async.c: allocation and free in a stream's order. pool_settings.c: attributes, the pools of devices, access.
 *
 * Memory is the process's, as pools belong to devices.
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

extern pthread_mutex_t sg_pool_lock;

/* -- all with sg_pool_lock held -- */
/* The device's own pool, made when it is first asked for; NULL: no memory. */
struct CUmemPoolHandle_st *sg_pool_default(uint32_t device);
/* Where cuMemAllocAsync takes from; only after sg_pool_default() was not NULL. */
struct CUmemPoolHandle_st **sg_pool_current(uint32_t device);
bool sg_pool_is_live(CUmemoryPool pool);
/* In use at that address; NULL: none. */
struct sg_block *sg_block_find(uint64_t address);
/* A block in use, free before or new. Work on it comes after *ret_after, if that has a stream. */
int sg_block_take(struct CUmemPoolHandle_st *pool, uint64_t bytes, const struct CUstream_st *stream,
	struct sg_block **ret, struct sg_dependency *ret_after);
/* Free from that position of the stream on; NULL: from now on. */
void sg_block_put(struct sg_block *block, struct CUstream_st *stream, uint64_t ticket);
void sg_block_set_access(struct sg_block *block, bool accessible);
