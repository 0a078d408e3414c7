/*
 * Memory limits of the clients of each GPU, once the gates are decided.
 *
 * Purpose. nvshare lets every program use all of the memory and leaves the rest to page faults.
 * Here memory moves in bulk, so each hand-over has to state every client's limit. A plan names the
 * final limits at once: the executor lowers limits first and raises others by what has come free
 * (policy.h), so the order of moves is not decided here.
 *
 * Method. There are two rules, both per GPU:
 * - td_share_memory: each open client gets its demand and an equal part of the slack. Closed
 *   clients keep their memory while it fits and give up only as much as the open ones need: idle
 *   ones first, then the largest (docs/design.md), since memory that leaves has to come back, and
 *   the largest frees the room by touching the fewest clients. Memory that is not moved for turns
 *   (last_resort) goes last.
 * - td_share_memory_by_class: for policies whose besteffort jobs run with less than they demand
 *   (AntMan's universal memory, Mudi's swapped training, MuxFlow's quota). Memory is given in this
 *   order: what cannot leave; the demands of the open that are not besteffort; the demands of open
 *   besteffort clients, in order of arrival, up to their bounds; what the closed have on the
 *   device; the rest in equal parts to the open, up to their bounds.
 *
 * Invariants
 * - the sum of the limits of a GPU never exceeds its capacity, unless immovable memory (by class),
 *   or the open demands and the immovable memory together, exceed it already: then nobody gets more
 *   than that;
 * - td_share_memory: no open client gets less than it demands. A closed client whose memory can
 *   leave gets no more than it has, and no less than what cannot leave;
 * - by class: no open client exceeds its bound, except by what cannot leave. A client whose memory
 *   cannot leave gets no less than it has on the device;
 * - same view, same limits.
 */
#pragma once

#include "policy/policy.h"

/*
 * Replaces plan->grants[].limit_bytes by the client's limit. Before the call it holds the client's
 * upper bound (UINT64_MAX: none). The gates have to be set.
 */
void td_share_memory_by_class(const struct td_view *view, struct td_plan *plan);

/* Sets plan->grants[].limit_bytes. The gates have to be set. scratch has client_count entries. */
void td_share_memory(const struct td_view *view, struct td_plan *plan, uint16_t *scratch);
