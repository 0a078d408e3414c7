/* Backend swap: queries about ranges and totals. */
#include "preload/base/backend.h"
#include "preload/base/pieces.h"
#include "preload/measure/steps.h"
#include "preload/swap/swap.h"

struct td_range *td_swap_find(uint64_t address)
{
	const struct td_allocation *row = td_ranges_find(&td_swap.index, address);

	return row ? row->of : NULL;
}

int td_swap_index(struct td_range *range)
{
	int r;

	pthread_mutex_lock(&td_swap.index_lock);
	r = td_ranges_add(&td_swap.index,
		(struct td_allocation){range->base, range->bytes, range->slot, range});
	pthread_mutex_unlock(&td_swap.index_lock);
	if (!r)
		td_reach_begin();
	return r;
}

void td_swap_unindex(const struct td_range *range)
{
	struct td_allocation row;

	pthread_mutex_lock(&td_swap.index_lock);
	(void)td_ranges_remove(&td_swap.index, range->base, &row);
	pthread_mutex_unlock(&td_swap.index_lock);
}

void td_swap_count(const struct td_range *range, int sign)
{
	struct td_memory_stats *t = &td_swap.totals[range->slot];

	t->demanded_bytes += sign * range->bytes;
	for (size_t i = 0; i < range->count; i++) {
		if (range->chunks[i].place == TD_PLACE_DEVICE)
			t->resident_bytes += sign * range->chunks[i].bytes;
		else
			t->host_bytes += sign * range->chunks[i].bytes;
		if (range->chunks[i].place == TD_PLACE_HOST)
			t->spilled_bytes += sign * range->chunks[i].bytes;
	}
	if (t->demanded_bytes > t->peak_bytes)
		t->peak_bytes = t->demanded_bytes;
	td_steps_memory(range->slot, t->demanded_bytes);
}

/* Gets the allocation of the range that contains the address. Returns false if there is none. */
static bool find_piece(const struct td_range *range, uint64_t address, struct td_piece *ret)
{
	if (range->pieces)
		return td_pieces_find(range->pieces, address - range->base, ret);
	*ret = (struct td_piece){0, range->asked, range->id};
	return address - range->base < range->asked;
}

/* See td_swap_describe. The caller holds index_lock. */
static int describe(uint64_t address, struct td_swap_info *ret)
{
	const struct td_range *range = td_swap_find(address);
	struct td_piece piece;

	if (!range)
		return TD_BACKEND_NOT_MINE;
	if (!find_piece(range, address, &piece))
		return CUDA_ERROR_NOT_FOUND;
	*ret = (struct td_swap_info){.base = range->base + piece.offset,
		.bytes = piece.bytes,
		.id = piece.id,
		.mapped_base = range->base,
		.mapped_bytes = range->bytes,
		.mapped_id = range->id,
		.slot = range->slot,
		.device = range->device};
	return CUDA_SUCCESS;
}

int td_swap_describe(uint64_t address, struct td_swap_info *ret)
{
	int r;

	pthread_mutex_lock(&td_swap.index_lock);
	r = describe(address, ret);
	pthread_mutex_unlock(&td_swap.index_lock);
	return r;
}

/* See td_swap_holds. The caller holds index_lock. */
static int holds(uint64_t address, uint64_t bytes)
{
	const struct td_allocation *row = td_ranges_meet(&td_swap.index, address, bytes);
	struct td_piece piece;

	if (!row)
		return TD_BACKEND_NOT_MINE;
	if (address < row->base || !find_piece(row->of, address, &piece))
		return CUDA_ERROR_INVALID_VALUE;
	return bytes <= piece.bytes - (address - row->base - piece.offset)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

int td_swap_holds(uint64_t address, uint64_t bytes)
{
	int r;

	pthread_mutex_lock(&td_swap.index_lock);
	r = holds(address, bytes);
	pthread_mutex_unlock(&td_swap.index_lock);
	return r;
}
