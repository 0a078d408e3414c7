/*
 * A service and its training tasks on one GPU, as Mudi and its baselines GSLICE and gpulets see it: the service gets a share of the SMs,
 * up to three training tasks divide the rest.
 *
 * The policies differ only in how they find share and batch. Common: who is there; which tasks may run (admit.h); the grants; memory, first
 * for the service, training's goes to the host as the service grows; a changed share needs a new process, so START_SHADOW
 * is named until one with the granted share runs; where the objective cannot be held, training is paused.
 *
 * Invariants: service and training shares sum up to at most 1; at most TD_SELECTOR_TASKS_MAX tasks; a pause closes all training of
 * the GPU, and is followed by exactly one RESUME for each task that is still there; without a service training has the GPU.
 */
#pragma once

#include "policy/policy.h"
#include "policy/selector.h"
#include "policy/slo_share.h"

#define TD_COLOCATE_SHARE_MIN_PPM 10000u /* MPS gives whole percents */

/* Zeroed: nothing was decided yet. Persistent, one per GPU. */
struct td_colocation {
	bool was_paused;
	/* gathered at each step */
	uint32_t services; /* how many; the first one's index is `service` */
	uint32_t service;
	uint32_t tasks, task[TD_SELECTOR_TASKS_MAX]; /* admitted */
	/* decided by the policy after td_colocate_look(), where there is a service */
	uint32_t share_ppm; /* of the service */
	uint32_t batch;
	bool paused;
};

/* Empties the plan, admits training tasks and says who is on each GPU. */
void td_colocate_look(
	struct td_colocation *colocations, const struct td_view *view, struct td_plan *plan);

/* Grants, actions and memory by what was decided. */
void td_colocate_grant(
	struct td_colocation *colocations, const struct td_view *view, struct td_plan *plan);

/* The service's objective and rate; objective_s 0: it has none. */
struct td_slo td_colocate_slo(const struct td_client_view *service);
