/* DCUDA's scheduler; see dcuda.h. */
#include "policy/system/dcuda.h"

#include <errno.h>

const struct td_dcuda_params td_dcuda_default = {
	.balance = TD_BALANCE_DEFAULT,
	.group_slack = 0.1,
	.compact = true,
};

static double core_of(const struct td_balance_app *apps, uint32_t count, uint32_t gpu)
{
	double core = 0;

	for (uint32_t i = 0; i < count; i++)
		core += apps[i].gpu == gpu ? apps[i].core : 0;
	return core;
}

static bool is_any_overloaded(const struct td_dcuda_params *params,
	const struct td_balance_app *apps, uint32_t count, uint32_t gpus)
{
	for (uint32_t g = 0; g < gpus; g++)
		if (core_of(apps, count, g) > params->balance.core_over)
			return true;
	return false;
}

/*
 * Sets which applications of one GPU run in the present slice, and their priorities. All run if the
 * GPU is not overloaded.
 */
static void slice(const struct td_dcuda_params *params, const struct td_balance_app *apps,
	uint32_t count, uint32_t gpu, uint64_t now_ns, struct td_dcuda_plan *plan)
{
	struct td_fair_member members[TD_DCUDA_APPS_MAX];
	uint32_t app[TD_DCUDA_APPS_MAX], order[TD_DCUDA_APPS_MAX], n = 0, turn;
	bool overloaded = core_of(apps, count, gpu) > params->balance.core_over;

	for (uint32_t i = 0; i < count; i++) {
		if (apps[i].gpu != gpu)
			continue;
		members[n] = (struct td_fair_member){.core = apps[i].core,
			.memory = params->balance.memory_aware ? apps[i].memory : 0};
		app[n++] = i;
	}
	turn = td_fair_turn(td_fair_groups(members, n, params->group_slack, order), now_ns);
	for (uint32_t k = 0; k < n; k++) {
		plan->runs[app[k]] = !overloaded || members[k].group == turn;
		plan->priority[app[k]] = overloaded ? members[k].priority : 0;
	}
}

int td_dcuda_step(const struct td_dcuda_params *params, struct td_balance_app *apps, uint32_t count,
	uint32_t gpus, uint64_t now_ns, struct td_dcuda_plan *plan)
{
	uint32_t order[TD_DCUDA_APPS_MAX];

	if (count > TD_DCUDA_APPS_MAX || !gpus || gpus > TD_BALANCE_GPUS_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < count; i++)
		if (apps[i].gpu >= gpus)
			return -EINVAL;
	plan->moves = td_balance(&params->balance, apps, count, gpus, order, plan->move);
	plan->compacts =
		!plan->moves && params->compact && !is_any_overloaded(params, apps, count, gpus);
	if (plan->compacts)
		plan->moves = td_balance_compact(&params->balance, apps, count, gpus, plan->move);
	for (uint32_t g = 0; g < gpus; g++)
		slice(params, apps, count, g, now_ns, plan);
	return 0;
}
