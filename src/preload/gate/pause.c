/* Exempts work from the duty while a guaranteed job pauses; see pause.h. */
#include "preload/gate/pause.h"

#include <stdatomic.h>
#include <stddef.h>

#include "base/time.h"
#include "preload/base/page.h"
#include "preload/gate/pacer.h"

/*
 * At most this much may be in flight when work longer than the window is let in, so that the GPU
 * does not wait for the host.
 */
#define AHEAD_NS (1 * TD_NS_PER_MS)
#define LOOK_MIN (20 * TD_NS_PER_US)
#define LOOK_MAX (1 * TD_NS_PER_MS)

void td_pause_submitted(const struct td_window *window, uint64_t ns, uint64_t now_ns)
{
	uint64_t until = atomic_load_explicit(&td_pacer.busy_until_ns, memory_order_relaxed);

	/* If two threads run this at the same time, the work of one of them is not counted. */
	atomic_store_explicit(&td_pacer.busy_until_ns, (until > now_ns ? until : now_ns) + ns,
		memory_order_relaxed);
	atomic_store_explicit(&td_pacer.last, window, memory_order_relaxed);
}

static bool is_last(const struct td_window *window)
{
	return atomic_load_explicit(&td_pacer.last, memory_order_relaxed) == window;
}

void td_pause_dry(const struct td_window *window, uint64_t now_ns)
{
	if (is_last(window))
		atomic_store_explicit(&td_pacer.busy_until_ns, now_ns, memory_order_relaxed);
}

void td_pause_abandoned(const struct td_window *window)
{
	if (is_last(window))
		atomic_store_explicit(&td_pacer.last, NULL, memory_order_relaxed);
}

static uint64_t left_ns(uint64_t now_ns)
{
	uint64_t until = atomic_load_explicit(&td_pacer.busy_until_ns, memory_order_relaxed);

	return until > now_ns ? until - now_ns : 0;
}

static uint64_t in_flight_ns(const struct td_window *window, uint64_t now_ns)
{
	uint64_t own = window->expected_ns + window->unmarked_ns, all = left_ns(now_ns);

	return is_last(window) || own > all ? own : all;
}

bool td_pause_is_free(const struct td_window *window, uint32_t word, uint64_t ns, uint64_t now_ns)
{
	uint64_t until = atomic_load_explicit(&td_gate.page.pause_until_ns, memory_order_relaxed),
		 bound = atomic_load_explicit(&td_gate.page.window_ns, memory_order_relaxed);
	uint32_t sharers = atomic_load_explicit(&td_gate.page.sharers, memory_order_relaxed);
	uint64_t before, after;

	if (!until)
		return false;
	if (!(word & TD_WORD_WINDOW))
		return true;
	before = in_flight_ns(window, now_ns);
	after = before + ns;
	if (after <= bound)
		return true;
	return until > now_ns && before <= (bound > AHEAD_NS ? bound : AHEAD_NS) &&
	       after <= (until - now_ns) / (sharers ? sharers : 1);
}

uint64_t td_pause_wait_ns(const struct td_window *window, uint64_t wait_ns, uint64_t now_ns)
{
	uint64_t look = left_ns(now_ns) / 2;

	if (!in_flight_ns(window, now_ns))
		return wait_ns;
	look = look < LOOK_MIN ? LOOK_MIN : look > LOOK_MAX ? LOOK_MAX : look;
	return look < wait_ns ? look : wait_ns;
}

static bool is_long(uint64_t ns)
{
	uint64_t bound = atomic_load_explicit(&td_gate.page.long_ns, memory_order_relaxed);

	return bound && ns > bound;
}

uint64_t td_pause_wait_long_ns(uint64_t ns, uint64_t wait_ns, uint64_t now_ns)
{
	uint64_t every = atomic_load_explicit(&td_gate.page.long_every_ns, memory_order_relaxed),
		 last_ns = atomic_load_explicit(&td_pacer.long_since_ns, memory_order_relaxed),
		 left;

	if (!is_long(ns) || !last_ns || now_ns - last_ns >= every)
		return wait_ns;
	left = every - (now_ns - last_ns);
	return left > wait_ns ? left : wait_ns;
}

void td_pause_note_long(uint64_t ns, uint64_t now_ns)
{
	if (is_long(ns))
		atomic_store_explicit(&td_pacer.long_since_ns, now_ns, memory_order_relaxed);
}

void td_pause_forked(void)
{
	atomic_store(&td_pacer.long_since_ns, 0);
	atomic_store(&td_pacer.busy_until_ns, 0);
	atomic_store(&td_pacer.last, NULL);
}
