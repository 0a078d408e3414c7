/*
 * Memory that cannot leave the device: pools, arrays, the program's own mappings, what graphs allocate. As long as everybody's demand fits beside
 * what the others cannot give up, processes with such memory take turns as all do, and leave those bytes behind. Where it does not, closing
 * them would be for nothing: who comes would never be filled, and who went would never be opened. There they count as what cannot
 * be moved at all, and the one that does not fit waits. But who is let in and lacks room gets it from what they have beside that, as from nobody else: else
 * he would wait for them, and they for their turn.
 */
#include "daemon/fixed.h"

#include "daemon/node.h"
#include "daemon/soft.h"
#include "preload/backend.h"

uint64_t td_fixed_bytes(const struct td_client *client)
{
	/* One that says more than it has. */
	return client->fixed_bytes < client->resident_bytes ? client->fixed_bytes
							    : client->resident_bytes;
}

uint32_t td_fixed_conflicts(const struct td_node *node)
{
	uint64_t sum[TD_GPU_MAX] = {0};
	uint32_t conflicts = 0;
	struct td_list *it;

	td_list_for_each (it, &node->clients) {
		const struct td_client *client = td_container_of(it, struct td_client, of_node);

		sum[client->gpu] += td_fixed_bytes(client);
	}
	td_list_for_each (it, &node->clients) {
		const struct td_client *client = td_container_of(it, struct td_client, of_node);
		uint64_t capacity = node->gpus[client->gpu].capacity_bytes,
			 wanted = td_soft_demand(client),
			 others = sum[client->gpu] - td_fixed_bytes(client);

		/* What never fits is refused. */
		if (wanted <= capacity && others > capacity - wanted)
			conflicts |= 1u << client->gpu;
	}
	return conflicts;
}

bool td_fixed_is_last_resort(const struct td_client *client, uint32_t conflicts)
{
	return client->process->backend == TD_BACKEND_SWAP &&
	       !td_fixed_is_movable(client, conflicts);
}

bool td_fixed_is_movable(const struct td_client *client, uint32_t conflicts)
{
	return client->process->backend != TD_BACKEND_PLAIN &&
	       !(td_fixed_bytes(client) && conflicts >> client->gpu & 1);
}
