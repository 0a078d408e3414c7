/*
 * One marker per thread: is the thread inside a submitting call, and how many calls has it made?
 * Only its thread writes it; the agent reads all of them. A marker is claimed at a thread's first
 * submission and released at the thread's end. Its memory stays, so that counts are never lost and
 * the agent may always read it.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "preload/base/metering.h"
#include "preload/base/window.h"

/*
 * A flag beside the nesting level in td_marker.depth: the call passed with a window, and leaving
 * has work to do.
 */
#define TD_DEPTH_PACED 0x10000u
/* A flag beside the nesting level: the meter is on, and the call is on its way to the GPU. */
#define TD_DEPTH_METERED 0x20000u
/*
 * One call adds this much to the shared marker. Its depth is then never 1, which the fast exit
 * expects.
 */
#define TD_DEPTH_SHARED 2u

struct td_marker {
	_Atomic uint32_t depth; /* submitting calls that the thread is inside of, and TD_DEPTH_* */
	_Atomic uint32_t claimed; /* 1: belongs to a thread */
	_Atomic uint64_t launches;
	/*
	 * Number of launches onto the thread's own default stream, which no other thread can name;
	 * and how many of them are known to have ended.
	 */
	_Atomic uint64_t own_stream_launches, own_stream_done;
	/* Nonzero while the thread makes driver calls for tandem: they do not pass the gate. */
	uint32_t internal;
	struct td_window window;
	struct td_meter_thread meter;
	uint64_t own_seen; /* drain.c's: own_stream_launches when its pass began */
	/*
	 * An event behind the first `launches` of them, which the thread itself has recorded; 0:
	 * none. The drain waits for it.
	 */
	struct {
		_Atomic uint64_t launches;
		void *event;
		uint64_t context; /* serial number of the event's context; see context.h */
	} own_mark;
} __attribute__((aligned(128)));

extern __thread struct td_marker *td_marker_self __attribute__((tls_model("initial-exec")));

/*
 * For threads that cannot have a marker: memory is short, or the thread is at its very end. It is
 * counted with atomic additions.
 */
extern struct td_marker td_marker_shared;

/* Called once, before any other call. False: slots of ended threads are not released. */
bool td_marker_init(void);

/*
 * Returns the calling thread's marker, claiming one if needed, or &td_marker_shared if none can be
 * had. Never NULL.
 */
struct td_marker *td_marker_claim(void);

/*
 * Marks the calling thread as the library's: its submissions pass every gate and are not counted.
 */
void td_marker_adopt_internal(void);

/*
 * Calls visit on every marker that ever had an owner until it returns false. Returns false if it
 * was stopped.
 */
bool td_marker_each(bool (*visit)(struct td_marker *marker, void *arg), void *arg);

/* Submissions of all threads so far. */
uint64_t td_marker_launches(void);

/*
 * Returns whether any thread is inside a call that submits work. Exact after a barrier over all
 * threads of the process; otherwise a hint.
 */
bool td_marker_any_active(void);

/*
 * Called in the child of a fork: only the calling thread is left, and it starts without a marker.
 */
void td_marker_forked(void);

/*
 * Defined by pace.c. The thread ends, so its work in flight no longer counts: nobody can check it.
 */
void td_pace_thread_ends(struct td_marker *marker);
