/*
 * The policy "dcuda": balancing, compaction and fair slices over the GPUs of a node (dcuda.h).
 *
 * An application is a client. Its core demand is what the interposer found by occupancy; its memory
 * demand is what it has allocated, as a share of the GPU's capacity. A client is movable if its
 * memory is and if it is alone in its group: a group's GPUs are chosen together, so DCUDA does not
 * move it. A group runs in a slice if any of its clients would, so a wide group runs more often
 * rather than never. Plans name a move until the view shows the client elsewhere.
 *
 * A client that is closed for the slice keeps its memory as far as it fits. New processes are
 * placed by the daemon with td_balance_start().
 *
 * Invariants: on a GPU that is not overloaded all clients are open; a paused client is never open;
 * a group is open or closed alike on all of its GPUs; compaction never uses a GPU as target and
 * source in one plan.
 */
#include <string.h>

#include "policy/node/plans.h"
#include "policy/node/share.h"
#include "policy/system/dcuda.h"

_Static_assert(
	TD_DCUDA_APPS_MAX >= TD_CLIENT_MAX && TD_BALANCE_GPUS_MAX >= TD_GPU_MAX, "every view fits");

struct group {
	uint32_t clients;
	bool runs, paused;
};

/* Scratch of one step; nothing is kept. */
struct dcuda {
	struct td_balance_app apps[TD_CLIENT_MAX];
	struct td_dcuda_plan plan;
	struct group groups[TD_CLIENT_MAX]; /* entries by a group's first client */
	uint16_t first[TD_CLIENT_MAX];
};

static void list_apps(struct dcuda *dcuda, const struct td_view *view)
{
	td_group_firsts(view, dcuda->first);
	memset(dcuda->groups, 0, view->client_count * sizeof(dcuda->groups[0]));
	for (uint32_t c = 0; c < view->client_count; c++)
		dcuda->groups[dcuda->first[c]].clients++;
	for (uint32_t c = 0; c < view->client_count; c++) {
		const struct td_client_view *client = &view->clients[c];
		uint64_t capacity = view->gpus[client->gpu].capacity_bytes;

		dcuda->apps[c] = (struct td_balance_app){
			.gpu = client->gpu,
			.core = client->core_ppm / (double)TD_PPM,
			.memory = capacity ? (double)client->demanded_bytes / (double)capacity : 0,
			.movable = client->movable && dcuda->groups[dcuda->first[c]].clients == 1,
		};
	}
}

/*
 * Sets the gates: a group that runs on one GPU is open on all of its GPUs; one paused on one GPU is
 * closed on all. Returns whether a client waits for a slice.
 */
static bool set_gates(struct dcuda *dcuda, const struct td_view *view, struct td_plan *plan)
{
	uint64_t waited_for = 0; /* one bit per GPU */

	for (uint32_t c = 0; c < view->client_count; c++) {
		struct group *group = &dcuda->groups[dcuda->first[c]];

		group->runs |= dcuda->plan.runs[c];
		group->paused |= view->clients[c].paused;
	}
	for (uint32_t c = 0; c < view->client_count; c++) {
		const struct group *group = &dcuda->groups[dcuda->first[c]];

		plan->grants[c].gate = TD_GATE_CLOSED;
		if (group->runs && !group->paused)
			plan->grants[c].gate = TD_GATE_OPEN;
		else if (!group->paused)
			waited_for |= 1ull << view->clients[c].gpu;
	}
	for (uint32_t c = 0; c < view->client_count; c++)
		plan->grants[c].others_wait = plan->grants[c].gate == TD_GATE_OPEN &&
					      waited_for >> view->clients[c].gpu & 1;
	return waited_for;
}

static void dcuda_step(void *state, const struct td_policy_options *options,
	const struct td_view *view, uint64_t now_ns, struct td_plan *plan)
{
	struct dcuda *dcuda = state;
	bool sliced;

	(void)options;
	td_plan_begin(view, plan);
	if (!view->gpu_count)
		return;
	list_apps(dcuda, view);
	(void)td_dcuda_step(&td_dcuda_default, dcuda->apps, view->client_count, view->gpu_count,
		now_ns, &dcuda->plan);
	sliced = set_gates(dcuda, view, plan);
	for (uint32_t c = 0; c < view->client_count; c++) {
		plan->grants[c].limit_bytes = UINT64_MAX;
		plan->grants[c].priority = dcuda->plan.priority[c] + 1;
	}
	for (uint32_t m = 0; m < dcuda->plan.moves; m++)
		td_plan_act(plan, &(struct td_action){TD_ACTION_MIGRATE,
					  view->clients[dcuda->plan.move[m].app].id,
					  dcuda->plan.move[m].to, 0});
	if (sliced || dcuda->plan.moves)
		plan->next_wakeup_ns = (now_ns / TD_SLICE_NS + 1) * TD_SLICE_NS;
	td_share_memory_by_class(view, plan);
	td_plan_make_room(view, plan);
}

const struct td_policy td_policy_dcuda = {
	.name = "dcuda",
	.summary =
		"jobs move from overloaded GPUs to others; what stays overloaded is sliced fairly",
	.needs = TD_HAS(CORES) | TD_HAS(PRIORITY) | TD_HAS(MIGRATION) | TD_HAS(HOST_MEMORY),
	.state_bytes = sizeof(struct dcuda),
	.step = dcuda_step,
};
