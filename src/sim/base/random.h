/*
 * The random generator splitmix64, and distributions drawn from it. The state is a seed; same seed,
 * same numbers on every machine.
 */
#pragma once

#include <math.h>
#include <stdint.h>

static inline uint64_t td_random_bits(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* Returns a random number in [0, 1). */
static inline double td_random_unit(uint64_t *state)
{
	return (double)(td_random_bits(state) >> 11) * 0x1p-53;
}

/* Returns a random integer in [0, n); n > 0. */
static inline uint32_t td_random_below(uint64_t *state, uint32_t n)
{
	return (uint32_t)((td_random_bits(state) >> 32) * n >> 32);
}

static inline double td_random_exponential(uint64_t *state, double mean)
{
	return -mean * log1p(-td_random_unit(state));
}

/* Returns a number of the standard normal distribution, by the method of Box and Muller. */
static inline double td_random_normal(uint64_t *state)
{
	double radius = sqrt(-2 * log1p(-td_random_unit(state)));

	return radius * cos(2 * M_PI * td_random_unit(state));
}

/* Shuffles the items by the method of Fisher and Yates. */
static inline void td_random_shuffle(uint64_t *state, uint32_t *items, uint32_t count)
{
	for (uint32_t i = count; i > 1; i--) {
		uint32_t k = td_random_below(state, i), kept = items[k];

		items[k] = items[i - 1];
		items[i - 1] = kept;
	}
}
