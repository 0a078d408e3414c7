/* This file implements address.h. */
#include "kubernetes/admission/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/parse.h"

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* Reads the part before the port; "" is any address. */
static bool parse_host(const char *host, union address *ret)
{
	size_t length = strlen(host);
	char inner[INET6_ADDRSTRLEN];

	if (!*host) {
		ret->v6.sin6_family = AF_INET6;
		ret->v6.sin6_addr = in6addr_any;
		return true;
	}
	if (*host != '[') {
		ret->v4.sin_family = AF_INET;
		return inet_pton(AF_INET, host, &ret->v4.sin_addr) == 1;
	}
	if (host[length - 1] != ']' || length - 2 >= sizeof(inner))
		return false;
	memcpy(inner, host + 1, length - 2);
	inner[length - 2] = 0;
	ret->v6.sin6_family = AF_INET6;
	return inet_pton(AF_INET6, inner, &ret->v6.sin6_addr) == 1;
}

static int parse(const char *text, union address *ret, struct td_err *err)
{
	const char *colon = strrchr(text, ':');
	size_t length = colon ? (size_t)(colon - text) : 0;
	char host[INET6_ADDRSTRLEN + 2];
	uint64_t port;

	memset(ret, 0, sizeof(*ret));
	if (length >= sizeof(host) || (colon && !length) ||
		td_parse_u64(colon ? colon + 1 : text, 0, 65535, &port, NULL))
		return td_err_expected(err, -EINVAL, text, "PORT, IPV4:PORT or [IPV6]:PORT");
	memcpy(host, text, length);
	host[length] = 0;
	if (!parse_host(host, ret))
		return td_err_expected(err, -EINVAL, text, "PORT, IPV4:PORT or [IPV6]:PORT");
	if (ret->any.sa_family == AF_INET)
		ret->v4.sin_port = htons((uint16_t)port);
	else
		ret->v6.sin6_port = htons((uint16_t)port);
	return 0;
}

/* Returns a listening socket, or -errno. */
static int open_socket(const union address *address)
{
	int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1, off = 0, r;

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (address->any.sa_family == AF_INET6) /* any address is one of IPv4, too */
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (!bind(fd, &address->any,
		    address->any.sa_family == AF_INET ? sizeof(address->v4)
						      : sizeof(address->v6)) &&
		!listen(fd, SOMAXCONN))
		return fd;
	r = -errno;
	close(fd);
	return r;
}

int td_address_listen(const char *text, int *ret_fd, struct td_err *err)
{
	union address address;
	int r = parse(text, &address, err), fd;

	if (r)
		return r;
	fd = open_socket(&address);
	if (fd == -EAFNOSUPPORT && !strchr(text, ':')) { /* a machine without IPv6 */
		uint16_t port = address.v6.sin6_port;

		address = (union address){.v4 = {.sin_family = AF_INET, .sin_port = port}};
		fd = open_socket(&address);
	}
	if (fd < 0)
		return td_err_set(err, fd, "\"%.64s\": %s", text, strerror(-fd));
	*ret_fd = fd;
	return 0;
}

unsigned td_address_port(int fd)
{
	union address address;
	socklen_t length = sizeof(address);

	if (getsockname(fd, &address.any, &length))
		return 0;
	return ntohs(address.any.sa_family == AF_INET ? address.v4.sin_port : address.v6.sin6_port);
}
