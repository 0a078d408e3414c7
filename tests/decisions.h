/* One hash a line of all that a module decides: what tests/decisions*.c share. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

static uint64_t hash;

static inline void put(const void *bytes, size_t n)
{
	const unsigned char *at = bytes;

	for (size_t k = 0; k < n; k++)
		hash = (hash ^ at[k]) * 1099511628211u;
}

/* Field by field: between them is padding. */
#define PUT(x)                                                                                     \
	do {                                                                                       \
		__typeof__(x) put_ = (x);                                                          \
		put(&put_, sizeof(put_));                                                          \
	} while (0)

static inline void hash_begin(void)
{
	hash = 14695981039346656037u;
}

static inline void end(const char *name)
{
	printf("%s %016llx\n", name, (unsigned long long)hash);
}

/* decisions_sim.c: the simulator's engine under every scheduler, and the models that it asks. */
void decide_simulations(void);
