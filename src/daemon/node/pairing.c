/* This file implements pairing.h. */
#include "daemon/node/pairing.h"

#include <string.h>

#include "daemon/model/job.h"
#include "daemon/node/gpus.h"
#include "proto/orders.h"

static const struct td_speed_kind *kind_of(const struct td_node *node, uint32_t gpu)
{
	return td_speed_file_kind(&node->profiles.speeds, node->gpus[gpu].name);
}

/* Returns the dry run of the client's program; it is looked up anew when the file has changed. */
static const struct td_muxflow_profile *alone_of(
	const struct td_node *node, struct td_client *client)
{
	const struct td_process *process = client->process;
	const struct td_speed_kind *kind;

	if (client->alone_of == node->profiles.speeds_read)
		return client->alone;
	client->alone_of = node->profiles.speeds_read;
	kind = kind_of(node, client->gpu);
	client->alone = kind ? td_speed_kind_program(kind, process->name) : NULL;
	if (kind && !client->alone && process->service)
		client->alone = td_speed_kind_program(kind, process->service->name);
	return client->alone;
}

/* Returns why the job cannot be started again on another GPU, or NULL. */
static const char *why_it_stays(const struct td_process *process)
{
	const struct td_job *job = process->job;

	if (!(job->supervised & TD_SUPERVISOR_RESTARTS))
		return "nobody can start it again (tandem run --restart or --requeue)";
	if (process->candidate_count < 2 || job->placed_count != 1)
		return "the daemon was not to choose its one GPU (tandem run --gpu any)";
	if (td_list_empty(&process->clients) || process->clients.next->next != &process->clients ||
		job->members.next->next != &job->members)
		return "it uses more than one GPU or has more than one process";
	return NULL;
}

static uint64_t candidates_of(const struct td_node *node, const struct td_process *process)
{
	uint64_t gpus = 0;

	for (uint32_t g = 0; g < node->gpu_count; g++)
		for (uint32_t i = 0; i < process->candidate_count && node->gpus[g].used; i++)
			if (!memcmp(node->gpus[g].uuid, process->candidates[i], 16))
				gpus |= 1ull << g;
	return gpus;
}

void td_pairing_show(struct td_node *node)
{
	if (!node->policy->exchanges || node->gpu_count < 2)
		return;
	for (uint32_t g = 0; g < node->gpu_count; g++) {
		const struct td_speed_kind *kind = node->gpus[g].used ? kind_of(node, g) : NULL;

		node->gpu_views[g].speeds = kind ? &kind->model.predictor : NULL;
	}
	for (uint32_t i = 0; i < node->shown_count; i++) {
		struct td_client *client = node->shown[i];
		struct td_client_view *view = &node->views[i];

		if (!view->profile)
			client->profile = (struct td_profile){0};
		client->profile.alone = alone_of(node, client);
		if (client->profile.alone)
			view->profile = &client->profile;
		if (view->class == TD_CLASS_BESTEFFORT && !why_it_stays(client->process))
			view->restarts_on = candidates_of(node, client->process);
	}
}

/* Returns whether the figures of an online job on the GPU are not known. */
static bool has_unknown_service(const struct td_node *node, uint32_t gpu)
{
	struct td_list *it;

	td_list_for_each (it, &node->clients) {
		struct td_client *client = td_client_at(it);

		if (client->gpu == gpu && !client->aside &&
			client->process->job->settings.class != TD_CLASS_BESTEFFORT &&
			!alone_of(node, client))
			return true;
	}
	return false;
}

const char *td_pairing_obstacle(const struct td_node *node, const struct td_process *process)
{
	struct td_client *client = td_process_client(process);
	const char *why = why_it_stays(process);

	if (!node->policy->exchanges || !node->options.muxflow.exchange_ns || !client ||
		td_gpus_count(node) < 2 || process->job->settings.class != TD_CLASS_BESTEFFORT)
		return NULL;
	if (why)
		return why;
	if (!kind_of(node, client->gpu))
		return "speeds on its kind of GPU are not known (tandem profile campaign, and the "
		       "option profiles)";
	if (!alone_of(node, client))
		return "its name is none of the programs whose speeds are known (tandem profile "
		       "--name)";
	return has_unknown_service(node, client->gpu) ? "the name of an online job on its GPU is "
							"none of the programs whose speeds "
							"are known (tandem profile --name)"
						      : NULL;
}

void td_pairing_bind(struct td_supervisor *supervisor, const struct td_bound *bound)
{
	supervisor->bound = bound ? *bound : (struct td_bound){.is_set = false};
}

const struct td_bound *td_pairing_take(struct td_node *node, const struct td_process *process)
{
	struct td_supervisor *supervisor = td_supervisors_find(node, process->job);
	const struct td_nvml_gpu *listed;

	if (!supervisor || !supervisor->bound.is_set)
		return NULL;
	supervisor->bound.is_set = false;
	listed = td_gpus_find(node, supervisor->bound.gpu);
	if ((listed && (listed->lost || listed->mig)) ||
		!td_node_may_have(node, supervisor->bound.gpu))
		return NULL;
	for (uint32_t i = 0; i < process->candidate_count; i++)
		if (!memcmp(process->candidates[i], supervisor->bound.gpu, 16))
			return &supervisor->bound;
	return NULL;
}
