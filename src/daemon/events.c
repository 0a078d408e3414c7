/* The event ring; see events.h. */
#include "daemon/events.h"

void td_events_init(struct td_events *events)
{
	events->next = 1;
}

const struct td_event *td_events_add(struct td_events *events, const struct td_event *event)
{
	struct td_event *at = &events->ring[events->next % TD_EVENTS_KEPT];

	*at = *event;
	at->number = events->next++;
	return at;
}

const struct td_event *td_events_get(const struct td_events *events, uint64_t number)
{
	uint64_t oldest = events->next > TD_EVENTS_KEPT ? events->next - TD_EVENTS_KEPT : 1;

	if (number < oldest)
		number = oldest;
	return number < events->next ? &events->ring[number % TD_EVENTS_KEPT] : NULL;
}

const char *td_event_name(enum td_event_kind kind)
{
	static const char *const names[] = {
#define EVENT(id, name, help) name,
#include "daemon/events.def"
#undef EVENT
	};

	return kind < TD_EVENT_N ? names[kind] : "?";
}
