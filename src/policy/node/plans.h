/*
 * Helpers that all policies share: an empty plan, actions, the groups of clients, dividing a duty,
 * turning the lock's decisions into grants.
 *
 * Purpose. Code that is the same for ten policies is written once, so that a difference between two
 * of them is a difference between two papers.
 *
 * A policy's step begins with td_plan_begin(): a plan of zeros bounds nothing and wakes nobody, so
 * a policy states only its decisions. It sets gates (by the lock, or admit.h), then limits
 * (share.h), which depend on the gates, then the rest.
 *
 * Invariants
 * - after td_plan_begin() every field of every grant is set;
 * - an action is stored or, where there is no room, left for a later plan, never half;
 * - parts of a duty sum up to at most the duty, except that no part is 0, which would mean no
 *   bound;
 * - clients of one group have the same first client, and a class in common.
 */
#pragma once

#include "policy/node/lock.h"

struct td_lock_plan {
	struct td_lock lock;
	uint16_t scratch[TD_CLIENT_MAX];
};

/* Makes a plan with grants of zeros, no action and no wakeup. */
void td_plan_begin(const struct td_view *view, struct td_plan *plan);

void td_plan_act(struct td_plan *plan, const struct td_action *action);

/*
 * Sets ret_first[c] to the index of the first client of c's group, which may be c itself.
 * client_count entries.
 */
void td_group_firsts(const struct td_view *view, uint16_t *ret_first);

/*
 * Sets ret_jobs[g] to the number of besteffort groups on GPU g, admitted or not. TD_GPU_MAX
 * entries.
 */
void td_view_count_besteffort(const struct td_view *view, uint32_t *ret_jobs);

/*
 * Divides a duty among the open besteffort clients of a GPU that have work, by weight. One without
 * work gets the part that it would have with work, so that it can start. TD_PPM: no bound for
 * anybody.
 */
void td_plan_divide_duty(
	const struct td_view *view, uint32_t gpu, uint32_t duty_ppm, struct td_plan *plan);

/* A policy whose state is a struct td_lock_plan uses this as its forget_gpu. */
void td_plan_forget_gpu(void *state, uint32_t gpu);

/* Adds a MAKE_ROOM for each open client that has more on the device than its limit. */
void td_plan_make_room(const struct td_view *view, struct td_plan *plan);

/*
 * Runs one step of the lock, then sets each client's gate, memory limit, window and others_wait. A
 * holder that is idle while nobody waits stays open but ARMED, so that the end of its pause is seen
 * at once.
 */
void td_plan_from_lock(struct td_lock_plan *state, const struct td_lock_rules *rules,
	const struct td_policy_options *options, const struct td_view *view, uint64_t now_ns,
	struct td_plan *plan);
