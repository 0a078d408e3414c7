/*
 * Arrays carved from memory that the caller provides. Internal to match.h.
 *
 * Purpose. Nothing in src/match allocates: the caller asks how much it takes, provides it, and may
 * use it again for the next problem. One sequence of carvings runs twice, with memory NULL to count
 * and with memory to carve, so the two cannot disagree.
 *
 * Invariants: arrays do not overlap. Each starts at a multiple of 64 bytes from `memory`: a cache
 * line and two AVX2 registers. Without memory every array is NULL, and nothing is touched.
 */
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
