/*
 * Requests to the gateway of one of several etcd endpoints, with a login where one is set.
 */
#pragma once

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

#include "cluster/state/etcd/etcd.h"
#include "cluster/state/etcd/gateway.h"

#define TD_POST_ENDPOINTS  16u
#define TD_POST_ANSWER_MAX (64u << 20) /* bytes of an answer, or of a line of a stream */

struct td_text;

struct td_post {
	CURL *easy;                 /* of td_post_send(); its connection is kept open */
	struct curl_slist *headers; /* with the token, if there is one */
	char *endpoint[TD_POST_ENDPOINTS];
	uint32_t endpoints, current;
	uint32_t moves; /* how often current has changed */
	char *ca, *certificate, *key, *user, *password;
	bool has_token;
	bool was_connected; /* the request before the last had an answer */
	bool is_renewed;    /* the last request has opened a new connection all the same */
	uint64_t timeout_ns;
	char why[TD_GATEWAY_TEXT]; /* the last failure */
};

int td_post_init(struct td_post *post, const struct td_etcd_options *options, struct td_err *err);
void td_post_deinit(struct td_post *post);

/*
 * Sends a request and waits for its answer. Returns 0 with an answer that the caller frees, or
 * AWAY, UNSURE (if is_write), DENIED, NO_LEASE, COMPACTED, BROKEN, -ENOMEM, -EMSGSIZE: an answer of
 * more than TD_POST_ANSWER_MAX.
 */
int td_post_send(struct td_post *post, const char *path, const struct td_text *body, bool is_write,
	struct td_gateway_answer *ret);

/*
 * A handle for a request whose answer has no end, at the present endpoint. The caller sets where
 * its bytes go, and frees it and then its headers; body must live as long. Logs in first where it
 * must, which may wait for the time-out. Returns 0, AWAY, DENIED, BROKEN, -ENOMEM.
 */
int td_post_stream(struct td_post *post, const char *path, const struct td_text *body,
	CURL **ret_easy, struct curl_slist **ret_headers);
/* Goes to the next endpoint, if the present one is that of this number of moves. */
void td_post_move(struct td_post *post, uint32_t moves);
/* The token is valid no longer: the next request logs in. */
void td_post_log_out(struct td_post *post);
