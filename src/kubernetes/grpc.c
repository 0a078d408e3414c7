/*
 * This file implements grpc.h. A message is sent in DATA frames of the call's stream: one byte, 0
 * for "not compressed", four bytes of its length, and its bytes. An answer ends with trailers,
 * which hold the status.
 */
#include "kubernetes/grpc.h"

#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/list.h"

#define PREFIX      5u /* bytes before a message */
#define PATH_MAX_   128u
#define READ_BYTES  16384u
#define STATUS_TEXT 12

/* A buffer that grows. */
struct bytes {
	uint8_t *at;
	size_t len, room;
};

struct td_grpc_call {
	struct td_list of_connection;
	struct td_grpc *grpc;
	int32_t stream;
	char path[PATH_MAX_];
	struct bytes in, out;
	size_t sent;   /* the bytes of `out` that were sent */
	bool is_known; /* called() was called for it */
	bool too_large;
	bool is_waiting; /* nghttp2 asks for no more data until it is resumed */
	bool has_ended;  /* nothing is added to the answer any more */
	int status;
	char text[TD_GRPC_TEXT];
};

struct td_grpc {
	int fd;
	bool is_server;
	nghttp2_session *session;
	struct td_grpc_events events;
	struct td_list calls;
};

static int append(struct bytes *to, const uint8_t *bytes, size_t len)
{
	if (to->len + len > to->room) {
		size_t room = 2 * to->room > to->len + len ? 2 * to->room : to->len + len;
		uint8_t *grown = realloc(to->at, room);

		if (!grown)
			return -ENOMEM;
		to->at = grown;
		to->room = room;
	}
	if (len)
		memcpy(to->at + to->len, bytes, len);
	to->len += len;
	return 0;
}

static int append_message(struct bytes *to, const uint8_t *message, size_t len)
{
	uint8_t prefix[PREFIX] = {
		0, (uint8_t)(len >> 24), (uint8_t)(len >> 16), (uint8_t)(len >> 8), (uint8_t)len};
	size_t before = to->len;
	int r = append(to, prefix, PREFIX);

	r = r ? r : append(to, message, len);
	if (r)
		to->len = before;
	return r;
}

/*
 * Finds the only message of a unary call. Returns false if it is incomplete or compressed, or if
 * more bytes follow.
 */
static bool read_message(const struct bytes *in, const uint8_t **ret, size_t *ret_len)
{
	if (in->len < PREFIX || in->at[0])
		return false;
	*ret_len = (size_t)in->at[1] << 24 | (size_t)in->at[2] << 16 | (size_t)in->at[3] << 8 |
		   in->at[4];
	*ret = in->at + PREFIX;
	return *ret_len == in->len - PREFIX;
}

/* -- calls -- */

static struct td_grpc_call *make_call(struct td_grpc *grpc, int32_t stream)
{
	struct td_grpc_call *call = calloc(1, sizeof(*call));

	if (!call)
		return NULL;
	call->grpc = grpc;
	call->stream = stream;
	call->status = TD_GRPC_UNKNOWN;
	td_list_append(&grpc->calls, &call->of_connection);
	return call;
}

static void forget_call(struct td_grpc_call *call)
{
	struct td_grpc *grpc = call->grpc;

	if (call->is_known && grpc->is_server)
		grpc->events.closed(grpc->events.arg, call);
	td_list_remove(&call->of_connection);
	free(call->in.at);
	free(call->out.at);
	free(call);
}

static struct td_grpc_call *find_call(struct td_grpc *grpc, int32_t stream)
{
	return nghttp2_session_get_stream_user_data(grpc->session, stream);
}

/* -- sending -- */

/* Makes a header. nghttp2 copies both texts and changes neither, so the casts are safe. */
static nghttp2_nv header(const char *name, const char *value)
{
	return (nghttp2_nv){
		.name = (uint8_t *)(uintptr_t)name,
		.value = (uint8_t *)(uintptr_t)value,
		.namelen = strlen(name),
		.valuelen = strlen(value),
		.flags = NGHTTP2_NV_FLAG_NONE,
	};
}

/* Escapes a text for a trailer: only printable ASCII is allowed; % and other bytes become %XX. */
static void escape(char *ret, size_t room, const char *text)
{
	size_t used = 0;

	for (; *text && used + 4 < room; text++) {
		bool is_plain = *text >= ' ' && *text <= '~' && *text != '%';

		used += (size_t)snprintf(ret + used, room - used, is_plain ? "%c" : "%%%02X",
			is_plain ? *text : (unsigned char)*text);
	}
	ret[used] = 0;
}

static void send_trailers(struct td_grpc_call *call)
{
	char status[STATUS_TEXT], text[3 * TD_GRPC_TEXT];
	nghttp2_nv trailers[2];

	snprintf(status, sizeof(status), "%d", call->status);
	escape(text, sizeof(text), call->text);
	trailers[0] = header("grpc-status", status);
	trailers[1] = header("grpc-message", text);

	(void)nghttp2_submit_trailer(
		call->grpc->session, call->stream, trailers, *call->text ? 2 : 1);
}

static ssize_t give_data(nghttp2_session *session, int32_t stream, uint8_t *to, size_t room,
	uint32_t *flags, nghttp2_data_source *source, void *arg)
{
	struct td_grpc_call *call = source->ptr;
	size_t len = call->out.len - call->sent;

	(void)session;
	(void)stream;
	(void)arg;
	len = len < room ? len : room;
	if (!len && !call->has_ended) {
		call->is_waiting = true;
		return NGHTTP2_ERR_DEFERRED;
	}
	if (len)
		memcpy(to, call->out.at + call->sent, len);
	call->sent += len;
	if (call->sent == call->out.len) {
		call->sent = call->out.len = 0;
		if (call->has_ended) {
			*flags |= NGHTTP2_DATA_FLAG_EOF;
			if (call->grpc->is_server) {
				*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
				send_trailers(call);
			}
		}
	}
	return (ssize_t)len;
}

static void go_on(struct td_grpc_call *call)
{
	if (!call->is_waiting)
		return;
	call->is_waiting = false;
	(void)nghttp2_session_resume_data(call->grpc->session, call->stream);
}

static int begin_answer(struct td_grpc_call *call)
{
	nghttp2_nv headers[] = {
		header(":status", "200"),
		header("content-type", "application/grpc"),
	};
	nghttp2_data_provider data = {.source.ptr = call, .read_callback = give_data};

	return nghttp2_submit_response(call->grpc->session, call->stream, headers,
		       sizeof(headers) / sizeof(*headers), &data)
		       ? -ENOMEM
		       : 0;
}

int td_grpc_answer(struct td_grpc_call *call, const uint8_t *message, size_t len)
{
	int r;

	if (call->out.len + len > TD_GRPC_MESSAGE_MAX)
		return -ENOBUFS;
	r = append_message(&call->out, message, len);
	if (!r)
		go_on(call);
	return r;
}

void td_grpc_end(struct td_grpc_call *call, enum td_grpc_status status, const char *text)
{
	call->status = (int)status;
	snprintf(call->text, sizeof(call->text), "%s", text ? text : "");
	call->has_ended = true;
	go_on(call);
}

int td_grpc_call(struct td_grpc *grpc, const char *path, const uint8_t *message, size_t len)
{
	struct td_grpc_call *call = make_call(grpc, -1);
	nghttp2_nv headers[] = {
		header(":method", "POST"),
		header(":scheme", "http"),
		header(":authority", "localhost"),
		header(":path", path),
		header("te", "trailers"),
		header("content-type", "application/grpc"),
	};
	nghttp2_data_provider data = {.source.ptr = call, .read_callback = give_data};

	if (!call)
		return -ENOMEM;
	call->has_ended = true;
	if (!append_message(&call->out, message, len))
		call->stream = nghttp2_submit_request(grpc->session, NULL, headers,
			sizeof(headers) / sizeof(*headers), &data, call);
	if (call->stream >= 0)
		return 0;
	forget_call(call);
	return -ENOMEM;
}

/* -- receiving -- */

static int begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct td_grpc *grpc = arg;
	struct td_grpc_call *call;

	if (!grpc->is_server || frame->hd.type != NGHTTP2_HEADERS ||
		frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	call = make_call(grpc, frame->hd.stream_id);
	if (!call)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	(void)nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, call);
	return begin_answer(call) ? NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE : 0;
}

static bool is_header(const uint8_t *name, size_t len, const char *which)
{
	return len == strlen(which) && !memcmp(name, which, len);
}

static int status_of(const uint8_t *value, size_t len)
{
	int status = 0;

	for (size_t i = 0; i < len; i++) {
		if (value[i] < '0' || value[i] > '9' || status > 1000)
			return TD_GRPC_UNKNOWN;
		status = status * 10 + value[i] - '0';
	}
	return len ? status : TD_GRPC_UNKNOWN;
}

static int take_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
	size_t name_len, const uint8_t *value, size_t len, uint8_t flags, void *arg)
{
	struct td_grpc *grpc = arg;
	struct td_grpc_call *call = find_call(grpc, frame->hd.stream_id);

	(void)session;
	(void)flags;
	if (!call)
		return 0;
	if (grpc->is_server && is_header(name, name_len, ":path"))
		snprintf(call->path, sizeof(call->path), "%.*s", (int)len, (const char *)value);
	if (!grpc->is_server && is_header(name, name_len, "grpc-status"))
		call->status = status_of(value, len);
	if (!grpc->is_server && is_header(name, name_len, "grpc-message"))
		snprintf(call->text, sizeof(call->text), "%.*s", (int)len, (const char *)value);
	return 0;
}

static int take_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
	size_t len, void *arg)
{
	struct td_grpc_call *call = find_call(arg, stream);

	(void)session;
	(void)flags;
	if (call &&
		(call->in.len + len > TD_GRPC_MESSAGE_MAX + PREFIX || append(&call->in, data, len)))
		call->too_large = true;
	return 0;
}

static void hand_on(struct td_grpc *grpc, struct td_grpc_call *call)
{
	const uint8_t *message = NULL;
	size_t len = 0;

	if (call->is_known)
		return;
	if (call->too_large) {
		td_grpc_end(call, TD_GRPC_RESOURCE_EXHAUSTED, "the message is too large");
		return;
	}
	if (!read_message(&call->in, &message, &len)) {
		td_grpc_end(call, TD_GRPC_INTERNAL, "one message was expected, not compressed");
		return;
	}
	call->is_known = true;
	grpc->events.called(grpc->events.arg, call, call->path, message, len);
}

static int take_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct td_grpc *grpc = arg;
	struct td_grpc_call *call = find_call(grpc, frame->hd.stream_id);

	(void)session;
	if (call && grpc->is_server && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) &&
		(frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS))
		hand_on(grpc, call);
	return 0;
}

static void tell_answer(struct td_grpc *grpc, struct td_grpc_call *call, uint32_t error)
{
	const uint8_t *message = NULL;
	size_t len = 0;

	if (error && call->status == TD_GRPC_UNKNOWN && !*call->text)
		snprintf(call->text, sizeof(call->text), "the call was broken off: HTTP/2 error %u",
			error);
	if (call->status == TD_GRPC_OK && !read_message(&call->in, &message, &len)) {
		call->status = TD_GRPC_INTERNAL;
		snprintf(call->text, sizeof(call->text), "the answer is not one message");
	}
	grpc->events.answered(grpc->events.arg, call->status, call->text, message, len);
}

static int close_stream(nghttp2_session *session, int32_t stream, uint32_t error, void *arg)
{
	struct td_grpc *grpc = arg;
	struct td_grpc_call *call = find_call(grpc, stream);

	if (!call)
		return 0;
	(void)nghttp2_session_set_stream_user_data(session, stream, NULL);
	if (!grpc->is_server)
		tell_answer(grpc, call, error);
	forget_call(call);
	return 0;
}

/* -- the connection -- */

/* Sends bytes for nghttp2, which calls it until it returns that no more can be sent now. */
static ssize_t write_some(
	nghttp2_session *session, const uint8_t *bytes, size_t len, int flags, void *arg)
{
	struct td_grpc *grpc = arg;
	ssize_t n;

	(void)session;
	(void)flags;
	if (grpc->fd < 0) /* a connection of a test */
		return (ssize_t)len;
	n = send(grpc->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n >= 0)
		return n;
	return errno == EAGAIN || errno == EINTR ? NGHTTP2_ERR_WOULDBLOCK
						 : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int make_session(struct td_grpc *grpc)
{
	nghttp2_session_callbacks *callbacks = NULL;
	nghttp2_option *option = NULL;
	nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, TD_GRPC_CALLS}, /* nghttp2 keeps it */
		{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
	};
	int r = nghttp2_session_callbacks_new(&callbacks) || nghttp2_option_new(&option);

	if (!r) {
		nghttp2_session_callbacks_set_send_callback(callbacks, write_some);
		nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, begin_headers);
		nghttp2_session_callbacks_set_on_header_callback(callbacks, take_header);
		nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, take_data);
		nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, take_frame);
		nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, close_stream);
		/*
		 * The kubelet of Kubernetes 1.20 sends the socket's path as :authority, which HTTP
		 * does not allow and nghttp2 would refuse.
		 */
		nghttp2_option_set_no_http_messaging(option, 1);
		r = grpc->is_server
			    ? nghttp2_session_server_new2(&grpc->session, callbacks, grpc, option)
			    : nghttp2_session_client_new2(&grpc->session, callbacks, grpc, option);
	}
	if (!r)
		r = nghttp2_submit_settings(
			grpc->session, NGHTTP2_FLAG_NONE, settings, grpc->is_server ? 1 : 2);
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(callbacks);
	return r ? -ENOMEM : 0;
}

struct td_grpc *td_grpc_open(int fd, bool is_server, const struct td_grpc_events *events)
{
	struct td_grpc *grpc = calloc(1, sizeof(*grpc));

	if (!grpc)
		return NULL;
	grpc->fd = -1;
	grpc->is_server = is_server;
	grpc->events = *events;
	td_list_init(&grpc->calls);
	if (make_session(grpc)) {
		td_grpc_close(grpc);
		return NULL;
	}
	grpc->fd = fd;
	return grpc;
}

void td_grpc_close(struct td_grpc *grpc)
{
	if (!grpc)
		return;
	while (!td_list_empty(&grpc->calls))
		forget_call(td_container_of(grpc->calls.next, struct td_grpc_call, of_connection));
	nghttp2_session_del(grpc->session);
	if (grpc->fd >= 0)
		close(grpc->fd);
	free(grpc);
}

bool td_grpc_is_idle(const struct td_grpc *grpc)
{
	return td_list_empty(&grpc->calls);
}

int td_grpc_fd(const struct td_grpc *grpc)
{
	return grpc->fd;
}

short td_grpc_events(const struct td_grpc *grpc)
{
	return (short)(POLLIN | (nghttp2_session_want_write(grpc->session) ? POLLOUT : 0));
}

int td_grpc_feed(struct td_grpc *grpc, const uint8_t *bytes, size_t len)
{
	ssize_t n = nghttp2_session_mem_recv(grpc->session, bytes, len);

	return n < 0 || (size_t)n != len ? -EPROTO : 0;
}

static int read_some(struct td_grpc *grpc)
{
	uint8_t bytes[READ_BYTES];
	ssize_t n = recv(grpc->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	return n ? td_grpc_feed(grpc, bytes, (size_t)n) : -ECONNRESET;
}

int td_grpc_turn(struct td_grpc *grpc)
{
	int r = grpc->fd < 0 ? 0 : read_some(grpc);

	if (r)
		return r;
	if (nghttp2_session_send(grpc->session))
		return -ECONNRESET;
	if (nghttp2_session_want_read(grpc->session) || nghttp2_session_want_write(grpc->session))
		return 0;
	return -ECONNRESET;
}
