/* This file implements api.h. */
#include "kubernetes/sched/api.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "kubernetes/sched/read.h"

#define TIMEOUT_MS 5000u
#define IDLE_S     20L
#define ANSWER_MAX (256u << 20) /* bytes */
#define TOKEN_MAX  16384u
#define URL_MAX    (TD_KUBE_PATH + 512u)

struct td_kube_api {
	struct td_kube_account account;
	CURL *easy; /* of td_kube_api_send(); its connection is kept open */
	CURLM *multi;
	char why[512];
};

/* --- handles --- */

static int check_server(const char *url, struct td_err *err)
{
	const char *host = strstr(url, "//");

	if ((strncmp(url, "https://", 8) && strncmp(url, "http://", 7)) || !host[2] ||
		strlen(url) > 256 || strpbrk(host + 2, "/@?# \t\r\n\""))
		return td_err_set(err, -EINVAL,
			"--server: \"%.200s\" is not valid: expected http:// or https:// with a "
			"host and a port, such as https://10.96.0.1:443",
			url);
	return 0;
}

static int check_file(const char *option, const char *path, struct td_err *err)
{
	if (path && access(path, R_OK))
		return td_err_set(err, -errno, "--%s: %.200s: %s", option, path, strerror(errno));
	return 0;
}

/* A machine that is gone without a word is noticed within a minute. */
static CURL *new_easy(const struct td_kube_api *api)
{
	CURL *easy = curl_easy_init();

	if (!easy)
		return NULL;
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_PROXY, "");
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)api->account.timeout_ms);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, IDLE_S);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, IDLE_S / 2);
	if (api->account.ca_file)
		curl_easy_setopt(easy, CURLOPT_CAINFO, api->account.ca_file);
	return easy;
}

int td_kube_api_open(
	const struct td_kube_account *account, struct td_kube_api **ret, struct td_err *err)
{
	struct td_kube_api *api;
	int r = check_server(account->server, err);

	r = r ? r : check_file("token-file", account->token_file, err);
	r = r ? r : check_file("ca-file", account->ca_file, err);
	if (r)
		return r;
	api = calloc(1, sizeof(*api));
	if (!api || curl_global_init(CURL_GLOBAL_DEFAULT)) {
		free(api);
		return td_err_set(err, -ENOMEM, "no memory");
	}
	api->account = *account;
	if (!api->account.timeout_ms)
		api->account.timeout_ms = TIMEOUT_MS;
	api->easy = new_easy(api);
	api->multi = curl_multi_init();
	if (!api->easy || !api->multi) {
		td_kube_api_free(api);
		return td_err_set(err, -ENOMEM, "no memory");
	}
	*ret = api;
	return 0;
}

void td_kube_api_free(struct td_kube_api *api)
{
	if (!api)
		return;
	curl_easy_cleanup(api->easy);
	curl_multi_cleanup(api->multi);
	free(api);
	curl_global_cleanup();
}

const char *td_kube_api_why(const struct td_kube_api *api)
{
	return api->why;
}

/* --- headers --- */

static int append(struct curl_slist **headers, const char *line)
{
	struct curl_slist *longer = curl_slist_append(*headers, line);

	if (!longer)
		return -ENOMEM;
	*headers = longer;
	return 0;
}

/* Reads the token. Without a file, or while it cannot be read, the server refuses in its words. */
static int add_token(const struct td_kube_api *api, struct curl_slist **headers)
{
	char line[TOKEN_MAX + 32] = "Authorization: Bearer ";
	size_t used = strlen(line);
	td_auto_close int fd = -1;
	ssize_t n;
	int r = 0;

	if (!api->account.token_file)
		return 0;
	fd = open(api->account.token_file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	n = fd < 0 ? 0 : read(fd, line + used, TOKEN_MAX);
	line[used + (size_t)(n > 0 ? n : 0)] = 0;
	line[used + strcspn(line + used, " \t\r\n")] = 0;
	if (line[used])
		r = append(headers, line);
	explicit_bzero(line, sizeof(line));
	return r;
}

static int make_headers(
	const struct td_kube_api *api, const char *type, struct curl_slist **ret_headers)
{
	struct curl_slist *headers = NULL;
	char line[128];
	int r = append(&headers, "Accept: application/json");

	snprintf(line, sizeof(line), "Content-Type: %s", type ? type : "");
	r = r ? r : append(&headers, "Expect:");
	r = r ? r : append(&headers, "User-Agent: tandem-kube-sched/" TANDEM_VERSION);
	if (!r && type)
		r = append(&headers, line);
	r = r ? r : add_token(api, &headers);
	if (r) {
		curl_slist_free_all(headers);
		return r;
	}
	*ret_headers = headers;
	return 0;
}

static void set_url(const struct td_kube_api *api, CURL *easy, const char *path)
{
	char url[URL_MAX];

	snprintf(url, sizeof(url), "%.256s%.2047s", api->account.server, path);
	curl_easy_setopt(easy, CURLOPT_URL, url);
}

/* --- one request --- */

static size_t take_answer(char *bytes, size_t size, size_t count, void *arg)
{
	struct td_text *answer = arg;

	if (answer->length + count > ANSWER_MAX)
		return 0;
	td_text_put(answer, bytes, size * count);
	return answer->failed ? 0 : count;
}

static int perform(struct td_kube_api *api, const char *path)
{
	char error[CURL_ERROR_SIZE] = "";
	long status = 0;
	CURLcode code;

	set_url(api, api->easy, path);
	curl_easy_setopt(api->easy, CURLOPT_ERRORBUFFER, error);
	code = curl_easy_perform(api->easy);
	curl_easy_setopt(api->easy, CURLOPT_ERRORBUFFER, NULL);
	curl_easy_getinfo(api->easy, CURLINFO_RESPONSE_CODE, &status);
	if (!code && status >= 200 && status < 600)
		return (int)status;
	snprintf(api->why, sizeof(api->why), "%.200s: %.200s", api->account.server,
		*error ? error : curl_easy_strerror(code));
	(void)td_printable(api->why);
	return -EAGAIN;
}

int td_kube_api_send(struct td_kube_api *api, const char *method, const char *path,
	const struct td_text *body, const char *type, struct td_text *ret_answer)
{
	struct curl_slist *headers = NULL;
	int r = body && body->failed ? -ENOMEM : make_headers(api, body ? type : NULL, &headers);

	if (r)
		return r;
	td_text_clear(ret_answer);
	curl_easy_setopt(api->easy, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(api->easy, CURLOPT_TIMEOUT_MS, (long)api->account.timeout_ms);
	curl_easy_setopt(api->easy, CURLOPT_WRITEFUNCTION, take_answer);
	curl_easy_setopt(api->easy, CURLOPT_WRITEDATA, ret_answer);
	if (body) {
		curl_easy_setopt(api->easy, CURLOPT_POSTFIELDSIZE, (long)body->length);
		curl_easy_setopt(api->easy, CURLOPT_POSTFIELDS, body->text);
	} else {
		curl_easy_setopt(api->easy, CURLOPT_HTTPGET, 1L);
	}
	curl_easy_setopt(api->easy, CURLOPT_CUSTOMREQUEST, method);
	r = perform(api, path);
	curl_easy_setopt(api->easy, CURLOPT_HTTPHEADER, NULL);
	curl_slist_free_all(headers);
	return r;
}

void td_kube_api_refused(struct td_kube_api *api, int status, const struct td_text *answer)
{
	char message[400] = "";

	if (status < 0)
		return; /* td_kube_api_send() has said why */
	if (answer->length)
		td_kube_message(answer->text, answer->length, message, sizeof(message));
	snprintf(api->why, sizeof(api->why), "%d %s", status, message);
}

/* --- streams --- */

static size_t take_stream(char *bytes, size_t size, size_t count, void *arg)
{
	struct td_kube_stream *stream = arg;

	return stream->take(stream->arg, bytes, size * count) ? count : 0;
}

int td_kube_stream_open(struct td_kube_stream *stream, struct td_kube_api *api, const char *path)
{
	int r;

	stream->api = api;
	r = make_headers(api, NULL, &stream->headers);
	if (r)
		return r;
	stream->easy = new_easy(api);
	if (!stream->easy) {
		td_kube_stream_close(stream);
		return -ENOMEM;
	}
	set_url(api, stream->easy, path);
	curl_easy_setopt(stream->easy, CURLOPT_HTTPHEADER, stream->headers);
	curl_easy_setopt(stream->easy, CURLOPT_WRITEFUNCTION, take_stream);
	curl_easy_setopt(stream->easy, CURLOPT_WRITEDATA, stream);
	curl_easy_setopt(stream->easy, CURLOPT_PRIVATE, stream);
	if (curl_multi_add_handle(api->multi, stream->easy)) {
		td_kube_stream_close(stream);
		return -ENOMEM;
	}
	return 0;
}

void td_kube_stream_close(struct td_kube_stream *stream)
{
	if (stream->easy) {
		curl_multi_remove_handle(stream->api->multi, stream->easy);
		curl_easy_cleanup(stream->easy);
	}
	curl_slist_free_all(stream->headers);
	stream->easy = NULL;
	stream->headers = NULL;
}

static void end_streams(struct td_kube_api *api)
{
	const CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(api->multi, &left))) {
		struct td_kube_stream *stream;
		char *private = NULL;
		long status = 0;

		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private);
		curl_easy_getinfo(message->easy_handle, CURLINFO_RESPONSE_CODE, &status);
		stream = (struct td_kube_stream *)(void *)private;
		td_kube_stream_close(stream);
		stream->ended(stream->arg, (int)status);
	}
}

void td_kube_api_wait(struct td_kube_api *api, int signals, int timeout_ms, bool *ret_is_signal)
{
	struct curl_waitfd extra = {.fd = signals, .events = CURL_WAIT_POLLIN};
	int running;

	(void)curl_multi_poll(api->multi, &extra, 1, timeout_ms, NULL);
	*ret_is_signal = extra.revents != 0;
	(void)curl_multi_perform(api->multi, &running);
	end_streams(api);
}
