/*
 * The window: while others wait for the GPU, at most window_ns of this process's work is in flight.
 * So a hand-over takes no longer than that and the running kernel.
 *
 * The length of a submission is estimated from events between submissions of the same thread and
 * stream. Work in flight is counted per thread and summed over the process. This file is arithmetic
 * only, without driver or clock; the caller (pace.c) records and queries the events and sleeps.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TD_WINDOW_MARKS     16 /* events in flight per thread */
#define TD_WINDOW_EVERY_MAX 64 /* submissions between two events, at most */
#define TD_WINDOW_MIN       2  /* submissions that may be in flight whatever their length */

struct td_window_mark {
	void *event;
	void *stream;
	uint32_t submissions; /* the number of submissions since the previous mark */
	uint32_t hash;        /* identifies the kind of work */
	void *start;          /* event before the first of them; NULL: never created */
	/* pace.c, under a duty: the expected time of these submissions. */
	uint64_t expected_ns;
	/* pace.c: number of the period without other programs in which all of it ran; 0: none */
	uint32_t alone;
	uint32_t word; /* pace.c: the gate word when the first of them was let through */
	/*
	 * Kept by pace.c while a duty is in force: when the last of them was let through (monotonic
	 * ns); 0: never.
	 */
	uint64_t submitted_ns;
	/* pace.c: their average SM activity and core demand (demand.h) */
	uint32_t active_ppm, core_ppm;
	bool free; /* pace.c: it is not charged to the duty */
	/* `start` was recorded: the measured interval begins there */
	bool started;
	/* The device was busy with this thread's work from the previous mark to this one. */
	bool backlogged;
};

struct td_window {
	struct td_window_mark marks[TD_WINDOW_MARKS];
	uint32_t head, count; /* position of the oldest incomplete mark; number of such marks */
	uint32_t unmarked;    /* submissions since the last mark */
	uint32_t in_flight;   /* submissions not known to be complete */
	bool backlogged;      /* whether the next mark will be `backlogged`; its hash */
	uint32_t hash;
	uint64_t estimate_ns; /* estimated length of one submission; 0: not known */
	uint64_t counted_ns;  /* this thread's part of td_pacer.process_ns */
	/* sum over all marks of this thread, already added to the process's sum */
	uint64_t expected_ns;
	uint64_t unmarked_ns; /* pace.c: expected time of the submissions since the last mark */
	/*
	 * Under a duty: the share of the GPU that the last submission uses (meter.c), and the sums
	 * since the last mark, weighted by time.
	 */
	uint32_t active_ppm, core_ppm;
	uint64_t unmarked_active, unmarked_core;
	uint32_t alone; /* value of `alone` for the next mark */
	bool free;
	uint32_t word;
	void *last_stream; /* stream and kind of work of the last submission */
	uint32_t work;
	/*
	 * Kept by pace.c while a duty is in force: when the last submission was let through
	 * (monotonic ns).
	 */
	uint64_t submitted_ns;
	/*
	 * pace.c: the latest complete event, its stream, and the serial number of the context of
	 * all events (context.h); 0: there are no events.
	 */
	void *done_event, *done_stream;
	uint64_t context;
	int gpu; /* slot of that context's GPU */
};

void td_window_reset(struct td_window *window);

/* Called after a submission to `stream`. work identifies the kind of work; 0: unknown. */
void td_window_submitted(struct td_window *window, void *stream, uint32_t work);

/*
 * This bit is set in a work or hash value if only the size of the work is known, or not even that.
 */
#define TD_WINDOW_SIZED 0x80000000u
#define TD_WINDOW_SIZES 64u
static inline bool td_window_is_sized(uint32_t work)
{
	return work - TD_WINDOW_SIZED < TD_WINDOW_SIZES;
}

/*
 * Returns the hash of a mark that follows this work only. It is 0 only for 0. For TD_WINDOW_SIZED
 * work it is the size.
 */
uint32_t td_window_hash(uint32_t work);

/* Should an event follow the last submission, if at most window_ns of work may be in flight? */
bool td_window_mark_due(const struct td_window *window, uint64_t window_ns);

/*
 * Adds a mark behind the last submission. Returns it, or NULL if all marks are in flight. The
 * caller has recorded the event and stores it in the mark.
 */
struct td_window_mark *td_window_next_mark(struct td_window *window);
void td_window_marked(struct td_window *window);

/* Returns the oldest incomplete mark, or NULL. */
struct td_window_mark *td_window_oldest(struct td_window *window);

/*
 * The oldest mark is complete. elapsed_ns is the time since its start event or, without one, since
 * the previous mark of the same stream; 0: not known. An interval in which the device was idle says
 * nothing about the length of the work and is ignored.
 */
void td_window_completed(struct td_window *window, uint64_t elapsed_ns);

/* The submissions since the last mark will get no mark: they are no longer counted. */
void td_window_forget_unmarked(struct td_window *window);

/* Returns the estimated time of this thread's work in flight. */
uint64_t td_window_in_flight_ns(const struct td_window *window);

/*
 * Returns whether this thread may submit more work, when all threads together have process_ns of
 * work in flight.
 */
bool td_window_may_submit(const struct td_window *window, uint64_t process_ns, uint64_t window_ns);

/* Returns how long to sleep before the next check. */
uint64_t td_window_pause_ns(const struct td_window *window, uint64_t window_ns);
