/* Places a service and its training tasks on a GPU; see colocate.h. */
#include "policy/cluster/colocate.h"

#include <string.h>

#include "policy/node/admit.h"
#include "policy/node/plans.h"
#include "policy/node/share.h"

struct td_slo td_colocate_slo(const struct td_client_view *service)
{
	return (struct td_slo){
		.objective_s = (double)service->objective_ns / 1e9,
		.rate_per_s = service->rate_per_s,
		.batch = service->batch ? service->batch : 1,
		.load_max = 0.8,
		.headroom = 0.1,
		.share_min = TD_COLOCATE_SHARE_MIN_PPM / 1e6,
	};
}

void td_colocate_look(
	struct td_colocation *colocations, const struct td_view *view, struct td_plan *plan)
{
	uint32_t places[TD_GPU_MAX];

	for (uint32_t gpu = 0; gpu < TD_GPU_MAX; gpu++)
		places[gpu] = TD_SELECTOR_TASKS_MAX;
	td_plan_begin(view, plan);
	td_admit(view, places, plan);
	for (uint32_t gpu = 0; gpu < view->gpu_count; gpu++)
		colocations[gpu] = (struct td_colocation){
			.was_paused = colocations[gpu].was_paused, .places = TD_SELECTOR_TASKS_MAX};
	for (uint32_t c = 0; c < view->client_count; c++) {
		struct td_colocation *here = &colocations[view->clients[c].gpu];

		if (view->clients[c].stands_by)
			continue;
		if (view->clients[c].class != TD_CLASS_BESTEFFORT) {
			if (!here->services++)
				here->service = c;
		} else if (plan->grants[c].gate != TD_GATE_CLOSED &&
			   here->tasks < TD_SELECTOR_TASKS_MAX) {
			here->task[here->tasks++] = c;
		}
	}
}

static void act(struct td_plan *plan, enum td_action_kind kind, const struct td_client_view *client)
{
	td_plan_act(plan, &(struct td_action){.kind = kind, .client = client->id});
}

/* Divides what the service leaves equally among its tasks. */
static uint32_t task_share_ppm(const struct td_colocation *here)
{
	uint32_t left = here->share_ppm < TD_PPM ? TD_PPM - here->share_ppm : 0;
	uint32_t share = here->tasks ? left / here->tasks : left;

	return share ? share : 1;
}

static void grant_one(const struct td_colocation *here, const struct td_view *view, uint32_t c,
	struct td_plan *plan)
{
	const struct td_client_view *client = &view->clients[c];
	struct td_grant *grant = &plan->grants[c];
	/* A share that can change while the program runs may be the whole GPU. */
	uint32_t has_ppm =
		client->sm_share_ppm || !client->reshares ? client->sm_share_ppm : TD_PPM;

	if (!here->services || grant->gate == TD_GATE_CLOSED)
		return;
	if (client->class == TD_CLASS_BESTEFFORT) {
		grant->sm_share_ppm = task_share_ppm(here);
	} else if (here->services == 1) {
		grant->sm_share_ppm = here->share_ppm;
		grant->batch = here->batch;
		if (here->share_ppm && has_ppm && !client->stands_by && has_ppm != here->share_ppm)
			td_plan_act(plan, &(struct td_action){.kind = TD_ACTION_SHARE,
						  .client = client->id,
						  .sm_share_ppm = here->share_ppm});
	}
}

/* Plans PAUSE for each task while the pause lasts, and one RESUME when it is over. */
static void tell_pauses(
	struct td_colocation *colocations, const struct td_view *view, struct td_plan *plan)
{
	for (uint32_t c = 0; c < view->client_count; c++) {
		const struct td_client_view *client = &view->clients[c];
		const struct td_colocation *here = &colocations[client->gpu];

		if (client->class != TD_CLASS_BESTEFFORT)
			continue;
		if (here->paused)
			act(plan, TD_ACTION_PAUSE, client);
		else if (here->was_paused && !here->paused)
			act(plan, TD_ACTION_RESUME, client);
	}
	for (uint32_t gpu = 0; gpu < view->gpu_count; gpu++)
		colocations[gpu].was_paused = colocations[gpu].paused;
}

void td_colocate_grant(
	struct td_colocation *colocations, const struct td_view *view, struct td_plan *plan)
{
	uint32_t places[TD_GPU_MAX] = {0};

	for (uint32_t gpu = 0; gpu < view->gpu_count; gpu++)
		places[gpu] = colocations[gpu].paused ? 0 : colocations[gpu].places;
	td_admit(view, places, plan);
	for (uint32_t c = 0; c < view->client_count; c++) {
		plan->grants[c].limit_bytes = UINT64_MAX;
		grant_one(&colocations[view->clients[c].gpu], view, c, plan);
	}
	tell_pauses(colocations, view, plan);
	td_share_memory_by_class(view, plan);
	td_plan_make_room(view, plan);
}
