/* See handover.h. */
#include "handover.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/time.h"

/* A handshake that has begun here ends here, too. On this machine it takes microseconds. */
#define HANDSHAKE_NS (100 * TD_NS_PER_MS)

int handover_listen(uint16_t port)
{
	const struct sockaddr_in address = {.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1, r;

	if (fd < 0)
		return -errno;
	if (!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) &&
		!setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) &&
		!bind(fd, (const struct sockaddr *)&address, sizeof(address)) &&
		!listen(fd, SOMAXCONN))
		return fd;
	r = -errno;
	close(fd);
	return r;
}

/*
 * The sockets of a port are numbered in the order in which they began to listen: this one is number
 * 0, and the other instance's number 1. When this one is closed, the other becomes number 0. A
 * number that does not exist means that the kernel divides connections as before.
 */
void handover_turn_away(int fd)
{
	struct sock_filter code[] = {{BPF_RET | BPF_K, 0, 0, 1}};
	const struct sock_fprog program = {1, code};

	(void)setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof(program));
	td_time_sleep_until_ns(td_time_now_ns() + HANDSHAKE_NS);
}
