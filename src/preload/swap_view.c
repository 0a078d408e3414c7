/* Backend swap: what is where, and how much. */
#include "preload/pieces.h"
#include "preload/steps.h"
#include "preload/swap.h"

struct td_range *td_swap_find(uint64_t address)
{
	const struct td_allocation *row = td_ranges_find(&td_swap.index, address);

	return row ? row->of : NULL;
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

/* With the lock. */
static int describe(uint64_t address, struct td_swap_info *ret)
{
	const struct td_range *range = td_swap_find(address);
	struct td_piece piece;

	if (!range)
		return TD_BACKEND_NOT_MINE;
	if (!range->pieces)
		piece = (struct td_piece){0, range->asked, range->id};
	else if (!td_pieces_find(range->pieces, address - range->base, &piece))
		return CUDA_ERROR_NOT_FOUND;
	if (address - range->base - piece.offset >= piece.bytes)
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

	pthread_mutex_lock(&td_swap.lock);
	r = describe(address, ret);
	pthread_mutex_unlock(&td_swap.lock);
	return r;
}
