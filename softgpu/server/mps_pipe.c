/* The socket of the MPS control daemon; see mps_pipe.h. */
#include "softgpu/server/mps_pipe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/parse.h"

static int parse_limit(const char *text, uint64_t *limits)
{
	const char *equals = strchr(text, '=');
	char number[16];
	uint64_t gpu, bytes;

	if (!equals || equals - text >= (int)sizeof(number))
		return -EINVAL;
	snprintf(number, sizeof(number), "%.*s", (int)(equals - text), text);
	if (td_parse_u64(number, 0, SG_MPS_GPUS_MAX - 1, &gpu, NULL) ||
		td_parse_size(equals + 1, 0, &bytes, NULL))
		return -EINVAL;
	limits[gpu] = bytes;
	return 0;
}

int sg_mps_parse_limits(const char *text, uint64_t *limits)
{
	char copy[1024], *rest = NULL;
	int r = snprintf(copy, sizeof(copy), "%s", text) < (int)sizeof(copy) ? 0 : -EINVAL;

	memset(limits, 0, SG_MPS_GPUS_MAX * sizeof(*limits));
	for (char *part = strtok_r(copy, ", ", &rest); part && !r;
		part = strtok_r(NULL, ", ", &rest))
		r = parse_limit(part, limits);
	if (r)
		memset(limits, 0, SG_MPS_GPUS_MAX * sizeof(*limits));
	return r;
}

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
