/*
 * The test as another process, in a role of its own: $IPC_ROLE, at the other end of a socket,
 * $IPC_FD.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

static inline void receive(int fd, void *bytes, size_t n)
{
	CHECK_EQ(read(fd, bytes, n), (ssize_t)n);
}

static inline void give(int fd, const void *bytes, size_t n)
{
	CHECK_EQ(write(fd, bytes, n), (ssize_t)n);
}

/*
 * Starts this program again, in that role, on the other end of *ret. A child of fork() could not
 * use a driver that its parent has begun to use.
 */
static inline pid_t start_child(const char *role, int *ret)
{
	char number[16];
	int pair[2];
	pid_t pid;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		close(pair[0]);
		snprintf(number, sizeof(number), "%d", pair[1]);
		setenv("IPC_ROLE", role, 1);
		setenv("IPC_FD", number, 1);
		execl("/proc/self/exe", role, NULL);
		_exit(127);
	}
	close(pair[1]);
	*ret = pair[0];
	return pid;
}

static inline void end_child(pid_t pid, int fd, int expected)
{
	int status;

	close(fd);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), expected);
}
