/* Divides the memory of a GPU into limits; see share.h. */
#include "policy/node/share.h"

#include "base/bounds.h"

/* Tells whether the client's memory stays: it is open, or its memory cannot be taken. */
static bool stays(const struct td_view *view, const struct td_plan *plan, uint32_t c)
{
	return plan->grants[c].gate != TD_GATE_CLOSED ||
	       !(view->clients[c].movable || view->clients[c].last_resort);
}

static bool goes_before(const struct td_client_view *a, const struct td_client_view *b)
{
	if (a->last_resort != b->last_resort)
		return !a->last_resort;
	if (a->wants != b->wants)
		return !a->wants;
	return a->resident_bytes > b->resident_bytes;
}

/*
 * Lists the closed clients of a GPU in the order in which their memory leaves. Returns their
 * number.
 */
static uint32_t list_victims(
	const struct td_view *view, const struct td_plan *plan, uint32_t gpu, uint16_t *victims)
{
	uint32_t n = 0;

	for (uint32_t c = 0; c < view->client_count; c++) {
		uint32_t at = n;

		if (view->clients[c].gpu != gpu || stays(view, plan, c))
			continue;
		for (; at && goes_before(&view->clients[c], &view->clients[victims[at - 1]]); at--)
			victims[at] = victims[at - 1];
		victims[at] = (uint16_t)c;
		n++;
	}
	return n;
}

static void share_gpu(
	const struct td_view *view, struct td_plan *plan, uint32_t gpu, uint16_t *victims)
{
	uint64_t claimed = 0, kept = 0, slack, excess;
	uint32_t open = 0, n;

	for (uint32_t c = 0; c < view->client_count; c++) {
		if (view->clients[c].gpu != gpu)
			continue;
		if (stays(view, plan, c)) {
			claimed += view->clients[c].demanded_bytes;
			open++;
		} else {
			kept += view->clients[c].resident_bytes;
			plan->grants[c].limit_bytes = view->clients[c].resident_bytes;
		}
	}
	excess = td_sub_sat(claimed + kept, view->gpus[gpu].capacity_bytes);
	/* The order among those whose memory could leave matters only if some of it has to. */
	n = excess ? list_victims(view, plan, gpu, victims) : 0;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t resident = view->clients[victims[i]].resident_bytes;
		uint64_t leaves = resident - td_view_least_bytes(&view->clients[victims[i]]);
		uint64_t cut = excess < leaves ? excess : leaves;

		plan->grants[victims[i]].limit_bytes = resident - cut;
		excess -= cut;
		kept -= cut;
	}
	slack = td_sub_sat(view->gpus[gpu].capacity_bytes, claimed + kept);
	for (uint32_t c = 0; c < view->client_count; c++)
		if (view->clients[c].gpu == gpu && stays(view, plan, c))
			plan->grants[c].limit_bytes =
				view->clients[c].demanded_bytes + slack / open;
}

void td_share_memory(const struct td_view *view, struct td_plan *plan, uint16_t *scratch)
{
	for (uint32_t gpu = 0; gpu < view->gpu_count; gpu++)
		share_gpu(view, plan, gpu, scratch);
}

/* Returns the round in which a client's demand is served; 0 is the first. */
static uint32_t turn_of(const struct td_view *view, const struct td_plan *plan, uint32_t c)
{
	if (plan->grants[c].gate == TD_GATE_CLOSED)
		return 2;
	return view->clients[c].class == TD_CLASS_BESTEFFORT;
}

static void share_gpu_by_class(const struct td_view *view, struct td_plan *plan, uint32_t gpu)
{
	uint64_t left = view->gpus[gpu].capacity_bytes;
	uint64_t bound[TD_CLIENT_MAX];
	uint32_t open = 0;

	for (uint32_t c = 0; c < view->client_count; c++) {
		uint64_t stuck = plan->grants[c].gate == TD_GATE_CLOSED
					 ? td_view_least_bytes(&view->clients[c])
					 : td_view_left_bytes(&view->clients[c]);

		if (view->clients[c].gpu != gpu)
			continue;
		bound[c] = plan->grants[c].limit_bytes;
		plan->grants[c].limit_bytes = stuck;
		left = td_sub_sat(left, stuck);
		open += plan->grants[c].gate != TD_GATE_CLOSED;
	}
	for (uint32_t turn = 0; turn < 3; turn++) {
		for (uint32_t c = 0; c < view->client_count; c++) {
			const struct td_client_view *client = &view->clients[c];
			uint64_t *limit = &plan->grants[c].limit_bytes, more;

			if (client->gpu != gpu || turn_of(view, plan, c) != turn)
				continue;
			more = turn == 2 ? client->resident_bytes
					 : td_min_u64(client->demanded_bytes, bound[c]);
			more = td_min_u64(td_sub_sat(more, *limit), left);
			*limit += more;
			left -= more;
		}
	}
	for (uint32_t c = 0; c < view->client_count; c++)
		if (view->clients[c].gpu == gpu && turn_of(view, plan, c) < 2)
			plan->grants[c].limit_bytes += td_min_u64(
				left / open, td_sub_sat(bound[c], plan->grants[c].limit_bytes));
}

void td_share_memory_by_class(const struct td_view *view, struct td_plan *plan)
{
	for (uint32_t gpu = 0; gpu < view->gpu_count; gpu++)
		share_gpu_by_class(view, plan, gpu);
}
