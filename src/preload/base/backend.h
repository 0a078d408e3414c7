/*
 * Memory backends behind one vtable: what cuMemAlloc gives a program, and how its memory leaves and
 * regains the device.
 *
 *   plain    the driver's own allocations: counted and limited, never moved
 *   swap     VMM: an allocation is a range of chunks at a fixed address; a chunk is on the device,
 * on the host (mapped, where the driver has it) or unmapped with its bytes in a pinned arena
 *   managed  cuMemAllocManaged, prefetched in bulk at hand-over: what nvshare does; the baseline
 *
 * Who calls. alloc/free/range: the program's threads, any time. shrink/fill: the agent thread only,
 * with the gate closed and the device drained (shrink), or before the gate opens (fill); the
 * device's primary or first context is current and the thread is in relaxed capture mode. A backend
 * guards itself against alloc/free during shrink/fill by its own lock.
 *
 * Invariants. resident <= limit after shrink. When the gate is open or opening, every byte of every
 * allocation is accessible to the device: alloc maps before it returns unless the gate is closed,
 * and fill maps everything before it reports 0. Bytes are never lost: a failed move leaves the
 * chunk where it was. Freed ranges keep cuMemFree's meaning: reused only after earlier work has
 * completed.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/gate_page.h"
#include "proto/words.h"

struct td_memory_stats {
	uint64_t demanded_bytes; /* allocated by the program, at the driver's granularity */
	uint64_t resident_bytes; /* part of demanded_bytes that is on the device */
	uint64_t host_bytes;     /* part of demanded_bytes on the host: mapped or arena */
	/* Part of demanded_bytes that the program's allocator calls an unused cache. */
	uint64_t cached_bytes;
	/* Part of host_bytes that is mapped: the device reaches it across PCIe or NVLink. */
	uint64_t spilled_bytes;
	uint64_t fixed_bytes;    /* part of resident_bytes that cannot leave the device */
	uint64_t stranded_bytes; /* part of fixed_bytes that only lacks room on the host */
	uint64_t peak_bytes;     /* highest demanded so far */
	uint64_t kept_bytes;     /* part of demanded_bytes: free block for small allocations */
	uint64_t crossed_bytes;  /* sum so far: imported from or exported to other processes */
	uint64_t given_up_bytes; /* part of crossed_bytes that was exported */
	/*
	 * Memory on this device that this process has imported, and that other processes allocated.
	 */
	uint64_t imported_bytes;
	/*
	 * Not part of the sums above: memory that the driver pages because the device had no room
	 * for it, or that a memory pool took without asking and has to give back.
	 */
	uint64_t paged_bytes;
	/* Part of resident_bytes: unified memory. Its pages may in fact be on the host. */
	uint64_t managed_bytes;
	uint64_t in_bytes, out_bytes; /* moved so far to the device, and from it */
	uint64_t move_ns;             /* time spent in moves so far */
	/*
	 * When to try again to move memory that is fixed because the host was full (monotonic ns);
	 * 0: never.
	 */
	uint64_t again_ns;
	uint32_t failed; /* CUresult of a failed context, whose memory cannot be moved; 0: none */
};

/*
 * slot: the process's own number of the GPU (order of first use), < TD_SLOT_MAX.
 * Return values are CUresult of the driver (0 = CUDA_SUCCESS) where the program sees them.
 */
struct td_backend {
	const char *name;

	/*
	 * cuMemAlloc, cuMemFree and cuMemGetAddressRange as the program sees them. free and range
	 * return TD_BACKEND_NOT_MINE for an address that is not the backend's; the caller then
	 * calls the driver. The range is written on success only.
	 */
	int (*alloc)(unsigned slot, size_t bytes, uint64_t *ret_address);
	int (*free)(uint64_t address);
	int (*range)(uint64_t address, uint64_t *ret_base, size_t *ret_bytes);

	/*
	 * Frees memory that the program freed while work could still use it (late.h). That work has
	 * ended, and its context is current. Returns a CUresult.
	 */
	int (*release)(uint64_t address);

	/*
	 * The context of this allocation has ended, and the driver has freed its part of the
	 * memory. The backend drops its record. The driver may already have given the address to
	 * another allocation.
	 */
	void (*lost)(uint64_t address, const void *context);

	/*
	 * Moves memory off the device until resident <= limit. It may do so in steps and call
	 * progress() after each, so that the daemon can pass freed bytes on meanwhile. 0, or -errno
	 * with all memory still correct; -ENOTRECOVERABLE: the context has failed, see stats.
	 */
	int (*shrink)(unsigned slot, uint64_t limit_bytes, void (*progress)(unsigned slot));

	/*
	 * Brings memory back until all is accessible, or the limit or the device is full. 0: all is
	 * accessible; 1: the limit forbids more; 2: the device is full; -errno as shrink.
	 */
	int (*fill)(unsigned slot, uint64_t limit_bytes, void (*progress)(unsigned slot));

	/*
	 * With the gate closed and the device drained, after a fill: moves memory beyond the limit,
	 * and memory out of the device's reach, to host memory that the device reaches. Where the
	 * host has no more, memory stays on the device and counts as fixed. 0: all is accessible;
	 * 1: not all is; -errno as shrink. NULL: the backend cannot.
	 */
	int (*reach)(unsigned slot, uint64_t limit_bytes, void (*progress)(unsigned slot));

	/*
	 * Returns the host memory that the slot's bytes need: now, or after a shrink to the limit.
	 * With `spills`: after a shrink, a fill and a reach. NULL: the backend uses no host memory.
	 */
	uint64_t (*host_bytes)(unsigned slot, uint64_t limit_bytes, bool spills);
	/*
	 * Frees host memory that is not in use. Called under the same conditions as shrink. NULL:
	 * there is none.
	 */
	int (*give_back)(unsigned slot, uint64_t limit_bytes, void (*progress)(unsigned slot));

	/*
	 * Frees the block that is kept for small allocations (td_client_may_keep). idle: only if no
	 * allocation has used it since the last such call. Any thread, also without a context.
	 * NULL: nothing is kept.
	 */
	void (*trim)(unsigned slot, bool idle);

	/*
	 * Returns whether the device's driver can map host memory in the place of device memory.
	 * Needs no context. NULL: this backend never does that.
	 */
	bool (*spills)(int device);

	void (*stats)(unsigned slot, struct td_memory_stats *ret);

	/* Called in a forked child, which owns nothing on the device: drops all records. */
	void (*forked)(void);
};

#define TD_BACKEND_NOT_MINE (-1)
/*
 * A result of alloc: malloc failed, so the allocation cannot be recorded. The caller lets the
 * driver allocate.
 */
#define TD_BACKEND_NO_RECORD (-2)
/* A result of alloc: the program is about to move, and the allocation is to be tried after that. */
#define TD_BACKEND_MOVES (-3)

extern const struct td_backend td_backend_plain, td_backend_swap, td_backend_managed;

/* client.h declares the calls by which a backend asks whether bytes may become resident. */

/* Called before the first context is used. With NULL memory is neither counted nor moved. */
void td_agent_set_backend(const struct td_backend *backend);

/* Returns the backend; not NULL once the library is loaded. */
const struct td_backend *td_agent_backend(void);

/* Gets the slot's figures; zeros if there is no backend. */
void td_agent_stats(unsigned slot, struct td_memory_stats *ret);

/*
 * True once there are allocations that are parts of larger mappings, so that copies beyond their
 * ends must be refused (reach.h). Until then copies are not checked.
 */
extern _Atomic bool td_reach_begun;
static inline void td_reach_begin(void)
{
	atomic_store_explicit(&td_reach_begun, true, memory_order_relaxed);
}
