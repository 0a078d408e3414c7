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
	uint32_t submissions; /* since the mark before it */
	uint32_t hash;        /* of what was submitted */
	void *start;          /* event in front of the first of them; NULL: none was ever made */
	/* pace.c, under a duty: the expected time of these submissions. */
	uint64_t expected_ns;
	uint32_t alone; /* pace.c's: number of the moment alone that all of it began in; 0: none */
	uint32_t word;  /* pace.c's: the gate's when the first of them was let through */
	/* pace.c, under a duty: when the last of them was let through; 0: never. */
	uint64_t submitted_ns;
	uint32_t active_ppm, core_ppm; /* pace.c's: of what these use of the GPU, on average */
	bool free;                     /* pace.c's: no duty counts it */
	bool started;                  /* it was recorded: the interval begins there */
	/* The device was busy with this thread's work ever since that mark. */
	bool backlogged;
};

struct td_window {
	struct td_window_mark marks[TD_WINDOW_MARKS];
	uint32_t head, count; /* the oldest mark that is not yet complete; how many */
	uint32_t unmarked;    /* submissions since the last mark */
	uint32_t in_flight;   /* submissions not known to be complete */
	bool backlogged;      /* of the mark to come; and its hash */
	uint32_t hash;
	uint64_t estimate_ns; /* length of one; 0: not known */
	uint64_t counted_ns;  /* what this thread has added to the process's sum */
	uint64_t expected_ns; /* of all its marks, and to that sum of the process */
	uint64_t unmarked_ns; /* pace.c's: what the submissions since the last mark will take */
	/*
	 * Under a duty: the part of the GPU that the last submission uses (meter.c), and the sum
	 * since the last mark, weighted by time.
	 */
	uint32_t active_ppm, core_ppm;
	uint64_t unmarked_active, unmarked_core;
	uint32_t alone; /* the mark to come's */
	bool free;
	uint32_t word;
	void *last_stream; /* of the last submission, and its work */
	uint32_t work;
	/* pace.c, under a duty: when the last submission was let through. */
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

/* A submission was made onto stream. work: what it is, as far as that is known; 0: it is not. */
void td_window_submitted(struct td_window *window, void *stream, uint32_t work);

/* Set in work or a mark that is known only by its size, or not even by that. */
#define TD_WINDOW_SIZED 0x80000000u
#define TD_WINDOW_SIZES 64u
static inline bool td_window_is_sized(uint32_t work)
{
	return work - TD_WINDOW_SIZED < TD_WINDOW_SIZES;
}

/*
 * The hash of a mark behind only this work; 0 only for 0. For work with nothing but a size
 * (TD_WINDOW_SIZED) it is the size.
 */
uint32_t td_window_hash(uint32_t work);

/* Is an event due behind the last submission, if at most window_ns may be in flight? */
bool td_window_mark_due(const struct td_window *window, uint64_t window_ns);

/*
 * A mark was recorded behind the last submission. Returns its place, or NULL if all are in flight.
 * The caller has stored its event.
 */
struct td_window_mark *td_window_next_mark(struct td_window *window);
void td_window_marked(struct td_window *window);

/* The oldest mark, or NULL. */
struct td_window_mark *td_window_oldest(struct td_window *window);

/*
 * The oldest mark is complete. elapsed_ns is the time since its start or, without a start, since
 * the previous mark of the same stream; 0: not known. An interval in which the device ran dry says
 * nothing about the work's length and is left out.
 */
void td_window_completed(struct td_window *window, uint64_t elapsed_ns);

/* The submissions since the last mark will get none: they are forgotten. */
void td_window_forget_unmarked(struct td_window *window);

/* Estimated time of what this thread has in flight. */
uint64_t td_window_in_flight_ns(const struct td_window *window);

/* May this thread submit once more, when the whole process has process_ns in flight? */
bool td_window_may_submit(const struct td_window *window, uint64_t process_ns, uint64_t window_ns);

/* Returns how long to sleep before asking again. */
uint64_t td_window_pause_ns(const struct td_window *window, uint64_t window_ns);
