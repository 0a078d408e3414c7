/*
 * Memory limits of the clients of each GPU, once it is decided who is open.
 *
 * The open get what they demand and the slack between them; the closed keep what they have as long as it fits, and give up only
 * as much as the open need: idle ones first, then the largest (DESIGN 3). Memory that cannot move keeps its limit. The sum of
 * the limits of a GPU never exceeds its capacity, unless what cannot move exceeds it already.
 */
#pragma once

#include "policy/policy.h"

/* plan->grants[].gate is set already; fills limit_bytes. scratch: client_count entries. */
void td_share_memory(const struct td_view *view, struct td_plan *plan, uint16_t *scratch);
