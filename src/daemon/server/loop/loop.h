/*
 * An epoll loop with one deadline. Each descriptor that becomes readable calls its handler. The
 * loop runs until loop.stop is set.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_source {
	int fd;
	void (*ready)(struct td_source *source, uint32_t events);
	bool quiet; /* its owner itself tells whether something has happened */
};

struct td_loop {
	int epoll_fd, timer_fd;
	bool stop;
	bool stirred; /* some source that is not quiet was ready since the last turn */
	/* the kernel has no wait that ends at a time in nanoseconds, so the timer ends each */
	bool has_no_brief_wait;
	uint64_t armed_ns; /* when the timer ends a wait; UINT64_MAX: never */
	/*
	 * Called once after each batch of events and at the deadline. Returns the next deadline or
	 * TD_NEVER.
	 */
	uint64_t (*turn)(void *arg, uint64_t now_ns);
	void *arg;
	struct td_source timer;
};

/* Returns 0 or -errno. */
int td_loop_init(struct td_loop *loop, uint64_t (*turn)(void *arg, uint64_t now_ns), void *arg);
void td_loop_deinit(struct td_loop *loop);
int td_loop_add(struct td_loop *loop, struct td_source *source);
/* Sets when ready() is called: EPOLLIN and EPOLLOUT, or 0. EPOLLHUP and EPOLLERR always call it. */
void td_loop_want(struct td_loop *loop, struct td_source *source, uint32_t events);
/* Removes a source. A handler may remove any source. The owner closes its fd afterwards. */
void td_loop_remove(struct td_loop *loop, struct td_source *source);
int td_loop_run(struct td_loop *loop);
