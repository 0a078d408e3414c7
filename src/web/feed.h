/*
 * Rounds and events of the daemon: each comes by a connection of its own (WATCH, EVENTS). Both wait
 * for nothing; where there is no daemon they try again each second.
 *
 * The last rounds' figures of GPUs and the last events are kept, for pages that are opened later.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "view/snapshot.h"

#define TD_FEED_EVENTS 2048
#define TD_FEED_PAST   600
#define TD_FEED_FDS    2

struct td_feed_event {
	uint64_t number; /* from 1 on, without a gap */
	char *text;      /* a row of JSON */
};

/* One GPU's figures by rounds: a ring of TD_FEED_PAST. */
struct td_feed_past {
	uint8_t gpu[16];
	bool seen; /* in this round */
	uint64_t count;
	struct td_feed_point {
		uint64_t time_ns, resident_bytes, demanded_bytes;
		float busy; /* below 0: not known */
	} points[TD_FEED_PAST];
};

struct td_feed {
	char path[256];
	uint64_t period_ns, retry_ns;
	int watch_fd, events_fd; /* below 0: there is none */
	bool greets;             /* the answer to GET is still to come */
	struct td_snapshot arriving, now, before;
	uint64_t rounds;                           /* that are complete, since the start */
	uint64_t wall_ns;                          /* when the last one was */
	char policy[32], host_limit[32], why[512]; /* why: there is no daemon; "": there is one */
	struct td_feed_event events[TD_FEED_EVENTS];
	uint64_t next_event; /* the number of the next one */
	uint64_t generation; /* of connections: with each the events begin anew */
	struct td_feed_past *past;
	size_t past_count;
};

/* The path of the daemon's socket is copied. */
void td_feed_init(struct td_feed *feed, const char *path, uint64_t period_ns);
void td_feed_deinit(struct td_feed *feed);

/* Descriptors to poll, TD_FEED_FDS of them; those below 0 are ignored by poll(). */
void td_feed_fds(const struct td_feed *feed, struct pollfd *ret);
/* Takes what has come, and connects where that is due. *ret_wakeup_ns: when to be called at the
 * latest. True: there is something new to show. */
bool td_feed_turn(struct td_feed *feed, uint64_t now_ns, uint64_t *ret_wakeup_ns);

/* An id, as the page has it from a round, of a job that is there? */
bool td_feed_has_job(const struct td_feed *feed, const char *job);
/* {"UUID": [[time in ms, busy, resident bytes, demanded bytes], ...], ...}; busy below 0: not
 * known. */
void td_feed_write_past(const struct td_feed *feed, struct td_text *text);
