/*
 * Which GPUs, contexts and streams the process uses, and whether any stream capture is open. Filled by hooks and by what is found
 * current at a thread's first submission: cudart takes the primary context through tables that no hook sees.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/base/backend.h"

struct td_slot;

#define TD_CONTEXT_MAX 64

struct td_gpu_info {
	uint8_t uuid[16];
	char name[64];
	uint64_t total_bytes;
	uint64_t
		used_bytes; /* on the whole device, when its first context was seen: what contexts cost shows in it */
	int device;
	void *context;   /* the first seen on it that still lives; NULL: none */
	uint64_t serial; /* its; see td_context */
};

struct td_context {
	void *handle; /* NULL: free */
	unsigned slot;
	bool created;     /* by the program; all others are primary */
	unsigned leaving; /* calls between td_context_leaving and td_context_left */
	bool ended;       /* td_context_ends */
	uint64_t serial;  /* a handle can be used again by the driver; this is not */
};

/*
 * The calling thread is about to use its current context: notes it, and starts and registers the agent if this is the process's first. Returns
 * the slot of its GPU, or -1 if no context is current (or there are more than we follow).
 */
int td_context_use(void);

/* The current context's slot without noting anything; -1 if unknown. */
int td_context_slot(void);

/* The serial of the current context, 0 if none is or it is not known; and whether that context still lives. */
uint64_t td_context_serial(void);
uint64_t td_context_serial_of(const void *context);
bool td_context_is_alive(uint64_t serial);

/* Hooks: a context was made or made current; has ended. */
void td_context_note(void *context, bool created);
void td_context_gone(void *context);

/*
 * Hooks, around a call that may or may not end the context: in between the drain stays out of it, and who uses one with this handle waits, boundedly. If it has
 * ended, whoever td_context_ends says true to, which it does once, ends what was in it, and then leaves with `gone`.
 */
uint64_t td_context_leaving(void *context); /* its serial; 0: it is not known */
bool td_context_ends(uint64_t serial);
void td_context_left(void *context, uint64_t serial, bool gone);

/* The device's primary context, or NULL if it is not known. */
void *td_context_primary(int device);

/* Hooks: created streams. Before one ends nobody may name it; returns its context, or NULL. If the driver did not end it after all it stays. */
void td_context_stream_created(void *stream);
void *td_context_stream_ends(void *stream);
void td_context_stream_stays(void *stream, void *context);

/* The one that it was created in, or for others the current one; NULL: there is none. */
void *td_context_of_stream(const void *stream);

/* Hooks: around the real begin call (opened = whether it succeeded) and after an end call that ended a capture. One that is open when its context ends ends with it. */
void td_context_capture_begin(void);
void td_context_capture_begun(bool opened, const void *stream);
void td_context_capture_ended(const void *stream);

/* Hooks: around a call that may make a stream join an open capture. False: none is open, and no end follows. */
bool td_context_join_begin(void);
void td_context_join_end(void);

/* Is this stream (named, never NULL) capturing? Costs a driver call only while a capture is open somewhere in the process. */
bool td_context_is_capturing(void *stream);
bool td_context_any_capture(void);

/*
 * For calls of ours in the program's threads that a driver refuses while another thread captures in the global mode, and breaks that capture for: the calling thread
 * is in the relaxed mode in between, as no call of the program's asked for them. Returns what the other takes.
 */
int td_context_relax(void);
void td_context_unrelax(int before);

/* At a closed gate: leaves an event behind the thread's own default stream, if the drain will need one. */
void td_context_mark_own_stream(struct td_slot *slot);

/* -- the agent's and the drain thread's side -- */

/* Copies up to max rows; returns how many there are. */
unsigned td_context_list(struct td_context *ret, unsigned max);
/* False: the context has streams that are not listed. */
bool td_context_streams(const void *context, void **ret, unsigned max, unsigned *ret_count);

/*
 * Has the event been reached that was recorded in the context with this serial? Of one that has ended everything has; of one that may be ending it is not known. And
 * the event's end: with its context, if that has ended. The driver does not say so of either: such a handle is not to be used any more.
 */
bool td_context_event_is_over(uint64_t serial, void *event);
void td_context_event_destroy(uint64_t serial, void *event);

/*
 * While claimed, the context is not destroyed: its end waits, boundedly. False: it is gone; or, by_try, it may be ending. One claim at a time for each of our threads that
 * make one.
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
/* enum td_ungoverned: of the first context that could not be followed, if any. */
uint8_t td_context_ungoverned(void);

/* Between these no capture begins and no known stream ends: for a few driver calls that do not wait. False: a capture is open already. */
bool td_context_hold_captures(void);
void td_context_release_captures(void);
/* Between them: is any stream just beginning a capture, or joining one, so that none can be said not to capture? */
bool td_context_capture_is_beginning(void);

/* A context-wide wait is about to be entered (under hold_captures) or over; td_context_capture_begin waits for it, boundedly. */
void td_context_waiting(bool begins);

void td_context_forked(void);

/* context.c's */
void td_captures_context_ended(const void *context);
void td_captures_forked(void);
