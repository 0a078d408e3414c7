/*
 * One chunk of a swapped allocation: a fixed range of addresses and what is behind it. Driver calls
 * only; who may move what when is swap.c's and swap_move.c's. Results are CUresult.
 *
 *   FRESH   nothing: never written
 *   DEVICE  memory of the device
 *   ARENA   nothing; the bytes are in a pinned buffer
 *   HOST    memory of the host, mapped: the device reaches it across the link (AntMan's universal
 *     memory). Not every driver has it.
 *   BETWEEN mapped as it was, and being copied to where it is to be: whoever has put it there knows
 *     both
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
	CUmemGenericAllocationHandle handle; /* DEVICE and HOST */
	/*
	 * the memory is there, the bytes are in it, but the driver could not map it: td_chunk_tie
	 */
	bool loose;
	void *arena; /* kept for the next time once it exists */
	bool hosted; /* what is mapped for it, or is to be, is memory of the host */
	/*
	 * that or an arena is in what the process has of the host's memory (host.h): once, as of
	 * two one is about to go
	 */
	bool charged;
	/*
	 * DEVICE: came there with no bytes of its own, as of this closing of the gate
	 * (td_plans_closings + 1)
	 */
	uint64_t blank;
};

/* The smallest chunk that the device's driver maps, in bytes. */
uint64_t td_chunk_granularity(CUdevice device);

/*
 * Memory behind a chunk that has none. Its content is undefined; the place is the caller's to
 * change.
 */
int td_chunk_map(struct td_chunk *chunk, CUdevice device);
/*
 * The same with host memory. CUDA_ERROR_NOT_SUPPORTED where the driver has none;
 * CUDA_ERROR_OUT_OF_MEMORY also where the process may have no more.
 */
int td_chunk_map_host(struct td_chunk *chunk, CUdevice device);
void td_chunk_unmap(struct td_chunk *chunk);

/*
 * td_chunk_charge takes the host memory that the chunk would need on the host from the process's
 * part; false: there is not so much. Arenas and maps of host memory do so by themselves.
 * td_chunk_discharge gives it back, if the chunk has no memory on the host.
 */
bool td_chunk_charge(struct td_chunk *chunk);
void td_chunk_discharge(struct td_chunk *chunk);

/*
 * Memory of `device` is to be (or not) within reach of `peer`, from the next mapping on; and a bit
 * for each that it is in reach of.
 */
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

/* Maps the memory of a loose chunk where it belongs. */
int td_chunk_tie(struct td_chunk *chunk, CUdevice device);

/* Does the driver map memory of the host as it does that of the device? */
bool td_chunk_may_be_on_host(CUdevice device);

/* Gives back the pinned buffer of a chunk whose bytes are elsewhere. */
void td_chunk_drop_arena(struct td_chunk *chunk);

/* Everything behind it goes, the bytes too. */
void td_chunk_free(struct td_chunk *chunk);
