/*
 * The HTTP server of tandem-web, on libmicrohttpd without threads: the caller's loop polls one
 * descriptor. access.h decides who may ask.
 *
 *   GET  /          the page; with ?token= it gets a cookie
 *   GET  /NAME      its parts (assets.def)
 *   GET  /stream    server-sent events: hello, state, events, round
 *   GET  /metrics   the text format of Prometheus
 *   POST /do        {"verb": "pause", "job": "17.abc"}: {"status": 0, "text": "what it printed"}
 *
 * A page that reads slowly gets the newest round after it has read the one before. So it gets fewer
 * rounds, and delays no other page.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "web/access.h"
#include "web/feed.h"
#include "web/verbs.h"

struct MHD_Daemon;

struct td_http {
	struct MHD_Daemon *daemon;
	struct td_feed *feed;
	struct td_verb_runs *runs;
	char host[64];
	char token[TD_TOKEN_TEXT];
	char cookie[24];             /* the name of the cookie, different for each server */
	struct td_http_page *pages;  /* the pages that read the stream */
	struct td_text round, state; /* the messages that pages get */
	/* how many rounds and states there have been when they were made */
	uint64_t round_of, state_of;
};

/*
 * Serves at a listening socket, which it owns from now on. The caller has set feed, runs, host,
 * token and cookie, which must live longer. Returns 0 or -errno.
 */
int td_http_init(struct td_http *http, int listen_fd);
void td_http_deinit(struct td_http *http);

/* Returns the descriptor to poll for reading. */
int td_http_fd(const struct td_http *http);
/*
 * Serves the requests that have come. is_new: the feed has something new. *ret_wakeup_ns is when to
 * call it again at the latest.
 */
void td_http_turn(struct td_http *http, bool is_new, uint64_t now_ns, uint64_t *ret_wakeup_ns);
