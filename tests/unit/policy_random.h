/* Random numbers for property tests: xorshift, so that a failure can be had again by its seed. */
#pragma once

#include <stdint.h>

static inline uint64_t random_next(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return *state = x;
}

/* 0 to n - 1. */
static inline uint32_t random_below(uint64_t *state, uint32_t n)
{
	return (uint32_t)((random_next(state) >> 32) * n >> 32);
}

/* [0, 1) */
static inline double random_unit(uint64_t *state)
{
	return (double)(random_next(state) >> 11) * 0x1p-53;
}

/* About normal, mean 0, deviation 1: twelve uniforms. */
static inline double random_normal(uint64_t *state)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += random_unit(state);
	return sum;
}
