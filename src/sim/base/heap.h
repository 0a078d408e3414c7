/*
 * The near future: events by time, and by their order where times are equal. future.h holds the
 * later events, too.
 *
 * It is a heap of four children per node. An event is 16 bytes, compared as one number, and the
 * four children of a node share a cache line. After a pop the root is left open: the next push
 * usually goes there and saves a walk, because an event commonly causes the next one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define TD_EVENT_ALIGN 64u

struct td_event {
	uint32_t what, order;
	uint64_t at_ns;
};

struct td_heap {
	struct td_event *events; /* events[1] is at the start of a cache line */
	void *memory;
	uint32_t count, room;
	bool open; /* the root has been popped and not replaced yet */
};

static inline void td_heap_deinit(struct td_heap *heap)
{
	free(heap->memory);
	*heap = (struct td_heap){0};
}

/* Makes room for so many events. Returns 0; -1: out of memory. */
static inline int td_heap_reserve(struct td_heap *heap, uint32_t room)
{
	size_t bytes = ((size_t)room + 8) * sizeof(struct td_event);
	char *memory;

	if (room <= heap->room)
		return 0;
	memory = aligned_alloc(
		TD_EVENT_ALIGN, (bytes + TD_EVENT_ALIGN - 1) / TD_EVENT_ALIGN * TD_EVENT_ALIGN);
	if (!memory)
		return -1;
	memory += 3 * sizeof(struct td_event);
	if (heap->count)
		memcpy(memory, heap->events, heap->count * sizeof(struct td_event));
	free(heap->memory);
	heap->memory = memory - 3 * sizeof(struct td_event);
	heap->events = (struct td_event *)(void *)memory;
	heap->room = room;
	return 0;
}

static inline unsigned __int128 td_event_key(const struct td_event *event)
{
	return (unsigned __int128)event->at_ns << 64 | (uint64_t)event->order << 32 | event->what;
}

static inline void td_heap_up(struct td_heap *heap, uint32_t at, struct td_event event)
{
	struct td_event *e = heap->events;
	unsigned __int128 key = td_event_key(&event);

	while (at) {
		uint32_t parent = (at - 1) / 4;

		if (td_event_key(&e[parent]) <= key)
			break;
		e[at] = e[parent];
		at = parent;
	}
	e[at] = event;
}

static inline uint32_t td_heap_least_child(const struct td_event *e, uint32_t first)
{
	uint32_t a = td_event_key(&e[first + 1]) < td_event_key(&e[first]) ? first + 1 : first;
	uint32_t b =
		td_event_key(&e[first + 3]) < td_event_key(&e[first + 2]) ? first + 3 : first + 2;

	return td_event_key(&e[b]) < td_event_key(&e[a]) ? b : a;
}

/* Puts an event in place of the root and moves it down to its place. */
static inline void td_heap_down(struct td_heap *heap, struct td_event event)
{
	struct td_event *e = heap->events;
	unsigned __int128 key = td_event_key(&event);
	uint32_t at = 0, first;

	/* First nodes with all four children, then the last one, which may have fewer. */
	while ((first = 4 * at + 1) + 3 < heap->count) {
		uint32_t least = td_heap_least_child(e, first);

		__builtin_prefetch(&e[4 * (uint64_t)least + 1]);
		if (key <= td_event_key(&e[least])) {
			e[at] = event;
			return;
		}
		e[at] = e[least];
		at = least;
	}
	if (first < heap->count) {
		uint32_t least = first;

		for (uint32_t i = first + 1; i < heap->count; i++)
			least = td_event_key(&e[i]) < td_event_key(&e[least]) ? i : least;
		if (td_event_key(&e[least]) < key) {
			e[at] = e[least];
			at = least;
		}
	}
	e[at] = event;
}

/* Adds an event. There must be room for it. */
static inline void td_heap_push(struct td_heap *heap, struct td_event event)
{
	if (heap->open) {
		heap->open = false;
		td_heap_down(heap, event);
	} else {
		td_heap_up(heap, heap->count++, event);
	}
}

/* Returns the next event; NULL: there is none. The pointer is valid until the next push or pop. */
static inline const struct td_event *td_heap_peek(struct td_heap *heap)
{
	if (heap->open) {
		heap->open = false;
		if (--heap->count)
			td_heap_down(heap, heap->events[heap->count]);
	}
	return heap->count ? heap->events : NULL;
}

/* Removes the next event. Returns false if there is none. */
static inline bool td_heap_pop(struct td_heap *heap, struct td_event *ret)
{
	const struct td_event *next = td_heap_peek(heap);

	if (!next)
		return false;
	*ret = *next;
	heap->open = true;
	return true;
}
