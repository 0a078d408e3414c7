/*
 * Memory limits of the clients of each GPU, once it is decided who is open.
 *
 * The open get what they demand and the slack between them; the closed keep what they have as long as it fits, and give up only
 * as much as the open need: idle ones first, then the largest (DESIGN 3). Memory that cannot move keeps its limit. The sum of
 * the limits of a GPU never exceeds its capacity, unless what cannot move exceeds it already.
 */
#pragma once

#include "policy/policy.h"

/*
 * The same where besteffort jobs may run with less than they demand. On entry plan->grants[].limit_bytes is the most that a job
 * may have, UINT64_MAX for no bound. In this order: what cannot leave; the demands of the open that are not besteffort; of those
 * that are, in order of arrival; what the closed have on the device; then the rest in equal parts to the open.
 * Invariants: nobody open exceeds its bound, unless by what cannot leave; the sum as above.
 */
void td_share_memory_by_class(const struct td_view *view, struct td_plan *plan);

/* plan->grants[].gate is set already; fills limit_bytes. scratch: client_count entries. */
void td_share_memory(const struct td_view *view, struct td_plan *plan, uint16_t *scratch);
