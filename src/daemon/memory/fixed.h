/* Memory that cannot leave the device, in processes whose other memory can; see fixed.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_client;
struct td_node;

/* The client's bytes that cannot leave the device. */
uint64_t td_fixed_bytes(const struct td_client *client);

/* The sum of that of each GPU's clients: TD_GPU_MAX entries. */
void td_fixed_gather(const struct td_node *node, uint64_t *ret_sums);

/* May the client be closed so that others get its memory? sums: of td_fixed_gather. */
bool td_fixed_is_movable(
	const struct td_node *node, const struct td_client *client, const uint64_t *sums);

/* True: it cannot be moved for turns, but its movable memory can leave for programs that run. */
bool td_fixed_is_last_resort(
	const struct td_node *node, const struct td_client *client, const uint64_t *sums);
