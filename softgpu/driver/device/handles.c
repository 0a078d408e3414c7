/*
 * The set of live handles: a hash set of the addresses that programs were given, each with its
 * kind. A handle is looked up here before it is dereferenced, so a stale or invalid handle is
 * refused.
 */
#include "softgpu/driver/device/handles.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#define FIRST_ROOM 256u

struct entry {
	const void *handle; /* NULL: this entry is free */
	enum sg_kind kind;
};

/* Open addressing, at most half full. The capacity is a power of two. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *entries;
static size_t count, room;

static size_t place_of(const void *handle)
{
	return (size_t)(((uint64_t)handle >> 4) * 0x9e3779b97f4a7c15ull >> 20) & (room - 1);
}

/* Returns the handle's entry, or the free entry where it would be inserted. */
static struct entry *find_entry(const void *handle)
{
	size_t i = place_of(handle);

	while (entries[i].handle && entries[i].handle != handle)
		i = (i + 1) & (room - 1);
	return &entries[i];
}

static bool grow(void)
{
	struct entry *before = entries;
	size_t before_room = room;

	if (2 * (count + 1) <= room)
		return true;
	entries = calloc(room ? 2 * room : FIRST_ROOM, sizeof(*entries));
	if (!entries) {
		entries = before;
		return false;
	}
	room = room ? 2 * room : FIRST_ROOM;
	for (size_t i = 0; i < before_room; i++)
		if (before[i].handle)
			*find_entry(before[i].handle) = before[i];
	free(before);
	return true;
}

bool sg_handle_add(const void *handle, enum sg_kind kind)
{
	bool done;

	pthread_mutex_lock(&lock);
	done = grow();
	if (done) {
		*find_entry(handle) = (struct entry){handle, kind};
		count++;
	}
	pthread_mutex_unlock(&lock);
	return done;
}

/* Entries behind the removed one are moved up, so that a lookup does not stop at the gap. */
void sg_handle_remove(const void *handle)
{
	size_t i, gap;

	pthread_mutex_lock(&lock);
	if (room && find_entry(handle)->handle) {
		gap = (size_t)(find_entry(handle) - entries);
		entries[gap].handle = NULL;
		count--;
		for (i = (gap + 1) & (room - 1); entries[i].handle; i = (i + 1) & (room - 1)) {
			size_t wanted = place_of(entries[i].handle);

			if (((i - wanted) & (room - 1)) < ((i - gap) & (room - 1)))
				continue;
			entries[gap] = entries[i];
			entries[i].handle = NULL;
			gap = i;
		}
	}
	pthread_mutex_unlock(&lock);
}

bool sg_handle_is(const void *handle, enum sg_kind kind)
{
	bool is = false;

	pthread_mutex_lock(&lock);
	if (handle && room) {
		const struct entry *entry = find_entry(handle);

		is = entry->handle && entry->kind == kind;
	}
	pthread_mutex_unlock(&lock);
	return is;
}
