/*
 * The gate: the one load that every submitting call makes, and the exact closing.
 *
 * Each thread has a slot. A submission marks it, loads the gate word, calls the driver and unmarks it. Whoever closes the gate writes the
 * word, makes that visible to all threads (membarrier, or fences in the threads where the kernel refuses it) and waits until no slot is
 * marked: after that no thread submits anything until the word is open again.
 *
 * Slots are never freed, only handed to other threads. The word lies in a page of the process that td_client maps the daemon's over.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda/types.h"
#include "proto/gate_page.h"

/* Written by its own thread only, but for `taken`. */
struct td_slot {
	_Alignas(64) _Atomic uint32_t active; /* between enter and leave */
	_Atomic uint32_t taken;
	_Atomic uint64_t submissions;
	bool has_context; /* the thread's current context is known (context.c) */
};

/* The page: only ever read by us, written by the daemon (or by td_gate_set while there is none). */
extern union td_gate_frame {
	struct td_gate_page page;
	char bytes[TD_PAGE_BYTES];
} td_gate;

extern _Thread_local struct td_slot *td_slot_mine __attribute__((tls_model("initial-exec")));
extern bool td_gate_fenced; /* membarrier is refused */

/* TANDEM_DISABLE is set, or we are in a thread of our own: everything is passed on. */
bool td_gate_disabled(void);
/* Marks the calling thread as one of ours. */
void td_gate_own_thread(void);

#define TD_NEVER_CAPTURED ((CUstream)-1)

struct td_slot *td_gate_enter_slowly(CUstream stream, bool per_thread);

/* Before a submission; returns when it may go on. NULL: pass on, nothing is counted. */
static inline struct td_slot *td_gate_enter(CUstream stream, bool per_thread)
{
	struct td_slot *slot = td_slot_mine;

	if (__builtin_expect(!slot || !slot->has_context, 0))
		return td_gate_enter_slowly(stream, per_thread);
	atomic_store_explicit(&slot->active, 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(td_gate_fenced, 0))
		atomic_thread_fence(memory_order_seq_cst);
	if (__builtin_expect(atomic_load_explicit(&td_gate.page.word, memory_order_acquire), 0)) {
		atomic_store_explicit(&slot->active, 0, memory_order_release);
		return td_gate_enter_slowly(stream, per_thread);
	}
	return slot;
}

static inline void td_gate_leave(struct td_slot *slot)
{
	if (__builtin_expect(!slot, 0))
		return;
	atomic_store_explicit(&slot->submissions,
		atomic_load_explicit(&slot->submissions, memory_order_relaxed) + 1,
		memory_order_relaxed);
	atomic_store_explicit(&slot->active, 0, memory_order_release);
}

/* After the word was closed: returns when no thread is inside any more. False if that takes longer than timeout_ns. */
bool td_gate_flush(uint64_t timeout_ns);

/* Submissions of all threads so far. */
uint64_t td_gate_submissions(void);

/* Maps a page over the gate's: the daemon's (fd), or a private one with this word (fd -1). 0 or -errno. */
int td_gate_map(int fd, uint32_t word);

/* In the child of a fork: no other thread exists. */
void td_gate_forked(void);
