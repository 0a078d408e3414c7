/*
 * How much of a GPU there is to give; see capacity.c. All sizes are in bytes; `index` is the GPU's
 * in td_node.gpus.
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

/* Tells a client what its program shall see of its GPU, and its job's limit. */
void td_capacity_tell(struct td_node *node, const struct td_client *client);

/*
 * A client is about to be listed; the caller updates the capacity once it is. reserve_bytes: as a
 * lost daemon knew it, or 0; then used_bytes, what is in use on the device, counts.
 */
void td_capacity_attach(
	struct td_node *node, uint32_t index, uint64_t used_bytes, uint64_t reserve_bytes);

/* An allocation is asked for: what is in use on the device by now. Never raises the reserve. */
void td_capacity_need(struct td_node *node, uint32_t index, uint64_t used_bytes);

/* A client is no longer listed. */
void td_capacity_leave(struct td_node *node, uint32_t index);

/* A client found the device full although its limit would do. */
void td_capacity_shortage(struct td_node *node, const struct td_client *client,
	const struct td_msg_shortage *msg, uint64_t now_ns);

/* Nobody on the GPU has anything to give back. */
bool td_capacity_is_settled(const struct td_node *node, uint32_t index);

/* Lets findings expire. Returns when to be called again, or TD_NEVER. */
uint64_t td_capacity_step(struct td_node *node, uint64_t now_ns);

/*
 * Returns the part of a shortage that may be a dying process's memory. Nobody is refused for it
 * yet.
 */
uint64_t td_capacity_doubt(const struct td_gpu *gpu);
