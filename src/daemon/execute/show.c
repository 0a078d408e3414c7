/* This file implements show.h. */
#include "daemon/execute/show.h"

#include <string.h>

#include "daemon/node/gpus.h"
#include "daemon/node/metering.h"

/* Returns when the next look is due, even if no message arrives. */
uint64_t td_services_look(struct td_node *node, uint64_t now_ns)
{
	uint64_t wakeup = TD_NEVER;
	struct td_list *it;

	td_list_for_each (it, &node->processes) {
		struct td_process *process = td_process_at(it);

		if (!process->service)
			continue;
		td_service_look(process->service, now_ns);
		wakeup = now_ns + TD_SERVICE_LOOK_NS;
	}
	return wakeup;
}

/*
 * Returns the layers that the program reported and the service's curves measured on this GPU model;
 * NULL if neither is known.
 */
static const struct td_profile *profile_of(const struct td_node *node, struct td_client *client)
{
	const struct td_process *process = client->process;
	const struct td_service_page *page = process->service_page;
	const struct td_profile_entry *entry = process->service ? process->service->profile : NULL;
	bool knows = false;

	client->profile = (struct td_profile){0};
	/* Other policies do not ask, and the page of a program is not in the cache. */
	if (!(node->policy->needs & TD_HAS(PROFILES)))
		return NULL;
	for (uint32_t k = 0; page && k < TD_LAYER_KINDS; k++) {
		client->profile.layers[k] =
			atomic_load_explicit(&page->layers[k], memory_order_relaxed);
		knows |= client->profile.layers[k] > 0;
	}
	if (entry && !strcmp(entry->learnt.gpu, node->gpus[client->gpu].name))
		client->profile.service = &entry->curves;
	return knows || client->profile.service ? &client->profile : NULL;
}

void td_show_profile(
	const struct td_node *node, struct td_client *client, struct td_client_view *view)
{
	view->profile = profile_of(node, client);
	if (view->profile)
		view->has |= TD_HAS(PROFILES);
}

void td_show_service(const struct td_service *service, struct td_client_view *view)
{
	if (!service)
		return;
	view->rate_per_s = service->rate_per_s;
	view->waiting = service->waiting;
	view->p50_ns = service->p50_ns;
	view->p99_ns = service->p99_ns;
	view->objective_ns = service->objective_ns;
	view->batch = service->batch;
	view->batch_max = service->batch_max;
}

/* Shows the policy the activity of clients and GPUs. Done only for policies that ask for it. */
void td_show_activity(struct td_node *node)
{
	td_metering_gather(node);
	for (uint32_t i = 0; i < node->shown_count; i++) {
		const struct td_client *client = node->shown[i];

		node->views[i].sm_activity_ppm =
			td_metering_shown_ppm(node, client, client->activity.active_ppm);
		node->views[i].sm_need_ppm = client->activity.known ? client->activity.need_ppm : 0;
	}
	for (uint32_t i = 0; i < node->gpu_count && td_metering_is_wanted(node); i++) {
		const struct td_nvml_gpu *listed = td_gpus_find(node, node->gpus[i].uuid);
		struct td_gpu_view *view = &node->gpu_views[i];

		/* NVML's figure also covers programs that tandem does not measure. */
		if (td_metering_of_gpu(node, i, &view->sm_activity_ppm)) {
			view->known |= TD_HAS(SM_ACTIVITY);
		} else if (listed && listed->known & TD_GPU_KNOWS_SM_ACTIVITY) {
			view->sm_activity_ppm = listed->sm_activity_ppm;
			view->known |= TD_HAS(SM_ACTIVITY);
		}
	}
}

uint32_t td_sm_share_ppm(const struct td_node *node, const struct td_client *client)
{
	return node->gpu_views[client->gpu].mps == TD_MPS_ON ? client->sm_share_ppm : 0;
}
