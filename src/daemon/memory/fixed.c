/*
 * Memory that cannot leave the device: pools, arrays, the program's own mappings, and what graphs
 * allocate.
 *
 * A program whose demand fits beside such memory of the others takes turns like all others, and
 * leaves its own fixed bytes on the device. Where its demand does not fit, closing its gate
 * would help nobody: the next program has little room, and this one could not be opened again
 * before the others are done. So it is treated as a program that cannot be moved for turns. Others
 * take turns beside it, whether it is let in or waits.
 *
 * A program that is let in and lacks room still gets the movable memory of such programs. Otherwise
 * it would wait for them, and they for their turn.
 */
#include "daemon/memory/fixed.h"

#include "daemon/memory/soft.h"
#include "daemon/model/node.h"
#include "proto/words.h"

/*
 * Returns whether the client has no room beside the bytes that others cannot give up. A demand
 * above the capacity is refused elsewhere.
 */
static bool is_in_conflict(const struct td_node *node, const struct td_client *client)
{
	uint64_t capacity = node->gpus[client->gpu].capacity_bytes, wanted = td_soft_demand(client),
		 others = node->gpus[client->gpu].fixed_bytes - td_fixed_bytes(client);

	return wanted <= capacity && others > capacity - wanted;
}

bool td_fixed_is_movable(const struct td_node *node, const struct td_client *client)
{
	return client->process->backend != TD_BACKEND_PLAIN &&
	       !(td_fixed_bytes(client) && is_in_conflict(node, client));
}

bool td_fixed_is_last_resort(const struct td_client *client, bool is_movable)
{
	return client->process->backend != TD_BACKEND_PLAIN && !is_movable;
}
