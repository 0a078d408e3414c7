/*
 * What policies have in common: an empty plan, actions, who belongs to which group, a duty divided, the lock's decisions as grants.
 *
 * Purpose. What is the same for ten policies is written once, so that a difference between two of them is a difference between two papers.
 *
 * A policy's step begins with td_plan_begin(): a plan of zeros bounds nothing and wakes nobody, so a policy states only what it
 * decides. It sets gates (by the lock, or admit.h), then limits (share.h) as these depend on the gates, then the rest.
 *
 * Invariants
 *  - after td_plan_begin() every field of every grant is set;
 *  - an action is stored or, where there is no room, left for a later plan, never half;
 *  - parts of a duty sum up to at most the duty, but that nobody's part is 0, which would be no bound;
 *  - clients of one group have the same first client, and a class in common.
 */
#pragma once

#include "policy/node/lock.h"

struct td_lock_plan {
	struct td_lock lock;
	uint16_t scratch[TD_CLIENT_MAX];
};

/* Grants of zeros, no action, no wakeup. */
void td_plan_begin(const struct td_view *view, struct td_plan *plan);

void td_plan_act(struct td_plan *plan, const struct td_action *action);

/* ret_first[c]: index of the first client of c's group; c itself where it is. client_count entries. */
void td_group_firsts(const struct td_view *view, uint16_t *ret_first);

/* ret_jobs[g]: the groups of class besteffort that are on GPU g, let in or not. TD_GPU_MAX entries. */
void td_view_count_besteffort(const struct td_view *view, uint32_t *ret_jobs);

/*
 * Divides a duty among the open besteffort clients of a GPU that have work, by weight; one that has none starts with as much as if
 * it had. TD_PPM: no bound for anybody.
 */
void td_plan_divide_duty(
	const struct td_view *view, uint32_t gpu, uint32_t duty_ppm, struct td_plan *plan);

/* The forget_gpu of a policy whose state is a struct td_lock_plan. */
void td_plan_forget_gpu(void *state, uint32_t gpu);

/* A MAKE_ROOM for each open client that has more on the device than its limit. */
void td_plan_make_room(const struct td_view *view, struct td_plan *plan);

/*
 * One step of the lock, then per client: gate, memory limit, window and others_wait. A holder that is idle while nobody waits
 * stays open but ARMED, so that the end of its pause is seen at once.
 */
void td_plan_from_lock(struct td_lock_plan *state, const struct td_lock_rules *rules,
	const struct td_policy_options *options, const struct td_view *view, uint64_t now_ns,
	struct td_plan *plan);
