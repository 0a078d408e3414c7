/*
 * The driver side of window and duty: events around submissions, queried before the next one, and
 * short sleeps. It runs only while TD_WORD_WINDOW or TD_WORD_DUTY is set.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_marker;

/* The state of one submission that waits for the window or the duty. Zeroed at the start. */
struct td_pace {
	/* the submission is made then in any case; 0: it has not waited yet */
	uint64_t deadline_ns;
	uint64_t window_ns;
	uint64_t wait_ns; /* time to wait for the duty; 0: it waits for the window */
	bool past;        /* the deadline has passed */
	bool free;        /* this submission is not charged to the duty */
};

/*
 * Decides whether the thread, whose marker is set, may submit. False: the caller unmarks, sleeps,
 * and asks again. word: the gate word that the caller has read.
 */
bool td_pace_may_submit(
	struct td_pace *pace, struct td_marker *marker, void *stream, uint32_t kind);
void td_pace_sleep(struct td_pace *pace, const struct td_marker *marker, uint32_t word);

/* Called after the submission was made. */
void td_pace_submitted(struct td_marker *marker);

/* Called in the child of a fork. */
void td_pace_forked(void);
