/*
 * The GPUs, contexts and streams that the process uses, and whether any stream capture is open.
 * Hooks fill it, and so does each thread's first submission with its current context: cudart takes
 * the primary context through tables that no hook sees.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/base/backend.h"

struct td_marker;

#define TD_CONTEXT_MAX 64

struct td_gpu_info {
	uint8_t uuid[16];
	char name[64];
	uint64_t total_bytes;
	/*
	 * Memory in use on the whole device when its first context was seen: the cost of contexts
	 * shows in it.
	 */
	uint64_t used_bytes;
	int device;
	void *context;   /* the first context seen on it that still lives; NULL: none */
	uint64_t serial; /* serial number of that context; see td_context */
};

struct td_context {
	void *handle; /* NULL: free */
	unsigned slot;
	bool created;     /* created by the program; all others are primary contexts */
	unsigned leaving; /* calls between td_context_leaving and td_context_left */
	bool ended;       /* td_context_ends was called for it */
	bool left;        /* the program has moved from it to its twin (rehome.h) */
	uint64_t serial;  /* unlike the handle, never used again */
};

/*
 * The calling thread is about to use its current context. Notes the context, and starts and
 * registers the agent if it is the process's first. Returns the slot of its GPU, or -1 if no
 * context is current or there are too many.
 */
int td_context_use(void);

/*
 * A checkpoint has moved the process's memory and contexts from the slot's GPU to this one
 * (execute/parking.h of the daemon), and those on this GPU to the slot's. From now on the slot has
 * this UUID.
 */
void td_context_put(unsigned slot, const uint8_t uuid[16]);

/* The current context's slot without noting anything; -1 if unknown. */
int td_context_slot(void);

/*
 * The serial number of the current context, 0 if there is none or it is not known; and whether that
 * context still lives.
 */
uint64_t td_context_serial(void);
uint64_t td_context_serial_of(const void *context);
bool td_context_is_alive(uint64_t serial);
/* Has the program moved from that context to its twin (td_context_set_left)? It lives on. */
bool td_context_is_left(uint64_t serial);

/*
 * Hooks call td_context_note when a context was created or made current, and td_context_ends when
 * it has ended.
 */
void td_context_note(void *context, bool created);
void td_context_gone(void *context);

/*
 * Hooks call these around a driver call that may end the context. In between, the drain leaves the
 * context alone, and a thread that uses the same handle waits, boundedly. If the context has ended,
 * the one caller to whom td_context_ends returns true ends what was in it and then leaves with
 * `gone`.
 */
uint64_t td_context_leaving(void *context); /* returns its serial number; 0: not known */
bool td_context_ends(uint64_t serial);
void td_context_left(void *context, uint64_t serial, bool gone);

/*
 * Notes whether the program has moved from this context to its twin (left) or works in it. If
 * all contexts on a GPU are left, the agent tells the daemon that the process does not use that
 * GPU.
 */
void td_context_set_left(const void *context, bool left);

/* The device's primary context, or NULL if it is not known. */
void *td_context_primary(int device);

/*
 * Called when a stream is created, before it is destroyed, and when the driver did not destroy it
 * after all. Removing the stream first makes sure that no other thread uses its handle. Removing
 * returns the stream's context, or NULL.
 */
void td_context_stream_created(void *stream);
void *td_context_stream_ends(void *stream);
void td_context_stream_stays(void *stream, void *context);

/*
 * Returns the context that the stream was created in, or for a default stream the current one.
 * NULL: there is none.
 */
void *td_context_of_stream(const void *stream);

/*
 * Hooks around the real begin call (opened: it succeeded), and after an end call that ended a
 * capture. A capture that is open when its context ends, ends with it.
 */
void td_context_capture_begin(void);
void td_context_capture_begun(bool opened, const void *stream);
void td_context_capture_ended(const void *stream);

/*
 * Hooks around a call that may make a stream join an open capture. False: none is open, and no end
 * follows.
 */
bool td_context_join_begin(void);
void td_context_join_end(void);

/*
 * Returns whether this stream, which is no default stream, is capturing. It calls the driver only
 * while some capture is open in the process.
 */
bool td_context_is_capturing(void *stream);
bool td_context_any_capture(void);

/*
 * For the library's driver calls in the program's threads. The driver refuses some calls, and
 * breaks the capture, while another thread captures in global mode. In between the calling thread
 * is in relaxed mode. td_context_relax returns what td_context_unrelax takes.
 */
int td_context_relax(void);
void td_context_unrelax(int before);

/*
 * At a closed gate: records an event behind the thread's own default stream, if the drain will need
 * one.
 */
void td_context_mark_own_stream(struct td_marker *slot);

/* -- called by the agent and the drain thread -- */

/* Copies up to max entries; returns how many contexts there are. */
unsigned td_context_list(struct td_context *ret, unsigned max);
/* Returns false if the context has streams that are not listed. */
bool td_context_streams(const void *context, void **ret, unsigned max, unsigned *ret_count);

/*
 * Has the GPU reached an event that was recorded in the context with this serial number? True if
 * the context has ended; false if it may be ending. td_context_event_destroy destroys the event,
 * unless its context has ended: then the handle must not be used any more.
 */
bool td_context_event_is_over(uint64_t serial, void *event);
void td_context_event_destroy(uint64_t serial, void *event);

/*
 * A claimed context is not destroyed: the program's call to end it waits, for a limited time.
 * Returns false if the context is gone or, with by_try, may be ending. Each of the library's
 * threads has at most one claim at a time.
 */
enum td_claim {
	TD_CLAIM_DRAIN,
	TD_CLAIM_AGENT,
	TD_CLAIM_N,
};
bool td_context_claim(enum td_claim who, const struct td_context *context, bool by_try);
void td_context_unclaim(enum td_claim who);
bool td_context_gpu(unsigned slot, struct td_gpu_info *ret);
unsigned td_context_gpu_count(void);
/*
 * Returns enum td_ungoverned: why the first context that could not be followed was not; 0 if all
 * are.
 */
uint8_t td_context_ungoverned(void);

/*
 * Between these two calls no capture begins and no known stream ends. Only for a few driver calls
 * that do not wait. Returns false if a capture is open already.
 */
bool td_context_hold_captures(void);
void td_context_release_captures(void);
/*
 * Called between the two calls above: returns whether some stream may be beginning or joining a
 * capture right now. Then it is unknown which streams capture.
 */
bool td_context_capture_is_beginning(void);

/*
 * Called when a wait for a whole context is about to begin (under hold_captures), and when it has
 * ended. td_context_capture_begin waits for its end, for a limited time.
 */
void td_context_waiting(bool begins);

void td_context_forked(void);

/* Calls that captures.c and context.c make to each other: */
void td_captures_context_ended(const void *context);
void td_captures_forked(void);
