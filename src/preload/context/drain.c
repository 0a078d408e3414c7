/*
 * Waits for the GPU; see drain.h.
 *
 * Without a capture it calls cuCtxSynchronize, context by context, which also covers streams that
 * no other thread can name. With a capture open anywhere in the process that call would break the
 * capture. Then an event is recorded behind each known stream that does not capture, while no
 * capture can begin, and the events are queried in relaxed capture mode until all have passed. Work
 * on other threads' own default streams is covered by the events that these threads leave at the
 * gate. Where such an event is missing, the pass goes on until the thread comes by or the captures
 * end. The agent reports a pass that does not end.
 *
 * A context that answers with an error has no running work, or none that can be waited for: it
 * counts as drained.
 */
#include "preload/context/drain.h"

#include <stddef.h>

#include "base/time.h"
#include "preload/base/agent_calls.h"
#include "preload/base/futex.h"
#include "preload/base/thread.h"
#include "preload/context/context.h"
#include "preload/context/marker.h"
#include "preload/driver/driver.h"

#define STREAMS_MAX 256
/*
 * If a process has more streams than this, td_drain_is_idle leaves the question to the drain
 * thread.
 */
#define IDLE_STREAMS_MAX  16
#define IDLE_CONTEXTS_MAX 4
#define PAUSE_MIN_NS      (20 * TD_NS_PER_US)
#define PAUSE_MAX_NS      (1 * TD_NS_PER_MS)

/* ticket numbers of the last request, and of the last pass that has ended */
static _Atomic uint64_t asked, done;
static _Atomic uint32_t bell; /* futex: changes with `asked` */
static _Atomic bool running;
static void (*_Atomic after)(void);

static void pause_longer(uint64_t *pause_ns)
{
	td_time_sleep_until_ns(td_time_now_ns() + *pause_ns);
	if (*pause_ns < PAUSE_MAX_NS)
		*pause_ns *= 2;
}

/*
 * Records an event behind every stream that can be named and does not capture. Returns false if
 * some stream could not be covered. The caller holds captures off.
 */
static bool record_streams(
	const struct td_driver *driver, const void *context, void **ret_events, unsigned *ret_count)
{
	static void *handles[STREAMS_MAX];
	unsigned count = 0, used = 0;
	bool covered = td_context_streams(context, handles + 1, STREAMS_MAX - 1, &count);

	/*
	 * The legacy stream refuses while a blocking stream captures. Its work is older than the
	 * capture, so the end of the capture is waited for.
	 */
	handles[0] = TD_STREAM_LEGACY;
	for (unsigned i = 0; i <= count; i++) {
		int status = 0;

		if (driver->stream_is_capturing(handles[i], &status)) {
			covered = covered && i != 0;
			continue;
		}
		if (status)
			continue;
		if (driver->event_create(&ret_events[used], TD_CUDA_EVENT_DISABLE_TIMING)) {
			covered = false;
			break;
		}
		if (driver->event_record(ret_events[used++], handles[i]))
			/* the event was not recorded, so it would count as complete */
			covered = false;
	}
	*ret_count = used;
	return covered;
}

/*
 * Checks the events that threads left at the gate. The events of a thread that has ended stay
 * valid, because its marker keeps them.
 */
static bool check_own_stream(struct td_marker *marker, void *arg)
{
	bool *all = arg;
	uint64_t marked = atomic_load(&marker->own_mark.launches);

	if (marked && td_context_event_is_over(marker->own_mark.context, marker->own_mark.event)) {
		atomic_store(&marker->own_stream_done, marked);
		atomic_store(&marker->own_mark.launches, 0);
	}
	if (atomic_load(&marker->own_stream_done) != atomic_load(&marker->own_stream_launches))
		*all = false;
	return true;
}

/*
 * Drains one context while a capture is open. Returns false if captures have ended or something
 * could not be covered; the caller then starts again.
 */
static bool drain_beside_capture(const struct td_driver *driver, const void *context)
{
	static void *events[STREAMS_MAX]; /* static: there is only one drain thread */
	uint64_t pause_ns = PAUSE_MIN_NS;
	bool covered, all_own = true;
	unsigned count;

	/*
	 * A stream may begin or join a capture before its event is recorded. The event would then
	 * be part of the capture, and querying it would break the capture.
	 */
	if (td_context_hold_captures() || td_context_capture_is_beginning()) {
		td_context_release_captures();
		return false;
	}
	covered = record_streams(driver, context, events, &count);
	td_context_release_captures();
	for (unsigned i = 0; i < count; i++) {
		while (driver->event_query(events[i]) == TD_CUDA_ERROR_NOT_READY)
			pause_longer(&pause_ns);
		(void)driver->event_destroy(events[i]);
	}
	td_marker_each(check_own_stream, &all_own);
	return covered && all_own;
}

static bool own_stream_snapshot(struct td_marker *marker, void *arg)
{
	(void)arg;
	marker->own_seen = atomic_load(&marker->own_stream_launches);
	return true;
}

static bool own_stream_settle(struct td_marker *marker, void *arg)
{
	(void)arg;
	atomic_store(&marker->own_stream_done, marker->own_seen);
	atomic_store(&marker->own_mark.launches, 0);
	return true;
}

/* Drains one context, which is current on this thread. */
static void drain_context(const struct td_driver *driver, void *context)
{
	uint64_t pause_ns = PAUSE_MIN_NS;

	for (;;) {
		if (td_context_hold_captures()) {
			td_context_waiting(true);
			td_context_release_captures();
			(void)driver->ctx_synchronize();
			td_context_waiting(false);
			return;
		}
		td_context_release_captures();
		if (drain_beside_capture(driver, context))
			return;
		pause_longer(&pause_ns);
	}
}

static void drain_all_contexts(const struct td_driver *driver)
{
	static struct td_context contexts[TD_CONTEXT_MAX];
	unsigned count = td_context_list(contexts, TD_CONTEXT_MAX);
	bool beside_capture = false;

	td_marker_each(own_stream_snapshot, NULL);
	for (unsigned i = 0; i < count; i++) {
		void *popped;

		if (!td_context_claim(TD_CLAIM_DRAIN, &contexts[i], false))
			continue;
		if (!driver->ctx_push_current(contexts[i].handle)) {
			drain_context(driver, contexts[i].handle);
			(void)driver->ctx_pop_current(&popped);
		}
		td_context_unclaim(TD_CLAIM_DRAIN);
		beside_capture = beside_capture || td_context_any_capture();
	}
	if (!beside_capture)
		td_marker_each(own_stream_settle, NULL);
}

static bool own_stream_is_over(struct td_marker *marker, void *arg)
{
	(void)arg;
	return atomic_load(&marker->own_stream_done) == atomic_load(&marker->own_stream_launches);
}

/*
 * Returns whether all streams of the context have done their work. Also returns false if that
 * cannot be found out.
 */
static bool streams_are_over(const struct td_driver *driver, const struct td_context *context)
{
	void *handles[IDLE_STREAMS_MAX], *popped;
	unsigned count = 0;
	bool over = td_context_streams(context->handle, handles + 1, IDLE_STREAMS_MAX - 1, &count);

	handles[0] = TD_STREAM_LEGACY;
	if (!over || driver->ctx_push_current(context->handle))
		return false;
	for (unsigned i = 0; i <= count && over; i++)
		over = !driver->stream_query(handles[i]);
	(void)driver->ctx_pop_current(&popped);
	return over;
}

/* Gets the contexts that may have work: a program has moved only when the one before had none. */
static unsigned list_present(struct td_context ret[TD_CONTEXT_MAX])
{
	unsigned count = td_context_list(ret, TD_CONTEXT_MAX), present = 0;

	for (unsigned i = 0; i < count; i++)
		if (!ret[i].left)
			ret[present++] = ret[i];
	return present;
}

bool td_drain_is_idle(void)
{
	const struct td_driver *driver = td_driver();
	struct td_context contexts[TD_CONTEXT_MAX];
	unsigned count;
	bool idle;

	if (!driver || !td_marker_each(own_stream_is_over, NULL))
		return false;
	count = list_present(contexts);
	idle = count < IDLE_CONTEXTS_MAX;
	/* A query would break a capture. */
	if (!td_context_hold_captures() || td_context_capture_is_beginning())
		idle = false;
	for (unsigned i = 0; i < count && idle; i++) {
		idle = td_context_claim(TD_CLAIM_AGENT, &contexts[i], true);
		if (!idle)
			break;
		idle = streams_are_over(driver, &contexts[i]);
		td_context_unclaim(TD_CLAIM_AGENT);
	}
	td_context_release_captures();
	return idle;
}

static void *drain_main(void *arg)
{
	const struct td_driver *driver = td_driver();
	int mode = TD_CUDA_CAPTURE_RELAXED;

	(void)arg;
	td_marker_adopt_internal();
	(void)driver->thread_exchange_capture_mode(&mode);
	for (;;) {
		uint32_t rung = atomic_load(&bell);
		uint64_t ticket = atomic_load(&asked);
		void (*then)(void) = atomic_load(&after);

		if (then)
			then();
		if (ticket == atomic_load(&done)) {
			td_futex_wait(&bell, rung, TD_NS_PER_S, false);
			continue;
		}
		drain_all_contexts(driver);
		atomic_store(&done, ticket);
		td_agent_wake();
	}
	return NULL;
}

uint64_t td_drain_begin(void)
{
	uint64_t ticket;

	if (!td_driver())
		return 0;
	if (!atomic_exchange(&running, true) && td_thread_start(drain_main)) {
		atomic_store(&running, false);
		return 0;
	}
	ticket = atomic_fetch_add(&asked, 1) + 1;
	atomic_fetch_add(&bell, 1);
	td_futex_wake_all(&bell, false);
	return ticket;
}

void td_drain_set_after(void (*then)(void))
{
	atomic_store(&after, then);
}

bool td_drain_is_done(uint64_t ticket)
{
	return atomic_load(&done) >= ticket;
}

bool td_drain_is_busy(void)
{
	return atomic_load(&done) < atomic_load(&asked);
}

void td_drain_forked(void)
{
	atomic_store(&asked, 0);
	atomic_store(&done, 0);
	atomic_store(&running, false);
}
