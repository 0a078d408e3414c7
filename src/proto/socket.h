/*
 * Messages over unix SOCK_SEQPACKET sockets, with descriptors. Sending never raises SIGPIPE, and
 * never blocks on a non-blocking socket. Any thread may send: a packet is sent whole.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct msghdr;
struct td_err;
struct td_msg;

#define TD_SOCKET_FDS 2

/*
 * Finds the daemon's socket: $TANDEM_SOCKET, $XDG_RUNTIME_DIR/tandem/socket or /run/tandem/socket.
 * Returns buf, or NULL if the path does not fit a unix address.
 */
char *td_socket_path(char *buf, size_t len);
/*
 * As td_socket_path, for callers that can show an error: 0, or -errno with *err, which quotes the
 * variable. A relative path is an error. td_socket_check does the same for one value, to which
 * `more` bytes will be appended.
 */
int td_socket_path_typed(char *ret, size_t len, struct td_err *err);
int td_socket_check(const char *where, const char *value, unsigned more, struct td_err *err);

/*
 * Returns a connected socket (close-on-exec), or -errno. The connect, and each send and receive on
 * the socket, wait at most patience_ns and then give -EAGAIN. Connecting can block because a
 * stopped daemon accepts nobody and its backlog fills.
 */
int td_socket_connect(const char *path, uint64_t patience_ns);
/*
 * These do in two steps what td_socket_connect does. td_socket_new makes a socket or returns
 * -errno. td_socket_connect_by connects it and returns 0, or -errno; the socket then still belongs
 * to the caller.
 */
int td_socket_new(void);
int td_socket_connect_by(int fd, const char *path);
/* Sets how long each receive on a blocking socket waits; 0: without a limit. */
int td_socket_set_patience(int fd, uint64_t patience_ns);

/*
 * td_socket_put_fds puts descriptors into a message header; td_socket_take_fds takes them out of a
 * received one. `control` has CMSG_SPACE(count * sizeof(int)) zero bytes. td_socket_take_fds
 * returns how many it took, and closes those beyond `most`, so that a peer cannot use up all
 * descriptors.
 */
void td_socket_put_fds(struct msghdr *header, void *control, const int *fds, unsigned count);
unsigned td_socket_take_fds(struct msghdr *header, int *ret_fds, unsigned most);

/* Sends one message with descriptors; fds may be NULL. Returns 0 or -errno. */
int td_socket_send(int fd, const struct td_msg *msg, const int *fds, size_t fd_count);

/*
 * Receives one message. Returns 0, TD_PROTO_UNKNOWN, or
 * - -ECONNRESET: the peer is gone;
 * - -EAGAIN: nothing is there (MSG_DONTWAIT), or nothing came within the socket's timeout;
 * - -EBADMSG or -EPROTO: the packet is malformed;
 * - another -errno.
 *
 * ret_fds has TD_SOCKET_FDS entries, -1 where no descriptor came. With NULL, descriptors that come
 * are closed.
 */
int td_socket_recv(int fd, struct td_msg *ret, int *ret_fds, int flags);

/*
 * Receives from a peer that is not trusted and should send no descriptors. Never waits. A packet
 * with descriptors gives -EPERM and stays in the queue, because closing them can take as long as
 * their sender likes. Whoever closes the socket closes them (daemon/server/loop/closer.h).
 */
int td_socket_recv_bare(int fd, struct td_msg *ret);
