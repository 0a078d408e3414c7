/*
 * Backend swap: pins. Other processes (ipc.h), or hardware that knows physical addresses, may read
 * memory at any time. Such memory must not leave the device even while the gate is closed. It
 * counts as fixed, and moves leave it in place.
 */
#include <errno.h>
#include <string.h>

#include "preload/gate/gate.h"
#include "preload/link/client.h"
#include "preload/swap/swap.h"

#define PIN_TIMES 10000

/* Returns whether the range can be pinned, as td_swap_pin does. The caller holds the lock. */
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

/* Pins the range. The caller holds the lock. */
static void add_pin(struct td_range *range)
{
	if (range->pins++)
		return;
	td_swap.totals[range->slot].fixed_bytes += range->bytes;
	td_client_memory_changed(range->slot);
}

static int pin(uint64_t address)
{
	struct td_range *range;
	int r;

	pthread_mutex_lock(&td_swap.lock);
	range = td_swap_find(address);
	r = may_pin(range);
	if (!r)
		add_pin(range);
	pthread_mutex_unlock(&td_swap.lock);
	return r;
}

/*
 * Tries again each time the gate has opened: while it is closed no memory comes to the device.
 */
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

void td_swap_pin_new(struct td_range *range)
{
	if (td_swap.stays)
		add_pin(range);
}

void td_swap_pin_all(void)
{
	pthread_mutex_lock(&td_swap.lock);
	for (struct td_range *range = td_swap.ranges; range && !td_swap.stays; range = range->next)
		add_pin(range);
	td_swap.stays = true;
	memset(td_swap.stranded, 0, sizeof(td_swap.stranded));
	pthread_mutex_unlock(&td_swap.lock);
}
