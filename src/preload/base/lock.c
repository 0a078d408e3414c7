/* Futexes and the locks made of them; see lock.h and futex.h. */
#include "preload/base/lock.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "preload/base/futex.h"

/* Waiters look again after this time, so a lost wake-up delays them no longer. */
#define LOCK_RECHECK_NS (50 * TD_NS_PER_MS)

#ifndef NDEBUG
__thread uint32_t td_lock_held __attribute__((tls_model("initial-exec")));
#endif

void td_futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns, bool shared)
{
	struct timespec timeout = {
		(time_t)(timeout_ns / TD_NS_PER_S), (long)(timeout_ns % TD_NS_PER_S)};
	int saved = errno;

	(void)syscall(SYS_futex, word, shared ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE, value, &timeout,
		NULL, 0);
	errno = saved;
}

void td_futex_wake_all(_Atomic uint32_t *word, bool shared)
{
	int saved = errno;

	(void)syscall(
		SYS_futex, word, shared ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
	errno = saved;
}

void td_lock_take_slow(struct td_lock *lock)
{
	while (atomic_exchange_explicit(&lock->state, 2, memory_order_acquire))
		td_futex_wait(&lock->state, 2, LOCK_RECHECK_NS, false);
}

void td_lock_wake(struct td_lock *lock)
{
	int saved = errno;

	(void)syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	errno = saved;
}
