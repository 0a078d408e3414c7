/*
 * Reads the monotonic clock; see time.h. Sleeping is a direct system call, because libc's function
 * is a cancellation point, and the interposer sleeps inside calls that must not be one.
 */
#include "base/time.h"

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

uint64_t td_time_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * TD_NS_PER_S + (uint64_t)ts.tv_nsec;
}

void td_time_sleep_until_ns(uint64_t deadline_ns)
{
	struct timespec ts = {
		.tv_sec = (time_t)(deadline_ns / TD_NS_PER_S),
		.tv_nsec = (long)(deadline_ns % TD_NS_PER_S),
	};

	int saved = errno;

	while (syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) < 0 &&
		errno == EINTR)
		;
	errno = saved;
}
