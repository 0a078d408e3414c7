/* This file implements show.h. */
#include "daemon/execute/show.h"

#include <string.h>

#include "daemon/execute/moves.h"
#include "daemon/execute/reshare.h"
#include "daemon/memory/fixed.h"
#include "daemon/memory/soft.h"
#include "daemon/model/job.h"
#include "daemon/node/abilities.h"
#include "daemon/node/gpus.h"
#include "daemon/node/metering.h"
#include "daemon/node/pairing.h"

/* Returns when the next look is due, even if no message arrives. */
uint64_t td_services_look(struct td_node *node, uint64_t now_ns)
{
	uint64_t wakeup = TD_NEVER;
	struct td_list *it;

	if (!node->had.services)
		return TD_NEVER;
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
	for (uint32_t k = 0; page && k < TD_LAYER_KINDS; k++) {
		client->profile.layers[k] =
			atomic_load_explicit(&page->layers[k], memory_order_relaxed);
		knows |= client->profile.layers[k] > 0;
	}
	if (entry && !strcmp(entry->learnt.gpu, node->gpus[client->gpu].name))
		client->profile.service = &entry->curves;
	return knows || client->profile.service ? &client->profile : NULL;
}

/* Returns whether the policy asks what is known of clients in advance. */
static bool asks_profiles(const struct td_node *node)
{
	uint32_t uses = node->profiles.good_count ? node->policy->uses : 0;

	return (node->policy->needs | uses) & TD_HAS(PROFILES);
}

/* Fills in what is known of the client in advance, and sets the flag that it is known. */
static void show_profile(
	const struct td_node *node, struct td_client *client, struct td_client_view *view)
{
	/* Other policies do not ask, and the page of a program is not in the cache. */
	if (!asks_profiles(node))
		return;
	view->profile = profile_of(node, client);
	if (view->profile)
		view->has |= TD_HAS(PROFILES);
}

/* Fills in the figures of a service; does nothing if they are not known. */
static void show_service(const struct td_service *service, struct td_client_view *view)
{
	if (!td_service_is_known(service))
		return;
	view->rate_per_s = service->rate_per_s;
	view->waiting = service->waiting;
	view->p50_ns = service->p50_ns;
	view->p99_ns = service->p99_ns;
	view->objective_ns = service->objective_ns;
	view->batch = service->batch;
	view->batch_max = service->batch_max;
}

static void show_activity_of_client(struct td_node *node, uint32_t row)
{
	const struct td_client *client = node->shown[row];

	node->views[row].sm_activity_ppm =
		td_metering_shown_ppm(node, client, client->activity.active_ppm);
	node->views[row].sm_need_ppm = client->activity.known ? client->activity.need_ppm : 0;
}

static void show_rates(struct td_client_view *view, const struct td_activity *activity)
{
	view->busy_ppm = activity->used_ppm;
	view->core_ppm = activity->known && !activity->core_ppm ? 1 : activity->core_ppm;
}

/* Done only for policies that ask for it. */
static void show_activity_of_gpus(struct td_node *node)
{
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

/* Shows the policy the activity of clients and GPUs. */
static void show_activity(struct td_node *node)
{
	for (uint32_t i = 0; i < node->shown_count; i++)
		show_activity_of_client(node, i);
	show_activity_of_gpus(node);
}

uint32_t td_sm_share_ppm(const struct td_node *node, const struct td_client *client)
{
	return node->gpu_views[client->gpu].mps == TD_MPS_ON ? client->sm_share_ppm : 0;
}

/* Returns the client's bytes on the host, without those that its soft limit keeps there. */
static uint64_t host_bytes_shown(const struct td_client *client)
{
	uint64_t demanded = td_soft_demand(client), lacks;

	lacks = demanded > client->device.used ? demanded - client->device.used : 0;
	return lacks < client->host_bytes ? lacks : client->host_bytes;
}

bool td_show_is_moving(const struct td_node *node)
{
	uint32_t uses = node->options.moves ? node->policy->uses : 0;

	return (node->policy->needs | uses) & TD_HAS(MIGRATION);
}

static void show_moves(
	const struct td_node *node, const struct td_process *process, struct td_client_view *view)
{
	view->migrates = td_move_is_possible(node, process);
	view->moves = process->moving.number != 0;
	for (uint32_t i = 0; view->moves && i < node->gpu_count; i++)
		if (node->gpus[i].used && !memcmp(node->gpus[i].uuid, process->moving.gpu, 16))
			view->moves_to = i;
	view->moved_ns = process->moved.at_ns;
	view->move_pause_ns = process->moved.pause_ns;
	view->reshared_ns = process->reshared_ns;
	view->reshare_pause_ns = process->reshare_pause_ns;
}

/* Takes the bytes that a move has reserved off the capacity that the policy sees. */
static void hide_reserved(struct td_node *node, uint32_t gpu)
{
	uint64_t *capacity = &node->gpu_views[gpu].capacity_bytes, reserved = 0;

	/* Only an action, or a client that is set aside, reserves anything. */
	if (node->gpus[gpu].aside || node->had.acts)
		reserved = td_move_reserved_bytes(node, gpu);
	*capacity -= reserved < *capacity ? reserved : *capacity;
}

/* Fills in the row of a client. It is written in place: with many clients a copy of each shows. */
static void show_client(const struct td_node *node, struct td_client *client,
	struct td_client_view *view, uint64_t now_ns)
{
	const struct td_process *process = client->process;
	const struct td_job *job = process->job;

	*view = (struct td_client_view){0};
	view->id = client->id;
	view->gpu = client->gpu;
	view->group = job->group;
	view->has = td_abilities_of(node, client);
	view->stands_by = job->instance && process->instance && process->instance != job->instance;
	view->class = job->settings.class;
	view->weight = job->settings.weight;
	view->phase = process->phase;
	view->wants = process->wants || client->needs;
	view->paused = job->settings.paused || job->leaves;
	view->movable = td_fixed_is_movable(node, client);
	view->last_resort = td_fixed_is_last_resort(client, view->movable);
	view->pages_itself = process->backend == TD_BACKEND_MANAGED;
	view->whole = process->backend != TD_BACKEND_MANAGED && !client->spills;
	view->drain_overruns = process->drain_overruns;
	view->wants_since_ns = process->wants_since_ns;
	view->idle_since_ns = process->idle_since_ns;
	view->phase_since_ns = process->phase_since_ns;
	view->demanded_bytes = td_soft_demand(client);
	view->resident_bytes = client->device.used;
	view->fixed_bytes = td_fixed_bytes(client);
	view->limit_bytes = client->device.told;
	view->held_ns = td_process_held_ns(process, now_ns);
	view->host_bytes = host_bytes_shown(client);
	view->peak_bytes = client->peak_bytes;
	view->minimal_bytes =
		client->cached_bytes ? client->demanded_bytes - client->cached_bytes : 0;
	view->launches = process->launches;
	view->steps = process->steps.count;
	view->step_ns = process->steps.step_ns;
	view->step_began_ns = process->steps.began_ns;
	view->step_unit = process->steps.unit;
	view->slack_ppm = job->settings.slack_ppm;
	view->gpu_time_ns = process->meter ? 1 + atomic_load(&process->meter->gpu_ns) : 0;
	view->sm_share_ppm = td_sm_share_ppm(node, client);
	show_rates(view, &client->activity);
	show_moves(node, process, view);
	view->reshares = td_reshare_is_possible(node, client);
	show_service(process->service, view);
	show_profile(node, client, view);
	view->fresh = td_process_fresh(process, &view->tries);
}

void td_show_view(struct td_node *node, struct td_view *view, uint64_t now_ns)
{
	uint32_t n = 0;
	struct td_list *it;

	for (uint32_t i = 0; i < node->gpu_count; i++) {
		node->gpu_views[i] =
			(struct td_gpu_view){.capacity_bytes = node->gpus[i].capacity_bytes,
				.handover_ns = node->gpus[i].handover_ns};
		node->gpus[i].metered_ppm = 0;
		if (node->gpus[i].used)
			td_abilities_show_gpu(node, node->gpus[i].uuid, &node->gpu_views[i]);
		hide_reserved(node, i);
		node->gpu_views[i].shut =
			td_show_is_moving(node) && td_gpus_are_shut(node, i, now_ns);
	}
	td_list_for_each (it, &node->clients) {
		struct td_client *client = td_client_at(it);
		const struct td_process *process = client->process;

		if (!client->aside && !client->failed && !process->stop.is)
			td_metering_read(node, client, now_ns);
		td_metering_add(node, client);
		if (client->aside)
			continue;
		if (client->failed || process->stop.is) {
			uint64_t *capacity = &node->gpu_views[client->gpu].capacity_bytes;
			uint64_t bytes =
				client->failed ? client->device.used : td_client_charge(client);

			*capacity -= bytes < *capacity ? bytes : *capacity;
			continue;
		}
		node->shown[n] = client;
		show_client(node, client, &node->views[n], now_ns);
		node->read_due_ns[n++] = td_activity_due_ns(&client->activity);
	}
	node->shown_count = n;
	show_activity(node);
	td_view_unite_classes(node->views, n);
	td_pairing_show(node);
	*view = (struct td_view){
		node->gpu_views, node->views, node->gpu_count, n, node->options.has};
}

/* Reads the meter of the client in that row. Returns false if it is known only now. */
static bool read_again(struct td_node *node, uint32_t row, uint64_t now_ns)
{
	struct td_client *client = node->shown[row];
	uint64_t *metered_ppm = &node->gpus[client->gpu].metered_ppm;
	bool was_known = client->activity.known;

	*metered_ppm -= client->activity.used_ppm;
	td_metering_read(node, client, now_ns);
	td_metering_add(node, client);
	node->read_due_ns[row] = td_activity_due_ns(&client->activity);
	show_rates(&node->views[row], &client->activity);
	show_activity_of_client(node, row);
	return client->activity.known == was_known;
}

/*
 * Shows the activity after some meters were read. Returns false if figures of a GPU have become
 * known or unknown.
 */
static bool show_activity_again(struct td_node *node, bool all)
{
	uint32_t known[TD_GPU_MAX];
	bool same = true;

	for (uint32_t i = 0; i < node->gpu_count; i++) {
		known[i] = node->gpu_views[i].known;
		node->gpu_views[i].known &= ~TD_HAS(SM_ACTIVITY);
	}
	if (all)
		show_activity(node);
	else
		show_activity_of_gpus(node);
	for (uint32_t i = 0; i < node->gpu_count; i++)
		same &= known[i] == node->gpu_views[i].known;
	return same;
}

bool td_show_again(struct td_node *node, struct td_view *view, uint64_t now_ns)
{
	bool runs = false, turns = false, same = true;

	for (uint32_t i = 0; i < node->shown_count; i++) {
		struct td_client_view *client = &node->views[i];

		if (client->phase == TD_PHASE_OPEN)
			client->held_ns += now_ns - node->stepped_ns;
		if (now_ns < node->read_due_ns[i])
			continue;
		same &= read_again(node, i, now_ns);
		runs |= client->phase != TD_PHASE_CLOSED;
		turns |= node->gpu_views[client->gpu].mps != TD_MPS_ON;
	}
	/* Where programs take turns, the rates of each depend on those of all. */
	if (runs || turns)
		same &= show_activity_again(node, turns);
	*view = (struct td_view){node->gpu_views, node->views, node->gpu_count, node->shown_count,
		node->options.has};
	return same;
}
