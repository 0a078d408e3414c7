/* This file implements ready.h. */
#include "daemon/execute/ready.h"

#include "daemon/memory/capacity.h"
#include "daemon/memory/soft.h"
#include "daemon/model/job.h"
#include "daemon/model/node.h"
#include "proto/words.h"

/*
 * Returns whether the client can start without all of its bytes on the device: nobody will give
 * back what is missing, but the driver pages its memory.
 */
static bool goes_without(const struct td_node *node, const struct td_client *client)
{
	return client->process->backend == TD_BACKEND_MANAGED &&
	       td_holding_is_heard(&client->device) &&
	       client->device.told < client->demanded_bytes &&
	       td_capacity_is_settled(node, client->gpu);
}

/*
 * Returns whether all of the client's memory is still on the device, so that nothing has to be
 * filled. It was let in with all of it there, and its messages since then say that none has left. A
 * lowered limit must be acknowledged first, since it may be moving memory out.
 */
static bool is_there(const struct td_client *client)
{
	return client->was_there && (int32_t)(client->device.acked - client->lowered_seq) >= 0 &&
	       client->device.used == client->demanded_bytes &&
	       client->device.told >= client->demanded_bytes && !client->needs &&
	       !td_soft_spills(client);
}

static bool all_ready(const struct td_node *node, const struct td_process *process)
{
	struct td_list *it;

	td_list_for_each (it, &process->clients) {
		const struct td_client *client = td_container_of(it, struct td_client, of_process);

		if (client->failed || client->aside)
			continue;
		if (process->backend != TD_BACKEND_PLAIN && !client->ready && !is_there(client) &&
			!goes_without(node, client))
			return false;
		if (process->backend == TD_BACKEND_SWAP &&
			client->device.told < client->demanded_bytes &&
			client->told_gate == TD_GATE_FILL)
			return false;
	}
	return true;
}

bool td_ready_group(const struct td_node *node, uint32_t group)
{
	struct td_list *it;

	td_list_for_each (it, &node->processes) {
		const struct td_process *process = td_process_at(it);

		if (process->job->group != group || td_list_empty(&process->clients) ||
			process->failed || process->stop.is || process->phase == TD_PHASE_OPEN)
			continue;
		if (process->phase == TD_PHASE_DRAINING || !all_ready(node, process))
			return false;
	}
	return true;
}
