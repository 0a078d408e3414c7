/* This file implements hangs.h. */
#include "daemon/node/hangs.h"

#include <stdio.h>
#include <string.h>

#include "daemon/model/node.h"
#include "daemon/node/gpus.h"

/*
 * An Xid is judged only when it is this old. By then the kernel log, which names the Xid's process,
 * has been read too.
 */
#define XID_PID_NS 100000000ull

/*
 * Returns whether the client's reports on the GPU's MPS server are believed. A server serves one
 * user, so once its user is known, other users' programs are not believed.
 */
static bool is_served(const struct td_gpu *gpu, const struct td_client *client)
{
	return client->mps && (!gpu->hang.server || client->process->who.uid == gpu->hang.uid);
}

static void suspect(struct td_node *node, const struct td_process *process,
	const struct td_client *client, const char *why, uint64_t now_ns)
{
	struct td_gpu *gpu = &node->gpus[client->gpu];
	char detail[128];

	if (!is_served(gpu, client))
		return;
	td_hang_died(&gpu->hang, now_ns);
	snprintf(detail, sizeof(detail), "suspect: process %d %s", (int)process->pid, why);
	td_node_gpu_event(
		node, TD_EVENT_MPS, process, td_gpu_number(node, client->gpu), now_ns, detail);
}

static void suspect_all(
	struct td_node *node, const struct td_process *process, const char *why, uint64_t now_ns)
{
	struct td_list *it;

	td_list_for_each (it, &process->clients)
		suspect(node, process, td_container_of(it, struct td_client, of_process), why,
			now_ns);
}

void td_hangs_left(
	const struct td_node *node, struct td_process *process, const struct td_msg_left *msg)
{
	struct td_list *it;

	process->has_left = msg->drained;
	td_list_for_each (it, &process->clients)
		if (!msg->drained)
			td_hangs_let_go(node, td_container_of(it, struct td_client, of_process));
}

void td_hangs_let_go(const struct td_node *node, const struct td_client *client)
{
	if (client->mps && node->io.mps_terminate)
		node->io.mps_terminate(
			node->io.arg, node->gpus[client->gpu].uuid, client->process->pid);
}

void td_hangs_gone(struct td_node *node, const struct td_process *process, uint64_t now_ns)
{
	if (!process->has_left)
		suspect_all(node, process, "has ended without leaving MPS", now_ns);
}

/* Returns whether the process is a client of MPS on the GPU. pid 0: whether any process is. */
static bool has_client(const struct td_node *node, const uint8_t *uuid, pid_t pid)
{
	struct td_list *it;

	td_list_for_each (it, &node->clients) {
		const struct td_client *client = td_client_at(it);

		if (client->mps && (!pid || client->process->pid == pid) &&
			!memcmp(node->gpus[client->gpu].uuid, uuid, 16))
			return true;
	}
	return false;
}

enum td_xid_of td_hangs_xid_of(
	const struct td_node *node, const struct td_nvml_gpu *listed, pid_t server)
{
	if (!listed->xid_pid)
		return TD_XID_OF_UNKNOWN;
	if (listed->xid_pid == server || has_client(node, listed->uuid, listed->xid_pid))
		return TD_XID_OF_MPS;
	/*
	 * The Xid may be the server's: its pid is looked up a moment after its first client has
	 * come.
	 */
	return server || !has_client(node, listed->uuid, 0) ? TD_XID_OF_OTHER : TD_XID_OF_UNKNOWN;
}

void td_hangs_xid(
	struct td_node *node, uint32_t index, pid_t server, uint64_t server_ns, uint64_t now_ns)
{
	struct td_gpu *gpu = &node->gpus[index];
	const struct td_nvml_gpu *listed = td_gpus_find(node, gpu->uuid);
	char detail[128];

	if (!listed || !listed->xid || listed->xid_ns == gpu->xid_ns ||
		now_ns < listed->xid_ns + XID_PID_NS)
		return;
	gpu->xid_ns = listed->xid_ns;
	if (listed->xid_ns < server_ns || td_xid_class(listed->xid) != TD_XID_PROGRAM ||
		td_hangs_xid_of(node, listed, server) != TD_XID_OF_UNKNOWN)
		return;
	td_hang_died(&gpu->hang, now_ns);
	snprintf(detail, sizeof(detail), "suspect: Xid error %u, caused by an unknown process",
		listed->xid);
	td_node_gpu_event(node, TD_EVENT_MPS, NULL, td_gpu_number(node, index), now_ns, detail);
}

void td_hangs_look(struct td_node *node, uint64_t now_ns)
{
	uint64_t launched[TD_GPU_MAX] = {0}, ended[TD_GPU_MAX] = {0};
	struct td_list *it;

	td_list_for_each (it, &node->clients) {
		const struct td_client *client = td_client_at(it);
		const struct td_meter_page *meter = client->process->meter;

		if (!is_served(&node->gpus[client->gpu], client) || !meter || client->failed)
			continue;
		launched[client->gpu] += atomic_load(&meter->launches);
		ended[client->gpu] += atomic_load(&meter->used_ns[client->slot]);
	}
	for (uint32_t i = 0; i < node->gpu_count; i++)
		td_hang_progress(
			&node->gpus[i].hang, &td_hang_default, launched[i], ended[i], now_ns);
}
