/*
 * The books of the driver's route; see parking.h: whose memory is charged where, and what is kept
 * free.
 */
#include "daemon/execute/parking_internal.h"

#include <string.h>

#include "base/bounds.h"
#include "daemon/model/sharing/account.h"

struct td_client *td_parking_client(const struct td_node *node, const struct td_act *act)
{
	struct td_list *it;

	td_list_for_each (it, &node->clients)
		if (td_client_at(it)->id == act->id)
			return td_client_at(it);
	return NULL;
}

struct td_process *td_parking_process(const struct td_node *node, const struct td_act *act)
{
	const struct td_client *client =
		act->kind == TD_ACTION_MIGRATE ? td_parking_client(node, act) : NULL;
	struct td_list *it;

	if (act->kind == TD_ACTION_MIGRATE)
		return client ? client->process : NULL;
	td_list_for_each (it, &node->processes)
		if (td_process_at(it)->id == act->id)
			return td_process_at(it);
	return NULL;
}

struct td_process *td_parking_holder(const struct td_node *node, const struct td_act *act)
{
	struct td_list *it;

	td_list_for_each (it, &node->processes)
		if (td_process_at(it)->parking.number == act->number)
			return td_process_at(it);
	return NULL;
}

uint32_t td_parking_gpu(const struct td_node *node, const uint8_t uuid[16])
{
	for (uint32_t i = 0; i < node->gpu_count; i++)
		if (node->gpus[i].used && !memcmp(node->gpus[i].uuid, uuid, 16))
			return i;
	return TD_GPU_MAX;
}

uint32_t td_parking_target(const struct td_node *node, const struct td_act *act)
{
	return td_parking_gpu(node, act->migration.gpu);
}

void td_parking_take_off(struct td_client *client)
{
	client->saved = client->device;
	client->device.told = client->device.believed = client->device.used = 0;
}

void td_parking_put_back(struct td_client *client)
{
	client->device.told = td_max_u64(client->saved.told, client->saved.used);
	client->device.believed =
		td_holding_is_heard(&client->device) ? client->device.told : client->saved.believed;
	client->device.used = client->saved.used;
}

uint64_t td_parking_saved_bytes(const struct td_process *process)
{
	uint64_t bytes = 0;
	struct td_list *it;

	td_list_for_each (it, &process->clients)
		bytes += td_parking_client_at(it)->saved.used;
	return bytes;
}

/* Returns what the act keeps free on the GPU. */
static uint64_t reserved_bytes(const struct td_node *node, const struct td_act *act, uint32_t gpu)
{
	const struct td_process *process = td_parking_process(node, act);
	uint64_t bytes = 0;
	struct td_list *it;

	if (td_act_has_ended(act) || !process || process->parking.number != act->number)
		return 0;
	if (act->kind == TD_ACTION_MIGRATE)
		return td_parking_target(node, act) == gpu
			       ? td_parking_client(node, act)->device.used
			       : 0;
	if (act->kind != TD_ACTION_RESTORE || act->migration.stage != TD_MIGRATION_ROOM)
		return 0;
	td_list_for_each (it, &process->clients)
		bytes += td_parking_client_at(it)->gpu == gpu
				 ? td_holding_charge(&td_parking_client_at(it)->saved)
				 : 0;
	return bytes;
}

bool td_parking_is_by_driver(const struct td_act *act)
{
	return act->kind == TD_ACTION_MIGRATE && act->migration.by_driver;
}

uint64_t td_parking_room(const struct td_node *node, uint32_t gpu, const struct td_act *but)
{
	uint64_t left = td_account_left(&node->gpus[gpu].account);
	struct td_list *it;

	td_list_for_each (it, &node->acts) {
		const struct td_act *act = td_container_of(it, struct td_act, of_node);

		if (act != but && td_parking_is_by_driver(act) &&
			act->migration.stage != TD_MIGRATION_ROOM)
			left = td_sub_sat(left, reserved_bytes(node, act, gpu));
	}
	return left;
}

const struct td_client *td_parking_lacks_room(
	const struct td_node *node, const struct td_act *act, const struct td_process *process)
{
	struct td_list *it;

	td_list_for_each (it, &process->clients)
		if (td_holding_charge(&td_parking_client_at(it)->saved) >
			td_parking_room(node, td_parking_client_at(it)->gpu, act))
			return td_parking_client_at(it);
	return NULL;
}

uint64_t td_parking_reserved_bytes(const struct td_node *node, uint32_t gpu)
{
	uint64_t bytes = 0;
	struct td_list *it;

	td_list_for_each (it, &node->acts) {
		const struct td_act *act = td_container_of(it, struct td_act, of_node);

		if (act->kind == TD_ACTION_RESTORE || td_parking_is_by_driver(act))
			bytes += reserved_bytes(node, act, gpu);
	}
	return bytes;
}
