/*
 * Sorts 64-bit keys ascending, in place, without memory: heap sort. Internal to match.h.
 *
 * Purpose. Hashes of rows and means of rows are sorted with the index in the lower bits, so that equal ones keep the order of their
 * indices and the result is the same everywhere. libc's qsort may allocate, and does not say how it orders equals.
 *
 * Invariants: the same keys, ascending; in the order of n log n comparisons, whatever the order was.
 */
#pragma once

#include <stdint.h>

void td_sort_u64(uint64_t *keys, uint32_t n);
