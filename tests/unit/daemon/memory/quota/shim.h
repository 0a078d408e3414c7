/*
 * Precedes every file of libtandem that the model loads: its waits and locks give way to other
 * threads of the model.
 */
#pragma once

#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include "preload/base/lock.h"

void quota_preempt(void);
int quota_lock(pthread_mutex_t *lock);
int quota_unlock(pthread_mutex_t *lock);
int quota_sleep(const struct timespec *pause);
int quota_poll(const struct timespec *timeout);
int quota_pid(void);

#define pthread_mutex_lock(lock)            quota_lock(lock)
#define pthread_mutex_unlock(lock)          quota_unlock(lock)
#define nanosleep(pause, left)              quota_sleep(pause)
#define ppoll(fds, count, timeout, signals) quota_poll(timeout)
#define close(fd)                           ((void)(fd))
#define getpid()                            quota_pid()
#define td_lock_take(lock)                  (quota_preempt(), td_lock_take(lock))
