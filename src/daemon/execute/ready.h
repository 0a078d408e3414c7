/*
 * Whose gate may open: a process whose memory is where it is to be, as it has said (READY), or as
 * follows from all that it has said.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_node;

/* A group opens together: every process of it that is to open must be ready. */
bool td_ready_group(const struct td_node *node, uint32_t group);
