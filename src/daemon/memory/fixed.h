/*
 * Accounts for memory that cannot leave the device, in processes whose other memory can; see
 * fixed.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/model/node.h"

/*
 * Returns the client's bytes that cannot leave the device. A program may report more than it has,
 * so the report is bounded.
 */
static inline uint64_t td_fixed_bytes(const struct td_client *client)
{
	return client->fixed_bytes < client->device.used ? client->fixed_bytes
							 : client->device.used;
}

/* Returns whether closing the client's gate would let other clients use its part of the device. */
bool td_fixed_is_movable(const struct td_node *node, const struct td_client *client);

/*
 * Returns whether the client cannot be moved for turns, but its movable memory can leave for
 * programs that run.
 */
bool td_fixed_is_last_resort(const struct td_client *client, bool is_movable);
