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
	void *of; /* the caller's */
};

struct td_ranges {
	struct td_allocation *rows;
	size_t count, room;
};

/* Returns 0 or -ENOMEM. */
int td_ranges_add(struct td_ranges *ranges, struct td_allocation row);
/* The row that holds the address, or NULL. */
struct td_allocation *td_ranges_find(const struct td_ranges *ranges, uint64_t address);
/* The first row that has a byte of these, at least 1, or NULL. */
struct td_allocation *td_ranges_meet(
	const struct td_ranges *ranges, uint64_t address, uint64_t bytes);
/* Removes a row by its first address. */
bool td_ranges_remove(struct td_ranges *ranges, uint64_t base, struct td_allocation *ret);
