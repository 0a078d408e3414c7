/*
 * Requests to an API server of Kubernetes over libcurl, with the service account's token, which is
 * read again for each request because it changes every hour or so.
 */
#pragma once

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

struct td_err;
struct td_kube_api;

#define TD_KUBE_PATH 2048u

struct td_kube_account {
	const char *server, *token_file, *ca_file; /* NULL: none */
	uint32_t timeout_ms;                       /* of a request; 0: 5 s */
};

/* The texts must live as long. */
int td_kube_api_open(
	const struct td_kube_account *account, struct td_kube_api **ret, struct td_err *err);
void td_kube_api_free(struct td_kube_api *api);

/*
 * Sends a request and waits for its answer, for at most the account's time-out. body NULL: none.
 * type: of the body, such as "application/json". The caller frees the answer's text. Returns the
 * HTTP status, 200 to 599; or -EAGAIN: no answer came, and td_kube_api_why() says why; or -ENOMEM.
 */
int td_kube_api_send(struct td_kube_api *api, const char *method, const char *path,
	const struct td_text *body, const char *type, struct td_text *ret_answer);
/* Details of the last request that had no answer or was refused; "": none. */
const char *td_kube_api_why(const struct td_kube_api *api);
/* Notes a refusal in td_kube_api_why(), as "404 pods "x" not found". */
void td_kube_api_refused(struct td_kube_api *api, int status, const struct td_text *answer);

/* A request whose answer has no end. */
struct td_kube_stream {
	void *arg;
	/* Takes bytes, which end anywhere. Returns false if the stream is of no use any more. */
	bool (*take)(void *arg, const char *bytes, size_t length);
	/* The stream is over, with its status; 0: none came. It is closed already. */
	void (*ended)(void *arg, int status);
	struct td_kube_api *api;
	CURL *easy; /* NULL: it is closed */
	struct curl_slist *headers;
};

/* Begins to read path. Returns 0, or -errno. */
int td_kube_stream_open(struct td_kube_stream *stream, struct td_kube_api *api, const char *path);
void td_kube_stream_close(struct td_kube_stream *stream);

/* Waits for the streams or one of the descriptors, for at most timeout_ms, and reads streams. */
void td_kube_api_wait(struct td_kube_api *api, int signals, int timeout_ms, bool *ret_is_signal);
