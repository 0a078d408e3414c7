/* This file implements http.h. */
#include "web/http.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "view/metrics.h"
#include "web/assets.h"
#include "web/stream.h"

#define BODY_MAX        1024
#define CONNECTIONS_MAX 64
#define REQUEST_BYTES   (32 * 1024)
/* A connection that is idle for this long is closed. */
#define IDLE_S 60

/* A request. The struct exists from when the headers are complete until the answer is sent. */
struct request {
	struct td_http *http;
	struct MHD_Connection *connection;
	char body[BODY_MAX];
	size_t length;
	bool is_too_long;
	bool is_answered; /* the verb has ended, and `answer` is its answer */
	struct td_text answer;
};

/* -- answers -- */

static const struct {
	const char *name, *value;
} headers[] = {
	{"Content-Security-Policy",
		"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
		"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
	{"X-Content-Type-Options", "nosniff"},
	{"Referrer-Policy", "no-referrer"},
	{"Cross-Origin-Resource-Policy", "same-origin"},
	{"Cross-Origin-Opener-Policy", "same-origin"},
	{"Cache-Control", "no-store"},
};

static enum MHD_Result send_response(struct MHD_Connection *connection, unsigned status,
	const char *type, struct MHD_Response *response)
{
	enum MHD_Result r;

	if (!response)
		return MHD_NO;
	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
		(void)MHD_add_response_header(response, headers[i].name, headers[i].value);
	(void)MHD_add_response_header(response, "Content-Type", type);
	r = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return r;
}

static enum MHD_Result send_copy(struct MHD_Connection *connection, unsigned status,
	const char *type, const char *text, size_t length)
{
	return send_response(connection, status, type,
		MHD_create_response_from_buffer(length, (void *)text, MHD_RESPMEM_MUST_COPY));
}

static enum MHD_Result send_plain(
	struct MHD_Connection *connection, unsigned status, const char *text)
{
	return send_copy(connection, status, "text/plain; charset=utf-8", text, strlen(text));
}

static enum MHD_Result send_asset(const struct td_http *http, struct MHD_Connection *connection,
	const struct td_asset *asset, bool gives_cookie)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(
		asset->length, (void *)asset->text, MHD_RESPMEM_PERSISTENT);
	char cookie[128];

	snprintf(cookie, sizeof(cookie), "%s=%s; Path=/; HttpOnly; SameSite=Strict", http->cookie,
		http->token);
	if (response && gives_cookie)
		(void)MHD_add_response_header(response, "Set-Cookie", cookie);
	return send_response(connection, MHD_HTTP_OK, asset->type, response);
}

static enum MHD_Result send_metrics(const struct td_http *http, struct MHD_Connection *connection)
{
	struct td_text text = {0};
	enum MHD_Result r;

	td_metrics_write(&text, &http->feed->now);
	r = text.failed ? send_plain(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "no memory\n")
			: send_copy(connection, MHD_HTTP_OK, "text/plain; version=0.0.4", text.text,
				  text.length);
	td_text_deinit(&text);
	return r;
}

/* -- verbs -- */

static void verb_is_done(void *arg, int status, const char *said)
{
	struct request *request = arg;

	td_text_add(&request->answer, "{\"status\":%d,\"text\":", status);
	td_text_add_json(&request->answer, said);
	td_text_put(&request->answer, "}", 1);
	request->is_answered = true;
	MHD_resume_connection(request->connection);
}

static enum MHD_Result do_verb(struct request *request)
{
	struct td_http *http = request->http;
	struct td_order order;
	int r;

	if (request->is_too_long || td_order_parse(request->body, request->length, &order))
		return send_plain(request->connection, MHD_HTTP_BAD_REQUEST,
			"expected {\"verb\": VERB, \"job\": ID}\n");
	if (!td_verb_is_known(order.verb))
		return send_plain(request->connection, MHD_HTTP_BAD_REQUEST,
			"there is no such verb on this page\n");
	if (!td_feed_has_job(http->feed, order.job))
		return send_plain(
			request->connection, MHD_HTTP_NOT_FOUND, "there is no such job any more\n");
	/* The connection is not served until verb_is_done(). */
	MHD_suspend_connection(request->connection);
	r = td_verb_start(http->runs, order.verb, order.job, verb_is_done, request);
	if (!r)
		return MHD_YES;
	MHD_resume_connection(request->connection);
	td_text_add(&request->answer, "{\"status\":125,\"text\":");
	td_text_add_json(&request->answer, strerror(-r));
	td_text_put(&request->answer, "}", 1);
	request->is_answered = true;
	return MHD_YES;
}

/* -- requests -- */

static const char *header(struct MHD_Connection *connection, const char *name)
{
	return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static enum td_verdict judge(const struct td_http *http, struct MHD_Connection *connection,
	const char *path, const char *method, bool *ret_by_query)
{
	struct td_access access = {
		.host = header(connection, "Host"),
		.origin = header(connection, "Origin"),
		.site = header(connection, "Sec-Fetch-Site"),
		.authorization = header(connection, "Authorization"),
		.cookie = MHD_lookup_connection_value(connection, MHD_COOKIE_KIND, http->cookie),
		.query = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "token"),
		.is_page = !strcmp(path, "/"),
		.does = strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD),
	};

	*ret_by_query = access.query != NULL;
	return td_access_judge(&access, http->token);
}

static enum MHD_Result get(struct td_http *http, struct MHD_Connection *connection,
	const char *path, bool gives_cookie)
{
	const struct td_asset *asset = td_asset_find(path);

	if (asset)
		return send_asset(http, connection, asset, gives_cookie && !strcmp(path, "/"));
	if (!strcmp(path, "/metrics"))
		return send_metrics(http, connection);
	if (!strcmp(path, "/stream"))
		return send_response(connection, MHD_HTTP_OK, "text/event-stream",
			td_stream_response(http, connection));
	return send_plain(connection, MHD_HTTP_NOT_FOUND, "there is no such page\n");
}

static enum MHD_Result answer(struct request *request, const char *path, const char *method)
{
	struct td_http *http = request->http;
	bool by_query;
	enum td_verdict verdict;

	if (request->is_answered)
		return send_copy(request->connection, MHD_HTTP_OK, "application/json",
			request->answer.text, request->answer.length);
	verdict = judge(http, request->connection, path, method, &by_query);
	if (verdict != TD_ACCESS_GRANTED)
		return send_plain(
			request->connection, MHD_HTTP_FORBIDDEN, td_access_reason(verdict));
	if (!strcmp(method, MHD_HTTP_METHOD_GET) || !strcmp(method, MHD_HTTP_METHOD_HEAD))
		return get(http, request->connection, path, by_query);
	if (!strcmp(method, MHD_HTTP_METHOD_POST) && !strcmp(path, "/do"))
		return do_verb(request);
	return send_plain(
		request->connection, MHD_HTTP_METHOD_NOT_ALLOWED, "expected GET, or POST of /do\n");
}

static enum MHD_Result handle(void *arg, struct MHD_Connection *connection, const char *path,
	const char *method, const char *version, const char *data, size_t *length, void **state)
{
	struct request *request = *state;

	(void)version;
	if (!request) {
		request = calloc(1, sizeof(*request));
		if (!request)
			return MHD_NO;
		request->http = arg;
		request->connection = connection;
		*state = request;
		return MHD_YES;
	}
	if (!*length)
		return answer(request, path, method);
	if (*length > sizeof(request->body) - request->length) {
		request->is_too_long = true;
	} else {
		memcpy(request->body + request->length, data, *length);
		request->length += *length;
	}
	*length = 0;
	return MHD_YES;
}

static void request_ends(void *arg, struct MHD_Connection *connection, void **state,
	enum MHD_RequestTerminationCode why)
{
	struct request *request = *state;

	(void)arg;
	(void)connection;
	(void)why;
	if (!request)
		return;
	td_text_deinit(&request->answer);
	free(request);
	*state = NULL;
}

/* -- the server -- */

int td_http_init(struct td_http *http, int listen_fd)
{
	http->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
		handle, http, MHD_OPTION_LISTEN_SOCKET, listen_fd, MHD_OPTION_NOTIFY_COMPLETED,
		request_ends, NULL, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_BYTES,
		MHD_OPTION_CONNECTION_TIMEOUT, IDLE_S, MHD_OPTION_END);
	return http->daemon ? 0 : -errno;
}

void td_http_deinit(struct td_http *http)
{
	td_stream_wake_all(http);
	for (unsigned i = 0; i < TD_VERB_RUNS; i++)
		if (http->runs->runs[i].pid)
			verb_is_done(http->runs->runs[i].arg, 128, "the server ends");
	MHD_stop_daemon(http->daemon);
	td_text_deinit(&http->round);
	td_text_deinit(&http->state);
}

int td_http_fd(const struct td_http *http)
{
	return MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

void td_http_turn(struct td_http *http, bool is_new, uint64_t now_ns, uint64_t *ret_wakeup_ns)
{
	MHD_UNSIGNED_LONG_LONG left_ms;

	if (is_new)
		td_stream_update(http);
	(void)MHD_run(http->daemon);
	*ret_wakeup_ns = MHD_get_timeout(http->daemon, &left_ms) == MHD_YES
				 ? now_ns + left_ms * TD_NS_PER_MS
				 : UINT64_MAX;
}
