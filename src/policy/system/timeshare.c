/*
 * The baselines that share a GPU's time without regard to the jobs (MuxFlow 7.1).
 *
 * timeshare: "shares workloads in time and assigns the time slices of GPUs to the shared workloads
 * by the GPU driver strategy, which is adopted by Gandiva". All are open, with no bound: the driver
 * slices. priority: the same, but online jobs go first, then guaranteed ones ("sets online
 * workloads with high priority and assigns more time slices of GPUs to high-priority workloads", as
 * AntMan and PAI do); the executor decides by how much, as the driver would.
 *
 * Neither swaps: a job that does not fit beside the open ones, and does not page itself, waits
 * until one of them is idle or gone, first come first served.
 *
 * Invariants: a job that is open and busy is closed only for its own growth or by its owner;
 * priorities only follow the class; nothing else is bounded.
 */
#include "policy/node/lock.h"
#include "policy/node/plans.h"

/* Returns bounds of half the range of time, so that turns never end and a time can be added. */
static struct td_turn_bounds endless_turns(const struct td_lock_group *group,
	const struct td_view *view, const struct td_policy_options *options)
{
	(void)group;
	(void)view;
	(void)options;
	return (struct td_turn_bounds){.fixed = true, .short_ns = TD_NEVER / 2};
}

static uint64_t no_patience_ns(const struct td_lock_group *group, const struct td_lock_group *head,
	const struct td_view *view, const struct td_policy_options *options)
{
	(void)head;
	(void)group;
	(void)view;
	(void)options;
	return 0;
}

static void share_time(void *state, const struct td_policy_options *options,
	const struct td_view *view, uint64_t now_ns, struct td_plan *plan)
{
	static const struct td_lock_rules rules = {
		.exclusive = false,
		.enforce = false,
		.turns = endless_turns,
		.patience_ns = no_patience_ns,
	};

	td_plan_from_lock(state, &rules, options, view, now_ns, plan);
}

static void share_time_by_class(void *state, const struct td_policy_options *options,
	const struct td_view *view, uint64_t now_ns, struct td_plan *plan)
{
	static const uint32_t priorities[TD_CLASS_N] = {
		[TD_CLASS_ONLINE] = 1,
		[TD_CLASS_GUARANTEED] = 2,
		[TD_CLASS_BESTEFFORT] = 0,
	};

	share_time(state, options, view, now_ns, plan);
	for (uint32_t c = 0; c < view->client_count; c++)
		plan->grants[c].priority = priorities[view->clients[c].class];
}

const struct td_policy td_policy_timeshare = {
	.name = "timeshare",
	.summary = "everybody runs at once and the driver slices the time; a baseline",
	.state_bytes = sizeof(struct td_lock_plan),
	.forget_gpu = td_plan_forget_gpu,
	.step = share_time,
};

const struct td_policy td_policy_priority = {
	.name = "priority",
	.summary = "everybody runs at once, online jobs first, then guaranteed ones; a baseline",
	.needs = TD_HAS(PRIORITY),
	.state_bytes = sizeof(struct td_lock_plan),
	.forget_gpu = td_plan_forget_gpu,
	.step = share_time_by_class,
};
