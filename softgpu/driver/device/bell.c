/*
 * Implements bell.h. The waiter reads the number of rings with the lock held, and a thread that
 * changes something also holds it. A ring after that changes the number, so the futex does not
 * sleep.
 */
#include "softgpu/driver/device/bell.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"

static void wait(struct sg_bell *bell, pthread_mutex_t *lock, const struct timespec *until)
{
	int saved = errno;
	uint32_t rung;

	atomic_fetch_add(&bell->waiters, 1);
	rung = atomic_load(&bell->rung);
	pthread_mutex_unlock(lock);
	/* FUTEX_WAIT_BITSET takes a point in time, not a duration. */
	(void)syscall(SYS_futex, &bell->rung, FUTEX_WAIT_BITSET_PRIVATE, rung, until, NULL,
		FUTEX_BITSET_MATCH_ANY);
	atomic_fetch_sub(&bell->waiters, 1);
	pthread_mutex_lock(lock);
	errno = saved;
}

void sg_bell_wait(struct sg_bell *bell, pthread_mutex_t *lock)
{
	wait(bell, lock, NULL);
}

bool sg_bell_wait_until(struct sg_bell *bell, pthread_mutex_t *lock, uint64_t until_ns)
{
	const struct timespec until = {
		(time_t)(until_ns / TD_NS_PER_S), (long)(until_ns % TD_NS_PER_S)};

	wait(bell, lock, &until);
	return td_time_now_ns() < until_ns;
}

void sg_bell_ring(struct sg_bell *bell)
{
	int saved = errno;

	atomic_fetch_add(&bell->rung, 1);
	if (atomic_load(&bell->waiters))
		(void)syscall(SYS_futex, &bell->rung, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
	errno = saved;
}
