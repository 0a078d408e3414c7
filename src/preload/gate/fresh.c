/* Tries new work, whose length is unknown, one piece at a time; see fresh.h. */
#include "preload/gate/fresh.h"

#include <stdatomic.h>

#include "base/time.h"
#include "preload/base/page.h"
#include "preload/base/window.h"
#include "preload/gate/pacer.h"

#define UNNAMED_SHARE 8
/*
 * While the first new piece is in flight and has not ended, the next is let in after NEW_TIMES the
 * time that the first has been in flight, within these bounds.
 */
#define NEW_TIMES       4
#define NEW_WAIT_MIN_NS (50 * TD_NS_PER_MS)
#define NEW_WAIT_MAX_NS (1 * TD_NS_PER_S)
/*
 * The pause between two checks while this process's own new piece runs. The end of another
 * process's new piece is told by the daemon.
 */
#define LOOK_NS (500 * TD_NS_PER_US)
#define HELD_NS (50 * TD_NS_PER_MS)

static void publish_state(uint32_t set, uint32_t clear)
{
	uint32_t before = atomic_load_explicit(&td_meter.page.fresh, memory_order_relaxed);

	while ((before & (set | clear)) != set &&
		!atomic_compare_exchange_weak_explicit(&td_meter.page.fresh, &before,
			(before & ~clear) | set, memory_order_relaxed, memory_order_relaxed))
		;
}

bool td_fresh_has_name(uint32_t hash)
{
	return hash && !td_window_is_sized(hash);
}

static _Atomic uint64_t *unnamed(uint32_t hash)
{
	return &td_pacer.unnamed_ns[hash ? hash - TD_WINDOW_SIZED : 0];
}

uint64_t td_fresh_likely_ns(uint32_t hash)
{
	return td_fresh_has_name(hash) ? td_solo_expect(&td_pacer.solo, hash)
				       : atomic_load_explicit(unnamed(hash), memory_order_relaxed);
}

/* The estimate moves by one part in UNNAMED_SHARE of the difference, up or down. */
void td_fresh_note_unnamed(uint32_t hash, uint64_t ns)
{
	uint64_t before = atomic_load_explicit(unnamed(hash), memory_order_relaxed);

	if (ns < before)
		ns = before - (before - ns) / UNNAMED_SHARE;
	else if (before)
		ns = before + (ns - before) / UNNAMED_SHARE;
	atomic_store_explicit(unnamed(hash), ns, memory_order_relaxed);
}

/* Returns whether this process is trying out work that was never measured. */
static bool is_trying(uint64_t now_ns)
{
	return atomic_load_explicit(&td_pacer.new_since_ns, memory_order_relaxed) &&
	       now_ns < atomic_load_explicit(&td_pacer.new_next_ns, memory_order_relaxed);
}

uint64_t td_fresh_wait_ns(uint32_t hash, uint64_t now_ns)
{
	bool trying = is_trying(now_ns);

	if (td_fresh_likely_ns(hash) ||
		(!trying && !atomic_load_explicit(&td_gate.page.hold_new, memory_order_relaxed)))
		return 0;
	publish_state(TD_FRESH_BIT_WAITS, 0);
	return atomic_load_explicit(&td_pacer.new_since_ns, memory_order_relaxed) ? LOOK_NS
										  : HELD_NS;
}

void td_fresh_submitted(uint32_t hash, uint64_t now_ns)
{
	uint64_t first = atomic_load_explicit(&td_pacer.new_since_ns, memory_order_relaxed),
		 wait = first && now_ns > first ? NEW_TIMES * (now_ns - first) : 0;

	if (td_fresh_likely_ns(hash))
		return;
	if (!first)
		atomic_store_explicit(&td_pacer.new_since_ns, now_ns, memory_order_relaxed);
	if (wait < NEW_WAIT_MIN_NS)
		wait = NEW_WAIT_MIN_NS;
	if (wait > NEW_WAIT_MAX_NS)
		wait = NEW_WAIT_MAX_NS;
	atomic_store_explicit(&td_pacer.new_next_ns, now_ns + wait, memory_order_relaxed);
	atomic_fetch_add_explicit(
		&td_meter.page.fresh, 1u << TD_FRESH_TRIES_SHIFT, memory_order_relaxed);
	publish_state(TD_FRESH_BIT_IN_FLIGHT, TD_FRESH_BIT_WAITS);
}

/*
 * Work submitted after the new piece has ended, so the new piece does not block the GPU: others may
 * try theirs.
 */
void td_fresh_ended(const struct td_window_mark *mark)
{
	uint64_t first = atomic_load_explicit(&td_pacer.new_since_ns, memory_order_relaxed);

	if (!first || mark->submitted_ns < first)
		return;
	atomic_store_explicit(&td_pacer.new_since_ns, 0, memory_order_relaxed);
	publish_state(0, TD_FRESH_BIT_IN_FLIGHT);
}

void td_fresh_forked(void)
{
	atomic_store(&td_pacer.new_since_ns, 0);
}
