/*
 * The policy "dcuda": balancing, compaction and fair slices over the GPUs of a node (dcuda.h).
 *
 * Demands and the hysteresis of moves: moves.h. A group runs in a slice if any of its clients
 * would, so a wide group runs more often rather than never.
 *
 * A client that is closed for the slice keeps its memory as far as it fits. New processes are
 * placed by the daemon with td_balance_start().
 *
 * Invariants: on a GPU that is not overloaded all clients are open; a paused client is never open;
 * a group is open or closed alike on all of its GPUs; compaction never uses a GPU as target and
 * source in one plan.
 */
#include <string.h>

#include "policy/node/moves.h"
#include "policy/node/plans.h"
#include "policy/node/share.h"
#include "policy/system/dcuda.h"

/* So long the algorithms have to want a move before it is planned. */
#define BALANCE_HOLD_NS (2 * TD_SLICE_NS)
#define COMPACT_HOLD_NS (50 * TD_SLICE_NS)
/* A GPU that is always busy: overloaded, and one group of a slice. */
#define SATURATED 1.09
_Static_assert(TD_DCUDA_APPS_MAX >= TD_MOVES_APPS_MAX, "every view fits");

struct group {
	bool runs, paused;
};

struct dcuda {
	struct td_moves moves;
	/* Scratch of a step. */
	struct td_dcuda_plan plan, slices; /* the moves of one, the slices of the other */
	uint64_t hold_ns[TD_DCUDA_APPS_MAX];
	struct group groups[TD_CLIENT_MAX]; /* entries by a group's first client */
};

/*
 * For slices, the demands of a GPU that is always busy are shown as SATURATED together: no slices
 * follow from them but for memory, as the driver takes turns already.
 */
static void share_saturated(struct dcuda *dcuda, const struct td_view *view)
{
	for (uint32_t g = 0; g < view->gpu_count; g++) {
		double sum = 0;

		for (uint32_t c = 0; c < view->client_count; c++)
			sum += dcuda->moves.apps[c].gpu == g ? dcuda->moves.apps[c].core : 0;
		if (view->gpus[g].mps == TD_MPS_ON || sum <= SATURATED)
			continue;
		for (uint32_t c = 0; c < view->client_count; c++)
			if (dcuda->moves.apps[c].gpu == g)
				dcuda->moves.apps[c].core *= SATURATED / sum;
	}
}

/*
 * Sets the gates: a group that runs on one GPU is open on all of its GPUs; one paused on one GPU is
 * closed on all. Returns whether a client waits for a slice.
 */
static bool set_gates(struct dcuda *dcuda, const struct td_view *view, struct td_plan *plan)
{
	uint64_t waited_for = 0; /* one bit per GPU */

	memset(dcuda->groups, 0, view->client_count * sizeof(dcuda->groups[0]));
	for (uint32_t c = 0; c < view->client_count; c++) {
		struct group *group = &dcuda->groups[dcuda->moves.first[c]];

		group->runs |= dcuda->slices.runs[c];
		group->paused |= view->clients[c].paused;
	}
	for (uint32_t c = 0; c < view->client_count; c++) {
		const struct group *group = &dcuda->groups[dcuda->moves.first[c]];

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
	uint32_t apps;
	bool sliced;

	(void)options;
	td_plan_begin(view, plan);
	if (!view->gpu_count)
		return;
	apps = td_moves_look(&dcuda->moves, view, now_ns);
	(void)td_dcuda_step(
		&td_dcuda_default, dcuda->moves.apps, apps, view->gpu_count, now_ns, &dcuda->plan);
	share_saturated(dcuda, view);
	(void)td_dcuda_step(&td_dcuda_default, dcuda->moves.apps, apps, view->gpu_count, now_ns,
		&dcuda->slices);
	sliced = set_gates(dcuda, view, plan);
	for (uint32_t c = 0; c < view->client_count; c++) {
		plan->grants[c].limit_bytes = UINT64_MAX;
		if (view->has & TD_HAS(PRIORITY))
			plan->grants[c].priority = dcuda->slices.priority[c] + 1;
	}
	for (uint32_t m = 0; m < dcuda->plan.moves; m++)
		dcuda->hold_ns[m] = dcuda->plan.compacts ? COMPACT_HOLD_NS : BALANCE_HOLD_NS;
	if (view->has & TD_HAS(MIGRATION))
		td_moves_plan(&dcuda->moves, view, dcuda->plan.move, dcuda->plan.moves,
			dcuda->hold_ns, dcuda->plan.compacts ? TD_MOVE_COMPACT : TD_MOVE_OVERLOAD,
			now_ns, plan);
	if (sliced || dcuda->plan.moves || (view->gpu_count > 1 && view->client_count > 1))
		plan->next_wakeup_ns = (now_ns / TD_SLICE_NS + 1) * TD_SLICE_NS;
	td_share_memory_by_class(view, plan);
	td_plan_make_room(view, plan);
}

static void forget_gpu(void *state, uint32_t gpu)
{
	struct dcuda *dcuda = state;

	td_moves_forget_gpu(&dcuda->moves, gpu);
}

const struct td_policy td_policy_dcuda = {
	.name = "dcuda",
	.summary =
		"jobs move from overloaded GPUs to others; what stays overloaded is sliced fairly",
	.needs = TD_HAS(CORES) | TD_HAS(MIGRATION) | TD_HAS(HOST_MEMORY),
	.state_bytes = sizeof(struct dcuda),
	.step = dcuda_step,
	.forget_gpu = forget_gpu,
};
