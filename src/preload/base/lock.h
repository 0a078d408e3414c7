/*
 * Locks of the interposer: futex mutexes without owner or malloc, so that a forked child can simply
 * reset them, with ranks. A thread takes locks in rising rank only, and drops what it holds; debug
 * builds assert both.
 *
 * None of them is taken by a call that passes an open gate, none is held across a call into the
 * driver that can wait for the GPU, and the program's code never runs under one.
 */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Each lock's definition states what it guards. */
enum td_lock_rank {
	TD_RANK_INIT,    /* init.c: one cuInit at a time */
	TD_RANK_LIFE,    /* agent.c: one starter of the agent at a time */
	TD_RANK_CHOOSE,  /* choose.c: one choice of the backend */
	TD_RANK_NEED,    /* client.c: at most one ASK per GPU is open */
	TD_RANK_BACKEND, /* the memory backends' */
	TD_RANK_CAPTURE, /* context.c: captures open and close, against the drain's calls */
	TD_RANK_CONTEXT, /* context.c: the tables of contexts, streams and GPUs */
	TD_RANK_LEDGER,  /* client.c: limits and promises */
	TD_RANK_DRAIN,   /* drain.c: the drain thread's job */
	TD_RANK_STEPS,   /* steps.c: steps and their period */
	TD_RANK_PLACE,   /* place.c: the job's GPUs, once */
	/* choose.c: files are listed, or a connection is made; no fork meanwhile. */
	TD_RANK_LIST,
	TD_RANK_REHOME, /* rehome/objects.c: the table of objects that have twins */
	TD_RANK_N,
};

struct td_lock {
	_Atomic uint32_t state; /* 0 free, 1 taken, 2 taken and somebody waits */
	uint32_t rank;
};

#define TD_LOCK_INIT(r)                                                                            \
	{                                                                                          \
		0, (r)                                                                             \
	}

void td_lock_take_slow(struct td_lock *lock);
void td_lock_wake(struct td_lock *lock);

#ifndef NDEBUG
extern __thread uint32_t td_lock_held __attribute__((tls_model("initial-exec")));
#endif

static inline void td_lock_take(struct td_lock *lock)
{
	uint32_t free = 0;

#ifndef NDEBUG
	assert(!(td_lock_held >> lock->rank));
#endif
	if (!atomic_compare_exchange_strong_explicit(
		    &lock->state, &free, 1, memory_order_acquire, memory_order_relaxed))
		td_lock_take_slow(lock);
#ifndef NDEBUG
	td_lock_held |= 1u << lock->rank;
#endif
}

/* Returns false if another thread holds the lock. */
static inline bool td_lock_try(struct td_lock *lock)
{
	uint32_t free = 0;

	if (!atomic_compare_exchange_strong_explicit(
		    &lock->state, &free, 1, memory_order_acquire, memory_order_relaxed))
		return false;
#ifndef NDEBUG
	assert(!(td_lock_held >> lock->rank));
	td_lock_held |= 1u << lock->rank;
#endif
	return true;
}

static inline void td_lock_drop(struct td_lock *lock)
{
#ifndef NDEBUG
	assert(td_lock_held >> lock->rank & 1);
	td_lock_held &= ~(1u << lock->rank);
#endif
	if (atomic_exchange_explicit(&lock->state, 0, memory_order_release) == 2)
		td_lock_wake(lock);
}

/* Called in the child of a fork, where no other thread can hold the lock. */
static inline void td_lock_reset(struct td_lock *lock)
{
	atomic_store_explicit(&lock->state, 0, memory_order_relaxed);
}
