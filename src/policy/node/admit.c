/* Chooses which besteffort groups may run; see admit.h. */
#include "policy/node/admit.h"

#include <string.h>

#include "policy/node/plans.h"

struct group {
	bool protected, paused, wants, holding, open;
	uint16_t clients[TD_GPU_MAX];
};

/* Fills groups[c] for each client c that is the first one of its group. */
static void gather(const struct td_view *view, const uint16_t *first, struct group *groups)
{
	for (uint32_t c = 0; c < view->client_count; c++) {
		const struct td_client_view *client = &view->clients[c];
		struct group *group = &groups[first[c]];

		if (first[c] == c)
			memset(group, 0, sizeof(*group));
		group->protected |= client->class != TD_CLASS_BESTEFFORT;
		group->paused |= client->paused;
		group->wants |= client->wants;
		group->holding |= client->phase != TD_PHASE_CLOSED;
		group->clients[client->gpu]++;
	}
}

static bool has_places(
	const struct td_view *view, const struct group *group, const uint32_t left[TD_GPU_MAX])
{
	for (uint32_t gpu = 0; gpu < view->gpu_count; gpu++)
		if (group->clients[gpu] > left[gpu])
			return false;
	return true;
}

static void take(const struct td_view *view, const struct group *group, uint32_t left[TD_GPU_MAX])
{
	for (uint32_t gpu = 0; gpu < view->gpu_count; gpu++)
		left[gpu] -= group->clients[gpu] < left[gpu] ? group->clients[gpu] : left[gpu];
}

static void admit(const struct td_view *view, const uint16_t *first, struct group *groups,
	bool holders, uint32_t left[TD_GPU_MAX])
{
	for (uint32_t c = 0; c < view->client_count; c++) {
		struct group *group = &groups[c];

		if (first[c] != c || group->holding != holders)
			continue;
		group->open = !group->paused;
		if (group->protected)
			continue;
		group->open &= (group->holding || group->wants) && has_places(view, group, left);
		/*
		 * A group that is about to close still takes its places; a waiting one keeps its
		 * turn.
		 */
		if (group->holding || (group->wants && !group->paused))
			take(view, group, left);
	}
}

void td_admit(const struct td_view *view, const uint32_t places[TD_GPU_MAX], struct td_plan *plan)
{
	struct group groups[TD_CLIENT_MAX];
	uint16_t first[TD_CLIENT_MAX];
	uint32_t left[TD_GPU_MAX];

	memcpy(left, places, sizeof(left));
	td_group_firsts(view, first);
	gather(view, first, groups);
	admit(view, first, groups, true, left);
	admit(view, first, groups, false, left);
	for (uint32_t c = 0; c < view->client_count; c++) {
		plan->grants[c].gate = TD_GATE_CLOSED;
		if (groups[first[c]].open)
			plan->grants[c].gate =
				view->clients[c].wants ? TD_GATE_OPEN : TD_GATE_ARMED;
	}
}
