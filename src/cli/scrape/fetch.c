/* This file implements fetch.h. */
#include "cli/scrape/fetch.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"

#define FIRST_ROOM 16384u

static int find_address(struct td_fetch *fetch, const char *host, const char *port, int family)
{
	struct addrinfo hints = {.ai_family = family, .ai_socktype = SOCK_STREAM}, *found;

	if (getaddrinfo(host, port, &hints, &found))
		return -EHOSTUNREACH;
	memcpy(&fetch->address, found->ai_addr, found->ai_addrlen);
	fetch->address_len = found->ai_addrlen;
	freeaddrinfo(found);
	return 0;
}

/* Splits HOST, HOST:PORT, [HOST] or [HOST]:PORT. Returns whether it is one of these. */
static bool split(const char *authority, size_t len, char host[128], char port[8])
{
	const char *end = authority + len, *from = authority, *colon, *to;

	if (*from == '[') {
		from++;
		to = memchr(from, ']', len - 1);
		colon = to ? to + 1 : NULL;
	} else {
		to = colon = memchr(from, ':', len);
		if (!colon)
			to = colon = end;
	}
	if (!colon || to == from || to - from >= 128 || (colon < end && *colon != ':'))
		return false;
	if (colon < end && (end - colon < 2 || end - colon > 6))
		return false;
	snprintf(host, 128, "%.*s", (int)(to - from), from);
	snprintf(port, 8, "%.*s", colon < end ? (int)(end - colon - 1) : 2,
		colon < end ? colon + 1 : "80");
	return strspn(port, "0123456789") == strlen(port);
}

int td_fetch_init(struct td_fetch *fetch, const char *url, struct td_err *err)
{
	char host[128], port[8];
	const char *authority, *path;
	int n;

	*fetch = (struct td_fetch){.fd = -1};
	authority = url + (strncmp(url, "http://", 7) ? 0 : 7);
	path = authority + strcspn(authority, "/");
	if (authority == url || strpbrk(url, " \t\r\n") ||
		!split(authority, (size_t)(path - authority), host, port) ||
		strlen(path) >= sizeof(fetch->path))
		return td_err_set(err, -EINVAL,
			"\"%.200s\" is not valid: expected http://HOST[:PORT]/PATH", url);
	snprintf(fetch->path, sizeof(fetch->path), "%s", *path ? path : "/metrics");
	if (find_address(fetch, host, port, AF_INET) && find_address(fetch, host, port, AF_UNSPEC))
		return td_err_set(err, -EINVAL, "\"%.200s\": the host is not known", url);
	n = snprintf(fetch->request, sizeof(fetch->request),
		"GET %s HTTP/1.0\r\nHost: %.*s\r\nAccept: text/plain\r\nConnection: close\r\n\r\n",
		fetch->path, (int)(path - authority), authority);
	fetch->request_len = (size_t)n;
	return 0;
}

static void hang_up(struct td_fetch *fetch)
{
	if (fetch->fd >= 0)
		close(fetch->fd);
	fetch->fd = -1;
}

void td_fetch_deinit(struct td_fetch *fetch)
{
	hang_up(fetch);
	free(fetch->page);
	fetch->page = NULL;
	fetch->room = 0;
}

void td_fetch_begin(struct td_fetch *fetch, uint64_t deadline_ns)
{
	hang_up(fetch);
	fetch->sent = fetch->len = 0;
	fetch->deadline_ns = deadline_ns;
	fetch->events = POLLOUT;
	fetch->fd = socket(fetch->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fetch->fd >= 0 &&
		connect(fetch->fd, (const struct sockaddr *)&fetch->address, fetch->address_len) &&
		errno != EINPROGRESS)
		hang_up(fetch);
}

static enum td_fetch_state fail(struct td_fetch *fetch, const char **ret_why, const char *why)
{
	hang_up(fetch);
	*ret_why = why;
	return TD_FETCH_FAILED;
}

/* Returns the body of a whole page whose status is 200, NUL-terminated; else NULL. */
static const char *body_of(const struct td_fetch *fetch)
{
	const char *end = strstr(fetch->page, "\r\n\r\n");

	if (strncmp(fetch->page, "HTTP/1.", 7) || strncmp(fetch->page + 8, " 200", 4) || !end)
		return NULL;
	return end + 4;
}

/* Makes room for more, and for a NUL. */
static bool make_room(struct td_fetch *fetch)
{
	size_t room = fetch->room ? 2 * fetch->room : FIRST_ROOM;
	char *page;

	if (fetch->len + 1 < fetch->room)
		return true;
	page = room <= TD_FETCH_MAX ? realloc(fetch->page, room) : NULL;
	if (!page)
		return false;
	fetch->page = page;
	fetch->room = room;
	return true;
}

/* Sends the request. Returns false if the connection has failed. */
static bool send_request(struct td_fetch *fetch)
{
	while (fetch->sent < fetch->request_len) {
		ssize_t n = send(fetch->fd, fetch->request + fetch->sent,
			fetch->request_len - fetch->sent, MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR || errno == ENOTCONN;
		fetch->sent += (size_t)n;
	}
	fetch->events = POLLIN;
	return true;
}

enum td_fetch_state td_fetch_go_on(struct td_fetch *fetch, uint64_t now_ns, const char **ret_body,
	size_t *ret_len, const char **ret_why)
{
	ssize_t n = 1;

	if (fetch->fd < 0 || !send_request(fetch))
		return fail(fetch, ret_why, "it does not answer");
	while (fetch->events == POLLIN && n > 0) {
		if (!make_room(fetch))
			return fail(fetch, ret_why, "its page is longer than 4 MiB");
		n = recv(fetch->fd, fetch->page + fetch->len, fetch->room - fetch->len - 1, 0);
		fetch->len += n > 0 ? (size_t)n : 0;
	}
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return fail(fetch, ret_why, "it has broken the connection off");
	if (n) {
		if (now_ns >= fetch->deadline_ns)
			return fail(fetch, ret_why, "it has not answered in time");
		return TD_FETCH_WAITS;
	}
	fetch->page[fetch->len] = 0;
	*ret_body = body_of(fetch);
	if (!*ret_body)
		return fail(fetch, ret_why, "its answer is not a page with status 200");
	*ret_len = fetch->len - (size_t)(*ret_body - fetch->page);
	hang_up(fetch);
	return TD_FETCH_DONE;
}
