/*
 * gRPC over a unix socket, as much as a device plugin needs: a server for unary calls and for
 * streams of answers, and a client for one unary call. HTTP/2 is nghttp2's; messages are bytes.
 *
 * Nothing blocks: the owner polls td_grpc_fd() for td_grpc_events() and calls td_grpc_turn(). All
 * functions belong to one thread. Callbacks run within td_grpc_turn() and may call
 * td_grpc_answer(), td_grpc_end() and td_grpc_call(), not td_grpc_close().
 *
 * A peer may have TD_GRPC_CALLS calls open: the stream of one more is reset. A message of more
 * than TD_GRPC_MESSAGE_MAX bytes is refused with RESOURCE_EXHAUSTED. A peer that does not speak
 * HTTP/2 is disconnected.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TD_GRPC_CALLS       16u
#define TD_GRPC_MESSAGE_MAX (4u << 20) /* bytes, the default of gRPC's own libraries */
#define TD_GRPC_TEXT        256u       /* bytes of a status' text, with its end */

/* The codes of gRPC that are used here. */
enum td_grpc_status {
	TD_GRPC_OK = 0,
	TD_GRPC_UNKNOWN = 2,
	TD_GRPC_INVALID_ARGUMENT = 3,
	TD_GRPC_RESOURCE_EXHAUSTED = 8,
	TD_GRPC_UNIMPLEMENTED = 12,
	TD_GRPC_INTERNAL = 13,
	TD_GRPC_UNAVAILABLE = 14,
};

struct td_grpc;      /* a connection */
struct td_grpc_call; /* a call over a connection */

struct td_grpc_events {
	/*
	 * Server: a call with its whole message has come. path is "/package.Service/Method". The
	 * owner answers it now or later, but not after closed().
	 */
	void (*called)(void *arg, struct td_grpc_call *call, const char *path,
		const uint8_t *message, size_t len);
	/* Server: the call exists no longer, since it was answered or the peer gave it up. */
	void (*closed)(void *arg, struct td_grpc_call *call);
	/*
	 * Client: the answer has come. status is an enum td_grpc_status or another code of the
	 * peer's. text is the reason, or "".
	 */
	void (*answered)(
		void *arg, int status, const char *text, const uint8_t *message, size_t len);
	void *arg;
};

/*
 * Takes over a connected, non-blocking stream socket, and closes it with the connection. Returns
 * NULL if memory is short; then the socket is still the caller's.
 */
struct td_grpc *td_grpc_open(int fd, bool is_server, const struct td_grpc_events *events);

/* Closes the connection, and calls closed() for each open call. NULL is allowed. */
void td_grpc_close(struct td_grpc *grpc);

/* Returns whether no call is open. */
bool td_grpc_is_idle(const struct td_grpc *grpc);

/* These return the descriptor, and the events to poll it for: POLLIN, POLLOUT or both. */
int td_grpc_fd(const struct td_grpc *grpc);
short td_grpc_events(const struct td_grpc *grpc);

/*
 * Reads and writes as much as possible without blocking. Returns 0, or -errno if the connection has
 * ended and must be closed.
 */
int td_grpc_turn(struct td_grpc *grpc);

/* Does what td_grpc_turn() does with bytes that were read elsewhere. */
int td_grpc_feed(struct td_grpc *grpc, const uint8_t *bytes, size_t len);

/* Client: makes a call. Returns 0 or -ENOMEM. */
int td_grpc_call(struct td_grpc *grpc, const char *path, const uint8_t *message, size_t len);

/*
 * Server: adds a message to the answer. Returns 0; -ENOBUFS if TD_GRPC_MESSAGE_MAX bytes of the
 * answer are unread; -ENOMEM. After an error it was not added.
 */
int td_grpc_answer(struct td_grpc_call *call, const uint8_t *message, size_t len);

/* Server: ends the answer. Called once for each call. text is the reason; it may be NULL. */
void td_grpc_end(struct td_grpc_call *call, enum td_grpc_status status, const char *text);
