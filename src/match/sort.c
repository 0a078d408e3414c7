/* Sorts by heap sort, since libc's qsort may allocate memory; see sort.h. */
#include "match/sort.h"

static void sift(uint64_t *keys, uint32_t at, uint32_t n)
{
	uint64_t key = keys[at];

	for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
		child += child + 1 < n && keys[child + 1] > keys[child];
		if (keys[child] <= key)
			break;
		keys[at] = keys[child];
	}
	keys[at] = key;
}

void td_sort_u64(uint64_t *keys, uint32_t n)
{
	for (uint32_t i = n / 2; i--;)
		sift(keys, i, n);
	for (uint32_t end = n; end > 1; end--) {
		uint64_t max = keys[0];

		keys[0] = keys[end - 1];
		keys[end - 1] = max;
		sift(keys, 0, end - 1);
	}
}
