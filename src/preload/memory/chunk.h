/*
 * One chunk of a swapped allocation: a fixed range of addresses and the memory behind it. This file
 * only makes driver calls; swap.c and swap_move.c decide which thread may move which chunk when.
 * Functions return a CUresult. A chunk is in one of these places:
 *
 *   FRESH    nothing is mapped: the program has never written to it
 *   DEVICE   device memory is mapped
 *   ARENA    nothing is mapped; the bytes are in a pinned buffer
 *   HOST     host memory is mapped, which the device accesses across PCIe or NVLink (AntMan's
 *            universal memory). Not every driver can do so.
 *   BETWEEN  the mapping is as before, and a copy to another place is in progress; the batch that
 *            started it knows both places
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
	TD_PLACE_BETWEEN,
};

struct td_chunk {
	enum td_place place;
	uint64_t address, bytes;
	CUmemGenericAllocationHandle handle; /* valid in DEVICE and HOST */
	/*
	 * The memory exists and has the bytes, but the driver could not map it; td_chunk_tie tries
	 * again.
	 */
	bool loose;
	void *arena; /* once allocated, it is kept for the next time */
	bool hosted; /* host memory is mapped for it, or is going to be */
	/*
	 * Host memory for this chunk is charged to the process (host.h): once, even while it has
	 * both a mapping and an arena.
	 */
	bool charged;
	/*
	 * In DEVICE: the chunk was allocated during this closing of the gate (td_plans_closings +
	 * 1), so it has no contents yet.
	 */
	uint64_t blank;
};

/* Returns the smallest chunk that the device's driver maps, in bytes. */
uint64_t td_chunk_granularity(CUdevice device);

/*
 * Maps device memory behind a chunk that has none. Its contents are undefined. The caller sets the
 * place.
 */
int td_chunk_map(struct td_chunk *chunk, CUdevice device);
/*
 * Maps host memory behind a chunk that has none. CUDA_ERROR_NOT_SUPPORTED: the driver cannot.
 * CUDA_ERROR_OUT_OF_MEMORY: also if the process's limit is reached.
 */
int td_chunk_map_host(struct td_chunk *chunk, CUdevice device);
void td_chunk_unmap(struct td_chunk *chunk);

/*
 * td_chunk_charge charges the host memory that the chunk would need on the host; false: the limit
 * does not allow it. Arenas and mappings of host memory do so themselves. td_chunk_discharge undoes
 * it, if the chunk has no memory on the host.
 */
bool td_chunk_charge(struct td_chunk *chunk);
void td_chunk_discharge(struct td_chunk *chunk);

/*
 * td_chunk_peer sets whether `peer` may access memory of `device`, for all later mappings.
 * td_chunk_peers returns a bit for each device that may.
 */
uint64_t td_chunk_peers(CUdevice device);
void td_chunk_peer(CUdevice device, CUdevice peer, bool open);
/* Sets whether `peer` may access a chunk that is mapped already. */
int td_chunk_open(const struct td_chunk *chunk, CUdevice peer, bool open);
void td_chunk_forked(void);

/* Returns whether memory of the device can be passed to other processes. */
bool td_chunk_has_handles(void);

/* These start copies on the stream, from and to the mapped memory. */
int td_chunk_to_arena(struct td_chunk *chunk, CUstream stream);
int td_chunk_from_arena(const struct td_chunk *chunk, CUstream stream);

/*
 * HOST to DEVICE, or DEVICE to HOST, at the same address: new memory is mapped beside it, the bytes
 * are copied, and the memory changes.
 *
 *         begin --copied, nothing has used the chunk since--> end    the chunk has the new memory;
 *    on failure all is as it was, unless the chunk is loose then
 * 	      --anything else-----------------------------> drop   all is as it was
 *
 * The place is the caller's to change.
 */
struct td_exchange {
	CUdeviceptr beside;
	CUmemGenericAllocationHandle handle;
	bool to_host;
};

int td_chunk_begin_exchange(
	struct td_chunk *chunk, CUdevice device, CUstream stream, struct td_exchange *ret);
int td_chunk_end_exchange(
	struct td_chunk *chunk, CUdevice device, const struct td_exchange *exchange);
void td_chunk_drop_exchange(struct td_chunk *chunk, const struct td_exchange *exchange);

/* Maps the memory of a loose chunk at its address. */
int td_chunk_tie(struct td_chunk *chunk, CUdevice device);

/* Returns whether the driver can map host memory in the place of device memory. */
bool td_chunk_may_be_on_host(CUdevice device);

/* Frees the arena of a chunk whose bytes are elsewhere. */
void td_chunk_drop_arena(struct td_chunk *chunk);

/* Frees all memory behind the chunk, with its bytes. */
void td_chunk_free(struct td_chunk *chunk);
