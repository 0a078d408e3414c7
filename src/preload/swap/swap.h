/*
 * Backend swap, shared by its parts: swap.c (allocations), swap_free.c (their end), swap_view.c
 * (what is where), swap_move.c and swap_reach.c (the agent's moves). backend.h says who calls what.
 *
 * A range is one allocation or, for allocations smaller than the granularity, a block that several
 * share (pieces.h).
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
	uint64_t base, bytes, asked; /* asked: what the program asked for */
	uint64_t id;                 /* CU_POINTER_ATTRIBUTE_BUFFER_ID */
	unsigned slot;
	CUdevice device;
	struct td_pieces *pieces;    /* of a block; NULL: it is one allocation */
	struct td_range *next_block; /* of the slot */
	uint64_t claimed;            /* of td_swap.claimed_bytes */
	unsigned pins;               /* reasons why it stays where it is, which is on the device */
	unsigned moving;             /* of its chunks: copies that use them are under way */
	size_t count;
	struct td_chunk chunks[];
};

struct td_swap {
	/* Guards all of it. Free while copies are under way: a range with any is not freed. */
	pthread_mutex_t lock;
	struct td_range *ranges; /* the largest first: so they leave, and come */
	struct td_range *blocks[TD_SLOT_MAX];
	struct td_range *spare[TD_SLOT_MAX]; /* of them, empty: for the next small allocation */
	bool spare_is_new[TD_SLOT_MAX];      /* it became that since the last look at its age */
	/*
	 * Changed with both locks, read with either. Copies look up their addresses under it and
	 * wait for nothing longer. No driver is called with it.
	 */
	pthread_mutex_t index_lock; /* after lock */
	struct td_ranges index;     /* of ranges, by address; with it, the pieces of all blocks */
	uint64_t claimed_bytes;     /* of allocations under way that have to be able to leave */
	pthread_mutex_t asking; /* held while the daemon is asked whether they are; before lock */
	uint64_t ids;
	struct td_memory_stats totals[TD_SLOT_MAX];
	struct {
		/*
		 * Chunks that were to leave and have nowhere to go. They are fixed until more than
		 * grant_bytes is granted, or until until_ns. At again_ns the agent tries once more.
		 */
		uint64_t bytes, grant_bytes, again_ns, until_ns;
		uint64_t lasts_ns; /* longer each time */
	} stranded[TD_SLOT_MAX];
	bool stays;                            /* all of it is pinned, and what will be: choose.h */
	CUstream streams[TD_SLOT_MAX];         /* of the moves; each ends with its context */
	uint64_t stream_contexts[TD_SLOT_MAX]; /* their serials, see context.h */
};

extern struct td_swap td_swap;

/* Is this the process's backend? */
bool td_swap_is_used(void);

/* -- with the lock -- */

struct td_range *td_swap_find(uint64_t address);
/* Into the index and out of it. 0 or -ENOMEM. */
int td_swap_index(struct td_range *range);
void td_swap_unindex(const struct td_range *range);
/* Adds (sign 1) or takes off (-1) what the range has where. */
void td_swap_count(const struct td_range *range, int sign);
/* Takes a range of which nothing moves out of the table. */
void td_swap_unlink(struct td_range *range);
/* Keeps an empty block for the next small allocation. False: it is not to be kept. */
bool td_swap_keep(struct td_range *block);

/* -- without -- */

/* Everything behind a range that is not in the table (any more). */
void td_swap_free_range(struct td_range *range);
int td_swap_free(uint64_t address);
/* See trim of the backend. */
void td_swap_trim(unsigned slot, bool idle);
/*
 * The same once nothing uses it any more. Memory that others have open stays until they close it.
 */
int td_swap_end(uint64_t address);
void td_swap_lost(uint64_t address, const void *context);
/* The allocation's memory is not the program's any more, and nothing uses it. CUresult. */
int td_swap_release(uint64_t address);

/*
 * The range around the address stays on the device, in this very memory, until as many unpins or
 * until it is freed. Waits until it is on the device. CUDA_SUCCESS; CUDA_ERROR_OUT_OF_MEMORY: it
 * lives on the host; CUDA_ERROR_INVALID_VALUE: there is no such range.
 */
int td_swap_pin(uint64_t address);
void td_swap_unpin(uint64_t address);
/* Pins all ranges, present and future: memory comes back to the device and does not leave again. */
void td_swap_pin_all(void);
/* Pins a new range. The caller holds the lock. */
void td_swap_pin_new(struct td_range *range);

/* With the lock: the slot's bytes that have nowhere to go; and when to try again, 0: never. */
uint64_t td_swap_stranded(unsigned slot);
uint64_t td_swap_again_ns(unsigned slot);
/* Sets whether all memory left on the device cannot leave for now. */
void td_swap_strand(unsigned slot, bool stranded);

/*
 * td_swap_host_bytes: the most host memory in use after a shrink of the slot to the limit.
 * td_swap_drop_idle, with the lock: gives back pinned memory that is not in use; false: there was
 * none. The last does the same without the lock.
 */
uint64_t td_swap_host_bytes(unsigned slot, uint64_t limit_bytes, bool spills);
bool td_swap_drop_idle(unsigned slot);
int td_swap_give_back(unsigned slot, uint64_t limit_bytes, void (*progress)(unsigned slot));

/*
 * With TANDEM_HOST_FULL=refuse, no more is allocated than the host has room for, by the process's
 * own limit and, once the daemon knows of the allocation (td_client_need), by the daemon's grant.
 * False: there is no room, and nothing is claimed. Unclaim needs the lock.
 */
bool td_swap_claim(struct td_range *range);
bool td_swap_reserve(struct td_range *range);
void td_swap_unclaim(struct td_range *range);
/* Charges a range that is to lie on the host. False: the process may have no more there. */
bool td_swap_charge(struct td_range *range);

int td_swap_shrink(unsigned slot, uint64_t limit_bytes, void (*progress)(unsigned slot));
int td_swap_fill(unsigned slot, uint64_t limit_bytes, void (*progress)(unsigned slot));
int td_swap_reach(unsigned slot, uint64_t limit_bytes, void (*progress)(unsigned slot));

/* Where memory goes when the program moves to another GPU: with it, or to a context there. */
struct td_rehome_places {
	CUcontext from, to;
	CUdevice device; /* that of `to` */
	CUstream stream; /* of `to`, with nothing else in it */
};

/*
 * The agent's: all memory of one slot becomes the other's (swap_rehome.c). 0; -EAGAIN: some of it
 * may not move, or not now; or a CUresult. On failure all is as it was.
 */
int td_swap_rehome(
	unsigned from, unsigned to, const struct td_rehome_places *places, uint64_t *ret_bytes);

/* -- what the program may ask -- */

struct td_swap_info {
	uint64_t base, bytes; /* the allocation, as it was asked for */
	uint64_t id;
	uint64_t mapped_base, mapped_bytes, mapped_id; /* what it is a part of */
	unsigned slot;
	CUdevice device;
	bool imported; /* another process's (ipc.h); then: */
	CUcontext context;
};

/*
 * Does any of the range belong to the backend or to memory opened from another process (ipc.h)?
 * Then the program may not map there.
 */
bool td_is_no_mapping(uint64_t address, size_t bytes);

/*
 * CUDA_SUCCESS, TD_BACKEND_NOT_MINE, or CUDA_ERROR_NOT_FOUND: the backend's address, but no
 * allocation of the program.
 */
int td_swap_describe(uint64_t address, struct td_swap_info *ret);
/*
 * Are these bytes (at least 1) within one allocation? CUDA_SUCCESS; TD_BACKEND_NOT_MINE: none of
 * them is the backend's; or CUDA_ERROR_INVALID_VALUE.
 */
int td_swap_holds(uint64_t address, uint64_t bytes);

/* -- defined by ipc_export.c, of memory that other processes have open -- */

/*
 * The program frees the memory. True: other processes have it open, and it is freed when they close
 * it. False: the caller frees it now.
 */
bool td_ipc_keeps(uint64_t address);
/* Freed and kept. */
bool td_ipc_is_kept(uint64_t address);
