/* Threads of our own in somebody else's process: every signal blocked, detached, a name that tells whose they are. */
#pragma once

#include <pthread.h>
#include <stddef.h>

/* Once, at load: looks how much of a stack the program's thread-local storage takes. */
void td_thread_init(void);

/* 0 or -errno. */
int td_thread_start(void *(*run)(void *arg));

/*
 * Around calls of libc's in which a cancelled thread ends: a call of CUDA is no such place, and a program that cancels its threads would lose more than the thread, a lock
 * of ours or a promise. Returns what the other takes.
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
