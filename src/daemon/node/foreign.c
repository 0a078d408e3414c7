/*
 * Processes on a GPU that another daemon shares, or for which this one has no place (gpus.h). Such
 * a process is told so and let go: it has no limit and no part in any plan, and its gate opens as
 * soon as its memory has come back. When it reports something later and the GPU is free or there is
 * a place, its connection is closed, so that it connects again in the normal way. Closing the
 * connection at once would make it connect again and wait for ever.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "daemon/model/node.h"
#include "daemon/node/gpus.h"
#include "proto/words.h"

_Static_assert(TD_SLOT_MAX <= 32, "one bit per slot");

static void open_if_ready(struct td_node *node, struct td_process *process)
{
	if (process->filling || process->phase == TD_PHASE_OPEN)
		return;
	process->phase = TD_PHASE_OPEN;
	process->word = 0;
	process->pacing = (struct td_pacing){0};
	node->io.gate(process->peer, 0, &(struct td_pacing){0});
}

/* The process's memory in this slot has come back to the device, or cannot. */
static int filled(struct td_node *node, struct td_process *process, uint32_t slot)
{
	if (slot >= TD_SLOT_MAX)
		return -EPROTO;
	process->filling &= ~(1u << slot);
	open_if_ready(node, process);
	return 0;
}

/*
 * Sends a GRANT. The gate then waits for READY, since memory that can move may not be on the
 * device.
 */
static void grant(struct td_node *node, struct td_process *process, uint32_t slot, uint32_t ticket,
	enum td_answer verdict)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_grant};

	if (process->backend != TD_BACKEND_PLAIN && process->phase != TD_PHASE_OPEN)
		process->filling |= 1u << slot;

	msg.grant.slot = slot;
	msg.grant.seq = ++node->next_seq;
	msg.grant.gate = TD_GATE_OPEN;
	msg.grant.device_bytes = msg.grant.total_bytes = UINT64_MAX;
	msg.grant.ticket = ticket;
	msg.grant.verdict = (uint8_t)verdict;
	node->io.send(process->peer, &msg);
}

static int answer_let_go(
	struct td_node *node, struct td_process *process, const struct td_msg_ask *ask)
{
	if (ask->slot == TD_SLOT_HOST)
		return 0; /* there is no bound on host memory */
	if (ask->slot > TD_SLOT_MAX)
		return -EPROTO;
	grant(node, process, ask->slot, ask->ticket, TD_ANSWER_OK);
	return 0;
}

static int accept(
	struct td_node *node, struct td_process *process, const struct td_msg_attach *attach)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_attached};

	if (attach->slot >= TD_SLOT_MAX)
		return -EPROTO;
	msg.attached.slot = attach->slot;
	msg.attached.capacity_bytes = attach->total_bytes;
	node->io.send(process->peer, &msg);
	grant(node, process, attach->slot, 0, TD_ANSWER_NONE);
	open_if_ready(node, process);
	return 0;
}

/* Lets the process run as without tandem, on all of its GPUs: it cannot be shared on some only. */
void td_node_let_go(struct td_node *node, struct td_process *process, const uint8_t *uuid,
	const struct td_err *why, uint64_t now_ns)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_error};
	struct td_list *it;

	snprintf(process->ungoverned, sizeof(process->ungoverned), "%.190s",
		why->code == -ENOSPC ? why->msg : "");
	msg.error.code = (uint32_t)-why->code;
	snprintf(msg.error.text, sizeof(msg.error.text), "%.255s", why->msg);
	node->io.send(process->peer, &msg);
	td_node_gpu_event(node, *process->ungoverned ? TD_EVENT_UNGOVERNED : TD_EVENT_FOREIGN,
		process, td_gpu_number_of(node, uuid), now_ns, why->msg);
	td_list_for_each (it, &process->clients)
		grant(node, process, td_container_of(it, struct td_client, of_process)->slot, 0,
			TD_ANSWER_NONE);
	td_node_drop_clients(node, process);
	process->foreign = true;
	memcpy(process->foreign_gpu, uuid, 16);
	process->phase_since_ns = now_ns;
}

/*
 * Handles UNGOVERNED. Only processes with a GPU of this daemon have gates, so the gate of another
 * process would never open. A process that uses one of our GPUs goes on taking part with it.
 */
int td_node_ungoverned(struct td_node *node, struct td_process *process,
	const struct td_msg_ungoverned *msg, uint64_t now_ns)
{
	static const char *const reasons[TD_UNGOVERNED_N] = {
		[TD_UNGOVERNED_UNNAMED] = "the driver does not tell which GPU it uses",
		[TD_UNGOVERNED_GPUS] =
			"the process uses more GPUs than tandem can share for one process",
		[TD_UNGOVERNED_CONTEXTS] = "it has more CUDA contexts than are followed",
	};

	if (msg->reason == TD_GOVERNED || msg->reason >= TD_UNGOVERNED_N)
		return -EPROTO;
	if (*process->ungoverned)
		return 0;
	strcpy(process->ungoverned, reasons[msg->reason]);
	td_node_gpu_event(
		node, TD_EVENT_UNGOVERNED, process, TD_GPU_ANY, now_ns, process->ungoverned);
	if (!td_list_empty(&process->clients))
		return 0;
	process->foreign = process->stays_foreign = true;
	process->phase_since_ns = now_ns;
	open_if_ready(node, process);
	return 0;
}

bool td_node_may_have(struct td_node *node, const uint8_t *uuid)
{
	struct td_list *it;

	td_list_for_each (it, &node->clients)
		if (!memcmp(node->gpus[td_client_at(it)->gpu].uuid, uuid, 16))
			return true; /* a client of this daemon uses the GPU already */
	if (!node->io.claim)
		return true;
	if (node->io.claim(node->io.arg, uuid, NULL))
		return false;
	node->io.release(node->io.arg, uuid);
	return true;
}

/* Returns whether the process could be shared by now. Then it is to connect again. */
static bool may_come_back(struct td_node *node, const struct td_process *process)
{
	if (process->stays_foreign ||
		!td_gpus_have_place(node, process->who, process->foreign_gpu) ||
		!td_node_may_have_client(node, process->who))
		return false;
	return td_node_may_have(node, process->foreign_gpu);
}

int td_node_foreign_message(
	struct td_node *node, struct td_process *process, const struct td_msg *msg)
{
	switch (msg->type) {
	case TD_MSG_TYPE_attach: return accept(node, process, &msg->attach);
	case TD_MSG_TYPE_ask: return answer_let_go(node, process, &msg->ask);
	case TD_MSG_TYPE_ready: return filled(node, process, msg->ready.slot);
	case TD_MSG_TYPE_failed: return filled(node, process, msg->failed.slot);
	case TD_MSG_TYPE_used: return may_come_back(node, process) ? -ECONNRESET : 0;
	default: return 0; /* other reports of a foreign process are ignored */
	}
}
