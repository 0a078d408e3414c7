/*
 * The last few thousand events: who waited for whom, and why. They are kept in memory and numbered
 * in order. When there is no room left, the user with the most records loses the oldest of them, so
 * that nobody pushes others' records out by making many. Each call but td_events_get() takes the
 * same time for any number of users and records.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

#define TD_EVENTS_KEPT 4096
/* Hash chains of users; a power of two. */
#define TD_EVENTS_CHAINS 256

enum td_event_kind {
#define EVENT(id, name, help) TD_EVENT_##id,
#include "daemon/record/events.def"
#undef EVENT
	TD_EVENT_N,
};

struct td_event {
	uint64_t number, time_ns, wall_ns;
	enum td_event_kind kind;
	char job[64], name[64], detail[256];
	bool of_process; /* it is about a process: uid's, and root's to read. Else everybody's */
	uint32_t uid, pid,
		gpu; /* pid: 0 in a namespace beside ours; gpu: its number, or UINT32_MAX: none */
	uint64_t value_ns, value_bytes;
};

/* A place for a record. */
struct td_event_slot {
	struct td_event event;
	struct td_list of_all, of_user; /* by number */
};

/* The owner of records: a user, or the daemon itself for events about no process. */
struct td_event_user {
	struct td_list of_chain; /* of users with the same hash; or of the unused ones */
	struct td_list of_count; /* of users with as many records */
	struct td_list slots;
	uint64_t key;
	uint32_t count;
};

struct td_events {
	uint64_t next;       /* number of the next record; the first is 1 */
	uint32_t count;      /* of records that are kept */
	uint32_t most;       /* that anybody has */
	struct td_list all;  /* slots that are in use */
	struct td_list free; /* users that are not; each user has a record, so there are enough */
	struct td_list chains[TD_EVENTS_CHAINS];
	struct td_list by_count[TD_EVENTS_KEPT + 1]; /* users who have so many */
	struct td_event_user users[TD_EVENTS_KEPT];
	struct td_event_slot slots[TD_EVENTS_KEPT];
};

/* The structure must not be moved afterwards. */
void td_events_init(struct td_events *events);

/* Stores a copy with its number; returns it. */
const struct td_event *td_events_add(struct td_events *events, const struct td_event *event);

/* The record of that number, or the first kept one behind it; NULL if there is none. Looks through
 * the records from the newest on. */
const struct td_event *td_events_get(const struct td_events *events, uint64_t number);

/* The first kept one behind a record that is kept; NULL if there is none yet. */
const struct td_event *td_events_next(const struct td_events *events, const struct td_event *event);

const char *td_event_name(enum td_event_kind kind);
