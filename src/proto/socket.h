/*
 * Messages over unix SOCK_SEQPACKET sockets, with descriptors. Sending never raises SIGPIPE and, on a non-blocking socket,
 * never blocks. Usable from any thread: a packet is sent whole.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct msghdr;
struct td_err;
struct td_msg;

#define TD_SOCKET_FDS 2

/* The daemon's socket: $TANDEM_SOCKET, $XDG_RUNTIME_DIR/tandem/socket, or /run/tandem/socket. Returns buf, or NULL if it does
 * not fit a unix address. */
char *td_socket_path(char *buf, size_t len);
/* The same for who can say what is wrong with it: 0, or -errno with *err, which quotes the variable; a path that is not from the root counts as wrong. And of a value, behind which `more` bytes
 * will come. */
int td_socket_path_typed(char *ret, size_t len, struct td_err *err);
int td_socket_check(const char *where, const char *value, unsigned more, struct td_err *err);

/*
 * A connected socket (close-on-exec), or -errno. The connecting and each send and receive on it
 * wait for so long at most, and then
 * give -EAGAIN: a daemon that is stopped accepts nobody, and its backlog fills.
 */
int td_socket_connect(const char *path, uint64_t patience_ns);
/* The same in two steps: a socket, or -errno; 0, or -errno with the socket still the caller's. */
int td_socket_new(void);
int td_socket_connect_by(int fd, const char *path);
/* How long each receive on a blocking socket waits from now on; 0: without end. */
int td_socket_set_patience(int fd, uint64_t patience_ns);

/* Descriptors beside a packet: into the header, with a control buffer of CMSG_SPACE(count * sizeof(int)) zeros; and out of one that was received: what is beyond `most` is
 * closed, as a peer is to leave none behind. Returns how many there are. */
void td_socket_put_fds(struct msghdr *header, void *control, const int *fds, unsigned count);
unsigned td_socket_take_fds(struct msghdr *header, int *ret_fds, unsigned most);

/* 0 or -errno; fds may be NULL. */
int td_socket_send(int fd, const struct td_msg *msg, const int *fds, size_t fd_count);

/*
 * 0, or TD_PROTO_UNKNOWN, or -errno: -ECONNRESET when the peer is gone, -EAGAIN when there is
 * nothing (flags MSG_DONTWAIT) or nothing has come for the socket's patience,
 * -EBADMSG or -EPROTO for a malformed packet. ret_fds has TD_SOCKET_FDS entries, -1 where none came; with NULL, descriptors that
 * come are closed.
 */
int td_socket_recv(int fd, struct td_msg *ret, int *ret_fds, int flags);

/*
 * The same for who expects no descriptors, from somebody who is not trusted. It never waits, and
 * takes no descriptor: a packet that has some gives -EPERM and stays where it is. The one who
 * closes the socket closes them, which can take as long as the sender likes (daemon/server/closer.h).
 */
int td_socket_recv_bare(int fd, struct td_msg *ret);
