/*
 * Connections to one HTTP/1.1 server: as many requests in flight as there are connections, the rest
 * waits in order. One thread; the caller waits in client_wait() and hears of each answer. A server
 * may close an idle connection while a request is on its way: such a request, of whose answer
 * nothing has come, is sent once more on a new connection (RFC 9112, 9.3.1), and its time goes on.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLIENT_CONNECTIONS_MAX 1024
#define CLIENT_HEADER_MAX      4096

struct td_err;

/*
 * A request has ended. `due_ns` is what client_ask() was given. ok: the status is 200, and the
 * body is complete.
 */
typedef void (*client_answer_fn)(void *arg, uint64_t due_ns, uint64_t now_ns, bool ok);

struct connection {
	int fd; /* below 0: none */
	bool busy;
	uint64_t due_ns, sent_ns;
	size_t sent, have; /* bytes of the request, and of the answer's header */
	/* The part of the answer's body that has not come yet; valid if has_header. */
	size_t body_left;
	bool has_header, is_ok; /* of the answer */
	bool closes;            /* the server closes the connection after this answer */
	/* Another request was answered before on this connection. */
	bool may_retry;
	char header[CLIENT_HEADER_MAX];
};

struct client {
	int epoll;
	uint32_t max; /* connections */
	uint64_t timeout_ns;
	char host[256], port[16], request[2048];
	size_t request_bytes;
	struct connection *connections; /* max entries */
	/* Requests that are due and have no connection: a ring of times. */
	uint64_t *queue;
	size_t queue_size, queue_first, queued;
	uint64_t in_flight;
	client_answer_fn answered;
	void *arg;
};

/*
 * Prepares, without connecting. url is http://HOST[:PORT]/PATH. The request is a GET, or a POST of
 * `body` where there is one. Returns 0, or -errno with a message in err.
 */
int client_init(struct client *client, const char *url, const char *body, uint32_t connections,
	uint64_t timeout_ns, struct td_err *err);
void client_deinit(struct client *client);

/* Sends a request that is due, or queues it. Returns 0, or -ENOMEM: the queue cannot grow. */
int client_ask(struct client *client, uint64_t due_ns);

/* Waits until the time for answers, and handles them. */
void client_wait(struct client *client, uint64_t until_ns);
