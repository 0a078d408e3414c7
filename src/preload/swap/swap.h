/*
 * Backend swap: what its files share. swap.c allocates, swap_free.c frees, swap_view.c answers
 * queries; swap_move.c and swap_reach.c are the agent's moves. backend.h says which thread calls
 * what. A range is one allocation or, for allocations smaller than the granularity, a block that
 * several share (pieces.h).
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "preload/base/backend.h"
#include "preload/base/ranges.h"
#include "preload/memory/chunk.h"

struct td_pieces;

struct td_range {
	struct td_range *next;
	uint64_t base, bytes, asked; /* asked: the size that the program asked for */
	uint64_t id;                 /* CU_POINTER_ATTRIBUTE_BUFFER_ID */
	unsigned slot;
	CUdevice device;
	struct td_pieces *pieces;    /* the pieces of a block; NULL: the range is one allocation */
	struct td_range *next_block; /* next block of the slot */
	uint64_t claimed;            /* the part of td_swap.claimed_bytes that this range has */
	unsigned pins;               /* number of reasons to stay in this device memory */
	unsigned moving; /* the number of its chunks that copies in progress read or write */
	size_t count;
	struct td_chunk chunks[];
};

struct td_swap {
	/*
	 * Guards all fields. It is not held while copies are in progress; a range with such copies
	 * is not freed.
	 */
	pthread_mutex_t lock;
	struct td_range *ranges; /* largest first: they leave and come back in this order */
	struct td_range *blocks[TD_SLOT_MAX];
	/* an empty block of each slot, kept for the next small allocation */
	struct td_range *spare[TD_SLOT_MAX];
	bool spare_is_new[TD_SLOT_MAX]; /* the spare became empty after the last check of its age */
	/*
	 * Guards the index: changes need both locks, reading needs either. Copies look up addresses
	 * under index_lock and wait for nothing longer. No driver call is made with it.
	 */
	pthread_mutex_t index_lock; /* taken after lock */
	struct td_ranges index;     /* ranges by address, with the pieces of all blocks */
	uint64_t claimed_bytes;     /* bytes reserved on the host for allocations in progress */
	pthread_mutex_t asking; /* held while the daemon is asked for such a place; before lock */
	uint64_t ids;
	struct td_memory_stats totals[TD_SLOT_MAX];
	struct {
		/*
		 * Bytes that should leave the device but have no place to go. They count as fixed
		 * until more than grant_bytes of host memory are granted, or until until_ns. The
		 * agent tries again at again_ns.
		 */
		uint64_t bytes, grant_bytes, again_ns, until_ns;
		uint64_t lasts_ns; /* time until the next attempt; grows each time */
	} stranded[TD_SLOT_MAX];
	/* all memory is pinned, and so will be later allocations: choose.h */
	bool stays;
	CUstream streams[TD_SLOT_MAX]; /* streams for moves; CUDA ends each with its context */
	uint64_t stream_contexts[TD_SLOT_MAX]; /* serial numbers of these contexts; see context.h */
};

extern struct td_swap td_swap;

/* Returns whether this process uses the backend swap. */
bool td_swap_is_used(void);

/* -- functions that need the lock -- */

struct td_range *td_swap_find(uint64_t address);
/* Adds the range to the index, or removes it. td_swap_index returns 0 or -ENOMEM. */
int td_swap_index(struct td_range *range);
void td_swap_unindex(const struct td_range *range);
/*
 * Adds the range's bytes (sign 1) to the totals of memory on the device and on the host, or
 * subtracts them (sign -1).
 */
void td_swap_count(const struct td_range *range, int sign);
/* Removes a range from the tables. No copy of it may be in progress. */
void td_swap_unlink(struct td_range *range);
/*
 * Keeps an empty block for the next small allocation. Returns false if it should be freed instead.
 */
bool td_swap_keep(struct td_range *block);

/* -- functions to be called without the lock -- */

/* Frees the memory of a range that is in no table, and the range itself. */
void td_swap_free_range(struct td_range *range);
int td_swap_free(uint64_t address);
/* The backend's trim; see backend.h. */
void td_swap_trim(unsigned slot, bool idle);
/*
 * Like td_swap_free(), for memory that no work of the GPU uses any more. Memory that other
 * processes have open stays until they close it.
 */
int td_swap_end(uint64_t address);
void td_swap_lost(uint64_t address, const void *context);
/* Frees memory that the program no longer has and nothing uses. Returns a CUresult. */
int td_swap_release(uint64_t address);

/*
 * Pins the range around the address: it stays in its device memory until it is unpinned as often,
 * or freed. Waits until it is on the device. Returns CUDA_SUCCESS; CUDA_ERROR_OUT_OF_MEMORY if its
 * place is on the host; CUDA_ERROR_INVALID_VALUE if there is no such range.
 */
int td_swap_pin(uint64_t address);
void td_swap_unpin(uint64_t address);
/* Pins all ranges, present and future: memory returns to the device and does not leave again. */
void td_swap_pin_all(void);
/* Pins a new range if all ranges are pinned. The caller holds the lock. */
void td_swap_pin_new(struct td_range *range);

/*
 * td_swap_stranded returns the slot's bytes that have no place to go. td_swap_again_ns: when to try
 * again (monotonic ns); 0: never. The caller holds the lock.
 */
uint64_t td_swap_stranded(unsigned slot);
uint64_t td_swap_again_ns(unsigned slot);
/*
 * Notes that the memory left on the device beyond the limit has, or no longer has, no place to go.
 */
void td_swap_strand(unsigned slot, bool stranded);

/*
 * td_swap_host_bytes returns the most host memory in use after a shrink of the slot to the limit.
 * td_swap_drop_idle frees pinned memory that is not in use, and returns false if there was none;
 * the caller holds the lock. td_swap_give_back does the same without the lock.
 */
uint64_t td_swap_host_bytes(unsigned slot, uint64_t limit_bytes, bool spills);
bool td_swap_drop_idle(unsigned slot);
int td_swap_give_back(unsigned slot, uint64_t limit_bytes, void (*progress)(unsigned slot));

/*
 * With TANDEM_HOST_FULL=refuse, reserves a place on the host for the range: within the process's
 * own limit and, once the daemon knows of the allocation (td_client_need), within its grant.
 * Returns false if there is no room; nothing is reserved then. td_swap_unclaim needs the lock.
 */
bool td_swap_claim(struct td_range *range);
bool td_swap_reserve(struct td_range *range);
void td_swap_unclaim(struct td_range *range);
/*
 * Charges host memory for a range that is placed there. Returns false if the limit does not allow
 * it.
 */
bool td_swap_charge(struct td_range *range);

int td_swap_shrink(unsigned slot, uint64_t limit_bytes, void (*progress)(unsigned slot));
int td_swap_fill(unsigned slot, uint64_t limit_bytes, void (*progress)(unsigned slot));
int td_swap_reach(unsigned slot, uint64_t limit_bytes, void (*progress)(unsigned slot));

/* The contexts and the device to which memory goes when the program moves to another GPU. */
struct td_rehome_places {
	CUcontext from, to;
	CUdevice device; /* device of the context `to` */
	CUstream stream; /* a stream in `to` with no other work */
};

/*
 * Agent: moves all memory of one slot to the other GPU (swap_rehome.c). Returns 0; -EAGAIN if some
 * of it cannot be moved now; or a CUresult. On failure nothing has changed.
 */
int td_swap_rehome(
	unsigned from, unsigned to, const struct td_rehome_places *places, uint64_t *ret_bytes);

/* -- queries -- */

struct td_swap_info {
	uint64_t base, bytes; /* the allocation, with the size that was asked for */
	uint64_t id;
	uint64_t mapped_base, mapped_bytes, mapped_id; /* the mapping that it is part of */
	unsigned slot;
	CUdevice device;
	bool imported; /* imported from another process (ipc.h); `context` is then valid */
	CUcontext context;
};

/*
 * Returns whether any part of the range belongs to the backend or to imported memory (ipc.h). Then
 * the program may not map its own memory there.
 */
bool td_is_no_mapping(uint64_t address, size_t bytes);

/*
 * Describes the allocation around the address. Returns CUDA_SUCCESS, TD_BACKEND_NOT_MINE, or
 * CUDA_ERROR_NOT_FOUND if the address is the backend's but in no allocation of the program.
 */
int td_swap_describe(uint64_t address, struct td_swap_info *ret);
/*
 * Checks whether these bytes, at least one, lie within one allocation. Returns CUDA_SUCCESS if they
 * do, TD_BACKEND_NOT_MINE if none of them is the backend's, else CUDA_ERROR_INVALID_VALUE.
 */
int td_swap_holds(uint64_t address, uint64_t bytes);

/* -- defined by ipc_export.c, for memory that other processes have open -- */

/*
 * Called when the program frees memory. Returns true if other processes have it open: it is then
 * freed when they close it. Returns false if the caller is to free it now.
 */
bool td_ipc_keeps(uint64_t address);
/*
 * Returns whether the program has freed the memory at this address while other processes have it
 * open.
 */
bool td_ipc_is_kept(uint64_t address);
