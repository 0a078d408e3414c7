/* The clock of paid GPU time; see clock.h. */
#include "preload/gate/clock.h"

#include <pthread.h>
#include <stddef.h>

#include "base/time.h"
#include "preload/context/context.h"
#include "preload/driver/driver.h"
#include "preload/gate/pacer.h"
#include "proto/words.h"

/*
 * The clock starts at EPOCH_NS and changes to a younger base event every REBASE_NS. The driver's
 * float distances are exact to 60 ns within that time.
 */
#define EPOCH_NS  (3600 * TD_NS_PER_S)
#define REBASE_NS (1.0 * TD_NS_PER_S)

double td_clock_between_ns(const struct td_driver *driver, void *from, void *to)
{
	float ms = 0;

	if (!from || driver->event_elapsed_ms(&ms, from, to))
		return -1;
	return ms > 0 ? (double)ms * 1e6 : 0;
}

bool td_clock_find_fresh(int gpu, uint64_t context, const struct td_driver *driver, void *event,
	uint64_t raw_ns, uint64_t *ret_ns)
{
	struct td_clock *clock = &td_pacer.clocks[gpu];
	double since = -1;
	uint64_t end;

	pthread_mutex_lock(&clock->lock);
	if (clock->context == context)
		since = td_clock_between_ns(driver, clock->base, event);
	if (since >= 0) {
		end = clock->base_ns + (uint64_t)since;
		*ret_ns = td_spans_add(&clock->spans, end > raw_ns ? end - raw_ns : 0, end);
	}
	pthread_mutex_unlock(&clock->lock);
	return since >= 0;
}

void *td_clock_set(int gpu, uint64_t context, const struct td_driver *driver, void *event)
{
	struct td_clock *clock = &td_pacer.clocks[gpu];
	void *spare = event;
	uint64_t before;
	bool alive;

	if (!event)
		return NULL;
	pthread_mutex_lock(&clock->lock);
	before = clock->context;
	pthread_mutex_unlock(&clock->lock);
	alive = td_context_is_alive(before);
	pthread_mutex_lock(&clock->lock);
	/* Another thread may have set a base meanwhile; then that one stays. */
	if (!clock->base || (clock->context == before && before != context && !alive)) {
		clock->context = context;
		clock->base = event;
		clock->base_ns = EPOCH_NS;
		clock->spans = (struct td_spans){.count = 0};
		spare = NULL;
	} else if (clock->context == context) {
		double since = td_clock_between_ns(driver, clock->base, event);

		if (since > REBASE_NS) {
			spare = clock->base;
			clock->base = event;
			clock->base_ns += (uint64_t)since;
		}
	}
	pthread_mutex_unlock(&clock->lock);
	return spare;
}

void td_clock_forked(void)
{
	for (unsigned i = 0; i < TD_SLOT_MAX; i++)
		td_pacer.clocks[i] = (struct td_clock){.lock = PTHREAD_MUTEX_INITIALIZER};
}
