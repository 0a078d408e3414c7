/*
 * The HTTP side of tandem-web, on libmicrohttpd without threads: the caller's loop polls one
 * descriptor. Who may ask: access.h.
 *
 *   GET  /          the page; with ?token= it gets a cookie
 *   GET  /NAME      its parts (assets.def)
 *   GET  /stream    server-sent events: hello, state, events, round
 *   GET  /metrics   the text format of Prometheus
 *   POST /do        {"verb": "pause", "job": "17.abc"}: {"status": 0, "text": "what it printed"}
 *
 * A page that reads slowly gets the newest round when it has read the one before: fewer rounds, and
 * nobody waits for it.
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
	char cookie[24];             /* its name: of each server another one */
	struct td_http_page *pages;  /* that read the stream */
	struct td_text round, state; /* as pages get them */
	uint64_t round_of, state_of; /* numbers of those */
};

/* Serves at a listening socket, which it owns from now on. feed, runs, host, token and cookie are
 * set, and live longer. 0 or -errno. */
int td_http_init(struct td_http *http, int listen_fd);
void td_http_deinit(struct td_http *http);

/* The descriptor to poll for reading. */
int td_http_fd(const struct td_http *http);
/* Serves what is there. is_new: the feed has something new. *ret_wakeup_ns: when to be called at
 * the latest. */
void td_http_turn(struct td_http *http, bool is_new, uint64_t now_ns, uint64_t *ret_wakeup_ns);
