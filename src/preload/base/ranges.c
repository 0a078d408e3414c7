/* A sorted array of allocations; see ranges.h. */
#include "preload/base/ranges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static size_t upper_bound(const struct td_ranges *ranges, uint64_t address)
{
	size_t low = 0, high = ranges->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ranges->rows[middle].base <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int td_ranges_add(struct td_ranges *ranges, struct td_allocation row)
{
	size_t at = upper_bound(ranges, row.base);

	if (ranges->count == ranges->room) {
		size_t room = ranges->room ? 2 * ranges->room : 64;
		struct td_allocation *bigger = realloc(ranges->rows, room * sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		ranges->rows = bigger;
		ranges->room = room;
	}
	memmove(ranges->rows + at + 1, ranges->rows + at, (ranges->count - at) * sizeof(row));
	ranges->rows[at] = row;
	ranges->count++;
	return 0;
}

struct td_allocation *td_ranges_find(const struct td_ranges *ranges, uint64_t address)
{
	size_t at = upper_bound(ranges, address);

	if (!at || address - ranges->rows[at - 1].base >= ranges->rows[at - 1].bytes)
		return NULL;
	return &ranges->rows[at - 1];
}

struct td_allocation *td_ranges_meet(
	const struct td_ranges *ranges, uint64_t address, uint64_t bytes)
{
	size_t at = upper_bound(ranges, address);

	if (at && address - ranges->rows[at - 1].base < ranges->rows[at - 1].bytes)
		return &ranges->rows[at - 1];
	return at < ranges->count && ranges->rows[at].base - address < bytes ? &ranges->rows[at]
									     : NULL;
}

bool td_ranges_remove(struct td_ranges *ranges, uint64_t base, struct td_allocation *ret)
{
	struct td_allocation *row = td_ranges_find(ranges, base);

	if (!row || row->base != base)
		return false;
	*ret = *row;
	ranges->count--;
	memmove(row, row + 1, (size_t)(ranges->rows + ranges->count - row) * sizeof(*row));
	return true;
}
