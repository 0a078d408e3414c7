/* Memory that cannot leave the device, in processes whose other memory can; see fixed.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_client;
struct td_node;

/* What of the client's memory cannot leave the device. */
uint64_t td_fixed_bytes(const struct td_client *client);

/* GPUs, a bit each, on which somebody's demand does not fit beside what others cannot give up. */
uint32_t td_fixed_conflicts(const struct td_node *node);

/* May the client be closed so that others get its memory? */
bool td_fixed_is_movable(const struct td_client *client, uint32_t conflicts);

/* Is it not, and yet what it has beside its fixed memory can leave for what others lack who are let in? */
bool td_fixed_is_last_resort(const struct td_client *client, uint32_t conflicts);
