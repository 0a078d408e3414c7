/*
 * Rounds and events of the daemon, each over a connection of its own (WATCH, EVENTS). Neither
 * blocks. Without a daemon they try again each second.
 *
 * The GPUs' figures of the last rounds and the last events are kept, for pages that are opened
 * later.
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
	uint64_t number; /* counts from 1 without gaps */
	char *text;      /* a row of JSON */
};

/* One GPU's figures in the last rounds: a ring of TD_FEED_PAST entries. */
struct td_feed_past {
	uint8_t gpu[16];
	bool seen; /* the GPU is in the present round */
	uint64_t count;
	struct td_feed_point {
		uint64_t time_ns, resident_bytes, demanded_bytes;
		float busy; /* below 0: unknown */
	} points[TD_FEED_PAST];
};

struct td_feed {
	char path[256];
	uint64_t period_ns, retry_ns;
	int watch_fd, events_fd; /* below 0: not connected */
	bool greets;             /* the answer to GET has not come yet */
	struct td_snapshot arriving, now, before;
	/* the number of complete rounds since the start */
	uint64_t rounds;
	uint64_t wall_ns; /* the time of the last round */
	/* why: the reason why no daemon is connected; "": one is */
	char policy[32], host_limit[32], why[512];
	struct td_feed_event events[TD_FEED_EVENTS];
	uint64_t next_event; /* the number of the next event */
	uint64_t generation; /* counts connections; with each, the events begin anew */
	struct td_feed_past *past;
	size_t past_count;
};

/* Copies the path of the daemon's socket. */
void td_feed_init(struct td_feed *feed, const char *path, uint64_t period_ns);
void td_feed_deinit(struct td_feed *feed);

/* Writes the descriptors to poll, TD_FEED_FDS of them. poll() ignores those below 0. */
void td_feed_fds(const struct td_feed *feed, struct pollfd *ret);
/*
 * Takes the messages that have come, and connects if that is due. *ret_wakeup_ns is when to call it
 * again at the latest. Returns whether there is something new to show.
 */
bool td_feed_turn(struct td_feed *feed, uint64_t now_ns, uint64_t *ret_wakeup_ns);

/* Returns whether there is a job with that id. The page has ids from rounds. */
bool td_feed_has_job(const struct td_feed *feed, const char *job);
/*
 * Writes {"UUID": [[time in ms, busy, resident bytes, demanded bytes], ...], ...}. busy is below 0
 * if it is unknown.
 */
void td_feed_write_past(const struct td_feed *feed, struct td_text *text);
