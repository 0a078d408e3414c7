/*
 * The last few thousand events: which process waited for which, and why. They are kept in memory
 * and numbered in order. When there is no room left, the user with the most records loses the
 * oldest of them. So a user with many events cannot push out others' records. Each call but
 * td_events_get() takes the same time for any number of users and records.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "daemon/record/identity.h"

#define TD_EVENTS_KEPT 4096
/* The number of hash chains of users; a power of two. */
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
	/* true: only the process's user and root may read it; false: everybody may */
	bool of_process;
	struct td_identity who;
	uint32_t pid,
		gpu; /* pid: 0 in a namespace beside ours; gpu: its number, or UINT32_MAX: none */
	uint64_t value_ns, value_bytes;
};

/* A slot for one record. */
struct td_event_slot {
	struct td_event event;
	struct td_list of_all, of_user; /* both lists are sorted by the record's number */
};

/* The owner of records: a user, or the daemon itself for events about no process. */
struct td_event_user {
	struct td_list of_chain; /* in the list of users with the same hash, or of unused entries */
	struct td_list of_count; /* in the list of users with the same number of records */
	struct td_list slots;
	uint64_t key;
	uint32_t count;
};

struct td_events {
	uint64_t next;      /* the number of the next record; the first is 1 */
	uint32_t count;     /* the number of records that are kept */
	uint32_t most;      /* the most records that one user has */
	struct td_list all; /* the slots in use */
	/* unused entries of users[]; each user has a record, so there are enough */
	struct td_list free;
	struct td_list chains[TD_EVENTS_CHAINS];
	struct td_list by_count[TD_EVENTS_KEPT + 1]; /* by_count[n]: the users with n records */
	struct td_event_user users[TD_EVENTS_KEPT];
	struct td_event_slot slots[TD_EVENTS_KEPT];
};

/* Initialises the structure, which must not be moved afterwards. */
void td_events_init(struct td_events *events);

/* Stores a copy of the event with its number, and returns the copy. */
const struct td_event *td_events_add(struct td_events *events, const struct td_event *event);

/*
 * Returns the record with that number, or the first kept one behind it; NULL if there is none.
 * Searches from the newest record on.
 */
const struct td_event *td_events_get(const struct td_events *events, uint64_t number);

/*
 * Returns the first kept record behind `event`, which is a kept record; NULL if there is none yet.
 */
const struct td_event *td_events_next(const struct td_events *events, const struct td_event *event);

const char *td_event_name(enum td_event_kind kind);
