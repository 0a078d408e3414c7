/* Grants from the lock's decisions, and the table of all policies. */
#include "policy/plans.h"

#include <string.h>

#include "policy/share.h"

#define POLICIES(POLICY)                                                                           \
	POLICY(tandem)                                                                             \
	POLICY(nvshare)                                                                            \
	POLICY(timeshare)                                                                          \
	POLICY(priority)

#define POLICY(name) extern const struct td_policy td_policy_##name;
POLICIES(POLICY)
#undef POLICY

const struct td_policy *const td_policies[] = {
#define POLICY(name) &td_policy_##name,
	POLICIES(POLICY)
#undef POLICY
		NULL};

const struct td_policy *td_policy_find(const char *name)
{
	for (const struct td_policy *const *p = td_policies; *p; p++)
		if (!strcmp((*p)->name, name))
			return *p;
	return NULL;
}

uint32_t td_policy_lacks(const struct td_policy *policy, uint32_t has)
{
	return policy->needs & ~has;
}

const char *td_ability_text(uint32_t abilities)
{
	static const char *const texts[TD_ABILITY_N] = {
#define ABILITY(id, text) text,
		TD_ABILITIES(ABILITY)
#undef ABILITY
	};

	for (uint32_t bit = 0; bit < TD_ABILITY_N; bit++)
		if (abilities >> bit & 1)
			return texts[bit];
	return NULL;
}

void td_plan_begin(const struct td_view *view, struct td_plan *plan)
{
	memset(plan->grants, 0, view->client_count * sizeof(*plan->grants));
	plan->action_count = 0;
	plan->next_wakeup_ns = TD_NEVER;
}

void td_plan_act(struct td_plan *plan, const struct td_action *action)
{
	if (plan->action_count < plan->action_max)
		plan->actions[plan->action_count++] = *action;
}

void td_plan_from_lock(struct td_lock_plan *state, const struct td_lock_rules *rules,
	const struct td_policy_options *options, const struct td_view *view, uint64_t now_ns,
	struct td_plan *plan)
{
	td_plan_begin(view, plan);
	plan->next_wakeup_ns = td_lock_step(&state->lock, rules, options, view, now_ns);
	for (uint32_t c = 0; c < view->client_count; c++) {
		const struct td_lock_group *g = td_lock_group_of(&state->lock, c);
		struct td_grant *grant = &plan->grants[c];

		grant->gate = TD_GATE_CLOSED;
		if (g->open)
			grant->gate = g->wants || !g->holding ? TD_GATE_OPEN : TD_GATE_ARMED;
		grant->others_wait = g->holding && g->contended;
		if (grant->others_wait && g->gpus & state->lock.urgent_gpus)
			grant->window_ns = rules->window_ns;
	}
	td_share_memory(view, plan, state->scratch);
}
