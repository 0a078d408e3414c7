/*
 * Tells the threads that wait with a lock held that something has changed. A condition variable
 * does so, too, but until glibc 2.41 one that is signalled may wait for a thread that it has woken
 * before: a signal handler in there that calls exit() would hold up the program's other threads.
 * Here nobody waits for a waiter.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Zeroed: ready. */
struct sg_bell {
	_Atomic uint32_t rung;
	/*
	 * a waiter whose thread ended in a signal handler stays counted, which costs a system call
	 * per ring
	 */
	_Atomic uint32_t waiters;
};

/*
 * Waits for a ring. The lock must be held, and is held on return. It may return without a reason,
 * so the caller checks again.
 */
void sg_bell_wait(struct sg_bell *bell, pthread_mutex_t *lock);

/* Like sg_bell_wait(), but returns false when the monotonic clock reaches until_ns. */
bool sg_bell_wait_until(struct sg_bell *bell, pthread_mutex_t *lock, uint64_t until_ns);

/* Wakes all waiters. */
void sg_bell_ring(struct sg_bell *bell);
