/*
 * Decides whether a gate may open. The memory of the process has to be where the plan wants it:
 * either the process has said READY, or its other messages imply it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_node;

/*
 * Returns whether the group may open. Its processes open together, so each one that is to open must
 * be ready.
 */
bool td_ready_group(const struct td_node *node, uint32_t group);
