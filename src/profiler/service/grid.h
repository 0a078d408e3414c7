/*
 * The grid of a campaign: which shares, batches and neighbours a service is measured with.
 *
 * Neighbours are the lines of a file, NAME LAYERS COMMAND. LAYERS are eleven counts
 * (proto/layers.h), COMMAND is given to a shell. Blank lines and lines that begin with # are
 * skipped. The first neighbour of a grid is none: the service is alone.
 *
 * tests/fuzz/fuzz_grid.c gives both parsers bytes of any kind.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "learn/campaign.h"
#include "proto/layers.h"

struct td_err;

#define TD_GRID_SHARES_MAX     32
#define TD_GRID_BATCHES_MAX    32
#define TD_GRID_NEIGHBOURS_MAX 33
#define TD_GRID_BATCH_MAX      1024

struct td_neighbour {
	char name[32]; /* "": none */
	uint32_t layers[TD_LAYER_KINDS];
	char command[1024];
};

struct td_grid {
	uint32_t shares[TD_GRID_SHARES_MAX], share_count; /* in percent */
	uint32_t batches[TD_GRID_BATCHES_MAX], batch_count;
	struct td_neighbour neighbours[TD_GRID_NEIGHBOURS_MAX];
	uint32_t neighbour_count;
};

/*
 * Reads ascending numbers such as "10,40,85". Returns 0, or -EINVAL with a message in err;
 * *ret_count is then unchanged.
 */
int td_grid_parse_list(const char *text, uint32_t least, uint32_t most, uint32_t *ret,
	uint32_t room, uint32_t *ret_count, struct td_err *err);

/*
 * Adds the neighbours of a file. Returns 0, or -EINVAL with a message in err that has the line's
 * number; the grid then has those before it. Two neighbours of one name or of the same layers are
 * refused: the models could not tell them apart.
 */
int td_grid_read_neighbours(struct td_grid *grid, FILE *file, struct td_err *err);

/* The point of a grid, without its latency. */
struct td_campaign_point td_grid_point(
	const struct td_neighbour *neighbour, uint32_t batch, uint32_t share);

bool td_grid_has(const struct td_campaign_point *measured, uint32_t count,
	const struct td_campaign_point *point);

/* Returns how many points of the grid have not been measured. */
uint32_t td_grid_left(
	const struct td_grid *grid, const struct td_campaign_point *measured, uint32_t count);
