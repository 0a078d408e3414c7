/*
 * Threads of the library in the program's process: all signals blocked, detached, with a name that
 * says whose they are.
 */
#pragma once

#include <pthread.h>
#include <stddef.h>

/* Called once, at load: measures how much of a stack the program's thread-local storage takes. */
void td_thread_init(void);

/* Returns 0 or -errno. */
int td_thread_start(void *(*run)(void *arg));

/*
 * Surrounds libc calls that are cancellation points. A CUDA call is none, and a program that
 * cancels its threads would lose more than the thread: a lock or a promise of ours. Returns what
 * td_thread_may_cancel() takes.
 */
static inline int td_thread_no_cancel(void)
{
	int before = PTHREAD_CANCEL_ENABLE;

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void td_thread_may_cancel(int before)
{
	(void)pthread_setcancelstate(before, NULL);
}
