/*
 * Chooses the besteffort groups that may run where each GPU admits a limited number of them.
 *
 * Purpose. MuxFlow runs one offline workload beside a service, Mudi up to three training tasks.
 * Jobs of other classes always run. A group (processes of one job) is admitted whole, on all of its
 * GPUs or on none, and needs a place for each client.
 *
 *   holders first, in order of arrival:  stay while there are places; the latest go when places
 *                                        are withdrawn
 *   then waiting groups, in order:       come in if there are places on all of their GPUs;
 *                                        otherwise they keep the free places from everybody
 *                                        behind them, or a wide job would wait for ever
 *
 * Invariants
 * - at most `places` besteffort clients per GPU are open or not yet drained, unless more were open
 *   before;
 * - a group is open on all of its GPUs or on none; one that is paused by its owner on none;
 * - no group overtakes an earlier waiting group on a GPU in common;
 * - a holder that may stay is not closed for another group.
 */
#pragma once

#include "policy/policy.h"

/* Sets the gates of the plan to OPEN, ARMED (open and idle) or CLOSED, and nothing else. */
void td_admit(const struct td_view *view, const uint32_t places[TD_GPU_MAX], struct td_plan *plan);
