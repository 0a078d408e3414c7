/*
 * Sockets between exporters and importers of memory; see ipc.h. Abstract names, so that nothing is left behind in a file system; both ends ask the kernel
 * who the other is.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/time.h"
#include "preload/conn.h"
#include "preload/ipc.h"
#include "preload/lock.h"

#define BACKLOG    64
#define CONNS_MAX  512
#define PATIENCE   5 /* seconds that the other end has for a packet */
#define GOODBYE_MS 1000

const char td_ipc_magic[8] = "tandem\0\1";

static pthread_mutex_t conns_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	bool taken; /* conns_lock */
	struct td_conn conn;
} conns[CONNS_MAX];

bool td_ipc_random(uint8_t ret[TD_IPC_ID])
{
	return syscall(SYS_getrandom, ret, TD_IPC_ID, 0) == TD_IPC_ID;
}

struct td_conn *td_ipc_conn_new(int fd)
{
	struct td_conn *conn = NULL;

	pthread_mutex_lock(&conns_lock);
	for (unsigned i = 0; i < CONNS_MAX && !conn; i++) {
		if (conns[i].taken)
			continue;
		conns[i].taken = true;
		conn = &conns[i].conn;
	}
	pthread_mutex_unlock(&conns_lock);
	if (!conn) {
		close(fd);
		return NULL;
	}
	atomic_store(&conn->fd, -1);
	if (td_conn_adopt(conn, fd) < 0) {
		td_ipc_conn_free(conn);
		return NULL;
	}
	return conn;
}

void td_ipc_conn_free(struct td_conn *conn)
{
	if (!conn)
		return;
	td_conn_close(conn);
	pthread_mutex_lock(&conns_lock);
	for (unsigned i = 0; i < CONNS_MAX; i++)
		if (&conns[i].conn == conn)
			conns[i].taken = false;
	pthread_mutex_unlock(&conns_lock);
}

/* Held open here, they would be held for the parent, too. */
void td_ipc_conns_forked(void)
{
	for (unsigned i = 0; i < CONNS_MAX; i++) {
		/* One that never was in use says 0. */
		if (atomic_load(&conns[i].conn.inode))
			td_conn_close(&conns[i].conn);
		conns[i].taken = false;
	}
	pthread_mutex_init(&conns_lock, NULL);
}

static socklen_t address_of(const uint8_t name[TD_IPC_ID], struct sockaddr_un *ret)
{
	int n = 0;

	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	n = snprintf(ret->sun_path + 1, sizeof(ret->sun_path) - 1, "tandem-ipc-");
	for (unsigned i = 0; i < TD_IPC_ID; i++)
		n += snprintf(ret->sun_path + 1 + n, sizeof(ret->sun_path) - 1 - (size_t)n, "%02x",
			name[i]);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int new_socket(void)
{
	const struct timeval patience = {PATIENCE, 0};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	return fd;
}

int td_ipc_listen(const uint8_t name[TD_IPC_ID])
{
	struct sockaddr_un address;
	socklen_t len = address_of(name, &address);
	int fd = new_socket(), r;

	if (fd < 0)
		return fd;
	if (!bind(fd, (struct sockaddr *)&address, len) && !listen(fd, BACKLOG))
		return fd;
	r = -errno;
	close(fd);
	return r;
}

bool td_ipc_is_same_user(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) && peer.uid == geteuid();
}

int td_ipc_connect(const uint8_t name[TD_IPC_ID])
{
	struct sockaddr_un address;
	socklen_t len = address_of(name, &address);
	int fd = new_socket(), r = 0;

	if (fd < 0)
		return fd;
	if (connect(fd, (struct sockaddr *)&address, len) < 0)
		r = -errno;
	else if (!td_ipc_is_same_user(fd))
		r = -EACCES;
	if (r)
		close(fd);
	return r ? r : fd;
}

union control {
	char bytes[CMSG_SPACE(TD_IPC_FDS * sizeof(int))];
	struct cmsghdr align;
};

/* Connections that were adopted do not block. 0, or -ETIMEDOUT. */
static int await(int fd, short events, int milliseconds)
{
	struct pollfd poll_fd = {fd, events, 0};
	int r;

	do
		r = poll(&poll_fd, 1, milliseconds);
	while (r < 0 && errno == EINTR);
	return r > 0 ? 0 : -ETIMEDOUT;
}

int td_ipc_send(int fd, const void *bytes, size_t n, const int *fds, unsigned count)
{
	union control control = {0};
	struct iovec iov = {.iov_base = (void *)bytes, .iov_len = n};
	struct msghdr header = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t sent;

	if (count) {
		struct cmsghdr *c;

		header.msg_control = control.bytes;
		header.msg_controllen = CMSG_SPACE(count * sizeof(int));
		c = CMSG_FIRSTHDR(&header);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	}
	do
		sent = sendmsg(fd, &header, MSG_NOSIGNAL);
	while ((sent < 0 && errno == EINTR) ||
		(sent < 0 && errno == EAGAIN && !await(fd, POLLOUT, PATIENCE * 1000)));
	return sent < 0 ? -errno : 0;
}

static void take_fds(struct msghdr *header, int *ret_fds, unsigned most, unsigned *ret_count)
{
	*ret_count = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
		size_t count =
			c->cmsg_len > CMSG_LEN(0) ? (c->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (*ret_count < most)
				ret_fds[(*ret_count)++] = fd;
			else
				close(fd);
		}
	}
}

int td_ipc_receive(int fd, void *ret, size_t n, int *ret_fds, unsigned *ret_count)
{
	union control control;
	struct iovec iov = {.iov_base = ret, .iov_len = n};
	struct msghdr header = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	unsigned count;
	ssize_t got;
	int r = await(fd, POLLIN, PATIENCE * 1000);

	if (r)
		return r;
	do
		got = recvmsg(fd, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	take_fds(&header, ret_fds, ret_count ? *ret_count : 0, &count);
	if (ret_count)
		*ret_count = count;
	if (!got)
		return -ECONNRESET;
	return (size_t)got == n && !(header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ? 0 : -EBADMSG;
}

void td_ipc_hang_up(struct td_conn *conn)
{
	int fd = conn ? atomic_load(&conn->fd) : -1;

	if (conn && td_conn_is_ours(conn) && !shutdown(fd, SHUT_WR))
		(void)await(fd, POLLIN, GOODBYE_MS);
	td_ipc_conn_free(conn);
}
