/* The lesser and the greater of two integers, and a difference that ends at 0. */
#pragma once

#include <stdint.h>

static inline uint32_t td_min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static inline uint64_t td_min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t td_max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Returns a - b, or 0 if b is greater. */
static inline uint64_t td_sub_sat(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}
