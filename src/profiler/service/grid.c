/* See grid.h. */
#include "profiler/service/grid.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"

#define LINE_BYTES 2048

static int refuse(const char *text, uint32_t least, uint32_t most, struct td_err *err)
{
	return td_err_set(err, -EINVAL,
		"\"%.80s\" is not valid: expected ascending numbers from %u to %u, such as %u,%u",
		text, least, most, least, most);
}

int td_grid_parse_list(const char *text, uint32_t least, uint32_t most, uint32_t *ret,
	uint32_t room, uint32_t *ret_count, struct td_err *err)
{
	uint32_t count = 0;

	for (const char *at = text; at; count++) {
		size_t length = strcspn(at, ",");
		char number[16];
		uint64_t value;

		if (count == room || !length || length >= sizeof(number))
			return refuse(text, least, most, err);
		memcpy(number, at, length);
		number[length] = 0;
		if (td_parse_u64(number, least, most, &value, NULL) ||
			(count && value <= ret[count - 1]))
			return refuse(text, least, most, err);
		ret[count] = (uint32_t)value;
		at = at[length] ? at + length + 1 : NULL;
	}
	*ret_count = count;
	return 0;
}

static int parse_line(char *line, struct td_neighbour *ret, struct td_err *err)
{
	char *at = line, *name = strsep(&at, " \t"), *layers = at ? strsep(&at, " \t") : NULL;

	if (at)
		at += strspn(at, " \t");
	if (!layers || !at || !*at)
		return td_err_set(err, -EINVAL,
			"\"%.80s\" is not a neighbour: expected NAME LAYERS COMMAND", name);
	if (!*name || strlen(name) >= sizeof(ret->name) || strlen(at) >= sizeof(ret->command))
		return td_err_set(err, -EINVAL,
			"\"%.80s\": the name or the command is too long: expected %zu and %zu "
			"bytes at most",
			name, sizeof(ret->name) - 1, sizeof(ret->command) - 1);
	strcpy(ret->name, name);
	strcpy(ret->command, at);
	return td_layers_parse(layers, ret->layers, err);
}

/* Nobody has no layers: such a neighbour would be taken for none. */
static int check_new(
	const struct td_grid *grid, const struct td_neighbour *neighbour, struct td_err *err)
{
	for (uint32_t i = 0; i < grid->neighbour_count; i++) {
		const struct td_neighbour *other = &grid->neighbours[i];

		if (!strcmp(other->name, neighbour->name))
			return td_err_set(
				err, -EINVAL, "there are two neighbours \"%s\"", other->name);
		if (!memcmp(other->layers, neighbour->layers, sizeof(other->layers)))
			return td_err_set(err, -EINVAL,
				"\"%s\" has the layers of %s%s: a model could not tell them apart",
				neighbour->name, *other->name ? "" : "nobody", other->name);
	}
	return 0;
}

int td_grid_read_neighbours(struct td_grid *grid, FILE *file, struct td_err *err)
{
	char line[LINE_BYTES];

	for (uint32_t number = 1; fgets(line, sizeof(line), file); number++) {
		struct td_neighbour neighbour = {0};
		struct td_err why = {0};
		char *at = line + strspn(line, " \t");
		size_t length = strcspn(at, "\r\n");
		int r = 0;

		if (!at[length] && !feof(file))
			return td_err_set(
				err, -EINVAL, "line %u is too long, or has a zero byte", number);
		at[length] = 0;
		if (!*at || *at == '#')
			continue;
		if (grid->neighbour_count == TD_GRID_NEIGHBOURS_MAX)
			r = td_err_set(&why, -EINVAL, "there are too many neighbours: at most %d",
				TD_GRID_NEIGHBOURS_MAX - 1);
		r = r ? r : parse_line(at, &neighbour, &why);
		r = r ? r : check_new(grid, &neighbour, &why);
		if (r)
			return td_err_set(err, r, "line %u: %.400s", number, why.msg);
		grid->neighbours[grid->neighbour_count++] = neighbour;
	}
	return 0;
}

struct td_campaign_point td_grid_point(
	const struct td_neighbour *neighbour, uint32_t batch, uint32_t share)
{
	struct td_campaign_point point = {.batch = batch, .share = share / 100.0};

	for (uint32_t k = 0; k < TD_LAYER_KINDS; k++)
		point.layers[k] = neighbour->layers[k];
	return point;
}

static bool is_same(const struct td_campaign_point *a, const struct td_campaign_point *b)
{
	for (uint32_t k = 0; k < TD_MUDI_LAYERS; k++)
		if (a->layers[k] < b->layers[k] || a->layers[k] > b->layers[k])
			return false;
	return a->batch == b->batch && a->share > b->share - 1e-9 && a->share < b->share + 1e-9;
}

bool td_grid_has(const struct td_campaign_point *measured, uint32_t count,
	const struct td_campaign_point *point)
{
	for (uint32_t i = 0; i < count; i++)
		if (is_same(&measured[i], point))
			return true;
	return false;
}

uint32_t td_grid_left(
	const struct td_grid *grid, const struct td_campaign_point *measured, uint32_t count)
{
	uint32_t left = 0;

	for (uint32_t n = 0; n < grid->neighbour_count; n++)
		for (uint32_t b = 0; b < grid->batch_count; b++)
			for (uint32_t s = 0; s < grid->share_count; s++) {
				struct td_campaign_point point = td_grid_point(
					&grid->neighbours[n], grid->batches[b], grid->shares[s]);

				left += !td_grid_has(measured, count, &point);
			}
	return left;
}
