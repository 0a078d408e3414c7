/*
 * The calls by which the program's threads ask something of the agent. Nothing here touches the
 * socket: requests are left where the agent finds them, and it is woken. All functions keep errno.
 * Without a daemon they do nothing, or need no answer.
 *
 * td_client_need, td_client_memory_changed: see also preload/backend.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/words.h"

/*
 * A thread waits at the gate, or passes it armed, when it showed `word`. Wakes the agent once per
 * word, and tells the daemon if that does not know that the process wants the GPU.
 */
void td_client_want(uint32_t word);

/* Where bytes may go that a thread asks for. */
enum td_need {
	TD_NEED_DEVICE,
	TD_NEED_REFUSED, /* Nowhere: the program is out of memory. */
	/* Off the device, which they come to with the next fill: the gate is closed. */
	TD_NEED_LATER,
	TD_NEED_HOST, /* In host memory that the device reaches. */
};

enum td_mobility {
	TD_FIXED,   /* on the device, or nowhere */
	TD_MOVABLE, /* the backend can put it elsewhere, and lets nothing wait before it has it */
	TD_PAGED,   /* the driver moves it: it may be larger than the device */
	TD_PAGING,  /* the driver moves it, and the backend has it brought in and sent home */
};

/*
 * May `bytes` more become resident on this slot (GPU) now? May block while the daemon makes room;
 * call it without the backend's lock. HOST is never said of what is fixed. Without a daemon the
 * job's limits go for this process alone. Every call that was not refused is followed by one
 * td_client_settled with its result, once the bytes are in the backend's stats (then under the lock
 * that stats takes, so that they are never counted twice or not at all) or were given up.
 */
int td_client_need(unsigned slot, uint64_t bytes, enum td_mobility mobility);
void td_client_settled(unsigned slot, uint64_t bytes, int need, enum td_mobility mobility);

/*
 * Under the backend's lock, before it records an allocation as being off the device: is the gate
 * still closed, with no fill begun? A fill that begins later waits for the lock, and finds what was
 * recorded.
 */
bool td_client_may_defer(unsigned slot);

/*
 * Under the backend's lock: may memory that the program frees be kept for its next allocations? It
 * counts as allocated meanwhile. Before this becomes false for want of room, the backend is told to
 * give it back (trim).
 */
bool td_client_may_keep(unsigned slot);

/*
 * The device lacks this much of what was granted: the daemon is told, and may find that somebody
 * has to give way.
 */
void td_client_short(unsigned slot, uint64_t missing_bytes);

/*
 * Returns the memory on the device beyond the limit that the gate is open with, which the program
 * had better give back by itself.
 */
uint64_t td_client_excess(unsigned slot);
/* The program says that so much of its memory is only kept for later. */
void td_client_set_cached(unsigned slot, uint64_t bytes);

/* Does the job have a hard limit there, as far as is known? */
bool td_client_has_limit(unsigned slot);

/* There is no daemon at present. */
bool td_client_is_alone(void);

/* The totals have changed (alloc, free): the daemon is told soon. */
void td_client_memory_changed(unsigned slot);
/*
 * The same by what another process made, which others of its job may be about to allocate beside:
 * it is told at once.
 */
void td_client_memory_crossed(unsigned slot);

/*
 * Returns the size that the program sees as its GPU's memory: the capacity by the last daemon, or
 * the device's total; 0 for a slot that is not known.
 */
uint64_t td_client_capacity(unsigned slot);

/*
 * The same for the program's eyes: at most its job's limit; and what other processes of the job
 * have of that.
 */
uint64_t td_client_visible(unsigned slot);
uint64_t td_client_others(unsigned slot);

/* Around a wait at the closed gate. */
void td_client_waits(bool begins);
