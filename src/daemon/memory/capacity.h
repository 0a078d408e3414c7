/*
 * Computes how much of a GPU there is to give; see capacity.c. All sizes are in bytes. `index` is
 * the GPU's index in td_node.gpus.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_client;
struct td_gpu;
struct td_msg_shortage;
struct td_node;

/* Computes the capacity, and tells the GPU's clients if it has changed. */
void td_capacity_update(struct td_node *node, uint32_t index);

/* Tells a client the capacity that its program shall see of its GPU, and its job's limit. */
void td_capacity_tell(struct td_node *node, const struct td_client *client);

/*
 * Takes the figures of a client that is about to be listed. The caller updates the capacity once it
 * is. reserve_bytes is the reserve as a lost daemon knew it. If it is 0, used_bytes counts: what is
 * in use on the device.
 */
void td_capacity_attach(
	struct td_node *node, uint32_t index, uint64_t used_bytes, uint64_t reserve_bytes);

/*
 * Takes the bytes in use on the device, which come with a request for an allocation. They can lower
 * the reserve but never raise it.
 */
void td_capacity_need(struct td_node *node, uint32_t index, uint64_t used_bytes);

/* Lowers the reserve after a client has been removed from the list. */
void td_capacity_leave(struct td_node *node, uint32_t index);

/* Takes a client's report that the device was full although its limit would do. */
void td_capacity_shortage(struct td_node *node, const struct td_client *client,
	const struct td_msg_shortage *msg, uint64_t now_ns);

/* Returns whether nobody on the GPU has anything to give back. */
bool td_capacity_is_settled(const struct td_node *node, uint32_t index);

/* Lets findings expire. Returns when to call it again, or TD_NEVER. */
uint64_t td_capacity_step(struct td_node *node, uint64_t now_ns);

/*
 * Returns the part of a shortage that may be a dying process's memory. No allocation is refused
 * because of it yet.
 */
uint64_t td_capacity_doubt(const struct td_gpu *gpu);
