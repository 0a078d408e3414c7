/* Connections are closed, and one that takes long to close delays its own user's alone. */
#include "test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/server/loop/closer.h"
#include "proto/proto.h"
#include "proto/socket.h"

static struct td_closer *closer;

/* A TCP connection to ourselves whose close() waits for what is unsent, an hour at most. */
struct slow {
	int listener, sender, receiver;
};

static void slow_begin(struct slow *slow)
{
	static char bytes[1 << 16];
	struct sockaddr_in address = {.sin_family = AF_INET};
	const struct linger linger = {1, 3600};
	socklen_t len = sizeof(address);
	int small = 4096;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	slow->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK_EQ(setsockopt(slow->listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
	CHECK_EQ(bind(slow->listener, (struct sockaddr *)&address, len), 0);
	CHECK_EQ(listen(slow->listener, 1), 0);
	CHECK_EQ(getsockname(slow->listener, (struct sockaddr *)&address, &len), 0);
	slow->sender = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK_EQ(connect(slow->sender, (struct sockaddr *)&address, len), 0);
	slow->receiver = accept(slow->listener, NULL, NULL);
	CHECK(slow->receiver >= 0);
	while (send(slow->sender, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	CHECK_EQ(setsockopt(slow->sender, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
}

/* Whoever closes the sender goes on. */
static void slow_end(struct slow *slow)
{
	close(slow->listener);
	close(slow->receiver);
}

static void pair(int fds[2])
{
	CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
}

/* The descriptor is in the queue of fds[0] and nowhere else. */
static void pass(const int fds[2], int fd)
{
	const struct td_msg msg = {.type = TD_MSG_TYPE_list_jobs};

	CHECK_EQ(td_socket_send(fds[1], &msg, &fd, 1), 0);
	close(fd);
}

static void wait_until_closed(uid_t uid)
{
	while (td_closer_count_of(closer, td_identity_local(uid)))
		sched_yield();
}

TEST(a_connection_ends_at_once_and_is_closed_soon)
{
	int fds[2];
	char byte;

	CHECK_EQ(td_closer_new(&closer), 0);
	pair(fds);
	td_closer_close(closer, td_identity_local(1000), fds[0]);
	CHECK_EQ(recv(fds[1], &byte, 1, MSG_DONTWAIT), 0);
	wait_until_closed(1000);
	CHECK_EQ(td_closer_count(closer), 0);
	CHECK_EQ(fcntl(fds[0], F_GETFD), -1);
	close(fds[1]);
	td_closer_free(closer);
}

TEST(one_that_takes_long_delays_its_own_users_others_alone)
{
	struct slow slow;
	int theirs[2], also_theirs[2], mine[2];

	CHECK_EQ(td_closer_new(&closer), 0);
	slow_begin(&slow);
	pair(theirs), pair(also_theirs), pair(mine);
	pass(theirs, slow.sender);
	td_closer_close(closer, td_identity_local(1000), theirs[0]);
	td_closer_close(closer, td_identity_local(1000), also_theirs[0]);
	td_closer_close(closer, td_identity_local(1001), mine[0]);
	wait_until_closed(1001);
	CHECK_EQ(td_closer_count_of(closer, td_identity_local(1000)), 2);
	CHECK_EQ(td_closer_count(closer), 2);
	slow_end(&slow);
	wait_until_closed(1000);
	CHECK_EQ(td_closer_count(closer), 0);
	close(theirs[1]), close(also_theirs[1]), close(mine[1]);
	td_closer_free(closer);
}

TEST(it_can_be_freed_while_something_takes_long)
{
	struct slow slow;
	int fds[2], more[2];

	CHECK_EQ(td_closer_new(&closer), 0);
	slow_begin(&slow);
	pair(fds), pair(more);
	pass(fds, slow.sender);
	td_closer_close(closer, td_identity_local(1000), fds[0]);
	td_closer_close(closer, td_identity_local(1000), more[0]);
	td_closer_free(closer);
	slow_end(&slow);
	close(fds[1]), close(more[1]);
}

TEST(a_packet_with_descriptors_is_left_where_it_is)
{
	const struct td_msg msg = {.type = TD_MSG_TYPE_list_jobs};
	struct td_msg got;
	int fds[2], passed[2];
	struct pollfd other;

	pair(fds), pair(passed);
	CHECK_EQ(td_socket_recv_bare(fds[0], &got), -EAGAIN);
	CHECK_EQ(td_socket_send(fds[1], &msg, NULL, 0), 0);
	pass(fds, passed[0]);
	CHECK_EQ(td_socket_recv_bare(fds[0], &got), 0);
	CHECK_EQ(got.type, TD_MSG_TYPE_list_jobs);
	CHECK_EQ(td_socket_recv_bare(fds[0], &got), -EPERM);
	CHECK_EQ(td_socket_recv_bare(fds[0], &got), -EPERM);
	other = (struct pollfd){.fd = passed[1]};
	CHECK_EQ(poll(&other, 1, 0), 0); /* nobody has closed it */
	close(fds[0]);
	CHECK_EQ(poll(&other, 1, -1), 1);
	CHECK(other.revents & POLLHUP);
	CHECK_EQ(td_socket_recv_bare(passed[1], &got), -ECONNRESET);
	close(fds[1]), close(passed[1]);
}
