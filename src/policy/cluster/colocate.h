/*
 * A service and its training tasks on one GPU, as Mudi and its baselines GSLICE and gpulets see it:
 * the service gets a share of the SMs, and up to three training tasks divide the rest.
 *
 * Purpose. The three policies differ only in how they find share and batch: Mudi by learnt curves
 * and a search (mudi_node.c), GSLICE by feedback, gpulets by a table of sizes (partitions.c). The
 * rest is the same and is here, so that a comparison shows only the difference of the papers:
 *
 *   td_colocate_look    who is on each GPU; which tasks may run (admit.h): "up to three
 *                       training tasks" per device (Mudi 5.5)
 *   the policy          share, batch and paused of each GPU that has a service
 *   td_colocate_grant   gates, shares of the SMs, batch, memory, actions
 *
 * Memory. The service's comes first. As it grows, training's goes to the host (Mudi 5.6 swaps
 * training to the host when memory runs out): by share.h's limits by class, and by MAKE_ROOM for
 * memory that is on the device already.
 *
 * Shares. Plans name SHARE until the view shows a service that runs with the granted share. The
 * share of a running program changes where that is possible; elsewhere a shadow instance takes over
 * (Mudi 5.3.2). Shares are whole percents, at least one.
 *
 * Pauses. Where not even the whole GPU holds the objective, training is paused until the policy
 * lifts it: its gate is closed and its memory may go.
 *
 *              policy sets paused
 *   RUNNING ------------------------> PAUSED, PAUSE in every plan
 *      ^                                 |
 *      +--- RESUME in one plan ----------+   policy sets paused no longer, or the service is gone
 *
 * None of the papers says how two services divide a GPU. Here both are open, without a share, and
 * all three policies pause training there.
 *
 * Invariants
 * - service and training shares sum up to at most 1; every task of a GPU has the same share;
 * - at most TD_SELECTOR_TASKS_MAX tasks are open on a GPU, first come first served;
 * - a pause closes all training of the GPU, and is followed by exactly one RESUME for each task
 *   that still exists;
 * - without a service training has the whole GPU;
 * - a service is never closed for training.
 */
#pragma once

#include "policy/algo/fit/selector.h"
#include "policy/algo/fit/slo_share.h"
#include "policy/policy.h"

#define TD_COLOCATE_SHARE_MIN_PPM 10000u /* MPS gives whole percents */

/* The state of one GPU, kept between steps. A zeroed struct means that nothing was decided yet. */
struct td_colocation {
	bool was_paused;
	/* Gathered at each step by td_colocate_look(). */
	uint32_t services; /* number of services; `service` is the index of the first */
	uint32_t service;
	uint32_t tasks, task[TD_SELECTOR_TASKS_MAX]; /* the admitted tasks */
	/*
	 * How many tasks may run, in order of arrival. The policy may set it below
	 * TD_SELECTOR_TASKS_MAX.
	 */
	uint32_t places;
	/* Decided by the policy after td_colocate_look(), for GPUs with a service. */
	uint32_t share_ppm; /* the service's share of the SMs */
	uint32_t batch;
	bool paused;
};

/* Clears the plan, admits training tasks, and notes the service and the tasks of each GPU. */
void td_colocate_look(
	struct td_colocation *colocations, const struct td_view *view, struct td_plan *plan);

/* Writes gates, shares, actions and memory limits to the plan, as the policy has decided. */
void td_colocate_grant(
	struct td_colocation *colocations, const struct td_view *view, struct td_plan *plan);

/* Returns the service's objective and rate; objective_s is 0 if it has none. */
struct td_slo td_colocate_slo(const struct td_client_view *service);
