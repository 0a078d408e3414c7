/* Arrays carved from memory that the caller provides; with memory NULL only their size is counted. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct td_carve {
	char *memory;
	size_t used;
};

static inline void *td_carve(struct td_carve *carve, size_t bytes)
{
	void *at = carve->memory ? carve->memory + carve->used : NULL;

	carve->used += (bytes + 63) & ~(size_t)63;
	return at;
}

#define TD_CARVE(carve, type, count) ((type *)td_carve((carve), sizeof(type) * (size_t)(count)))
