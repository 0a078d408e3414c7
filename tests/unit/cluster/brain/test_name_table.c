/* The table from names to numbers. */
#include "test.h"

#include "cluster/brain/name_table.h"

TEST(names_have_numbers_until_they_are_removed)
{
	struct td_name_table names;
	char long_name[TD_NAME_MAX + 1];

	CHECK_EQ(td_name_table_init(&names, 3, 0), 0);
	CHECK_EQ(td_name_table_add(&names, "a"), 0);
	CHECK_EQ(td_name_table_add(&names, "b"), 1);
	CHECK_EQ(td_name_table_add(&names, "c"), 2);
	CHECK_EQ(td_name_table_add(&names, "d"), TD_NO_NAME);
	CHECK_EQ(td_name_table_find(&names, "b"), 1);
	td_name_table_remove(&names, 1);
	CHECK_EQ(td_name_table_find(&names, "b"), TD_NO_NAME);
	CHECK_EQ(td_name_table_add(&names, ""), TD_NO_NAME);
	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = 0;
	CHECK_EQ(td_name_table_add(&names, long_name), TD_NO_NAME);
	CHECK_EQ(td_name_table_add(&names, "e"), 1);
	CHECK_EQ(names.count, 3);
	td_name_table_deinit(&names);
}

TEST(numbers_may_go_downwards)
{
	struct td_name_table names;

	CHECK_EQ(td_name_table_init(&names, 3, 1), 0);
	CHECK_EQ(td_name_table_add(&names, "a"), 2);
	CHECK_EQ(td_name_table_add(&names, "b"), 1);
	td_name_table_deinit(&names);
}
