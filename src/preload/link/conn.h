/*
 * The agent's descriptors: the connection to the daemon and the bell that wakes the agent. They
 * live in a process that may close every descriptor that it does not know and use the numbers
 * again; so they are kept at high numbers, and each use first checks that the number still is what
 * it was.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct td_msg;

struct td_conn {
	_Atomic int fd; /* -1: none */
	_Atomic uint64_t device,
		inode; /* a mixture of two while it is exchanged fits neither, which is safe */
};

/* Takes fd over. 0 or -errno (fd is closed then). */
int td_conn_adopt(struct td_conn *conn, int fd);

/*
 * Connected to the daemon there, and known at each moment: the child of a fork in another thread
 * closes it. 0 or -errno. Waits a while for a daemon that has much to accept; -EAGAIN: it still
 * has.
 */
int td_conn_connect(struct td_conn *conn, const char *path);

/* Still the descriptor that was adopted? */
bool td_conn_is_ours(const struct td_conn *conn);

/* Closes it if it still is ours. */
void td_conn_close(struct td_conn *conn);

/* 0 or -errno; never blocks. -EBADF: the program has closed it. */
int td_conn_send(const struct td_conn *conn, const struct td_msg *msg);

/* As td_socket_recv with MSG_DONTWAIT. */
int td_conn_recv(const struct td_conn *conn, struct td_msg *ret, int *ret_fds);

/* A bell: a pipe, because an eventfd has no identity of its own to check. */
struct td_bell {
	struct td_conn in, out;
};

#define TD_BELL_NONE                                                                               \
	{                                                                                          \
		{-1, 0, 0},                                                                        \
		{                                                                                  \
			-1, 0, 0                                                                   \
		}                                                                                  \
	}

int td_bell_init(struct td_bell *bell);
/* Keeps errno; async-signal-safe; no cancellation point. */
void td_bell_ring(const struct td_bell *bell);
/* Takes what was rung. */
void td_bell_quiet(const struct td_bell *bell);
void td_bell_deinit(struct td_bell *bell);
