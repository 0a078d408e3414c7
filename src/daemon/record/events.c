/*
 * Keeps the events of each user; see events.h.
 *
 * Users are in lists by how many records they have. A user who gets or loses a record moves to the
 * neighbouring list. So the fullest list is known without a search: when its last user moves to the
 * list below, that one becomes the fullest.
 */
#include "daemon/record/events.h"

#include <assert.h>

#define NOBODYS UINT64_MAX

void td_events_init(struct td_events *events)
{
	events->next = 1;
	events->count = events->most = 0;
	td_list_init(&events->all);
	td_list_init(&events->free);
	for (unsigned i = 0; i < TD_EVENTS_CHAINS; i++)
		td_list_init(&events->chains[i]);
	for (unsigned i = 0; i <= TD_EVENTS_KEPT; i++)
		td_list_init(&events->by_count[i]);
	for (unsigned i = 0; i < TD_EVENTS_KEPT; i++)
		td_list_append(&events->free, &events->users[i].of_chain);
}

static uint64_t key_of(const struct td_event *event)
{
	return event->of_process ? td_identity_key(event->who) : NOBODYS;
}

static struct td_list *chain_of(struct td_events *events, uint64_t key)
{
	return &events->chains[key * 0x9e3779b97f4a7c15u >> 32 & (TD_EVENTS_CHAINS - 1)];
}

/* Files the user under its new number of records. */
static void recount(struct td_events *events, struct td_event_user *user, uint32_t count)
{
	td_list_remove(&user->of_count);
	td_list_append(&events->by_count[count], &user->of_count);
	user->count = count;
	if (count > events->most)
		events->most = count;
	/* The user was the only one with the most records and has lost one. */
	else if (td_list_empty(&events->by_count[events->most]))
		events->most = count;
}

static struct td_event_user *user_of(struct td_events *events, uint64_t key)
{
	struct td_list *chain = chain_of(events, key), *it;
	struct td_event_user *user;

	td_list_for_each (it, chain) {
		user = td_container_of(it, struct td_event_user, of_chain);
		if (user->key == key)
			return user;
	}
	assert(!td_list_empty(&events->free));
	user = td_container_of(events->free.next, struct td_event_user, of_chain);
	td_list_remove(&user->of_chain);
	td_list_append(chain, &user->of_chain);
	td_list_init(&user->of_count);
	td_list_init(&user->slots);
	user->key = key;
	user->count = 0;
	return user;
}

/* Removes the oldest record of a user with the most records, and returns its slot. */
static struct td_event_slot *evict(struct td_events *events)
{
	struct td_event_user *user = td_container_of(
		events->by_count[events->most].next, struct td_event_user, of_count);
	struct td_event_slot *slot =
		td_container_of(user->slots.next, struct td_event_slot, of_user);

	td_list_remove(&slot->of_all);
	td_list_remove(&slot->of_user);
	events->count--;
	recount(events, user, user->count - 1);
	if (user->count)
		return slot;
	td_list_remove(&user->of_count);
	td_list_remove(&user->of_chain);
	td_list_append(&events->free, &user->of_chain);
	return slot;
}

const struct td_event *td_events_add(struct td_events *events, const struct td_event *event)
{
	/*
	 * Slots are taken in order until all are used. After that a slot is freed only to be taken
	 * again.
	 */
	struct td_event_slot *slot =
		events->count < TD_EVENTS_KEPT ? &events->slots[events->count] : evict(events);
	struct td_event_user *user = user_of(events, key_of(event));

	slot->event = *event;
	slot->event.number = events->next++;
	td_list_append(&events->all, &slot->of_all);
	td_list_append(&user->slots, &slot->of_user);
	events->count++;
	recount(events, user, user->count + 1);
	return &slot->event;
}

const struct td_event *td_events_get(const struct td_events *events, uint64_t number)
{
	const struct td_event *found = NULL;

	for (const struct td_list *it = events->all.prev; it != &events->all; it = it->prev) {
		const struct td_event *event =
			&td_container_of(it, const struct td_event_slot, of_all)->event;

		if (event->number < number)
			break;
		found = event;
	}
	return found;
}

const struct td_event *td_events_next(const struct td_events *events, const struct td_event *event)
{
	const struct td_list *next =
		td_container_of(event, const struct td_event_slot, event)->of_all.next;

	return next == &events->all
		       ? NULL
		       : &td_container_of(next, const struct td_event_slot, of_all)->event;
}

const char *td_event_name(enum td_event_kind kind)
{
	static const char *const names[] = {
#define EVENT(id, name, help) name,
#include "daemon/record/events.def"
#undef EVENT
	};

	return kind < TD_EVENT_N ? names[kind] : "?";
}
