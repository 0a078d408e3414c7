/* This file implements listen.h. */
#include "web/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"

#define BACKLOG 32

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un un;
};

int td_listen_parse(const char *typed, char *ret_host, unsigned room, unsigned *ret_port)
{
	const char *colon = strrchr(typed, ':'), *host = typed;
	size_t length = colon ? (size_t)(colon - typed) : 0;
	char *end;
	unsigned long port;

	if (!colon || !length || strspn(colon + 1, "0123456789") != strlen(colon + 1) || !colon[1])
		return -EINVAL;
	errno = 0;
	port = strtoul(colon + 1, &end, 10);
	if (errno || port > 65535)
		return -EINVAL;
	if (*host == '[' && length > 2 && host[length - 1] == ']') {
		host++;
		length -= 2;
	}
	if (length == 9 && !strncmp(host, "localhost", 9)) {
		host = "127.0.0.1";
		length = 9;
	}
	if (length >= room)
		return -EINVAL;
	memcpy(ret_host, host, length);
	ret_host[length] = 0;
	*ret_port = (unsigned)port;
	return 0;
}

/*
 * Writes the address. Returns its length, or 0 if it is not an address of the loopback interface.
 */
static socklen_t loopback(const char *host, unsigned port, union address *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (inet_pton(AF_INET, host, &ret->v4.sin_addr) == 1) {
		ret->v4.sin_family = AF_INET;
		ret->v4.sin_port = htons((uint16_t)port);
		return ntohl(ret->v4.sin_addr.s_addr) >> 24 == 127 ? sizeof(ret->v4) : 0;
	}
	if (inet_pton(AF_INET6, host, &ret->v6.sin6_addr) == 1) {
		ret->v6.sin6_family = AF_INET6;
		ret->v6.sin6_port = htons((uint16_t)port);
		return IN6_IS_ADDR_LOOPBACK(&ret->v6.sin6_addr) ? sizeof(ret->v6) : 0;
	}
	return 0;
}

static int refuse(struct td_err *err, int error, const char *typed)
{
	return td_err_set(err, -error, "--listen: %.200s: %s", typed, strerror(error));
}

static int listen_at_port(const char *typed, struct td_place *ret, struct td_err *err)
{
	union address address;
	char host[64];
	unsigned port;
	socklen_t length = td_listen_parse(typed, host, sizeof(host), &port)
				   ? 0
				   : loopback(host, port, &address);
	int fd, on = 1;

	if (!length)
		return td_err_set(err, -EINVAL,
			"invalid value '%.64s' for --listen: expected 127.0.0.1:PORT, [::1]:PORT "
			"or "
			"the path of a socket; other machines come by ssh -L",
			typed);
	fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return refuse(err, errno, typed);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, &address.any, length) || listen(fd, BACKLOG) ||
		getsockname(fd, &address.any, &length)) {
		int error = errno;

		close(fd);
		return refuse(err, error, typed);
	}
	port = ntohs(address.any.sa_family == AF_INET ? address.v4.sin_port : address.v6.sin6_port);
	ret->fd = fd;
	snprintf(ret->address, sizeof(ret->address),
		address.any.sa_family == AF_INET ? "%s:%u" : "[%s]:%u", host, port);
	return 0;
}

/* Removes a socket file that a server has left behind. */
static void remove_old(const union address *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct stat st;

	if (fd < 0)
		return;
	if (connect(fd, &address->any, sizeof(address->un)) && errno == ECONNREFUSED &&
		!lstat(address->un.sun_path, &st) && S_ISSOCK(st.st_mode))
		(void)unlink(address->un.sun_path);
	close(fd);
}

static int listen_at_path(const char *typed, struct td_place *ret, struct td_err *err)
{
	union address address = {.un.sun_family = AF_UNIX};
	int fd, error = 0;
	mode_t mask;

	if (strlen(typed) >= sizeof(address.un.sun_path))
		return refuse(err, ENAMETOOLONG, typed);
	strcpy(address.un.sun_path, typed);
	remove_old(&address);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return refuse(err, errno, typed);
	mask = umask(0177);
	if (bind(fd, &address.any, sizeof(address.un)) || listen(fd, BACKLOG))
		error = errno;
	umask(mask);
	if (error) {
		close(fd);
		return refuse(err, error, typed);
	}
	ret->fd = fd;
	ret->is_path = true;
	snprintf(ret->address, sizeof(ret->address), "%s", typed);
	return 0;
}

int td_listen(const char *typed, struct td_place *ret, struct td_err *err)
{
	memset(ret, 0, sizeof(*ret));
	return strchr(typed, '/') ? listen_at_path(typed, ret, err)
				  : listen_at_port(typed, ret, err);
}

void td_listen_end(const struct td_place *place)
{
	if (place->is_path)
		(void)unlink(place->address);
}
