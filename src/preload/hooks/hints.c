/* The functions of include/tandem/tandem.h about memory. steps.c has those about steps. */
#include <errno.h>
#include <stddef.h>

#include "preload/base/page.h"
#include "preload/context/context.h"
#include "preload/measure/steps.h"
#include "preload/link/client.h"

size_t tandem_excess(int device) __attribute__((visibility("default")));
void tandem_cached(int device, size_t bytes) __attribute__((visibility("default")));

void tandem_used(int device, size_t most, size_t least) __attribute__((visibility("default")));

/* Returns the process's slot of a CUDA device, or a negative number if it has none. */
static int slot_of(int device)
{
	unsigned count = td_context_gpu_count();
	struct td_gpu_info gpu;

	for (unsigned i = 0; i < count; i++)
		if (td_context_gpu(i, &gpu) && gpu.device == device)
			return (int)i;
	return -1;
}

size_t tandem_excess(int device)
{
	int saved = errno, slot = td_gate_disabled() ? -1 : slot_of(device);
	uint64_t bytes = slot < 0 ? 0 : td_client_excess((unsigned)slot);

	errno = saved;
	return bytes;
}

void tandem_cached(int device, size_t bytes)
{
	int saved = errno, slot = td_gate_disabled() ? -1 : slot_of(device);

	if (slot >= 0)
		td_client_set_cached((unsigned)slot, bytes);
	errno = saved;
}

void tandem_used(int device, size_t most, size_t least)
{
	int saved = errno, slot = td_gate_disabled() ? -1 : slot_of(device);

	if (slot >= 0)
		td_steps_used((unsigned)slot, most, least);
	errno = saved;
}
