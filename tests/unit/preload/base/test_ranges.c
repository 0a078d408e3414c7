/* Allocations by address. */
#include <stdlib.h>

#include "preload/base/ranges.h"
#include "test.h"

static struct td_ranges three(void)
{
	struct td_ranges ranges = {0};

	CHECK_EQ(td_ranges_add(&ranges, (struct td_allocation){300, 100, 0, NULL}), 0);
	CHECK_EQ(td_ranges_add(&ranges, (struct td_allocation){100, 50, 0, NULL}), 0);
	CHECK_EQ(td_ranges_add(&ranges, (struct td_allocation){400, 10, 0, NULL}), 0);
	return ranges;
}

static uint64_t met(const struct td_ranges *ranges, uint64_t address, uint64_t bytes)
{
	const struct td_allocation *row = td_ranges_meet(ranges, address, bytes);

	return row ? row->base : 0;
}

TEST(an_address_is_found_in_the_row_that_has_it)
{
	struct td_ranges ranges = three();

	CHECK(!td_ranges_find(&ranges, 99));
	CHECK_EQ(td_ranges_find(&ranges, 100)->base, 100);
	CHECK_EQ(td_ranges_find(&ranges, 149)->base, 100);
	CHECK(!td_ranges_find(&ranges, 150));
	CHECK_EQ(td_ranges_find(&ranges, 399)->base, 300);
	CHECK_EQ(td_ranges_find(&ranges, 400)->base, 400);
	CHECK(!td_ranges_find(&ranges, 410));
	free(ranges.rows);
}

TEST(bytes_meet_the_first_row_that_has_any_of_them)
{
	struct td_ranges ranges = three(), none = {0};

	CHECK_EQ(met(&ranges, 0, 100), 0);
	CHECK_EQ(met(&ranges, 0, 101), 100);
	CHECK_EQ(met(&ranges, 149, 1), 100);
	CHECK_EQ(met(&ranges, 149, 1000), 100);
	CHECK_EQ(met(&ranges, 150, 150), 0);
	CHECK_EQ(met(&ranges, 150, 151), 300);
	CHECK_EQ(met(&ranges, 399, 100), 300);
	CHECK_EQ(met(&ranges, 410, UINT64_MAX), 0);
	CHECK_EQ(met(&ranges, 0, UINT64_MAX), 100);
	CHECK_EQ(met(&none, 0, UINT64_MAX), 0);
	free(ranges.rows);
}

TEST(a_row_goes_by_its_first_address_only)
{
	struct td_ranges ranges = three();
	struct td_allocation row;

	CHECK(!td_ranges_remove(&ranges, 101, &row));
	CHECK(td_ranges_remove(&ranges, 300, &row));
	CHECK_EQ(row.bytes, 100);
	CHECK(!td_ranges_find(&ranges, 300));
	CHECK_EQ(td_ranges_find(&ranges, 400)->base, 400);
	CHECK_EQ(ranges.count, 2);
	free(ranges.rows);
}
