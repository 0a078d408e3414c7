/* One watch of a state in etcd: a stream that is begun again wherever it ended. */
#pragma once

#include <curl/curl.h>

#include "base/list.h"
#include "base/text.h"
#include "cluster/state/kind.h"
#include "cluster/state/etcd/post.h"

struct td_etcd_watch {
	struct td_state_watch base; /* what the user holds */
	struct td_list link;
	struct td_post *post;
	CURLM *multi;
	CURL *easy; /* NULL: there is no stream */
	struct curl_slist *headers;
	char *prefix;
	struct td_text body; /* of the request */
	struct td_text line; /* what came of a line that has not ended */
	struct td_state_event *queue;
	size_t first, count, room;   /* of the queue: the first event that was not taken */
	size_t bytes;                /* of the values in the queue */
	struct td_state_event taken; /* the event that the user has; its key NULL: none */
	uint64_t next;               /* the first revision that did not come */
	uint64_t begun_ns;           /* of the stream */
	uint64_t retry_ns, pause_ns; /* when to begin again, and how long the last pause was */
	uint32_t moves;              /* of the post when the stream began */
	bool is_created, is_paused, was_denied;
	int end; /* the result at which it is for good; 0: none */
};

struct td_etcd_watch *td_etcd_watch_new(
	struct td_post *post, CURLM *multi, const char *prefix, uint64_t from);
void td_etcd_watch_free(struct td_etcd_watch *watch);

/* Begins a stream where it is time to. Returns when to call it again at the latest. */
uint64_t td_etcd_watch_turn(struct td_etcd_watch *watch, uint64_t now_ns);
/* The stream of this handle of libcurl has ended. */
void td_etcd_watch_ended(struct td_etcd_watch *watch, CURLcode code, uint64_t now_ns);
int td_etcd_watch_next(struct td_etcd_watch *watch, struct td_state_event *ret);
