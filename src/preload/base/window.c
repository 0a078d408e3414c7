/*
 * The arithmetic of the window; see window.h. The estimate follows longer submissions at once and
 * shorter ones slowly. Too short an estimate lets too much work into flight; too long a one costs a
 * little concurrency.
 */
#include "preload/base/window.h"

#include <string.h>

#include "base/time.h"

#define SHRINK_SHARE    8 /* divides the difference when a submission was shorter than estimated */
#define EVENTS_PER_SPAN 4 /* marks within one window */
/* The golden ratio: multiplying by it spreads small differences over all bits. */
#define HASH_FACTOR  2654435769u
#define PAUSE_MIN_NS (20 * TD_NS_PER_US)
#define PAUSE_MAX_NS (1 * TD_NS_PER_MS)

void td_window_reset(struct td_window *window)
{
	memset(window, 0, sizeof(*window));
}

uint32_t td_window_hash(uint32_t work)
{
	if (td_window_is_sized(work))
		return work;
	return work * HASH_FACTOR; /* an odd factor maps only 0 to 0 */
}

void td_window_submitted(struct td_window *window, void *stream, uint32_t work)
{
	if (!window->unmarked) {
		window->backlogged = window->in_flight > 0;
		window->hash = 0;
	}
	window->hash = td_window_hash(window->hash ^ work);
	window->last_stream = stream;
	window->unmarked++;
	window->in_flight++;
}

bool td_window_mark_due(const struct td_window *window, uint64_t window_ns)
{
	uint64_t every = 1, span_ns = window_ns / EVENTS_PER_SPAN;

	if (!window->unmarked)
		return false;
	if (window->estimate_ns)
		every = span_ns / window->estimate_ns;
	if (every > TD_WINDOW_EVERY_MAX)
		every = TD_WINDOW_EVERY_MAX;
	return window->unmarked >= every;
}

struct td_window_mark *td_window_next_mark(struct td_window *window)
{
	if (window->count == TD_WINDOW_MARKS)
		return NULL;
	return &window->marks[(window->head + window->count) % TD_WINDOW_MARKS];
}

void td_window_marked(struct td_window *window)
{
	struct td_window_mark *mark =
		&window->marks[(window->head + window->count) % TD_WINDOW_MARKS];

	mark->stream = window->last_stream;
	mark->submissions = window->unmarked;
	mark->backlogged = window->backlogged;
	mark->hash = window->hash;
	window->unmarked = 0;
	window->count++;
}

struct td_window_mark *td_window_oldest(struct td_window *window)
{
	return window->count ? &window->marks[window->head] : NULL;
}

void td_window_completed(struct td_window *window, uint64_t elapsed_ns)
{
	struct td_window_mark *mark = &window->marks[window->head];

	if (elapsed_ns && mark->submissions && (mark->backlogged || mark->started)) {
		uint64_t each = elapsed_ns / mark->submissions;

		if (!each)
			each = 1;
		if (!window->estimate_ns || each > window->estimate_ns)
			window->estimate_ns = each;
		else
			window->estimate_ns -= (window->estimate_ns - each) / SHRINK_SHARE;
	}
	mark->started = false;
	window->in_flight -= mark->submissions;
	window->head = (window->head + 1) % TD_WINDOW_MARKS;
	window->count--;
}

void td_window_forget_unmarked(struct td_window *window)
{
	window->in_flight -= window->unmarked;
	window->unmarked = 0;
}

uint64_t td_window_in_flight_ns(const struct td_window *window)
{
	return window->in_flight * window->estimate_ns;
}

bool td_window_may_submit(const struct td_window *window, uint64_t process_ns, uint64_t window_ns)
{
	if (window->in_flight < TD_WINDOW_MIN)
		return true;
	if (!window->estimate_ns)
		/*
		 * No submission has ended yet, so their length is unknown. Only TD_WINDOW_MIN are
		 * let in until the first length is known.
		 */
		return false;
	return process_ns + window->estimate_ns <= window_ns;
}

uint64_t td_window_pause_ns(const struct td_window *window, uint64_t window_ns)
{
	uint64_t pause = window->estimate_ns ? window->estimate_ns / 2 : window_ns / 4;

	if (pause < PAUSE_MIN_NS)
		return PAUSE_MIN_NS;
	return pause > PAUSE_MAX_NS ? PAUSE_MAX_NS : pause;
}
