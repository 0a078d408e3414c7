/*
 * Backend swap: keeps a block whose last piece was freed for the next small allocation. So a
 * program that repeatedly allocates and frees one small buffer does not make the driver map and
 * unmap memory each time. One block of the smallest size is kept for each GPU. It counts as
 * allocated. It is freed as soon as something else could use its place: at any other allocation,
 * when the gate closes, when a limit has no room besides it, when a context ends, and after one to
 * two seconds without use.
 */
#include "preload/base/pieces.h"
#include "preload/link/client.h"
#include "preload/swap/swap.h"

#define SPARE_MAX (2ull << 20)

bool td_swap_keep(struct td_range *block)
{
	if (td_swap.spare[block->slot] || block->bytes > SPARE_MAX || block->count != 1 ||
		block->chunks[0].place != TD_PLACE_DEVICE || block->chunks[0].loose ||
		block->pins || block->moving || !td_client_may_keep(block->slot))
		return false;
	td_swap.spare[block->slot] = block;
	td_swap.spare_is_new[block->slot] = true;
	return true;
}

void td_swap_trim(unsigned slot, bool idle)
{
	struct td_range *spare;

	pthread_mutex_lock(&td_swap.lock);
	spare = td_swap.spare[slot];
	if (!spare || spare->moving || (idle && td_swap.spare_is_new[slot])) {
		td_swap.spare_is_new[slot] = false;
		pthread_mutex_unlock(&td_swap.lock);
		return;
	}
	td_swap.spare[slot] = NULL;
	td_swap_unlink(spare);
	td_swap_free_range(spare);
	pthread_mutex_unlock(&td_swap.lock);
	td_client_memory_changed(slot);
}
