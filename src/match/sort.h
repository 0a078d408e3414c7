/*
 * Sorts 64-bit keys ascending, in place, without memory: heap sort. Internal to match.h.
 *
 * Purpose. Hashes and means of rows are sorted with the index in the lower bits, so equal ones keep
 * the order of their indices and the result is the same everywhere. libc's qsort may allocate, and
 * leaves the order of equals open.
 *
 * Invariants: the result has the same keys, ascending; n log n comparisons bound the time for any
 * input.
 */
#pragma once

#include <stdint.h>

void td_sort_u64(uint64_t *keys, uint32_t n);
