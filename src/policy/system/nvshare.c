/*
 * nvshare (Alexopoulos 2023, section 3): one application per GPU at a time, for a fixed time
 * quantum, first come first served, drained before hand-over, and released early when idle.
 * Switched off, all run at once.
 */
#include "policy/node/lock.h"
#include "policy/node/plans.h"

static struct td_turn_bounds fixed_turns(const struct td_lock_group *group,
	const struct td_view *view, const struct td_policy_options *options)
{
	(void)group;
	(void)view;
	return (struct td_turn_bounds){.fixed = true, .short_ns = options->quantum_ns};
}

/*
 * Returns 0: the client reports idleness only after its own idle time, and then "it releases the
 * GPU lock back to the scheduler early".
 */
static uint64_t no_patience_ns(const struct td_lock_group *group, const struct td_lock_group *head,
	const struct td_view *view, const struct td_policy_options *options)
{
	(void)head;
	(void)group;
	(void)view;
	(void)options;
	return 0;
}

static void nvshare_step(void *state, const struct td_policy_options *options,
	const struct td_view *view, uint64_t now_ns, struct td_plan *plan)
{
	const struct td_lock_rules rules = {
		.exclusive = true,
		.enforce = options->enabled,
		.turns = fixed_turns,
		.patience_ns = no_patience_ns,
	};

	td_plan_from_lock(state, &rules, options, view, now_ns, plan);
}

const struct td_policy td_policy_nvshare = {
	.name = "nvshare",
	.summary = "one job per GPU at a time, for a fixed quantum, first come first served",
	.state_bytes = sizeof(struct td_lock_plan),
	.forget_gpu = td_plan_forget_gpu,
	.step = nvshare_step,
};
