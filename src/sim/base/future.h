/*
 * The future events of a simulation, by time, and in the order of insertion where times are equal.
 *
 * The next events are in a small heap, which stays in the processor's first cache. Later ones lie
 * unsorted in buckets of time, each 64 times as wide as those a level below (a radix heap: Ahuja,
 * Mehlhorn, Orlin, Tarjan, "Faster algorithms for the shortest path problem", 1990). When the heap
 * is empty the first bucket moves there, or is divided among those of the level below if it has too
 * many. So an event is appended two or three times and sorted among few, however many are pending.
 * With most events in one nanosecond the heap alone works.
 *
 * An event's level is that of the first digit to the base of 64 in which its time differs from
 * `base_ns`, the start of the bucket that was taken last: no event outside of the heap is before
 * its end, `last_ns`.
 *
 * `what` belongs to the caller. The order wraps after 2^32 pushes, which only matters among events
 * of the same nanosecond.
 */
#pragma once

#include "sim/base/heap.h"

#define TD_FUTURE_BITS   6u
#define TD_FUTURE_DIGITS (1u << TD_FUTURE_BITS)
#define TD_FUTURE_LEVELS ((64 + TD_FUTURE_BITS - 1) / TD_FUTURE_BITS)
#define TD_FUTURE_NEAR   16u /* a bucket with more events is divided */
#define TD_FUTURE_CHUNK  31u /* events in a chunk: with its head it has 512 bytes */

/* Holds some events of one bucket, or is in the list of free chunks. */
struct td_future_chunk {
	uint32_t next, count; /* next: index of the next chunk plus 1; 0: none */
	struct td_event events[TD_FUTURE_CHUNK];
};

struct td_future {
	struct td_heap near;
	uint64_t base_ns, last_ns;
	uint64_t occupied[TD_FUTURE_LEVELS]; /* per level one bit for each digit with events */
	struct {
		uint32_t chunks, count; /* chunks: like a chunk's next, of the free list */
	} buckets[TD_FUTURE_LEVELS][TD_FUTURE_DIGITS];
	struct td_future_chunk *chunks;
	uint32_t free, chunk_count;
	uint32_t count, room, next_order; /* count: all events, near and far */
};

static inline void td_future_deinit(struct td_future *future)
{
	td_heap_deinit(&future->near);
	free(future->chunks);
	*future = (struct td_future){0};
}

/* Makes room for so many events. Returns 0; -1: out of memory, and nothing has changed. */
static inline int td_future_reserve(struct td_future *future, uint32_t room)
{
	/*
	 * Enough for the full chunks, one partial chunk per bucket, and the chunk that is read
	 * while its bucket is divided.
	 */
	uint64_t most = (uint64_t)room / TD_FUTURE_CHUNK + TD_FUTURE_LEVELS * TD_FUTURE_DIGITS + 2;
	struct td_future_chunk *chunks;

	if (room <= future->room)
		return 0;
	if (most > UINT32_MAX || td_heap_reserve(&future->near, room))
		return -1;
	chunks = realloc(future->chunks, most * sizeof(*chunks));
	if (!chunks)
		return -1;
	future->chunks = chunks;
	while (future->chunk_count < most) {
		chunks[future->chunk_count].next = future->free;
		future->free = ++future->chunk_count;
	}
	future->room = room;
	return 0;
}

static inline void td_future_put_far(struct td_future *future, struct td_event event)
{
	uint64_t differs = event.at_ns ^ future->base_ns;
	uint32_t level = differs ? (63u - (uint32_t)__builtin_clzll(differs)) / TD_FUTURE_BITS : 0;
	uint32_t digit = event.at_ns >> level * TD_FUTURE_BITS & (TD_FUTURE_DIGITS - 1);
	uint32_t at = future->buckets[level][digit].chunks;
	struct td_future_chunk *chunk = at ? &future->chunks[at - 1] : NULL;

	if (!chunk || chunk->count == TD_FUTURE_CHUNK) {
		chunk = &future->chunks[future->free - 1];
		future->buckets[level][digit].chunks = future->free;
		future->free = chunk->next;
		chunk->next = at;
		chunk->count = 0;
		future->occupied[level] |= 1ull << digit;
	}
	chunk->events[chunk->count++] = event;
	future->buckets[level][digit].count++;
}

/*
 * Moves the first bucket into the heap, after dividing it as often as needed. Requires a bucket and
 * an empty heap.
 */
static inline void td_future_take(struct td_future *future)
{
	bool near;

	do {
		uint32_t level = 0, digit, shift, at, count;

		while (!future->occupied[level])
			level++;
		shift = level * TD_FUTURE_BITS;
		digit = (uint32_t)__builtin_ctzll(future->occupied[level]);
		at = future->buckets[level][digit].chunks;
		count = future->buckets[level][digit].count;
		future->buckets[level][digit].chunks = future->buckets[level][digit].count = 0;
		future->occupied[level] &= ~(1ull << digit);
		future->base_ns =
			(future->base_ns >> shift >> TD_FUTURE_BITS << TD_FUTURE_BITS | digit)
			<< shift;
		future->last_ns = future->base_ns | ((1ull << shift) - 1);
		near = !level || count <= TD_FUTURE_NEAR;
		while (at) {
			struct td_future_chunk *chunk = &future->chunks[at - 1];
			uint32_t next = chunk->next;

			for (uint32_t i = 0; i < chunk->count; i++) {
				if (near)
					td_heap_push(&future->near, chunk->events[i]);
				else
					td_future_put_far(future, chunk->events[i]);
			}
			chunk->next = future->free;
			future->free = at;
			at = next;
		}
	} while (!near);
}

/*
 * Adds an event. Returns its number, by which the caller recognises the event later. There must be
 * room for it.
 */
static inline uint32_t td_future_push(struct td_future *future, uint64_t at_ns, uint32_t what)
{
	struct td_event event = {.what = what, .order = future->next_order++, .at_ns = at_ns};

	future->count++;
	if (at_ns <= future->last_ns)
		td_heap_push(&future->near, event);
	else
		td_future_put_far(future, event);
	return event.order;
}

/* Returns the next event; NULL: there is none. The pointer is valid until the next push or pop. */
static inline const struct td_event *td_future_peek(struct td_future *future)
{
	const struct td_event *next = td_heap_peek(&future->near);

	if (next || !future->count)
		return next;
	td_future_take(future);
	return td_heap_peek(&future->near);
}

/* Removes the next event. Returns false if there is none. */
static inline bool td_future_pop(struct td_future *future, struct td_event *ret)
{
	if (!td_future_peek(future))
		return false;
	future->count--;
	return td_heap_pop(&future->near, ret);
}
