/*
 * The event loop. Handlers run in the order in which the kernel reports. A source that an earlier
 * handler of the same batch removed is skipped, so a handler may free any peer.
 */
#include "daemon/server/loop/loop.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/time.h"

/*
 * The most events of one epoll_wait(). All ready sources are reported at once, because each turn
 * chooses among them (peer.c).
 */
#define BATCH 1280
#define NEVER UINT64_MAX
/*
 * A wait for less than this ends at its deadline without the timer. The kernel lets such a wait end
 * later, by up to a thousandth of it or 50 us, so a longer one has the timer, which is exact.
 */
#define SHORT_NS (20 * TD_NS_PER_MS)

/* The number is the same on all architectures; older headers lack it. */
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

/* The batch that is being handled, for td_loop_remove(). The daemon has one loop in one thread. */
static struct epoll_event batch[BATCH];
static int batch_count;

/*
 * The timer stays readable until it is armed anew or disarmed, which happens before the next wait,
 * unless the deadline is the same. So its count of expirations need not be read.
 */
static void timer_ready(struct td_source *source, uint32_t events)
{
	(void)source;
	(void)events;
}

int td_loop_init(struct td_loop *loop, uint64_t (*turn)(void *arg, uint64_t now_ns), void *arg)
{
	int r;

	memset(loop, 0, sizeof(*loop));
	loop->turn = turn;
	loop->arg = arg;
	loop->armed_ns = NEVER;
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	loop->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (loop->epoll_fd < 0 || loop->timer_fd < 0) {
		r = -errno;
		td_loop_deinit(loop);
		return r;
	}
	loop->timer = (struct td_source){loop->timer_fd, timer_ready, true};
	return td_loop_add(loop, &loop->timer);
}

void td_loop_deinit(struct td_loop *loop)
{
	if (loop->epoll_fd > 0)
		close(loop->epoll_fd);
	if (loop->timer_fd > 0)
		close(loop->timer_fd);
	loop->epoll_fd = loop->timer_fd = -1;
}

int td_loop_add(struct td_loop *loop, struct td_source *source)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};

	return epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, source->fd, &event) < 0 ? -errno : 0;
}

void td_loop_want(struct td_loop *loop, struct td_source *source, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = source};

	(void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, source->fd, &event);
}

void td_loop_remove(struct td_loop *loop, struct td_source *source)
{
	(void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
	for (int i = 0; i < batch_count; i++)
		if (batch[i].data.ptr == source)
			batch[i].data.ptr = NULL;
}

static void arm(struct td_loop *loop, uint64_t deadline_ns)
{
	struct itimerspec when = {0};

	if (deadline_ns == loop->armed_ns)
		return;
	loop->armed_ns = deadline_ns;
	if (deadline_ns != NEVER) {
		/* A time of zero would disarm the timer. */
		uint64_t ns = deadline_ns ? deadline_ns : 1;

		when.it_value.tv_sec = (time_t)(ns / TD_NS_PER_S);
		when.it_value.tv_nsec = (long)(ns % TD_NS_PER_S);
	}
	(void)timerfd_settime(loop->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

/* Waits for events, or for a deadline that is near. Returns -1 with errno if that is impossible. */
static int wait_briefly(struct td_loop *loop, uint64_t wait_ns)
{
	const struct timespec timeout = {0, (long)wait_ns};
	long n = syscall(SYS_epoll_pwait2, loop->epoll_fd, batch, BATCH, &timeout, NULL, (size_t)0);

	/* Before Linux 5.11, or where a sandbox does not know the call. */
	loop->has_no_brief_wait = n < 0 && (errno == ENOSYS || errno == EPERM);
	return (int)n;
}

static int wait_until(struct td_loop *loop, uint64_t deadline_ns)
{
	uint64_t now_ns = td_time_now_ns();
	uint64_t wait_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;

	if (wait_ns < SHORT_NS && !loop->has_no_brief_wait) {
		int n;

		arm(loop, NEVER);
		n = wait_briefly(loop, wait_ns);
		if (!loop->has_no_brief_wait)
			return n;
	}
	arm(loop, deadline_ns);
	return epoll_wait(loop->epoll_fd, batch, BATCH, -1);
}

int td_loop_run(struct td_loop *loop)
{
	while (!loop->stop) {
		uint64_t deadline_ns = loop->turn(loop->arg, td_time_now_ns());

		if (loop->stop)
			break;
		batch_count = wait_until(loop, deadline_ns);
		if (batch_count < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < batch_count; i++) {
			struct td_source *source = batch[i].data.ptr;

			if (!source)
				continue;
			loop->stirred |= !source->quiet;
			source->ready(source, batch[i].events);
		}
		batch_count = 0;
	}
	return 0;
}
