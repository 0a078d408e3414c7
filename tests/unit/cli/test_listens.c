/*
 * A program is ready when it listens where another one does. Each program is a child of this one.
 */
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/supervise/listens.h"
#include "test.h"

/* Listens on any port of loopback, or on `port`. Returns the port. */
static unsigned listen_at(unsigned port)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) ||
		bind(fd, (struct sockaddr *)&address, len) || listen(fd, 1) ||
		getsockname(fd, (struct sockaddr *)&address, &len))
		_exit(1);
	return ntohs(address.sin_port);
}

/* Starts a process that listens on these ports, 0: any, and says which. */
static pid_t start(unsigned count, unsigned *ports)
{
	int ends[2];
	pid_t pid;

	CHECK(!pipe(ends));
	pid = fork();
	if (!pid) {
		for (unsigned i = 0; i < count; i++)
			ports[i] = listen_at(ports[i]);
		if (write(ends[1], ports, count * sizeof(*ports)) < 0 || write(ends[1], "", 1) < 0)
			_exit(1);
		for (;;)
			pause();
	}
	close(ends[1]);
	CHECK_EQ(read(ends[0], ports, count * sizeof(*ports)), (ssize_t)(count * sizeof(*ports)));
	CHECK_EQ(read(ends[0], &(char){0}, 1), 1);
	close(ends[0]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
}

TEST(who_listens_on_the_same_ports_is_ready)
{
	unsigned ports[2] = {0}, more[3];
	pid_t first = start(2, ports), second, third;

	memcpy(more, ports, sizeof(ports));
	more[2] = 0;
	second = start(1, more);
	third = start(3, more);
	CHECK(!td_listens_as(first, second));
	CHECK(td_listens_as(second, first));
	CHECK(td_listens_as(first, third));
	end(first);
	end(second);
	end(third);
}

TEST(who_listens_nowhere_says_nothing_about_others)
{
	unsigned ports[1] = {0};
	pid_t first = start(0, ports), second = start(1, ports);

	CHECK(!td_listens_as(first, second));
	CHECK(!td_listens_as(second, first));
	end(first);
	end(second);
	CHECK(!td_listens_as(first, second));
}
