/*
 * The event loop. Handlers run in the order in which the kernel reports. A source that an earlier
 * handler of the same batch removed is skipped, so a handler may free any peer.
 */
#include "daemon/server/loop/loop.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/time.h"

/*
 * The most events of one epoll_wait(). All ready sources are reported at once, because each turn
 * chooses among them (peer.c).
 */
#define BATCH 1280
#define NEVER UINT64_MAX

/* The batch that is being handled, for td_loop_remove(). The daemon has one loop in one thread. */
static struct epoll_event batch[BATCH];
static int batch_count;

/* The timer is armed anew before the next wait, so its count of expirations need not be read. */
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

	if (deadline_ns != NEVER) {
		/* A time of zero would disarm the timer. */
		uint64_t ns = deadline_ns ? deadline_ns : 1;

		when.it_value.tv_sec = (time_t)(ns / TD_NS_PER_S);
		when.it_value.tv_nsec = (long)(ns % TD_NS_PER_S);
	}
	(void)timerfd_settime(loop->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

int td_loop_run(struct td_loop *loop)
{
	while (!loop->stop) {
		arm(loop, loop->turn(loop->arg, td_time_now_ns()));
		if (loop->stop)
			break;
		batch_count = epoll_wait(loop->epoll_fd, batch, BATCH, -1);
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
