/*
 * Sends and receives packets and descriptors over unix sockets; see socket.h. The interposer uses
 * it from any thread, so it does not allocate.
 */
#include "proto/socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/time.h"
#include "proto/proto.h"

union control {
	char bytes[CMSG_SPACE(TD_SOCKET_FDS * sizeof(int))];
	struct cmsghdr align;
};

char *td_socket_path(char *buf, size_t len)
{
	const char *path = getenv("TANDEM_SOCKET"), *dir = getenv("XDG_RUNTIME_DIR");
	int n;

	if (path && *path)
		n = snprintf(buf, len, "%s", path);
	else if (dir && *dir)
		n = snprintf(buf, len, "%s/tandem/socket", dir);
	else
		n = snprintf(buf, len, "/run/tandem/socket");
	if (n < 0 || (size_t)n >= len || (size_t)n >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return NULL;
	return buf;
}

int td_socket_new(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

int td_socket_connect_by(int fd, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	return connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
}

static struct timeval to_timeval(uint64_t ns)
{
	return (struct timeval){(time_t)(ns / TD_NS_PER_S), (suseconds_t)(ns % TD_NS_PER_S / 1000)};
}

int td_socket_set_patience(int fd, uint64_t patience_ns)
{
	const struct timeval patience = to_timeval(patience_ns);

	return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0 ? -errno
											: 0;
}

int td_socket_connect(const char *path, uint64_t patience_ns)
{
	const struct timeval patience = to_timeval(patience_ns);
	int fd = td_socket_new(), r;

	if (fd < 0)
		return fd;
	/* A connect() also waits at most for the send timeout. */
	r = setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0 ? -errno : 0;
	r = r ? r : td_socket_set_patience(fd, patience_ns);
	r = r ? r : td_socket_connect_by(fd, path);
	if (!r)
		return fd;
	close(fd);
	return r;
}

void td_socket_put_fds(struct msghdr *header, void *control, const int *fds, unsigned count)
{
	struct cmsghdr *c;

	header->msg_control = control;
	header->msg_controllen = CMSG_SPACE(count * sizeof(int));
	c = CMSG_FIRSTHDR(header);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(c), fds, count * sizeof(int));
}

unsigned td_socket_take_fds(struct msghdr *header, int *ret_fds, unsigned most)
{
	unsigned taken = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
		size_t count =
			c->cmsg_len > CMSG_LEN(0) ? (c->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (taken < most)
				ret_fds[taken++] = fd;
			else
				close(fd);
		}
	}
	return taken;
}

int td_socket_send(int fd, const struct td_msg *msg, const int *fds, size_t fd_count)
{
	char packet[TD_PROTO_MAX];
	union control control = {0};
	struct iovec iov = {.iov_base = packet};
	struct msghdr header = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t sent;
	int n = td_proto_encode(msg, packet, sizeof(packet));

	if (n < 0)
		return n;
	iov.iov_len = (size_t)n;
	if (fds && fd_count)
		td_socket_put_fds(&header, control.bytes, fds, (unsigned)fd_count);
	do
		sent = sendmsg(fd, &header, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

int td_socket_recv(int fd, struct td_msg *ret, int *ret_fds, int flags)
{
	char packet[TD_PROTO_MAX];
	union control control;
	struct iovec iov = {.iov_base = packet, .iov_len = sizeof(packet)};
	struct msghdr header = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	ssize_t n;

	for (size_t i = 0; ret_fds && i < TD_SOCKET_FDS; i++)
		ret_fds[i] = -1;
	do
		n = recvmsg(fd, &header, flags | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	(void)td_socket_take_fds(&header, ret_fds, ret_fds ? TD_SOCKET_FDS : 0);
	if (n == 0)
		return -ECONNRESET;
	if (header.msg_flags & MSG_TRUNC)
		return -EBADMSG;
	return td_proto_decode(packet, (size_t)n, ret);
}

int td_socket_recv_bare(int fd, struct td_msg *ret)
{
	char packet[TD_PROTO_MAX];
	struct iovec iov = {.iov_base = packet, .iov_len = sizeof(packet)};
	struct msghdr header = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	/*
	 * MSG_PEEK leaves the packet's descriptors in the queue; the kernel only tells that there
	 * are some.
	 */
	do
		n = recvmsg(fd, &header, MSG_PEEK | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (header.msg_flags & MSG_CTRUNC)
		return -EPERM;
	if (n == 0)
		return -ECONNRESET;
	if (header.msg_flags & MSG_TRUNC)
		return -EBADMSG;
	if (recv(fd, packet, sizeof(packet), MSG_DONTWAIT) != n)
		return -EBADMSG;
	return td_proto_decode(packet, (size_t)n, ret);
}
