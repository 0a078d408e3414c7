/*
 * Pacing: see pace.h; the arithmetic is window.c's.
 *
 * An event goes in right behind a submission, while the program is still in the call and its stream certainly exists. A process that uses
 * programmatic dependent launches is treated differently, because an event between two of them would keep them from overlapping: there the
 * event goes in before the next submission, if that is on the same stream and not itself dependent; otherwise none does, and those submissions are
 * not counted. Nothing is ever recorded on a capturing stream.
 *
 * A wait is bounded: work that itself waits for this thread must not stop the program.
 */
#include "preload/pace.h"

#include <stddef.h>

#include "base/time.h"
#include "preload/context.h"
#include "preload/driver.h"
#include "preload/gate.h"

#define WAIT_MIN_NS  (50 * TD_NS_PER_MS)
#define WAIT_WINDOWS 8 /* the longest wait, in windows */

/* Sum of counted_ns over all threads: estimated time of the process's work in flight. */
static _Atomic uint64_t process_ns;
static _Atomic bool dependent_seen;

static void recount(struct td_window *window)
{
	uint64_t now = td_window_in_flight_ns(window);

	atomic_fetch_add_explicit(&process_ns, now - window->counted_ns, memory_order_relaxed);
	window->counted_ns = now;
}

static void destroy(const struct td_driver *driver, void *event)
{
	if (event)
		(void)driver->event_destroy(event);
}

/* Events belong to a context. After a change of context what was in flight in the other is no longer followed. */
static void start_over(struct td_window *window, const struct td_driver *driver, uint64_t context)
{
	if (td_context_is_alive(window->context)) {
		for (unsigned i = 0; i < TD_WINDOW_MARKS; i++)
			destroy(driver, window->marks[i].event);
		destroy(driver, window->done_event);
	}
	atomic_fetch_sub_explicit(&process_ns, window->counted_ns, memory_order_relaxed);
	td_window_reset(window);
	window->context = context;
}

static uint64_t elapsed_ns(const struct td_driver *driver, const struct td_window *window,
	const struct td_window_mark *mark)
{
	float ms = 0;

	if (!window->done_event || window->done_stream != mark->stream)
		return 0;
	if (driver->event_elapsed_ms(&ms, window->done_event, mark->event) || !(ms > 0))
		return 0;
	return (uint64_t)((double)ms * 1e6);
}

/* Takes out what has completed. An event that cannot be asked (its context is gone) counts as complete. */
static void reap(struct td_window *window, const struct td_driver *driver)
{
	struct td_window_mark *mark;

	while ((mark = td_window_oldest(window)) != NULL) {
		void *reuse = window->done_event;

		if (driver->event_query(mark->event) == TD_CUDA_ERROR_NOT_READY)
			break;
		td_window_completed(window, elapsed_ns(driver, window, mark));
		window->done_event = mark->event;
		window->done_stream = mark->stream;
		mark->event = reuse;
	}
	recount(window);
}

static void record(struct td_window *window, const struct td_driver *driver)
{
	struct td_window_mark *mark = td_window_next_mark(window);

	if (!mark || td_context_is_capturing(window->last_stream))
		return;
	if (!mark->event && driver->event_create(&mark->event, 0)) {
		mark->event = NULL;
		td_window_forget_unmarked(window); /* what cannot be followed is not waited for */
		return;
	}
	if (driver->event_record(mark->event, window->last_stream))
		td_window_forget_unmarked(window);
	else
		td_window_marked(window);
}

static void record_late(struct td_window *window, const struct td_driver *driver, void *stream,
	uint32_t kind, uint64_t window_ns)
{
	if (stream != window->last_stream)
		td_window_forget_unmarked(window);
	else if (!(kind & TD_SUBMIT_DEPENDENT) && td_window_mark_due(window, window_ns))
		record(window, driver);
}

bool td_pace_may_submit(struct td_pace *pace, struct td_slot *slot, void *stream, uint32_t kind)
{
	const struct td_driver *driver = td_driver();
	struct td_window *window = &slot->window;
	uint64_t context;

	if (kind & TD_SUBMIT_DEPENDENT)
		atomic_store_explicit(&dependent_seen, true, memory_order_relaxed);
	context = td_context_serial();
	if (!driver || !context)
		return true;
	if (context != window->context)
		start_over(window, driver, context);
	pace->window_ns = atomic_load_explicit(&td_gate.page.window_ns, memory_order_relaxed);
	reap(window, driver);
	if (atomic_load_explicit(&dependent_seen, memory_order_relaxed))
		record_late(window, driver, stream, kind, pace->window_ns);
	window->last_stream = stream;
	return pace->past || kind & TD_SUBMIT_DEPENDENT ||
	       td_window_may_submit(window, atomic_load_explicit(&process_ns, memory_order_relaxed),
		       pace->window_ns);
}

void td_pace_sleep(struct td_pace *pace, const struct td_slot *slot)
{
	uint64_t now_ns = td_time_now_ns(), most = WAIT_WINDOWS * pace->window_ns;

	if (!pace->deadline_ns)
		pace->deadline_ns = now_ns + (most > WAIT_MIN_NS ? most : WAIT_MIN_NS);
	pace->past = now_ns >= pace->deadline_ns;
	if (!pace->past)
		td_time_sleep_until_ns(now_ns + td_window_pause_ns(&slot->window, pace->window_ns));
}

void td_pace_submitted(struct td_slot *slot)
{
	const struct td_driver *driver = td_driver();
	struct td_window *window = &slot->window;

	if (!window->context)
		return;
	td_window_submitted(window, window->last_stream);
	if (!atomic_load_explicit(&dependent_seen, memory_order_relaxed) &&
		td_window_mark_due(window,
			atomic_load_explicit(&td_gate.page.window_ns, memory_order_relaxed)))
		record(window, driver);
	recount(window);
}

void td_pace_forked(void)
{
	atomic_store(&process_ns, 0);
}
