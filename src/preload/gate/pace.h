/*
 * The driver side of window and duty: events around submissions, queried before the next one, and
 * short sleeps. It runs only while TD_WORD_WINDOW or TD_WORD_DUTY is set.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_marker;

/* One submission on its way through the window. Zeroed at the start. */
struct td_pace {
	uint64_t deadline_ns; /* goes on then, whatever is in flight; 0: has not waited yet */
	uint64_t window_ns;
	uint64_t wait_ns; /* for the budget of the duty; 0: it is the window that is waited for */
	bool past;        /* the deadline */
	bool free;        /* the duty does not count it */
};

/*
 * Asks with the marker marked. False: unmark, sleep and ask again. word is the gate word under
 * which the thread asks.
 */
bool td_pace_may_submit(
	struct td_pace *pace, struct td_marker *marker, void *stream, uint32_t kind);
void td_pace_sleep(struct td_pace *pace, const struct td_marker *marker, uint32_t word);

/* The submission that was let through has been made. */
void td_pace_submitted(struct td_marker *marker);

/* Called in the child of a fork. */
void td_pace_forked(void);
