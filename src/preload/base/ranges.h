/*
 * A backend's allocations by address: a sorted array, for backends that need no more. The caller
 * locks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct td_allocation {
	uint64_t base, bytes;
	unsigned slot;
	void *of; /* the caller's data */
};

struct td_ranges {
	struct td_allocation *rows;
	size_t count, room;
};

/* Returns 0 or -ENOMEM. */
int td_ranges_add(struct td_ranges *ranges, struct td_allocation row);
/* Returns the row that contains the address, or NULL. The next add or remove makes it invalid. */
struct td_allocation *td_ranges_find(const struct td_ranges *ranges, uint64_t address);
/* Returns the first row that overlaps these bytes (at least 1), or NULL. */
struct td_allocation *td_ranges_meet(
	const struct td_ranges *ranges, uint64_t address, uint64_t bytes);
/* Removes the row that begins at `base`. Returns false if there is none. */
bool td_ranges_remove(struct td_ranges *ranges, uint64_t base, struct td_allocation *ret);
