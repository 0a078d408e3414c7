/* The socket of the MPS control daemon; see mps_pipe.h. */
#include "softgpu/server/mps_pipe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int sg_mps_pipe_directory(char *buf, size_t len)
{
	const char *set = getenv(SG_MPS_PIPE_ENV);

	return snprintf(buf, len, "%s", set && *set ? set : SG_MPS_PIPE_DEFAULT) < (int)len
		       ? 0
		       : -ENAMETOOLONG;
}

int sg_mps_pipe_socket(const char *directory, char *buf, size_t len)
{
	return snprintf(buf, len, "%s/control", directory) < (int)len ? 0 : -ENAMETOOLONG;
}

static int open_pipe(const char *directory)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, r = sg_mps_pipe_socket(directory, address.sun_path, sizeof(address.sun_path));

	if (r)
		return r;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	r = -errno;
	close(fd);
	return r;
}

int sg_mps_pipe_ask(const char *directory, const char *question, char *answer, size_t len)
{
	int fd = open_pipe(directory), r;
	ssize_t n;

	if (fd < 0)
		return fd;
	n = send(fd, question, strlen(question), MSG_NOSIGNAL);
	if (n >= 0)
		do
			n = recv(fd, answer, len - 1, 0);
		while (n < 0 && errno == EINTR);
	r = n < 0 ? -errno : n ? answer[0] != '+' : -ECONNRESET;
	close(fd);
	if (n <= 0)
		return r;
	memmove(answer, answer + 1, (size_t)n - 1);
	answer[n - 1] = 0;
	return r;
}
