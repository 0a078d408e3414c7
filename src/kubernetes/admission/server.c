/* This file implements server.h. */
#include "kubernetes/admission/server.h"

#include <errno.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "base/time.h"

#define HEADER_BYTES (32 * 1024)

/* One request. It exists from its headers to the end of its answer. */
struct request {
	struct td_server *server;
	struct td_text body;
	uint64_t deadline_ns;
	unsigned refused; /* the status of a request whose body is not taken; 0: it is */
};

/* GnuTLS passes nothing along to the function that finds the certificate. */
static struct td_certificate *certificate_in_use;

static int find_certificate(gnutls_session_t session, const gnutls_datum_t *authorities,
	int authority_count, const gnutls_pk_algorithm_t *algorithms, int algorithm_count,
	gnutls_pcert_st **ret_chain, unsigned *ret_count, gnutls_privkey_t *ret_key)
{
	struct td_pair *pair = certificate_in_use->pairs;

	(void)session;
	(void)authorities;
	(void)authority_count;
	(void)algorithms;
	(void)algorithm_count;
	*ret_chain = pair->chain;
	*ret_count = pair->count;
	*ret_key = pair->key;
	return 0;
}

/* -- answers -- */

static enum MHD_Result send_text(struct MHD_Connection *connection, unsigned status,
	const char *type, const char *text, size_t length)
{
	struct MHD_Response *response =
		MHD_create_response_from_buffer(length, (void *)text, MHD_RESPMEM_MUST_COPY);
	enum MHD_Result r;

	if (!response)
		return MHD_NO;
	(void)MHD_add_response_header(response, "Content-Type", type);
	r = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return r;
}

static enum MHD_Result send_line(
	struct MHD_Connection *connection, unsigned status, const char *line)
{
	return send_text(connection, status, "text/plain; charset=utf-8", line, strlen(line));
}

static enum MHD_Result send_metrics(
	const struct td_server *server, struct MHD_Connection *connection)
{
	static const char *verdicts[TD_ADMISSION_N] = {"unchanged", "changed", "refused"};
	struct td_text text = {0};
	enum MHD_Result r;

	td_text_add(&text, "# HELP tandem_admission_reviews_total Pods that were judged, and how.\n"
			   "# TYPE tandem_admission_reviews_total counter\n");
	for (unsigned v = 0; v < TD_ADMISSION_N; v++)
		td_text_add(&text, "tandem_admission_reviews_total{verdict=\"%s\"} %" PRIu64 "\n",
			verdicts[v], server->count[v]);
	td_text_add(&text, "tandem_admission_reviews_total{verdict=\"unreadable\"} %" PRIu64 "\n",
		server->unreadable_count);
	r = text.failed ? send_line(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "no memory\n")
			: send_text(connection, MHD_HTTP_OK, "text/plain; version=0.0.4", text.text,
				  text.length);
	td_text_deinit(&text);
	return r;
}

/* -- reviews -- */

static void log_review(struct td_server *server, const struct td_review *review)
{
	server->count[review->verdict]++;
	if (server->quiet || review->verdict == TD_ADMISSION_UNCHANGED)
		return;
	if (review->verdict == TD_ADMISSION_REFUSED)
		td_log(TD_LOG_INFO, "pod=%s refused: %s", review->pod, review->reason);
	else
		td_log(TD_LOG_INFO, "pod=%s changed", review->pod);
}

static enum MHD_Result review(struct request *request, struct MHD_Connection *connection)
{
	struct td_server *server = request->server;
	struct td_review done = {0};
	struct td_text text = {0};
	struct td_err err = {0};
	char line[TD_ERR_MSG_MAX + 2];
	enum MHD_Result r;
	int e = td_review_answer(&server->options, request->body.text ? request->body.text : "",
		request->body.length, &text, &done, &err);

	if (!e) {
		log_review(server, &done);
		r = send_text(connection, MHD_HTTP_OK, "application/json", text.text, text.length);
	} else if (e == -ENOMEM) {
		r = send_line(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory\n");
	} else {
		server->unreadable_count++;
		snprintf(line, sizeof(line), "%s\n", err.msg);
		r = send_line(connection, MHD_HTTP_BAD_REQUEST, line);
	}
	td_text_deinit(&text);
	return r;
}

/* -- requests -- */

static enum MHD_Result answer(
	struct request *request, struct MHD_Connection *connection, const char *path, bool gets)
{
	if (request->refused == MHD_HTTP_CONTENT_TOO_LARGE)
		return send_line(connection, request->refused, "expected at most 24 MiB\n");
	if (request->refused)
		return send_line(connection, request->refused, "no memory\n");
	if (gets && !strcmp(path, "/healthz"))
		return send_line(connection, MHD_HTTP_OK, "ok\n");
	if (gets && !strcmp(path, "/metrics"))
		return send_metrics(request->server, connection);
	if (!gets && !strcmp(path, "/pods"))
		return review(request, connection);
	return send_line(connection, MHD_HTTP_NOT_FOUND,
		"expected POST of /pods, or GET of /healthz or /metrics\n");
}

/* A body that is not taken is read to its end all the same, so that its sender sees the answer. */
static void take_body(struct request *request, const char *data, size_t length)
{
	struct td_server *server = request->server;

	if (request->refused)
		return;
	if (length > TD_SERVER_BODY_MAX - request->body.length)
		request->refused = MHD_HTTP_CONTENT_TOO_LARGE;
	else if (length > TD_SERVER_BODIES_MAX - server->bodies_bytes)
		request->refused = MHD_HTTP_SERVICE_UNAVAILABLE;
	else
		td_text_put(&request->body, data, length);
	if (request->body.failed)
		request->refused = MHD_HTTP_SERVICE_UNAVAILABLE;
	if (request->refused) {
		server->bodies_bytes -= request->body.length;
		td_text_deinit(&request->body);
		return;
	}
	server->bodies_bytes += length;
}

static enum MHD_Result handle(void *arg, struct MHD_Connection *connection, const char *path,
	const char *method, const char *version, const char *data, size_t *length, void **state)
{
	struct request *request = *state;
	bool gets = !strcmp(method, MHD_HTTP_METHOD_GET);

	(void)version;
	if (!request) {
		if (!gets && strcmp(method, MHD_HTTP_METHOD_POST))
			return send_line(
				connection, MHD_HTTP_METHOD_NOT_ALLOWED, "expected GET or POST\n");
		request = calloc(1, sizeof(*request));
		if (!request)
			return MHD_NO;
		request->server = arg;
		request->deadline_ns = td_time_now_ns() + TD_SERVER_REQUEST_NS;
		*state = request;
		return MHD_YES;
	}
	if (td_time_now_ns() > request->deadline_ns)
		return MHD_NO;
	if (!*length)
		return answer(request, connection, path, gets);
	take_body(request, data, *length);
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
	request->server->bodies_bytes -= request->body.length;
	td_text_deinit(&request->body);
	free(request);
	*state = NULL;
}

/* -- the server -- */

int td_server_init(struct td_server *server, int listen_fd)
{
	certificate_in_use = server->certificate;
	server->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_TLS, 0, NULL, NULL, handle,
		server, MHD_OPTION_LISTEN_SOCKET, listen_fd, MHD_OPTION_HTTPS_CERT_CALLBACK,
		find_certificate, MHD_OPTION_HTTPS_PRIORITIES,
		"NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2", MHD_OPTION_NOTIFY_COMPLETED,
		request_ends, NULL, MHD_OPTION_CONNECTION_LIMIT, TD_SERVER_CONNECTIONS,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_BYTES,
		MHD_OPTION_CONNECTION_TIMEOUT, TD_SERVER_IDLE_S, MHD_OPTION_END);
	return server->daemon ? 0 : errno ? -errno : -EINVAL;
}

void td_server_deinit(struct td_server *server)
{
	MHD_stop_daemon(server->daemon);
	certificate_in_use = NULL;
}

int td_server_fd(const struct td_server *server)
{
	return MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

uint64_t td_server_turn(struct td_server *server, uint64_t now_ns)
{
	MHD_UNSIGNED_LONG_LONG left_ms;

	(void)MHD_run(server->daemon);
	return MHD_get_timeout(server->daemon, &left_ms) == MHD_YES
		       ? now_ns + left_ms * TD_NS_PER_MS
		       : UINT64_MAX;
}
