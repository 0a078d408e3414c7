/*
 * Backend swap: what may not leave the device although its gate is closed, since somebody outside reads it: other processes (ipc.h), and hardware that was told
 * its place. It counts as fixed, and drains pass it by.
 */
#include <errno.h>

#include "preload/client.h"
#include "preload/gate.h"
#include "preload/swap.h"

#define PIN_TIMES 10000

/* With the lock. */
static int may_pin(const struct td_range *range)
{
	if (!range)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < range->count; i++) {
		if (range->chunks[i].place == TD_PLACE_HOST && !range->chunks[i].loose)
			return CUDA_ERROR_OUT_OF_MEMORY;
		if (range->chunks[i].place != TD_PLACE_DEVICE || range->chunks[i].loose)
			return -EAGAIN;
	}
	return CUDA_SUCCESS;
}

static int pin(uint64_t address)
{
	struct td_range *range;
	int r;

	pthread_mutex_lock(&td_swap.lock);
	range = td_swap_find(address);
	r = may_pin(range);
	if (!r && !range->pins++) {
		td_swap.totals[range->slot].fixed_bytes += range->bytes;
		td_client_memory_changed(range->slot);
	}
	pthread_mutex_unlock(&td_swap.lock);
	return r;
}

/* Behind a closed gate nothing comes. */
int td_swap_pin(uint64_t address)
{
	int r = pin(address);

	for (unsigned i = 0; r == -EAGAIN && i < PIN_TIMES; i++) {
		td_gate_await();
		r = pin(address);
	}
	return r == -EAGAIN ? CUDA_ERROR_OUT_OF_MEMORY : r;
}

void td_swap_unpin(uint64_t address)
{
	struct td_range *range;

	pthread_mutex_lock(&td_swap.lock);
	range = td_swap_find(address);
	if (range && range->pins && !--range->pins) {
		td_swap.totals[range->slot].fixed_bytes -= range->bytes;
		td_client_memory_changed(range->slot);
	}
	pthread_mutex_unlock(&td_swap.lock);
}
