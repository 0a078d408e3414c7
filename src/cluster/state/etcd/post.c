/* This file implements post.h. */
#include "cluster/state/etcd/post.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bounds.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/text.h"
#include "base/time.h"

#define TIMEOUT_NS (3 * TD_NS_PER_S)
#define URL_MAX    512u
#define LOGIN_PATH "/v3/auth/authenticate"

/* -- options -- */

static bool is_loopback(const char *host)
{
	static const char *const name[] = {"127.0.0.1", "localhost", "[::1]"};

	for (size_t i = 0; i < sizeof(name) / sizeof(*name); i++) {
		size_t length = strlen(name[i]);

		if (!strncmp(host, name[i], length) && (!host[length] || host[length] == ':'))
			return true;
	}
	return false;
}

static int check_endpoint(const char *url, bool has_login, struct td_err *err)
{
	bool is_tls = !strncmp(url, "https://", 8), is_plain = !strncmp(url, "http://", 7);
	const char *host = strstr(url, "//");

	if ((!is_tls && !is_plain) || !host[2] || strlen(url) > URL_MAX / 2 ||
		strpbrk(host + 2, "/@?# \t\r\n\""))
		return td_err_set(err, -EINVAL,
			"endpoint \"%s\" is not valid: expected http:// or https:// with a host "
			"and a port, such as https://etcd1:2379",
			url);
	if (has_login && is_plain && !is_loopback(host + 2))
		return td_err_set(err, -EINVAL,
			"endpoint \"%s\" would send the password unencrypted: use https", url);
	return 0;
}

static int take_endpoints(
	struct td_post *post, const struct td_etcd_options *options, struct td_err *err)
{
	const char *at = options->endpoints ? options->endpoints : "";

	do {
		size_t length = strcspn(at, ",");
		int r;

		if (post->endpoints == TD_POST_ENDPOINTS)
			return td_err_set(
				err, -EINVAL, "more than %u endpoints", TD_POST_ENDPOINTS);
		post->endpoint[post->endpoints] = strndup(at, length);
		if (!post->endpoint[post->endpoints])
			return td_err_set(err, -ENOMEM, "out of memory");
		r = check_endpoint(post->endpoint[post->endpoints++], options->user, err);
		if (r)
			return r;
		at += length;
	} while (*at++);
	return 0;
}

static int take_text(char **to, const char *from, struct td_err *err)
{
	if (!from)
		return 0;
	*to = strdup(from);
	return *to ? 0 : td_err_set(err, -ENOMEM, "out of memory");
}

static int take_file(char **to, const char *from, struct td_err *err)
{
	if (from && access(from, R_OK))
		return td_err_set(err, -EINVAL, "%s: %s", from, strerror(errno));
	return take_text(to, from, err);
}

static int take_options(
	struct td_post *post, const struct td_etcd_options *options, struct td_err *err)
{
	int r;

	if (!options->user != !options->password)
		return td_err_set(err, -EINVAL, "a user needs a password, and a password a user");
	if (!options->certificate != !options->key)
		return td_err_set(err, -EINVAL,
			"a certificate needs its key, and a key its "
			"certificate");
	r = take_endpoints(post, options, err);
	if (!r)
		r = take_file(&post->ca, options->ca, err);
	if (!r)
		r = take_file(&post->certificate, options->certificate, err);
	if (!r)
		r = take_file(&post->key, options->key, err);
	if (!r)
		r = take_text(&post->user, options->user, err);
	if (!r)
		r = take_text(&post->password, options->password, err);
	post->timeout_ns = options->timeout_ns ? options->timeout_ns : TIMEOUT_NS;
	return r;
}

/* -- handles of libcurl -- */

/* A machine that is gone without a word is noticed within 20 s. */
static int set_socket(void *arg, curl_socket_t fd, curlsocktype purpose)
{
	const int on = 1, idle_s = 10, interval_s = 3, count = 3, timeout_ms = 20000;

	(void)arg;
	(void)purpose;
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof(timeout_ms));
	return CURL_SOCKOPT_OK;
}

static CURL *new_easy(const struct td_post *post)
{
	CURL *easy = curl_easy_init();

	if (!easy)
		return NULL;
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_PROXY, "");
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(easy, CURLOPT_POST, 1L);
	curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, set_socket);
	if (post->ca)
		curl_easy_setopt(easy, CURLOPT_CAINFO, post->ca);
	if (post->certificate) {
		curl_easy_setopt(easy, CURLOPT_SSLCERT, post->certificate);
		curl_easy_setopt(easy, CURLOPT_SSLKEY, post->key);
	}
	return easy;
}

static int append(struct curl_slist **headers, const char *line)
{
	struct curl_slist *longer = curl_slist_append(*headers, line);

	if (!longer)
		return -ENOMEM;
	*headers = longer;
	return 0;
}

static int copy_headers(const struct curl_slist *from, struct curl_slist **ret)
{
	struct curl_slist *copy = NULL;

	for (; from; from = from->next)
		if (append(&copy, from->data)) {
			curl_slist_free_all(copy);
			return -ENOMEM;
		}
	*ret = copy;
	return 0;
}

/* Makes the headers of all requests. The token is NULL or that of a login. */
static int set_headers(struct td_post *post, const char *token)
{
	struct curl_slist *headers = NULL;
	struct td_text text = {0};
	int r = append(&headers, "Content-Type: application/json");

	if (!r)
		r = append(&headers, "Expect:");
	if (!r) /* a server that has lost the others ends its watches */
		r = append(&headers, "Grpc-Metadata-hasleader: true");
	td_text_add(&text, "Authorization: %s", token ? token : "");
	if (!r && token)
		r = text.failed ? -ENOMEM : append(&headers, text.text);
	td_text_deinit(&text);
	if (r) {
		curl_slist_free_all(headers);
		return r;
	}
	curl_easy_setopt(post->easy, CURLOPT_HTTPHEADER, headers);
	curl_slist_free_all(post->headers);
	post->headers = headers;
	post->has_token = token;
	return 0;
}

int td_post_init(struct td_post *post, const struct td_etcd_options *options, struct td_err *err)
{
	int r;

	*post = (struct td_post){0};
	r = take_options(post, options, err);
	if (!r) {
		post->easy = new_easy(post);
		r = post->easy ? set_headers(post, NULL) : -ENOMEM;
		if (r)
			(void)td_err_set(err, r, "out of memory");
	}
	if (r)
		td_post_deinit(post);
	return r;
}

void td_post_deinit(struct td_post *post)
{
	for (uint32_t i = 0; i < post->endpoints; i++)
		free(post->endpoint[i]);
	curl_easy_cleanup(post->easy);
	curl_slist_free_all(post->headers);
	free(post->ca);
	free(post->certificate);
	free(post->key);
	free(post->user);
	if (post->password)
		explicit_bzero(post->password, strlen(post->password));
	free(post->password);
	*post = (struct td_post){0};
}

/* -- one request -- */

static size_t take_bytes(char *bytes, size_t size, size_t count, void *arg)
{
	struct td_text *answer = arg;

	if (answer->length + count > TD_POST_ANSWER_MAX)
		return 0;
	td_text_put(answer, bytes, size * count);
	return answer->failed ? 0 : count;
}

static void set_url(const struct td_post *post, CURL *easy, const char *path)
{
	char url[URL_MAX];

	snprintf(url, sizeof(url), "%s%s", post->endpoint[post->current], path);
	curl_easy_setopt(easy, CURLOPT_URL, url);
}

static long in_ms(uint64_t time_ns)
{
	return (long)td_max_u64(time_ns / TD_NS_PER_MS, 1);
}

/* Returns 0, or AWAY (it was not sent), UNSURE (it was), -EMSGSIZE, -ENOMEM. */
static int perform(struct td_post *post, const char *path, const struct td_text *body,
	uint64_t timeout_ns, struct td_text *answer)
{
	char error[CURL_ERROR_SIZE] = "";
	CURL *easy = post->easy;
	long sent = 0, connects = 0;
	CURLcode code;

	set_url(post, easy, path);
	curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body->text);
	curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)body->length);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, in_ms(timeout_ns));
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_bytes);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, answer);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, error);
	code = curl_easy_perform(easy);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, NULL);
	curl_easy_getinfo(easy, CURLINFO_REQUEST_SIZE, &sent);
	curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &connects);
	post->is_renewed = post->was_connected && connects;
	post->was_connected = !code;
	if (!code)
		return 0;
	snprintf(post->why, sizeof(post->why), "%.120s: %.120s", post->endpoint[post->current],
		*error ? error : curl_easy_strerror(code));
	if (code == CURLE_WRITE_ERROR)
		return answer->failed ? -ENOMEM : -EMSGSIZE;
	return sent ? TD_STATE_UNSURE : TD_STATE_AWAY;
}

/* An answer that is no answer of etcd's: a refusal in plain text, or anything else. */
static int refuse(struct td_post *post, const struct td_text *text, bool is_write)
{
	long status = 0;

	curl_easy_getinfo(post->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status < 400 || status > 403) {
		snprintf(post->why, sizeof(post->why), "%.200s: the answer is not understood",
			post->endpoint[post->current]);
		return is_write ? TD_STATE_UNSURE : TD_STATE_BROKEN;
	}
	snprintf(post->why, sizeof(post->why), "%.200s", text->text ? text->text : "");
	post->why[strcspn(post->why, "\r\n")] = 0;
	(void)td_printable(post->why);
	return TD_STATE_DENIED;
}

/* Sends it to the present endpoint and reads the answer. */
static int ask(struct td_post *post, const char *path, const struct td_text *body, bool is_write,
	uint64_t timeout_ns, struct td_gateway_answer *ret)
{
	struct td_text text = {0};
	int r = perform(post, path, body, timeout_ns, &text);

	if (r == TD_STATE_UNSURE && !is_write)
		r = TD_STATE_AWAY;
	if (r < 0 && is_write)
		r = TD_STATE_UNSURE;
	if (!r)
		r = td_gateway_parse(text.text ? text.text : "", text.length, ret);
	if (r == TD_STATE_BROKEN)
		r = refuse(post, &text, is_write);
	td_text_deinit(&text);
	if (r)
		return r;
	r = td_gateway_result(ret, is_write);
	if (r) {
		snprintf(post->why, sizeof(post->why), "%s", ret->text);
		td_gateway_answer_deinit(ret);
	}
	return r;
}

void td_post_move(struct td_post *post, uint32_t moves)
{
	if (post->endpoints < 2 || post->moves != moves)
		return;
	post->current = (post->current + 1) % post->endpoints;
	post->moves++;
	post->was_connected = false;
}

void td_post_log_out(struct td_post *post)
{
	(void)set_headers(post, NULL);
}

static int log_in(struct td_post *post, uint64_t timeout_ns)
{
	struct td_gateway_answer answer;
	struct td_text body = {0};
	int r;

	if (!post->user || post->has_token)
		return 0;
	td_gateway_login(&body, post->user, post->password);
	r = body.failed ? -ENOMEM : ask(post, LOGIN_PATH, &body, false, timeout_ns, &answer);
	if (body.text)
		explicit_bzero(body.text, body.length);
	td_text_deinit(&body);
	if (r)
		return r;
	r = answer.token ? set_headers(post, answer.token) : TD_STATE_BROKEN;
	td_gateway_answer_deinit(&answer);
	return r;
}

int td_post_send(struct td_post *post, const char *path, const struct td_text *body, bool is_write,
	struct td_gateway_answer *ret)
{
	uint64_t end_ns = td_time_now_ns() + post->timeout_ns;
	int r = body->failed ? -ENOMEM : TD_STATE_AWAY;
	bool was_denied = false;

	for (uint32_t i = 0; r == TD_STATE_AWAY && i < post->endpoints; i++) {
		uint64_t left_ns = td_sub_sat(end_ns, td_time_now_ns());
		/* An endpoint that hangs must leave time for the others. */
		uint64_t part_ns = left_ns / (post->endpoints - i);
		bool had_token = post->has_token;
		uint32_t moves = post->moves;

		if (!left_ns)
			break;
		curl_easy_setopt(post->easy, CURLOPT_CONNECTTIMEOUT_MS, in_ms(part_ns));
		r = log_in(post, part_ns);
		if (!r)
			r = ask(post, path, body, is_write, is_write ? left_ns : part_ns, ret);
		if (r == TD_STATE_DENIED && had_token && !was_denied) {
			/* Tokens end, with a restart of etcd too. It logs in once more. */
			was_denied = true;
			td_post_log_out(post);
			r = TD_STATE_AWAY;
			i--;
		} else if (r == TD_STATE_AWAY || r == TD_STATE_UNSURE) {
			td_post_move(post, moves);
		}
	}
	return r;
}

int td_post_stream(struct td_post *post, const char *path, const struct td_text *body,
	CURL **ret_easy, struct curl_slist **ret_headers)
{
	struct curl_slist *headers = NULL;
	int r = body->failed ? -ENOMEM : log_in(post, post->timeout_ns);
	CURL *easy;

	if (!r)
		r = copy_headers(post->headers, &headers);
	if (r)
		return r;
	easy = new_easy(post);
	if (!easy) {
		curl_slist_free_all(headers);
		return -ENOMEM;
	}
	set_url(post, easy, path);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body->text);
	curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)body->length);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, in_ms(post->timeout_ns));
	*ret_easy = easy;
	*ret_headers = headers;
	return 0;
}
