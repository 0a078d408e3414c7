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

/* The number of the moment, and the ms since an arbitrary origin. 0: never held. */
typedef _Atomic uint64_t td_hold;

/* No process is held longer than this for one moment, whatever the daemon's page says. */
#define TD_HOLD_MAX_MS 200u
/* Threads that check at the same time may have read the clock in another order, by at most this. */
#define TD_HOLD_LATE_MS 1000u

/*
 * The page says that the moment `number` (not 0) holds this process. Returns whether it still does.
 */
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
