/*
 * Which besteffort groups may run, where each GPU has places for so many of them.
 *
 * Purpose. MuxFlow runs one offline workload beside a service, Mudi up to three training tasks. Who is not besteffort runs
 * anyway. A group (processes of one job) comes in whole, on all of its GPUs or on none, and needs a place for each client.
 *
 *   holders first, in order of arrival:   stay, while there are places; the latest go when places are withdrawn
 *   then who waits, in order of arrival:  comes in if there are places on all of its GPUs; if not, it keeps those that there
 *                                         are from everybody behind it, or a wide job would wait for ever
 *
 * Invariants
 *  - at most `places` besteffort clients per GPU are open or not yet drained, unless more were open before;
 *  - a group is open on all of its GPUs or on none; one that is paused by its owner on none;
 *  - nobody overtakes an earlier waiting group on a GPU in common;
 *  - who holds and may stay is not closed for somebody else.
 */
#pragma once

#include "policy/policy.h"

/* Sets the gates of the plan: OPEN, ARMED (open and idle) or CLOSED. Nothing else is touched. */
void td_admit(const struct td_view *view, const uint32_t places[TD_GPU_MAX], struct td_plan *plan);
