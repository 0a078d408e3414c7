/* See client.h. */
#include "profiler/service/client.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/time.h"

#define EVENTS    64
#define DISCARD   16384
#define EXPIRY_NS (100 * TD_NS_PER_MS) /* how often requests are checked for a time-out */

int client_init(struct client *client, const char *url, const char *body, uint32_t connections,
	uint64_t timeout_ns, struct td_err *err)
{
	const char *authority, *path, *colon;
	int n;

	*client = (struct client){.epoll = -1, .max = connections, .timeout_ns = timeout_ns};
	if (strncmp(url, "http://", 7))
		return td_err_set(err, -EINVAL,
			"\"%.200s\" is not a URL here: expected http://HOST[:PORT]/PATH", url);
	authority = url + 7;
	path = authority + strcspn(authority, "/");
	colon = memchr(authority, ':', (size_t)(path - authority));
	n = snprintf(client->host, sizeof(client->host), "%.*s",
		(int)((colon ? colon : path) - authority), authority);
	if (n <= 0 || n >= (int)sizeof(client->host))
		return td_err_set(err, -EINVAL, "\"%.200s\" names no host", url);
	snprintf(client->port, sizeof(client->port), "%.*s", colon ? (int)(path - colon - 1) : 2,
		colon ? colon + 1 : "80");
	n = snprintf(client->request, sizeof(client->request),
		"%s %s HTTP/1.1\r\nHost: %.*s\r\nContent-Length: %zu\r\n\r\n%s",
		body ? "POST" : "GET", *path ? path : "/", (int)(path - authority), authority,
		body ? strlen(body) : 0, body ? body : "");
	if (n >= (int)sizeof(client->request))
		return td_err_set(err, -EINVAL,
			"the URL and the body are too long: at most %zu bytes",
			sizeof(client->request));
	client->request_bytes = (size_t)n;
	client->connections = calloc(connections, sizeof(*client->connections));
	client->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!client->connections || client->epoll < 0)
		return td_err_set(err, -ENOMEM, "no memory for %u connections", connections);
	for (uint32_t i = 0; i < connections; i++)
		client->connections[i].fd = -1;
	return 0;
}

void client_deinit(struct client *client)
{
	for (uint32_t i = 0; client->connections && i < client->max; i++)
		if (client->connections[i].fd >= 0)
			close(client->connections[i].fd);
	if (client->epoll >= 0)
		close(client->epoll);
	free(client->connections);
	free(client->queue);
}

static void hang_up(struct connection *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

static void end_request(struct client *client, struct connection *c, bool ok)
{
	if (!ok || c->closes)
		hang_up(c);
	if (!c->busy)
		return;
	c->busy = false;
	client->in_flight--;
	client->answered(client->arg, c->due_ns, td_time_now_ns(), ok);
}

static int dial(struct client *client, struct connection *c)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found, *it;
	struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c};
	int one = 1;

	if (getaddrinfo(client->host, client->port, &hints, &found))
		return -EHOSTUNREACH;
	for (it = found; it && c->fd < 0; it = it->ai_next) {
		c->fd = socket(it->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		if (c->fd < 0)
			continue;
		(void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		if (connect(c->fd, it->ai_addr, it->ai_addrlen) && errno != EINPROGRESS)
			hang_up(c);
	}
	freeaddrinfo(found);
	if (c->fd < 0 || epoll_ctl(client->epoll, EPOLL_CTL_ADD, c->fd, &event)) {
		hang_up(c);
		return -ECONNREFUSED;
	}
	return 0;
}

static void send_more(struct client *client, struct connection *c);

/* The connection is gone. */
static void lose(struct client *client, struct connection *c)
{
	bool again = c->busy && c->may_retry && !c->have;

	c->may_retry = false;
	hang_up(c);
	if (!again || dial(client, c)) {
		end_request(client, c, false);
		return;
	}
	c->sent = 0;
	send_more(client, c);
}

/* Sends what can be sent of the request. */
static void send_more(struct client *client, struct connection *c)
{
	while (c->busy && c->sent < client->request_bytes) {
		ssize_t n = send(c->fd, client->request + c->sent, client->request_bytes - c->sent,
			MSG_NOSIGNAL);

		if (n < 0 && (errno == EAGAIN || errno == ENOTCONN))
			return;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			lose(client, c);
			return;
		}
		c->sent += (size_t)n;
	}
}

static void begin_request(struct client *client, struct connection *c, uint64_t due_ns)
{
	c->busy = true;
	c->due_ns = due_ns;
	c->sent_ns = td_time_now_ns();
	c->sent = c->have = 0;
	c->has_header = c->closes = false;
	c->may_retry = c->fd >= 0;
	client->in_flight++;
	if (c->fd < 0 && dial(client, c)) {
		end_request(client, c, false);
		return;
	}
	send_more(client, c);
}

/*
 * Returns the length of the body that the answer's header states; SIZE_MAX if it states none that
 * this client understands.
 */
static size_t length_in(const char *header)
{
	const char *line;

	for (line = header; line; line = strstr(line, "\r\n")) {
		line += strspn(line, "\r\n");
		if (!strncasecmp(line, "content-length:", 15))
			return strtoull(line + 15, NULL, 10);
		if (!strncmp(line, "\r\n", 2) || !*line)
			break;
	}
	return SIZE_MAX;
}

static bool says_close(const char *header)
{
	const char *line = strcasestr(header, "\r\nconnection:");

	return line && !strncasecmp(line + 13 + strspn(line + 13, " "), "close", 5);
}

/* Reads more of the header. 0: it is complete. 1: more has to come. Below 0: it is no answer. */
static int read_header(struct connection *c)
{
	char *end;
	size_t length, extra;
	ssize_t n = recv(c->fd, c->header + c->have, sizeof(c->header) - 1 - c->have, 0);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 1 : -errno;
	if (!n)
		return -ECONNRESET;
	c->have += (size_t)n;
	c->header[c->have] = 0;
	end = strstr(c->header, "\r\n\r\n");
	if (!end)
		return c->have < sizeof(c->header) - 1 ? 1 : -EMSGSIZE;
	length = length_in(c->header);
	extra = c->have - (size_t)(end + 4 - c->header);
	if (length == SIZE_MAX || extra > length)
		return -EPROTO;
	c->is_ok = !strncmp(c->header, "HTTP/1.", 7) && !strncmp(c->header + 8, " 200", 4);
	c->closes = says_close(c->header);
	c->body_left = length - extra;
	c->has_header = true;
	return 0;
}

static int read_body(struct connection *c)
{
	char discarded[DISCARD];
	size_t most = c->body_left < sizeof(discarded) ? c->body_left : sizeof(discarded);
	ssize_t n = recv(c->fd, discarded, most, 0);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 1 : -errno;
	if (!n)
		return -ECONNRESET;
	c->body_left -= (size_t)n;
	return 0;
}

static void receive(struct client *client, struct connection *c)
{
	int r = 0;

	while (c->busy && !r) {
		r = c->has_header ? 0 : read_header(c);
		if (!r && c->body_left)
			r = read_body(c);
		if (!r && c->has_header && !c->body_left)
			end_request(client, c, c->is_ok);
	}
	if (r < 0)
		lose(client, c);
}

static struct connection *find_idle(struct client *client)
{
	struct connection *unused = NULL;

	for (uint32_t i = 0; i < client->max; i++) {
		struct connection *c = &client->connections[i];

		if (c->busy)
			continue;
		if (c->fd >= 0)
			return c;
		if (!unused)
			unused = c;
	}
	return unused;
}

static void take_from_queue(struct client *client)
{
	while (client->queued) {
		struct connection *c = find_idle(client);
		uint64_t due_ns = client->queue[client->queue_first];

		if (!c)
			return;
		client->queue_first = (client->queue_first + 1) % client->queue_size;
		client->queued--;
		begin_request(client, c, due_ns);
	}
}

static int grow_queue(struct client *client)
{
	size_t size = client->queue_size ? 2 * client->queue_size : 1024;
	uint64_t *queue = malloc(size * sizeof(*queue));

	if (!queue)
		return -ENOMEM;
	for (size_t i = 0; i < client->queued; i++)
		queue[i] = client->queue[(client->queue_first + i) % client->queue_size];
	free(client->queue);
	client->queue = queue;
	client->queue_size = size;
	client->queue_first = 0;
	return 0;
}

int client_ask(struct client *client, uint64_t due_ns)
{
	if (client->queued == client->queue_size && grow_queue(client))
		return -ENOMEM;
	client->queue[(client->queue_first + client->queued++) % client->queue_size] = due_ns;
	take_from_queue(client);
	return 0;
}

static void expire(struct client *client, uint64_t now_ns)
{
	for (uint32_t i = 0; i < client->max; i++) {
		struct connection *c = &client->connections[i];

		if (c->busy && now_ns - c->sent_ns > client->timeout_ns)
			end_request(client, c, false);
	}
}

/* The server has closed the connection, or sends what nobody asked for. */
static bool is_closed(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_PEEK) >= 0 || (errno != EAGAIN && errno != EINTR);
}

void client_wait(struct client *client, uint64_t until_ns)
{
	struct epoll_event events[EVENTS];

	for (;;) {
		uint64_t now_ns = td_time_now_ns(), wait_ns;
		struct timespec timeout;
		int n;

		if (now_ns >= until_ns)
			return;
		wait_ns = until_ns - now_ns < EXPIRY_NS ? until_ns - now_ns : EXPIRY_NS;
		timeout = (struct timespec){.tv_nsec = (long)wait_ns};
		n = epoll_pwait2(client->epoll, events, EVENTS, &timeout, NULL);
		for (int i = 0; i < n; i++) {
			struct connection *c = events[i].data.ptr;

			send_more(client, c);
			receive(client, c);
			if (c->fd >= 0 && !c->busy && is_closed(c->fd))
				hang_up(c);
		}
		if (!n)
			expire(client, td_time_now_ns());
		take_from_queue(client);
	}
}
