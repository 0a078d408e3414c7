/* Grants from the lock's decisions, and the table of all policies. */
#include "policy/plans.h"

#include <string.h>

#include "policy/share.h"

extern const struct td_policy td_policy_tandem, td_policy_nvshare;

const struct td_policy *const td_policies[] = {&td_policy_tandem, &td_policy_nvshare, NULL};

const struct td_policy *td_policy_find(const char *name)
{
	for (const struct td_policy *const *p = td_policies; *p; p++)
		if (!strcmp((*p)->name, name))
			return *p;
	return NULL;
}

void td_plan_from_lock(struct td_lock_plan *state, const struct td_lock_rules *rules,
	const struct td_policy_options *options, const struct td_view *view, uint64_t now_ns,
	struct td_plan *plan)
{
	plan->next_wakeup_ns = td_lock_step(&state->lock, rules, options, view, now_ns);
	for (uint32_t c = 0; c < view->client_count; c++) {
		const struct td_lock_group *g = td_lock_group_of(&state->lock, c);
		struct td_grant *grant = &plan->grants[c];

		memset(grant, 0, sizeof(*grant));
		grant->gate = TD_GATE_CLOSED;
		if (g->open)
			grant->gate = g->wants || !g->holding ? TD_GATE_OPEN : TD_GATE_ARMED;
		grant->others_wait = g->holding && g->contended;
		if (grant->others_wait && g->gpus & state->lock.urgent_gpus)
			grant->window_ns = rules->window_ns;
	}
	td_share_memory(view, plan, state->scratch);
}
