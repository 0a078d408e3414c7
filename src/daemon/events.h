/* What happened, the last few thousand records: who waited for whom, and why. Kept in memory, numbered without gaps. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define TD_EVENTS_KEPT 4096

/* EVENT(id, name as shown) */
#define TD_EVENT_KINDS(EVENT)                                                                         \
	EVENT(PLACED, "placed") /* its job was given one of the GPUs that it may use */               \
	EVENT(REJECTED,                                                                               \
		"rejected") /* a setting of its environment makes no sense: it counts as not given */ \
	EVENT(ATTACHED, "attached") /* a process uses a GPU */                                        \
	EVENT(RETURNED, "returned") /* a process registered again after a daemon was lost */          \
	EVENT(WAITING, "waiting")   /* it asked for a GPU that it may not use yet */                  \
	EVENT(FILLING, "filling")   /* it is next: its memory comes back */                           \
	EVENT(OPENED, "opened")     /* it may launch; value: time waited, bytes it has there */       \
	EVENT(DRAINING, "draining") /* it may not launch any more; work in flight ends */             \
	EVENT(DRAINED, "drained")   /* its work has ended; value: how long that took */               \
	EVENT(SHRUNK, "shrunk")     /* memory left the device; value: bytes */                        \
	EVENT(IDLE, "idle")         /* it reported that it has nothing to do */                       \
	EVENT(STUCK, "stuck")       /* its work did not end by the deadline: it goes on */            \
	EVENT(SHORT, "short")       /* the device was full although the limit would do */             \
	EVENT(REFUSED, "refused")   /* an allocation did not fit */                                   \
	EVENT(SHARES, "shares")     /* others may open memory of it */                                \
	EVENT(DENIED, "denied")     /* it could not open memory of another process */                 \
	EVENT(FAILED, "failed")     /* its context is beyond help: it is let go */                    \
	EVENT(LOST, "lost")         /* the driver has lost a GPU */                                   \
	EVENT(FOREIGN, "foreign")   /* another daemon shares the GPU that it asked for */             \
	EVENT(LEFT, "left")         /* the process is gone */                                         \
	EVENT(OPTION, "option")     /* an option or a job was changed */

enum td_event_kind {
#define EVENT(id, name) TD_EVENT_##id,
	TD_EVENT_KINDS(EVENT)
#undef EVENT
		TD_EVENT_N,
};

struct td_event {
	uint64_t number, time_ns, wall_ns;
	enum td_event_kind kind;
	char job[64], name[64], detail[256];
	uint32_t uid, pid, gpu; /* gpu: its number, or UINT32_MAX: none */
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
