/*
 * Memory that cannot leave the device: pools, arrays, the program's own mappings, what graphs
 * allocate.
 *
 * As long as a program's demand fits beside what the others cannot give up, it takes turns as all
 * do, and leaves those bytes behind. Where it does not fit, closing it would help nobody: the next
 * program has little room, and this one would not be opened again before the others are done. So it
 * counts as a program that cannot be moved for turns. Others take turns beside it, whether it is
 * let in or waits.
 *
 * A program that is let in and lacks room gets the movable memory of such programs all the same.
 * Otherwise it would wait for them, and they for their turn.
 */
#include "daemon/memory/fixed.h"

#include <string.h>

#include "daemon/memory/soft.h"
#include "daemon/model/node.h"
#include "proto/words.h"

uint64_t td_fixed_bytes(const struct td_client *client)
{
	/* One that says more than it has. */
	return client->fixed_bytes < client->device.used ? client->fixed_bytes
							 : client->device.used;
}

void td_fixed_gather(const struct td_node *node, uint64_t *ret_sums)
{
	struct td_list *it;

	memset(ret_sums, 0, TD_GPU_MAX * sizeof(ret_sums[0]));
	td_list_for_each (it, &node->clients) {
		const struct td_client *client = td_client_at(it);

		ret_sums[client->gpu] += td_fixed_bytes(client);
	}
}

/* True: it would have no room beside what the others cannot give up. What never fits is refused. */
static bool is_in_conflict(
	const struct td_node *node, const struct td_client *client, const uint64_t *sums)
{
	uint64_t capacity = node->gpus[client->gpu].capacity_bytes, wanted = td_soft_demand(client),
		 others = sums[client->gpu] - td_fixed_bytes(client);

	return wanted <= capacity && others > capacity - wanted;
}

bool td_fixed_is_movable(
	const struct td_node *node, const struct td_client *client, const uint64_t *sums)
{
	return client->process->backend != TD_BACKEND_PLAIN &&
	       !(td_fixed_bytes(client) && is_in_conflict(node, client, sums));
}

bool td_fixed_is_last_resort(
	const struct td_node *node, const struct td_client *client, const uint64_t *sums)
{
	return client->process->backend != TD_BACKEND_PLAIN &&
	       !td_fixed_is_movable(node, client, sums);
}
