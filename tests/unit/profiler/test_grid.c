/* The grid of a campaign: its lists, its neighbours, and what is left to measure. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "test.h"

#include "base/err.h"
#include "profiler/service/grid.h"

static struct td_grid grid;
static struct td_err err;

static int read_text(const char *text)
{
	FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	int r;

	memset(&grid, 0, sizeof(grid));
	grid.neighbour_count = 1;
	r = td_grid_read_neighbours(&grid, file, &err);
	fclose(file);
	return r;
}

TEST(lists_ascend_within_their_bounds)
{
	static const char *const bad[] = {"", "10,", ",10", "10,10", "20,10", "0", "101", "ten",
		"10, 20", "99999999999999999999", "1,2,3,4,5"};
	uint32_t list[4], count = 7;

	CHECK_EQ(td_grid_parse_list("10,20,100", 1, 100, list, 4, &count, &err), 0);
	CHECK_EQ(count, 3);
	CHECK_EQ(list[2], 100);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		CHECK_EQ(td_grid_parse_list(bad[i], 1, 100, list, 4, &count, &err), -EINVAL);
	CHECK_EQ(count, 3);
	CHECK(strstr(err.msg, "\"1,2,3,4,5\""));
}

TEST(neighbours_have_a_name_layers_and_a_command)
{
	CHECK_EQ(read_text("# of one family\n\n vgg 1,0,0,0,0,0,0,0,0,0,0 train --steps 5\r\n"
			   "bert\t0,2,0,0,0,0,0,0,0,0,0  \t x"),
		0);
	CHECK_EQ(grid.neighbour_count, 3);
	CHECK_STR(grid.neighbours[1].name, "vgg");
	CHECK_STR(grid.neighbours[1].command, "train --steps 5");
	CHECK_EQ(grid.neighbours[2].layers[1], 2);
	CHECK_STR(grid.neighbours[2].command, "x");
}

TEST(a_line_that_is_no_neighbour_is_quoted_with_its_number)
{
	static const char *const bad[][2] = {{"\nvgg\n", "line 2: \"vgg\""},
		{"vgg 1,0,0,0,0,0,0,0,0,0,0", "\"vgg\""}, {"vgg 1,2 x", "\"1,2\""},
		{"a 0,0,0,0,0,0,0,0,0,0,0 x", "the layers of nobody"},
		{"a 1,0,0,0,0,0,0,0,0,0,0 x\na 2,0,0,0,0,0,0,0,0,0,0 x", "two neighbours \"a\""},
		{"a 1,0,0,0,0,0,0,0,0,0,0 x\nb 1,0,0,0,0,0,0,0,0,0,0 x", "the layers of a"},
		{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 1,0,0,0,0,0,0,0,0,0,0 x",
			"too long"}};

	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		CHECK_EQ(read_text(bad[i][0]), -EINVAL);
		CHECK(strstr(err.msg, bad[i][1]));
	}
}

TEST(what_was_measured_is_not_left)
{
	struct td_campaign_point points[2];

	CHECK_EQ(read_text("a 1,0,0,0,0,0,0,0,0,0,0 x"), 0);
	CHECK_EQ(td_grid_parse_list("10,50,90", 1, 100, grid.shares, 32, &grid.share_count, &err),
		0);
	CHECK_EQ(td_grid_parse_list("1,8", 1, 64, grid.batches, 32, &grid.batch_count, &err), 0);
	CHECK_EQ(td_grid_left(&grid, NULL, 0), 12);
	points[0] = td_grid_point(&grid.neighbours[1], 8, 50);
	points[1] = td_grid_point(&grid.neighbours[0], 8, 50);
	CHECK_EQ(td_grid_left(&grid, points, 1), 11);
	CHECK_EQ(td_grid_left(&grid, points, 2), 10);
	CHECK(!td_grid_has(points, 2, &(struct td_campaign_point){.batch = 8, .share = 0.51}));
	/* One that was measured twice, or of another grid, is no matter. */
	points[1] = points[0];
	points[1].share = 0.3;
	CHECK_EQ(td_grid_left(&grid, points, 2), 11);
}
