/* This file implements metering.h. */
#include "daemon/node/metering.h"

#include "daemon/model/node.h"

/*
 * Returns whether MPS is on for some GPU. Then the number of SMs that one program needs decides
 * what others get.
 */
static bool has_mps(const struct td_node *node)
{
	for (uint32_t i = 0; i < node->gpu_count; i++)
		if (node->gpu_views[i].mps == TD_MPS_ON)
			return true;
	return false;
}

bool td_metering_is_wanted(const struct td_node *node)
{
	switch (node->options.meter) {
	case TD_METER_ON: return true;
	case TD_METER_OFF: return false;
	case TD_METER_AUTO: break;
	}
	return node->policy->needs & (TD_HAS(SM_ACTIVITY) | TD_HAS(CORES)) || has_mps(node);
}

/* Returns whether the gate page tells the process to measure its work. */
static bool is_measured(const struct td_node *node, const struct td_process *process)
{
	return process->meter && (td_metering_is_wanted(node) || process->pacing.duty_ppm ||
					 process->pacing.window_ns);
}

/* Returns the share of the GPU's SMs that the client's library measures relative to. */
static uint32_t share_of(const struct td_node *node, const struct td_client *client)
{
	return client->sm_share_ppm && node->gpu_views[client->gpu].mps == TD_MPS_ON
		       ? client->sm_share_ppm
		       : TD_PPM;
}

static struct td_activity_counters counters_of(const struct td_client *client)
{
	const struct td_meter_page *meter = client->process->meter;
	uint32_t slot = client->slot;

	return (struct td_activity_counters){
		atomic_load_explicit(&meter->used_ns[slot], memory_order_relaxed),
		atomic_load_explicit(&meter->active_ns[slot], memory_order_relaxed),
		atomic_load_explicit(&meter->core_ns[slot], memory_order_relaxed)};
}

void td_metering_read(const struct td_node *node, struct td_client *client, uint64_t now_ns)
{
	struct td_activity_counters counters;

	if (!is_measured(node, client->process) || client->slot >= TD_SLOT_MAX) {
		td_activity_stop(&client->activity);
		return;
	}
	/* The pages of programs are seldom in the cache, so they are read only when needed. */
	if (!td_activity_is_due(&client->activity, now_ns))
		return;
	counters = counters_of(client);
	(void)td_activity_read(&client->activity, &counters, share_of(node, client), now_ns);
}

void td_metering_arrive(struct td_client *client)
{
	if (client->process->meter && client->slot < TD_SLOT_MAX)
		client->activity.read = counters_of(client);
}

void td_metering_add(struct td_node *node, const struct td_client *client)
{
	node->gpus[client->gpu].metered_ppm += client->activity.used_ppm;
}

uint32_t td_metering_ppm(const struct td_node *node, const struct td_client *client, uint32_t ppm)
{
	uint64_t sum_ppm = node->gpus[client->gpu].metered_ppm;

	if (sum_ppm <= TD_PPM || node->gpu_views[client->gpu].mps == TD_MPS_ON)
		return ppm;
	return (uint32_t)(ppm * (uint64_t)TD_PPM / sum_ppm);
}

uint32_t td_metering_shown_ppm(
	const struct td_node *node, const struct td_client *client, uint32_t ppm)
{
	ppm = td_metering_ppm(node, client, ppm);
	return client->activity.known && !ppm ? 1 : ppm;
}

bool td_metering_of_gpu(const struct td_node *node, uint32_t gpu, uint32_t *ret_ppm)
{
	uint64_t sum = 0;
	bool known = false;
	struct td_list *it;

	td_list_for_each (it, &node->clients) {
		const struct td_client *client = td_client_at(it);

		if (client->gpu != gpu || client->process->phase == TD_PHASE_CLOSED)
			continue;
		/* The client has just come, so its first window is not over. */
		if (!client->activity.known && client->activity.read_ns)
			continue;
		if (!client->activity.known)
			return false;
		known = true;
		sum += td_metering_ppm(node, client, client->activity.active_ppm);
	}
	*ret_ppm = sum < TD_PPM ? (uint32_t)sum : TD_PPM;
	return known;
}
