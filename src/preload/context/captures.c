/*
 * Stream captures that are open or beginning, and what must not be done meanwhile; see context.h.
 * The table is fixed in size; captures that find no place in it are only counted.
 */
#include "base/time.h"
#include "preload/base/lock.h"
#include "preload/context/context.h"
#include "preload/context/marker.h"
#include "preload/driver/driver.h"

#define CAPTURE_MAX 64
/* How long a beginning capture waits for the drain's call to get out of the way. */
#define WAIT_SLICE_NS (200 * TD_NS_PER_US)
/* Within this time a waiting thread has entered the driver, even on a busy machine. */
#define CAPTURE_WAIT_MAX_NS (200 * TD_NS_PER_MS)

/* Held by a capture that begins, and by the drain around calls that no capture may come between. */
static struct td_lock lock = TD_LOCK_INIT(TD_RANK_CAPTURE);
static _Atomic uint32_t captures;
/*
 * Number of calls in progress that begin a capture, or that may make a stream join one. Under the
 * lock.
 */
static uint32_t beginning;
/* The contexts of open captures: a capture ends with its context. Under the lock. */
static void *contexts[CAPTURE_MAX];
static _Atomic uint32_t waiting; /* threads that wait for a whole context, or are about to */

void td_context_capture_begin(void)
{
	uint64_t start_ns = td_time_now_ns();

	td_lock_take(&lock);
	atomic_fetch_add(&captures, 1);
	beginning++;
	td_lock_drop(&lock);
	/*
	 * A context-wide wait checks for captures when it is entered; once the thread sleeps in it,
	 * a capture may begin.
	 */
	while (atomic_load(&waiting) && td_time_now_ns() - start_ns < CAPTURE_WAIT_MAX_NS)
		td_time_sleep_until_ns(td_time_now_ns() + WAIT_SLICE_NS);
}

void td_context_capture_begun(bool opened, const void *stream)
{
	void *context = td_context_of_stream(stream);

	td_lock_take(&lock);
	beginning--;
	if (!opened)
		atomic_fetch_sub(&captures, 1);
	for (unsigned i = 0; i < CAPTURE_MAX && opened && context; i++) {
		if (contexts[i])
			continue;
		contexts[i] = context;
		break;
	}
	td_lock_drop(&lock);
}

/* An event that was recorded in a capture is not known to anybody before the capture has begun. */
bool td_context_join_begin(void)
{
	if (!td_context_any_capture())
		return false;
	td_lock_take(&lock);
	beginning++;
	td_lock_drop(&lock);
	return true;
}

void td_context_join_end(void)
{
	td_lock_take(&lock);
	beginning--;
	td_lock_drop(&lock);
}

/* A capture has ended. The counter stays 0 if its beginning was not seen. */
static void is_over(void)
{
	uint32_t n = atomic_load(&captures);

	while (n && !atomic_compare_exchange_weak(&captures, &n, n - 1))
		;
}

void td_context_capture_ended(const void *stream)
{
	void *context = td_context_of_stream(stream);

	td_lock_take(&lock);
	for (unsigned i = 0; i < CAPTURE_MAX && context; i++) {
		if (contexts[i] != context)
			continue;
		contexts[i] = NULL;
		break;
	}
	td_lock_drop(&lock);
	is_over();
}

void td_captures_context_ended(const void *context)
{
	td_lock_take(&lock);
	for (unsigned i = 0; i < CAPTURE_MAX && context; i++) {
		if (contexts[i] != context)
			continue;
		contexts[i] = NULL;
		is_over();
	}
	td_lock_drop(&lock);
}

bool td_context_any_capture(void)
{
	return atomic_load_explicit(&captures, memory_order_relaxed) != 0;
}

bool td_context_is_capturing(void *stream)
{
	const struct td_driver *driver;
	int status = 0;

	if (!td_context_any_capture())
		return false;
	driver = td_driver();
	/*
	 * An error means that the stream may not be used now (the legacy stream beside a capture).
	 * The program's own call is to see that error.
	 */
	return driver && (driver->stream_is_capturing(stream, &status) || status);
}

bool td_context_hold_captures(void)
{
	td_lock_take(&lock);
	return !td_context_any_capture();
}

bool td_context_capture_is_beginning(void)
{
	return beginning;
}

void td_context_release_captures(void)
{
	td_lock_drop(&lock);
}

int td_context_relax(void)
{
	const struct td_driver *driver = td_driver();
	int mode = TD_CUDA_CAPTURE_RELAXED;

	return driver && !driver->thread_exchange_capture_mode(&mode) ? mode : -1;
}

void td_context_unrelax(int before)
{
	if (before >= 0)
		(void)td_driver()->thread_exchange_capture_mode(&before);
}

void td_context_waiting(bool begins)
{
	if (begins)
		atomic_fetch_add(&waiting, 1);
	else
		atomic_fetch_sub(&waiting, 1);
}

void td_context_mark_own_stream(struct td_marker *marker)
{
	uint64_t made = atomic_load(&marker->own_stream_launches), context;
	const struct td_driver *driver = td_driver();

	if (!driver || !td_context_any_capture() || marker == &td_marker_shared ||
		atomic_load(&marker->own_mark.launches) ||
		atomic_load(&marker->own_stream_done) == made ||
		td_context_is_capturing(TD_STREAM_PER_THREAD))
		return;
	context = td_context_serial();
	if (!context)
		return;
	if (marker->own_mark.context != context) {
		td_context_event_destroy(marker->own_mark.context, marker->own_mark.event);
		marker->own_mark.event = NULL;
		marker->own_mark.context = context;
	}
	if (!marker->own_mark.event &&
		driver->event_create(&marker->own_mark.event, TD_CUDA_EVENT_DISABLE_TIMING)) {
		marker->own_mark.event = NULL;
		return;
	}
	if (!driver->event_record(marker->own_mark.event, TD_STREAM_PER_THREAD))
		atomic_store(&marker->own_mark.launches, made);
}

void td_captures_forked(void)
{
	td_lock_reset(&lock);
	atomic_store(&captures, 0);
	beginning = 0;
	for (unsigned i = 0; i < CAPTURE_MAX; i++)
		contexts[i] = NULL;
	atomic_store(&waiting, 0);
}
