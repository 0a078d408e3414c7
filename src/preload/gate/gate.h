/*
 * The gate that every submitting call passes.
 *
 * Quick way, while the gate is open: mark the own slot, load the gate word, count; after the call, unmark. No lock, malloc, clock, system
 * call or shared cache line. All else is out of line in gate.c.
 *
 * Closing is exact. A thread marks its slot before it loads the word; the agent makes a process-wide barrier (membarrier) after the word
 * has changed and before it reads the slots. So either the thread sees the new word, or the agent sees the mark and waits for it.
 * Where membarrier is refused, each thread fences between its mark and its look instead.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "preload/base/futex.h"
#include "preload/base/page.h"
#include "preload/context/slot.h"

/* What the gate has to know about a submission. */
#define TD_SUBMIT_OWN_NULL 1u /* a per-thread flavour: NULL is the thread's own default stream */
#define TD_SUBMIT_DEPENDENT                                                                        \
	2u /* a programmatic dependent launch: nothing may come between it and the launch before */
#define TD_SUBMIT_CALL                                                                             \
	4u /* what follows is the number of the call: nothing is known of the work but, at most, its size */
/* From here on a hash of what is launched: its solo time is known by that. 0: not told. The upper bits are of the function alone. */
#define TD_SUBMIT_WORK_SHIFT     3
#define TD_SUBMIT_FUNCTION_SHIFT 18
/* Behind a call's number: of a copy or a set, by how much it is about, the number of bits of that; 0: not told. */
#define TD_SUBMIT_SIZE_SHIFT 26
static inline uint32_t td_submit_size(uint64_t bytes)
{
	return bytes ? (64 - (uint32_t)__builtin_clzll(bytes)) % TD_WINDOW_SIZES
			       << TD_SUBMIT_SIZE_SHIFT
		     : 0;
}

/* The number of the call. */
static inline uint32_t td_submit_call(uint32_t kind)
{
	return (kind & ((1u << TD_SUBMIT_SIZE_SHIFT) - 1)) >> TD_SUBMIT_WORK_SHIFT;
}

/* What td_window_submitted() is told of it. */
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

/* The stream that a submission goes to: a driver takes NULL for one of the two default streams. */
static inline void *td_submit_stream(void *stream, uint32_t kind)
{
	if (stream)
		return stream;
	return kind & TD_SUBMIT_OWN_NULL ? (void *)0x2 : (void *)0x1;
}

/* The same where nothing is launched that could be told from others: by the call's number. */
static inline uint32_t td_submit_kind(
	uint32_t call, const void *what, unsigned x, unsigned y, unsigned z)
{
	return what ? td_submit_work(what, x, y, z) : TD_SUBMIT_CALL | call << TD_SUBMIT_WORK_SHIFT;
}

/* What enter returns where nothing is governed (TANDEM_DISABLE). */
extern struct td_slot td_slot_inert;

struct td_slot *td_gate_enter_first(void *stream, uint32_t kind);
struct td_slot *td_gate_enter_slow(struct td_slot *slot, void *stream, uint32_t kind);
void td_gate_leave_slow(struct td_slot *slot);
void td_gate_note_wait(uint32_t kind);

/* Before a submitting call; may wait. What it returns goes to td_gate_leave after the call. Keeps errno. */
static inline struct td_slot *td_gate_enter(void *stream, uint32_t kind)
{
	struct td_slot *slot = td_slot_self;
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

static inline void td_gate_leave(struct td_slot *slot)
{
	if (__builtin_expect(atomic_load_explicit(&slot->depth, memory_order_relaxed) != 1, 0))
		td_gate_leave_slow(slot);
	else
		atomic_store_explicit(&slot->depth, 0, memory_order_release);
}

/*
 * Before a call that only names device memory (class NAMES): a driver looks it up there and then, so this returns when it is mapped, and it stays so until
 * td_gate_leave. Nothing is counted, paced or a step. Keeps errno.
 */
struct td_slot *td_gate_enter_naming(void);

/* Inside one's own submission: it counts for so many more. */
static inline void td_gate_count(struct td_slot *slot, uint64_t more)
{
	if (slot == &td_slot_shared)
		atomic_fetch_add_explicit(&slot->launches, more, memory_order_relaxed);
	else if (slot != &td_slot_inert)
		atomic_store_explicit(&slot->launches,
			atomic_load_explicit(&slot->launches, memory_order_relaxed) + more,
			memory_order_relaxed);
}

/* A call that waits for the GPU is about to be made. */
static inline void td_gate_synchronises(uint32_t call)
{
	if (__builtin_expect(
		    td_gate_word() & (TD_WORD_STEPS | TD_WORD_WINDOW | TD_WORD_DUTY), 0))
		td_gate_note_wait(TD_SUBMIT_CALL | call << TD_SUBMIT_WORK_SHIFT);
}

/* Outside of any submission: waits while the gate is closed, and a moment if it is not. */
void td_gate_await(void);

/* -- the agent's side -- */

/* Once, at load. */
void td_gate_init(void);

/* The daemon's two pages over the static ones. 0, or -errno with nothing changed (a half-done change is undone). */
int td_gate_map(int gate_fd, int meter_fd);

/* The daemon is gone: private pages over them, with this word and window; who waits looks again. 0 or -errno: then the old page stays
 * mapped and its word is what it was. */
int td_gate_unmap(uint32_t word, uint64_t window_ns);

/* Writes the word of a private page and wakes who waits. */
void td_gate_write(uint32_t word);

/* From now on td_slot_any_active() shows every thread that passed the gate before its word became what it is now. */
void td_gate_barrier(void);

/* In the child of a fork: private, open, zero. */
void td_gate_forked(void);
