/*
 * The time for which this process has been held while another one has a moment alone
 * (policy/node/alone.h). Threads ask at any time, and moments may follow each other directly. The
 * moment's number and the time are one word, so that no thread takes the time of one moment for
 * another's.
 *
 * Atomics only, no clock.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

/* Number, ms since an unknown origin. 0: never held. */
typedef _Atomic uint64_t td_hold;

/* Longer than this nobody is held for one moment, whatever the page says. */
#define TD_HOLD_MAX_MS 200u
/* Threads that ask at the same time have not read the clock in the same order. */
#define TD_HOLD_LATE_MS 1000u

/* The page says that we are held under the number, not 0: is that to be heeded still? */
static inline bool td_hold_lasts(td_hold *hold, uint32_t number, uint64_t now_ns)
{
	uint32_t now_ms = (uint32_t)(now_ns / TD_NS_PER_MS);
	uint64_t was = atomic_load_explicit(hold, memory_order_relaxed);

	while (was >> 32 != number)
		if (atomic_compare_exchange_weak_explicit(hold, &was,
			    (uint64_t)number << 32 | now_ms, memory_order_relaxed,
			    memory_order_relaxed))
			return true;
	return now_ms + TD_HOLD_LATE_MS - (uint32_t)was <= TD_HOLD_MAX_MS + TD_HOLD_LATE_MS;
}
