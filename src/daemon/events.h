/* What happened, the last few thousand records: who waited for whom, and why. Kept in memory, numbered without gaps. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TD_EVENTS_KEPT 4096

enum td_event_kind {
#define EVENT(id, name, help) TD_EVENT_##id,
#include "daemon/events.def"
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

struct td_events {
	uint64_t next; /* number of the next record; the first is 1 */
	struct td_event ring[TD_EVENTS_KEPT];
};

void td_events_init(struct td_events *events);

/* Stores a copy with its number; returns it. */
const struct td_event *td_events_add(struct td_events *events, const struct td_event *event);

/* The record of that number, or the oldest kept one behind it; NULL if there is none yet. */
const struct td_event *td_events_get(const struct td_events *events, uint64_t number);

const char *td_event_name(enum td_event_kind kind);
