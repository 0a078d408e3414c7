/* Frees memory later; see late.h. */
#include "preload/memory/late.h"

#include <stdlib.h>

#include "base/time.h"
#include "preload/base/backend.h"
#include "preload/base/lock.h"
#include "preload/context/context.h"
#include "preload/context/drain.h"
#include "preload/driver/driver.h"

#define AWAIT_NS (2 * TD_NS_PER_S)
#define LOOK_NS  TD_NS_PER_MS

struct late {
	struct late *next;
	uint64_t address, ticket;
	struct td_context context;
};

/* No driver call is made under this lock. */
static struct td_lock lock = TD_LOCK_INIT(TD_RANK_BACKEND);
static struct late *list; /* guarded by lock */
/* Changed under the lock. Includes entries that are just being freed. */
static _Atomic uint32_t count;
static _Atomic bool exiting;

typedef bool (*match_fn)(const struct late *late, const void *context);

static bool is_drained(const struct late *late, const void *unused)
{
	(void)unused;
	return td_drain_is_done(late->ticket);
}

static bool is_of(const struct late *late, const void *context)
{
	return late->context.handle == context;
}

static struct late *take(match_fn matches, const void *context)
{
	struct late *taken = NULL;

	td_lock_take(&lock);
	for (struct late **p = &list; *p;) {
		struct late *late = *p;

		if (!matches(late, context)) {
			p = &late->next;
			continue;
		}
		*p = late->next;
		late->next = taken;
		taken = late;
	}
	td_lock_drop(&lock);
	return taken;
}

static void lose(const struct late *late)
{
	td_agent_backend()->lost(late->address, late->context.handle);
}

/* Frees the memory. Its context is current. */
static void give_back(const struct late *late)
{
	(void)td_agent_backend()->release(late->address);
}

static void end_all(struct late *taken, void (*how)(const struct late *late))
{
	while (taken) {
		struct late *late = taken;

		taken = late->next;
		how(late);
		free(late);
		atomic_fetch_sub(&count, 1);
	}
}

/* -- the drain thread -- */

static void give_back_in_context(const struct late *late)
{
	const struct td_driver *driver = td_driver();
	void *popped;

	if (!td_context_claim(TD_CLAIM_DRAIN, &late->context, false)) {
		lose(late);
		return;
	}
	if (!driver->ctx_push_current(late->context.handle)) {
		give_back(late);
		(void)driver->ctx_pop_current(&popped);
	} else {
		lose(late);
	}
	td_context_unclaim(TD_CLAIM_DRAIN);
}

/*
 * Called by the drain thread. It may wait for a context, so no capture begins until the driver has
 * the call. While a capture is open, nothing is done.
 */
static void collect(void)
{
	bool none;

	if (!atomic_load(&count) || atomic_load(&exiting))
		return;
	none = td_context_hold_captures();
	if (none)
		td_context_waiting(true);
	td_context_release_captures();
	if (!none)
		return;
	end_all(take(is_drained, NULL), give_back_in_context);
	td_context_waiting(false);
}

/* -- the program's threads -- */

bool td_late_free(uint64_t address, void *context)
{
	struct late *late = calloc(1, sizeof(*late));

	if (!late)
		return false;
	*late = (struct late){.address = address,
		.context = {.handle = context, .serial = td_context_serial_of(context)}};
	td_drain_set_after(collect);
	late->ticket = td_drain_begin();
	if (!late->ticket || !late->context.serial) {
		free(late);
		return false;
	}
	td_lock_take(&lock);
	late->next = list;
	list = late;
	atomic_fetch_add(&count, 1);
	td_lock_drop(&lock);
	return true;
}

bool td_late_has(uint64_t address)
{
	bool has = false;

	if (!atomic_load(&count))
		return false;
	td_lock_take(&lock);
	for (const struct late *late = list; late && !has; late = late->next)
		has = late->address == address;
	td_lock_drop(&lock);
	return has;
}

void td_late_is_over(const void *context)
{
	if (atomic_load(&count))
		end_all(take(is_of, context), give_back);
}

void td_late_context_ended(const void *context)
{
	if (atomic_load(&count))
		end_all(take(is_of, context), lose);
}

bool td_late_await(void)
{
	uint64_t end_ns = td_time_now_ns() + AWAIT_NS;
	uint32_t before = atomic_load(&count);

	while (atomic_load(&count) && td_time_now_ns() < end_ns)
		td_time_sleep_until_ns(td_time_now_ns() + LOOK_NS);
	return atomic_load(&count) < before;
}

void td_late_exiting(void)
{
	atomic_store(&exiting, true);
}

void td_late_forked(void)
{
	atomic_store(&exiting, false);
	td_lock_reset(&lock);
	list = NULL;
	atomic_store(&count, 0);
}
