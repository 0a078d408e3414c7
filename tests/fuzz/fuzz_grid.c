/* Parses bytes as the neighbours of a campaign, and as a list of numbers. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "profiler/service/grid.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_list(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	uint32_t list[8], count = 0;
	struct td_err err = {0};

	if (!text)
		return;
	memcpy(text, data, size);
	text[size] = 0;
	if (td_grid_parse_list(text, 1, 1024, list, 8, &count, &err) && !err.msg[0])
		abort();
	for (uint32_t i = 1; i < count; i++)
		if (list[i] <= list[i - 1])
			abort();
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct td_grid grid;
	struct td_err err = {0};
	FILE *file = size ? fmemopen((void *)(uintptr_t)data, size, "r") : NULL;

	read_list(data, size);
	if (!file)
		return 0;
	grid.neighbour_count = 1;
	if (td_grid_read_neighbours(&grid, file, &err) && !err.msg[0])
		abort();
	fclose(file);
	for (uint32_t i = 1; i < grid.neighbour_count; i++)
		if (!*grid.neighbours[i].name || !*grid.neighbours[i].command)
			abort();
	return 0;
}
