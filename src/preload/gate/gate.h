/*
 * The gate that every submitting call passes.
 *
 * The fast path, while the gate is open: mark the thread's slot, load the gate word, count; after
 * the call, unmark. It takes no lock, malloc, clock, system call or shared cache line. Everything
 * else is in gate.c.
 *
 * Closing is exact. A thread marks its slot before it loads the word. The agent makes a
 * process-wide barrier (membarrier) after the word has changed and before it reads the slots. So
 * either the thread sees the new word, or the agent sees the mark and waits for it. Where
 * membarrier is refused, each thread executes a fence between marking and loading.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "preload/base/futex.h"
#include "preload/base/page.h"
#include "preload/context/marker.h"

/* Facts about a submission that the gate needs. */
#define TD_SUBMIT_OWN_NULL 1u /* a _ptsz call: NULL is the per-thread default stream */
#define TD_SUBMIT_DEPENDENT                                                                        \
	2u /* a programmatic dependent launch: no event may come between it and the one before */
/*
 * The bits above this one are the number of a call (a copy, a memset and so on). At most the size
 * of such work is known.
 */
#define TD_SUBMIT_CALL 4u
/*
 * From this bit on, a hash of the launched kernel, by which its solo time is known; 0: no hash. The
 * upper bits are of the function alone.
 */
#define TD_SUBMIT_WORK_SHIFT     3
#define TD_SUBMIT_FUNCTION_SHIFT 18
/*
 * From this bit on, behind a call's number: the number of bits in the size of a copy or set; 0: not
 * known.
 */
#define TD_SUBMIT_SIZE_SHIFT 26
static inline uint32_t td_submit_size(uint64_t bytes)
{
	return bytes ? (64 - (uint32_t)__builtin_clzll(bytes)) % TD_WINDOW_SIZES
			       << TD_SUBMIT_SIZE_SHIFT
		     : 0;
}

/* Returns the number of the call in `kind`. */
static inline uint32_t td_submit_call(uint32_t kind)
{
	return (kind & ((1u << TD_SUBMIT_SIZE_SHIFT) - 1)) >> TD_SUBMIT_WORK_SHIFT;
}

/* Returns the kind as td_window_submitted() expects it. */
static inline uint32_t td_submit_as_work(uint32_t kind)
{
	if (!(kind & TD_SUBMIT_CALL))
		return kind >> TD_SUBMIT_WORK_SHIFT;
	return kind >> TD_SUBMIT_SIZE_SHIFT ? TD_WINDOW_SIZED | kind >> TD_SUBMIT_SIZE_SHIFT : 0;
}

static inline uint32_t td_submit_work(const void *what, unsigned x, unsigned y, unsigned z)
{
	uint64_t function = ((uintptr_t)what >> 4) * 0x9e3779b97f4a7c15;
	uint32_t grid = ((x * 31 + y) * 31 + z) * 2654435761u;

	return (uint32_t)(function >> 32) >> TD_SUBMIT_FUNCTION_SHIFT << TD_SUBMIT_FUNCTION_SHIFT |
	       grid >> (32 - TD_SUBMIT_FUNCTION_SHIFT + TD_SUBMIT_WORK_SHIFT)
			       << TD_SUBMIT_WORK_SHIFT;
}

/*
 * Returns the stream that a submission goes to. For NULL it is the legacy or the per-thread default
 * stream, depending on the call.
 */
static inline void *td_submit_stream(void *stream, uint32_t kind)
{
	if (stream)
		return stream;
	return kind & TD_SUBMIT_OWN_NULL ? (void *)0x2 : (void *)0x1;
}

/* Returns the kind of work that has no hash of its own: it is identified by the call's number. */
static inline uint32_t td_submit_kind(
	uint32_t call, const void *what, unsigned x, unsigned y, unsigned z)
{
	return what ? td_submit_work(what, x, y, z) : TD_SUBMIT_CALL | call << TD_SUBMIT_WORK_SHIFT;
}

/* td_gate_enter returns this marker if tandem is disabled (TANDEM_DISABLE). */
extern struct td_marker td_marker_inert;

struct td_marker *td_gate_enter_first(void *stream, uint32_t kind);
struct td_marker *td_gate_enter_slow(struct td_marker *slot, void *stream, uint32_t kind);
void td_gate_leave_slow(struct td_marker *slot);
void td_gate_note_wait(uint32_t kind);

/*
 * Enters a submitting call; may wait. The returned slot goes to td_gate_leave after the call. Keeps
 * errno.
 */
static inline struct td_marker *td_gate_enter(void *stream, uint32_t kind)
{
	struct td_marker *slot = td_marker_self;
	uint32_t depth;

	if (__builtin_expect(!slot, 0))
		return td_gate_enter_first(stream, kind);
	depth = atomic_load_explicit(&slot->depth, memory_order_relaxed);
	atomic_store_explicit(&slot->depth, depth + 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(atomic_load_explicit(&td_gate_fenced, memory_order_relaxed), 0))
		td_fence();
	if (__builtin_expect(
		    atomic_load_explicit(&td_gate.page.word, memory_order_acquire) | depth, 0))
		return td_gate_enter_slow(slot, stream, kind);
	atomic_store_explicit(&slot->launches,
		atomic_load_explicit(&slot->launches, memory_order_relaxed) + 1,
		memory_order_relaxed);
	if ((kind & TD_SUBMIT_OWN_NULL && !stream) || stream == (void *)0x2)
		atomic_store_explicit(&slot->own_stream_launches,
			atomic_load_explicit(&slot->own_stream_launches, memory_order_relaxed) + 1,
			memory_order_relaxed);
	return slot;
}

static inline void td_gate_leave(struct td_marker *slot)
{
	if (__builtin_expect(atomic_load_explicit(&slot->depth, memory_order_relaxed) != 1, 0))
		td_gate_leave_slow(slot);
	else
		atomic_store_explicit(&slot->depth, 0, memory_order_release);
}

/*
 * Enters a call that only names device memory (class NAMES), which the driver looks up at once.
 * Returns when all memory is mapped; it stays mapped until td_gate_leave. Such a call is not
 * counted, paced or taken for a step. Keeps errno.
 */
struct td_marker *td_gate_enter_naming(void);

/* Counts `more` additional submissions for a call that makes several. */
static inline void td_gate_count(struct td_marker *slot, uint64_t more)
{
	if (slot == &td_marker_shared)
		atomic_fetch_add_explicit(&slot->launches, more, memory_order_relaxed);
	else if (slot != &td_marker_inert)
		atomic_store_explicit(&slot->launches,
			atomic_load_explicit(&slot->launches, memory_order_relaxed) + more,
			memory_order_relaxed);
}

/* Called before a driver call that waits for the GPU; such a call may end a step. */
static inline void td_gate_synchronises(uint32_t call)
{
	if (__builtin_expect(td_gate_word() & (TD_WORD_STEPS | TD_WORD_WINDOW | TD_WORD_DUTY), 0))
		td_gate_note_wait(TD_SUBMIT_CALL | call << TD_SUBMIT_WORK_SHIFT);
}

/*
 * Waits while the gate is closed. The caller is not inside a submission. If the gate is open it
 * returns after a moment.
 */
void td_gate_await(void);

/* -- called by the agent -- */

/* Called once, at load. */
void td_gate_init(void);

/* Maps the daemon's two pages over the static ones. Returns 0, or -errno with nothing changed. */
int td_gate_map(int gate_fd, int meter_fd);

/*
 * Maps private pages with this word and window over the pages of a lost daemon, and wakes waiting
 * threads. Returns 0, or -errno with the old page and word in place.
 */
int td_gate_unmap(uint32_t word, uint64_t window_ns);

/* Writes the word of a private page and wakes waiting threads. */
void td_gate_write(uint32_t word);

/*
 * Runs a memory barrier on all threads of the process. A later td_marker_any_active() sees every
 * thread that passed the gate before the gate's word changed.
 */
void td_gate_barrier(void);

/* Called in a forked child: the page is then private, and its word is 0 (open). */
void td_gate_forked(void);
