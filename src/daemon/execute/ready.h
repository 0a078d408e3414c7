/*
 * Decides whether a gate may open: the memory of the process has to be where the plan wants it. The
 * process has said so (READY), or it follows from all that it has said.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_node;

/* A group opens together: every process of it that is to open must be ready. */
bool td_ready_group(const struct td_node *node, uint32_t group);
