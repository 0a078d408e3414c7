/* Sorts 64-bit keys ascending, in place, without memory: heap sort. */
#pragma once

#include <stdint.h>

void td_sort_u64(uint64_t *keys, uint32_t n);
