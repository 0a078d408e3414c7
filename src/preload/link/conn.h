/*
 * The agent's descriptors: the connection to the daemon, and the bell that wakes the agent. The
 * program may close every descriptor and reuse the numbers. So they are kept at high numbers, and
 * each use first checks by the inode that the descriptor is still ours.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct td_msg;

struct td_conn {
	_Atomic int fd; /* -1: none */
	_Atomic uint64_t device,
		inode; /* a mix of two during an exchange matches neither, which is safe */
};

/* Takes over fd. Returns 0, or -errno with fd closed. */
int td_conn_adopt(struct td_conn *conn, int fd);

/*
 * Connects to the daemon at `path`. The connection is registered at every moment, so that a forked
 * child closes it. Returns 0 or -errno. Waits a limited time for a daemon that has many connections
 * to accept; -EAGAIN: that was not enough.
 */
int td_conn_connect(struct td_conn *conn, const char *path);

/*
 * Returns whether the descriptor is still the one that was adopted; the program may have closed it.
 */
bool td_conn_is_ours(const struct td_conn *conn);

/* Closes the descriptor if it is still ours. */
void td_conn_close(struct td_conn *conn);

/*
 * Sends a message without blocking. Returns 0 or -errno; -EBADF: the program has closed the
 * descriptor.
 */
int td_conn_send(const struct td_conn *conn, const struct td_msg *msg);

/* Receives like td_socket_recv with MSG_DONTWAIT. */
int td_conn_recv(const struct td_conn *conn, struct td_msg *ret, int *ret_fds);

/* A bell is a pipe, because an eventfd has no inode of its own that could be checked. */
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
/* Wakes the agent. Keeps errno; async-signal-safe; no cancellation point. */
void td_bell_ring(const struct td_bell *bell);
/* Empties the pipe. */
void td_bell_quiet(const struct td_bell *bell);
void td_bell_deinit(struct td_bell *bell);
