/*
 * One slot per thread: is the thread inside a submitting call, and how many has it made? Only its thread writes it, the agent reads all of
 * them. Claimed at a thread's first submission, released at its end; the memory stays, so that counts are never lost and the agent
 * may always look.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "preload/base/metering.h"
#include "preload/base/window.h"

/* Beside the nesting level in td_slot.depth: the call was let through with a window, and leaving has work to do. */
#define TD_DEPTH_PACED 0x10000u
/* Likewise: the meter is on, and the call is on its way to the GPU. */
#define TD_DEPTH_METERED 0x20000u
/* What one call adds to the shared slot: so its depth is never the 1 that the quick way out expects. */
#define TD_DEPTH_SHARED 2u

struct td_slot {
	_Atomic uint32_t depth; /* submitting calls that the thread is inside of, and TD_DEPTH_* */
	_Atomic uint32_t claimed; /* 1: belongs to a thread */
	_Atomic uint64_t launches;
	/* Of those, onto the thread's own default stream, which no other thread can name; and how many of them are known to be complete. */
	_Atomic uint64_t own_stream_launches, own_stream_done;
	/* The thread's own driver calls on tandem's behalf are under way: nothing is gated. */
	uint32_t internal;
	struct td_window window;
	struct td_meter_thread meter;
	uint64_t own_seen; /* drain.c's: own_stream_launches when its pass began */
	/* An event behind the first `launches` of them, recorded by the thread itself; 0: none. The drain takes it. */
	struct {
		_Atomic uint64_t launches;
		void *event;
		uint64_t context; /* serial; see context.h */
	} own_mark;
} __attribute__((aligned(128)));

extern __thread struct td_slot *td_slot_self __attribute__((tls_model("initial-exec")));

/* For threads that can have no slot of their own: memory is short, or the thread is at its very end. Counted with atomic additions. */
extern struct td_slot td_slot_shared;

/* Once, before any other call; false: threads that end keep their slot. */
bool td_slot_init(void);

/* The calling thread's slot, claimed if it has none yet; &td_slot_shared if there is none to have. Never NULL. */
struct td_slot *td_slot_claim(void);

/* The calling thread is ours: its submissions pass every gate, uncounted. */
void td_slot_adopt_internal(void);

/* Calls visit on every slot that ever had an owner, until it returns false. Returns false if it was stopped. */
bool td_slot_each(bool (*visit)(struct td_slot *slot, void *arg), void *arg);

/* Submissions of all threads so far. */
uint64_t td_slot_launches(void);

/* Is any thread inside a submitting call? Exact after a process-wide barrier, a hint otherwise. */
bool td_slot_any_active(void);

/* In the child of a fork: only the calling thread is left, and it starts without a slot. */
void td_slot_forked(void);

/* Defined by pace.c: what the thread has in flight counts no more, since nobody can look at it. */
void td_pace_thread_ends(struct td_slot *slot);
