/* Makes grants from the lock's decisions; has the table of all policies. */
#include "policy/node/plans.h"

#include <string.h>

#include "policy/node/share.h"

#define POLICIES(POLICY)                                                                           \
	POLICY(tandem)                                                                             \
	POLICY(nvshare)                                                                            \
	POLICY(timeshare)                                                                          \
	POLICY(priority)                                                                           \
	POLICY(antman)                                                                             \
	POLICY(muxflow)                                                                            \
	POLICY(mudi)                                                                               \
	POLICY(gslice)                                                                             \
	POLICY(gpulets)                                                                            \
	POLICY(dcuda)

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

const struct td_ability *td_ability_at(uint32_t bit)
{
	static const struct td_ability abilities[TD_ABILITY_N] = {
#define ABILITY(id, text, why) {#id, text, why},
		TD_ABILITIES(ABILITY)
#undef ABILITY
	};

	return &abilities[bit];
}

/* Begins a plan whose grants the caller writes, all of them. */
static void begin_plan(const struct td_view *view, struct td_plan *plan)
{
	if (plan->verdicts)
		memset(plan->verdicts, 0, view->gpu_count * sizeof(*plan->verdicts));
	plan->action_count = 0;
	plan->next_wakeup_ns = TD_NEVER;
}

void td_plan_begin(const struct td_view *view, struct td_plan *plan)
{
	memset(plan->grants, 0, view->client_count * sizeof(*plan->grants));
	begin_plan(view, plan);
}

void td_plan_act(struct td_plan *plan, const struct td_action *action)
{
	if (plan->action_count < plan->action_max)
		plan->actions[plan->action_count++] = *action;
}

_Static_assert(!(TD_CLIENT_MAX & (TD_CLIENT_MAX - 1)), "the table of groups has a power of two");

void td_group_firsts(const struct td_view *view, uint16_t *ret_first)
{
	/* Hash of the group id -> index of its first client + 1. */
	uint16_t index[2 * TD_CLIENT_MAX];
	uint32_t size = 16;

	while (size < 2 * view->client_count)
		size *= 2;
	memset(index, 0, size * sizeof(*index));
	for (uint32_t c = 0; c < view->client_count; c++) {
		uint32_t group = view->clients[c].group;
		uint32_t slot = (group * 2654435761u >> 16) % size;

		while (index[slot] && view->clients[index[slot] - 1].group != group)
			slot = (slot + 1) % size;
		if (!index[slot])
			index[slot] = (uint16_t)(c + 1);
		ret_first[c] = (uint16_t)(index[slot] - 1);
	}
}

void td_view_unite_classes(struct td_client_view *clients, uint32_t count)
{
	const struct td_view view = {.clients = clients, .client_count = count};
	uint16_t first[TD_CLIENT_MAX];
	bool differ = false;

	for (uint32_t c = 1; c < count; c++)
		differ |= clients[c].class != clients[0].class;
	if (!differ)
		return;
	td_group_firsts(&view, first);
	for (uint32_t c = 0; c < count; c++)
		if (clients[c].class < clients[first[c]].class)
			clients[first[c]].class = clients[c].class;
	for (uint32_t c = 0; c < count; c++)
		clients[c].class = clients[first[c]].class;
}

void td_view_count_besteffort(const struct td_view *view, uint32_t *ret_jobs)
{
	uint64_t seen[TD_CLIENT_MAX]; /* GPUs (a bit each) of the group, by its first client */
	uint16_t first[TD_CLIENT_MAX];

	memset(ret_jobs, 0, TD_GPU_MAX * sizeof(*ret_jobs));
	td_group_firsts(view, first);
	for (uint32_t c = 0; c < view->client_count; c++) {
		const struct td_client_view *client = &view->clients[c];

		if (first[c] == c)
			seen[c] = 0;
		if (client->class != TD_CLASS_BESTEFFORT || seen[first[c]] >> client->gpu & 1)
			continue;
		seen[first[c]] |= 1ull << client->gpu;
		ret_jobs[client->gpu]++;
	}
}

static bool takes_part(
	const struct td_view *view, const struct td_plan *plan, uint32_t c, uint32_t gpu)
{
	return view->clients[c].gpu == gpu && view->clients[c].class == TD_CLASS_BESTEFFORT &&
	       plan->grants[c].gate != TD_GATE_CLOSED;
}

void td_plan_divide_duty(
	const struct td_view *view, uint32_t gpu, uint32_t duty_ppm, struct td_plan *plan)
{
	uint64_t weights = 0;

	if (duty_ppm >= TD_PPM)
		return;
	for (uint32_t c = 0; c < view->client_count; c++)
		if (takes_part(view, plan, c, gpu) && view->clients[c].wants)
			weights += view->clients[c].weight;
	for (uint32_t c = 0; c < view->client_count; c++) {
		uint64_t weight = view->clients[c].weight, all = weights, part;

		if (!takes_part(view, plan, c, gpu))
			continue;
		all += view->clients[c].wants ? 0 : weight;
		part = all ? duty_ppm * weight / all : duty_ppm;
		plan->grants[c].duty_ppm = part ? (uint32_t)part : 1;
	}
}

void td_plan_make_room(const struct td_view *view, struct td_plan *plan)
{
	for (uint32_t c = 0; c < view->client_count; c++) {
		const struct td_client_view *client = &view->clients[c];
		uint64_t limit = plan->grants[c].limit_bytes;

		if (plan->grants[c].gate != TD_GATE_CLOSED && client->resident_bytes > limit)
			td_plan_act(plan, &(struct td_action){.kind = TD_ACTION_MAKE_ROOM,
						  .client = client->id,
						  .bytes = client->resident_bytes - limit});
	}
}

void td_plan_from_lock(struct td_lock_plan *state, const struct td_lock_rules *rules,
	const struct td_policy_options *options, const struct td_view *view, uint64_t now_ns,
	struct td_plan *plan)
{
	begin_plan(view, plan);
	plan->next_wakeup_ns = td_lock_step(&state->lock, rules, options, view, now_ns);
	for (uint32_t c = 0; c < view->client_count; c++) {
		const struct td_lock_group *g = td_lock_group_of(&state->lock, c);
		struct td_grant *grant = &plan->grants[c];

		*grant = (struct td_grant){.gate = TD_GATE_CLOSED};
		if (g->open)
			grant->gate = g->wants || !g->holding ? TD_GATE_OPEN : TD_GATE_ARMED;
		grant->others_wait = g->holding && g->contended;
		grant->turn_reason = g->turn.reason;
		grant->turn_ns = g->turn.ns;
		if (grant->others_wait && g->gpus & state->lock.urgent_gpus)
			grant->window_ns = rules->window_ns;
	}
	td_share_memory(view, plan, state->scratch);
}

void td_plan_forget_gpu(void *state, uint32_t gpu)
{
	((struct td_lock_plan *)state)->lock.owed_ns[gpu] = 0;
}
