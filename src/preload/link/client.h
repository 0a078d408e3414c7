/*
 * The calls by which the program's threads ask the agent for something. They do not use the socket:
 * they leave a request and wake the agent. All keep errno. Without a daemon they do nothing, or
 * need no answer. td_client_need and td_client_memory_changed: see also preload/base/backend.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/words.h"

/*
 * A thread waits at the gate, or passes an armed gate, whose word was `word`. Wakes the agent once
 * per word. The agent tells the daemon, unless it knows already, that the process wants the GPU.
 */
void td_client_want(uint32_t word);

/* The answer to an allocation: where its bytes may go. */
enum td_need {
	TD_NEED_DEVICE,
	TD_NEED_REFUSED, /* nowhere: the program gets out of memory */
	/* Off the device until the next fill, because the gate is closed. */
	TD_NEED_LATER,
	TD_NEED_HOST, /* on the host, where the device can use it in place */
	/*
	 * The program is about to move to another GPU, so the caller lets the move happen and asks
	 * again where it is then. For TD_MOVABLE only. Nothing was promised.
	 */
	TD_NEED_MOVES,
};

enum td_mobility {
	TD_FIXED,   /* must be on the device */
	TD_MOVABLE, /* the backend can move it; it is allocated without waiting */
	TD_PAGED,   /* the driver pages it; may exceed the device */
	TD_PAGING,  /* the driver pages it; the backend prefetches it to and fro */
};

/*
 * Asks whether `bytes` more may become resident on the slot's GPU. It may block while the daemon
 * makes room, so the caller must not hold the backend's lock. HOST is never the answer for
 * TD_FIXED. Without a daemon the job's limits apply to this process alone. Unless the answer is
 * REFUSED, the caller makes one call of td_client_settled with it: once the bytes are in the
 * backend's stats (under the lock that stats takes, so that they are always counted exactly once)
 * or were given up.
 */
int td_client_need(unsigned slot, uint64_t bytes, enum td_mobility mobility);
void td_client_settled(unsigned slot, uint64_t bytes, int need, enum td_mobility mobility);

/*
 * Called under the backend's lock, before an allocation is recorded as off the device. Returns true
 * if the gate is still closed and no fill has begun. A later fill waits for the lock and finds the
 * record.
 */
bool td_client_may_defer(unsigned slot);

/*
 * Called under the backend's lock: may memory that the program frees be kept for its next
 * allocations? It counts as allocated meanwhile. When room gets short, the backend is told to free
 * it (trim).
 */
bool td_client_may_keep(unsigned slot);

/*
 * The device lacks this much memory that was granted. The daemon is told; it may have another
 * process free memory.
 */
void td_client_short(unsigned slot, uint64_t missing_bytes);

/*
 * Returns how many bytes on the device exceed the limit although the gate is open. The program
 * should free as much by itself.
 */
uint64_t td_client_excess(unsigned slot);
/* The program's allocator says that this much of its memory is an unused cache. */
void td_client_set_cached(unsigned slot, uint64_t bytes);

/* Returns whether the job has a hard limit on that GPU, as far as this process knows. */
bool td_client_has_limit(unsigned slot);

/* Returns true while there is no daemon. */
bool td_client_is_alone(void);

/* The totals have changed (alloc, free); the daemon is told within some milliseconds. */
void td_client_memory_changed(unsigned slot);
/*
 * Tells the daemon the changed totals at once: memory that another process has allocated was opened
 * here, and other processes of the job may be about to allocate.
 */
void td_client_memory_changed_now(unsigned slot);

/*
 * Returns the size that the program sees as its GPU's memory: the capacity by the last daemon, or
 * the device's total; 0 for a slot that is not known.
 */
uint64_t td_client_capacity(unsigned slot);

/*
 * td_client_visible: the same, but at most the job's limit. td_client_others: how much of that
 * limit other processes of the job use.
 */
uint64_t td_client_visible(unsigned slot);
uint64_t td_client_others(unsigned slot);

/* Called before and after a thread waits at the closed gate. */
void td_client_waits(bool begins);
