/*
 * The Xid errors of one GPU, one after the other: several may come between two looks, and each is
 * to be judged. An error is shown until the next one has come and
 * - it has been shown for TD_XID_SHOWN_NS, so that the daemon's loop has seen it, and
 * - the kernel's log has told its process, or TD_XID_TOGETHER_NS are over since it came.
 *
 * The event and the line of the log come in either order. They belong together if they have the
 * same number and came within TD_XID_TOGETHER_NS; the oldest ones first. A line of which the event
 * comes before the next td_xid_queue_show() belongs to that, not to an older one.
 *
 * Invariants: errors are shown in the order in which they came, each with a time of its own. Only
 * if more than TD_XID_QUEUE_MAX wait, some are left out: first the newest of a number that waits
 * already, so that no flood of a program's errors hides one of the GPU.
 *
 * Pure: the time is a parameter.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TD_XID_QUEUE_MAX   16
#define TD_XID_SHOWN_NS    150000000ull
#define TD_XID_TOGETHER_NS 1000000000ull

struct td_xid_error {
	uint32_t xid; /* 0: none */
	int pid;      /* 0: not known */
	uint64_t ns;  /* when it came; no two of a GPU have the same */
};

/* Zeroed, it has seen nothing. */
struct td_xid_queue {
	/* The first error is the one that is shown. It stays if no other error follows. */
	struct td_xid_error errors[TD_XID_QUEUE_MAX];
	uint32_t count;
	uint64_t shown_ns; /* since when the first one is shown */
	/* Lines of the kernel's log whose errors have not come yet, the oldest first. */
	struct {
		uint32_t xid;
		int pid;
		uint64_t ns;
	} lines[TD_XID_QUEUE_MAX];
	uint32_t line_count;
};

/* An event of the driver has come. */
void td_xid_queue_event(struct td_xid_queue *queue, uint32_t xid, uint64_t now_ns);
/* A line of the kernel's log about this GPU has come. pid 0: it names no process. */
void td_xid_queue_line(struct td_xid_queue *queue, uint32_t xid, int pid, uint64_t now_ns);
/* Returns the error to show now. */
struct td_xid_error td_xid_queue_show(struct td_xid_queue *queue, uint64_t now_ns);
