/*
 * One chunk of a swapped allocation: a fixed range of addresses and what is behind it. Driver calls only; who may move what when is
 * swap.c's and swap_move.c's. Results are CUresult.
 *
 *   FRESH   nothing: never written
 *   DEVICE  memory of the device
 *   ARENA   nothing; the bytes are in a pinned buffer
 *   HOST    memory of the host, mapped: the device reaches it across the link (AntMan's universal memory). Not every driver has it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cuda/types.h"

enum td_place {
	TD_PLACE_FRESH,
	TD_PLACE_DEVICE,
	TD_PLACE_ARENA,
	TD_PLACE_HOST,
};

struct td_chunk {
	enum td_place place;
	uint64_t address, bytes;
	CUmemGenericAllocationHandle handle; /* DEVICE and HOST */
	void *arena;                         /* kept for the next time once it exists */
	uint64_t
		blank; /* DEVICE: came there with no bytes of its own, as of this closing of the gate (td_plans_closings + 1) */
};

/* The smallest chunk that the device's driver maps, in bytes. */
uint64_t td_chunk_granularity(CUdevice device);

/* Memory behind a chunk that has none. Its content is undefined; the place is the caller's to change. */
int td_chunk_map(struct td_chunk *chunk, CUdevice device);
/* The same with host memory. CUDA_ERROR_NOT_SUPPORTED where the driver has none. */
int td_chunk_map_host(struct td_chunk *chunk, CUdevice device);
void td_chunk_unmap(struct td_chunk *chunk);

/* Memory of `device` is to be (or not) within reach of `peer`, from the next mapping on; and a bit for each that it is in reach of. */
uint64_t td_chunk_peers(CUdevice device);
void td_chunk_peer(CUdevice device, CUdevice peer, bool open);
/* The same for what is mapped already. */
int td_chunk_open(const struct td_chunk *chunk, CUdevice peer, bool open);
void td_chunk_forked(void);

/* Can memory of the device be passed to other processes? */
bool td_chunk_has_handles(void);

/* Start copies on the stream, out of and into what is mapped. */
int td_chunk_to_arena(struct td_chunk *chunk, CUstream stream);
int td_chunk_from_arena(const struct td_chunk *chunk, CUstream stream);

/* HOST to DEVICE, or DEVICE to HOST, at the same address, done when it returns. On failure everything is as it was; the place is the caller's to change. */
int td_chunk_exchange(struct td_chunk *chunk, CUdevice device, CUstream stream);

/* Does the driver map memory of the host as it does that of the device? */
bool td_chunk_may_be_on_host(CUdevice device);

/* Gives back the pinned buffer of a chunk whose bytes are elsewhere. */
void td_chunk_drop_arena(struct td_chunk *chunk);

/* Everything behind it goes, the bytes too. */
void td_chunk_free(struct td_chunk *chunk);
