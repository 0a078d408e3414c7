/*
 * Memory limits of the clients of each GPU, once it is decided who is open.
 *
 * Purpose. nvshare lets every program use all of the memory and leaves the rest to page faults; here memory moves in bulk, so each hand-over
 * needs to be told who is to have how much. A plan names the final limits at once: the executor lowers first and raises by what
 * has come free (policy.h), so nothing here is about the way there.
 *
 * Method. Two rules, both per GPU:
 *  - td_share_memory: whoever is open gets what it demands and an equal part of the slack. The closed keep what they have as long as
 *    it fits, and give up only as much as the open need: idle ones first, then the largest (DESIGN 3), since what leaves has to come
 *    back, and the largest frees the room by touching the fewest; whose memory is not moved for turns (last_resort) comes last;
 *  - td_share_memory_by_class: for policies whose besteffort jobs run with less than they demand (AntMan's universal memory,
 *    Mudi's swapped training, MuxFlow's quota). In this order: what cannot leave; the demands of the open that are not
 *    besteffort; of those that are, in order of arrival, up to their bounds; what the closed have on the device; the rest in equal
 *    parts to the open, up to their bounds.
 *
 * Invariants
 *  - the sum of the limits of a GPU never exceeds its capacity, unless what cannot move (by class), or what the open and the
 *    immovable demand together, exceeds it already: then nobody gets more than that;
 *  - td_share_memory: nobody open gets less than it demands; nobody closed whose memory can leave gets more than it has, or less than what cannot leave;
 *  - by class: nobody open exceeds its bound, unless by what cannot leave; nobody whose memory cannot leave gets less than it has on the device;
 *  - same view, same limits.
 */
#pragma once

#include "policy/policy.h"

/* plan->grants[].gate is set already, limit_bytes is the most that a job may have, UINT64_MAX for no bound; leaves the limits there. */
void td_share_memory_by_class(const struct td_view *view, struct td_plan *plan);

/* plan->grants[].gate is set already; fills limit_bytes. scratch: client_count entries. */
void td_share_memory(const struct td_view *view, struct td_plan *plan, uint16_t *scratch);
