/* This file implements bursts.h. */
#include "preload/measure/bursts.h"

#include <stdatomic.h>

#include "preload/base/page.h"

#define SMOOTHING 16 /* a burst moves the means by one part in this of the difference */

/* When the burst began, and the last call in it. 0: there was none. */
static _Atomic uint64_t first_ns, last_ns;

static void move(_Atomic uint64_t *mean_ns, uint64_t to_ns)
{
	uint64_t mean = atomic_load_explicit(mean_ns, memory_order_relaxed);

	if (!mean)
		mean = to_ns;
	else if (to_ns >= mean)
		mean += (to_ns - mean) / SMOOTHING;
	else
		mean -= (mean - to_ns) / SMOOTHING;
	atomic_store_explicit(mean_ns, mean ? mean : 1, memory_order_relaxed);
}

void td_bursts_call(uint64_t now_ns, bool waits)
{
	uint64_t last = atomic_exchange_explicit(&last_ns, now_ns, memory_order_relaxed), first;

	if (waits || (last && now_ns < last + TD_BURST_GAP_NS))
		return;
	first = atomic_exchange_explicit(&first_ns, now_ns, memory_order_relaxed);
	if (first && first <= last && first < now_ns) {
		move(&td_meter.page.burst_every_ns, now_ns - first);
		move(&td_meter.page.burst_ns, last - first);
	}
	atomic_store_explicit(&td_meter.page.burst_began_ns, now_ns, memory_order_relaxed);
}
