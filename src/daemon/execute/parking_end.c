/* The end of a helper of the driver's route; see parking.h. */
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "daemon/execute/parking_internal.h"
#include "daemon/memory/quota.h"
#include "daemon/node/gpus.h"
#include "proto/unmovable.h"

const char *const td_parking_end_words[TD_CHECKPOINT_END_N] = {
	[TD_CHECKPOINT_DONE] = "",
	[TD_CHECKPOINT_NO_DRIVER] = "the driver cannot be asked for a checkpoint",
	[TD_CHECKPOINT_TOO_OLD] = "the driver has no checkpoints: they came with 570",
	[TD_CHECKPOINT_NO_REMAP] =
		"the driver restores checkpoints on the same GPU only: other GPUs came with 580",
	[TD_CHECKPOINT_NO_LOCK] = "the driver does not lock it for a checkpoint",
	[TD_CHECKPOINT_REFUSED] = "the driver refuses to checkpoint it",
	[TD_CHECKPOINT_NO_ROOM] = "the driver finds no room for its memory on the GPU",
	[TD_CHECKPOINT_NOT_BACK] =
		"the driver could not bring it back, and it stays on the host: try tandem restore",
	[TD_CHECKPOINT_NOT_SAVED] = "it is not checkpointed",
	[TD_CHECKPOINT_BUSY] =
		"too many checkpoints are under way: try again when one of them has ended",
	[TD_CHECKPOINT_NOT_MOVED] = "the driver refuses to restore it on that GPU",
};

void td_parking_refuse(struct td_node *node, struct td_act *act, const struct td_process *process,
	const char *why, uint64_t now_ns)
{
	char reason[192];

	snprintf(reason, sizeof(reason), "%s", why);
	if (process && act->kind == TD_ACTION_MIGRATE && process->unmovable)
		snprintf(reason, sizeof(reason), "%s, and %s",
			td_unmovable_words(process->unmovable), why);
	td_act_enter(node, act, TD_ACTION_REFUSED, reason, now_ns);
}

static void lock(struct td_process *process, uint64_t now_ns)
{
	process->stop.is = TD_STOP_LOCKED;
	process->stop.since_ns = now_ns;
}

void td_parking_let_go(struct td_process *process)
{
	if (process->stop.is == TD_STOP_LOCKED)
		process->stop.is = TD_STOP_NONE;
	memset(&process->parking, 0, sizeof(process->parking));
}

/* The driver has put the client's memory on the new GPU. */
static void change_gpu(struct td_node *node, struct td_client *client, const struct td_act *act)
{
	struct td_process *process = client->process;
	struct td_msg msg = {.type = TD_MSG_TYPE_move};
	uint32_t from = client->gpu, to = td_parking_target(node, act);

	if (to == TD_GPU_MAX)
		return;
	td_node_put(node, client, to);
	process->moves++;
	process->moved = (struct td_moved){.at_ns = process->moved.at_ns,
		.pause_ns = process->moved.at_ns - act->migration.began_ns,
		.bytes = client->device.used,
		.from = td_gpu_number(node, from),
		.why = act->migration.why};
	td_move_place_anew(process->job, node->gpus[from].uuid, node->gpus[to].uuid);
	msg.move.number = act->number;
	msg.move.stage = TD_MOVE_PUT;
	memcpy(msg.move.gpu, act->migration.gpu, sizeof(msg.move.gpu));
	node->io.send(process->peer, &msg);
}

/* MIGRATE: writes what has been moved, and enters it. */
static void move_done(
	struct td_node *node, struct td_act *act, const char *took, char *ret, size_t len)
{
	struct td_client *client = td_parking_client(node, act);
	uint32_t from = td_gpu_number(node, client->gpu);
	char bytes[32];

	(void)td_format_size(bytes, sizeof(bytes), client->device.used);
	change_gpu(node, client, act);
	snprintf(ret, len, "from GPU %u to GPU %u by the driver: %s in %s", from,
		td_gpu_number(node, client->gpu), bytes, took);
}

static void done(
	struct td_node *node, struct td_act *act, struct td_process *process, uint64_t now_ns)
{
	char reason[192], bytes[32], took[32];
	struct td_list *it;

	(void)td_format_duration(took, sizeof(took), now_ns - act->migration.began_ns);
	switch (act->kind) {
	case TD_ACTION_CHECKPOINT:
		td_list_for_each (it, &process->clients)
			td_parking_take_off(td_parking_client_at(it));
		process->parking = (struct td_parking){.closes = true, .is_saved = true};
		(void)td_format_size(bytes, sizeof(bytes), td_parking_saved_bytes(process));
		snprintf(reason, sizeof(reason), "%s left the GPU in %s", bytes, took);
		break;
	case TD_ACTION_RESTORE:
		(void)td_format_size(bytes, sizeof(bytes), td_parking_saved_bytes(process));
		snprintf(reason, sizeof(reason), "%s came back in %s", bytes, took);
		td_parking_let_go(process);
		break;
	default:
		process->moved.at_ns = now_ns;
		move_done(node, act, took, reason, sizeof(reason));
		td_parking_let_go(process);
	}
	td_quota_gather(node);
	/* The library may hold a bound from before the restore, so it is told its own anew. */
	td_list_for_each (it, &process->clients)
		if (act->kind == TD_ACTION_RESTORE)
			td_node_tell(node, td_parking_client_at(it),
				td_parking_client_at(it)->device.told);
	td_act_enter(node, act, TD_ACTION_DONE, reason, now_ns);
}

/* Is the program left on the host? */
static bool stays_saved(
	const struct td_act *act, const struct td_process *process, enum td_checkpoint_end end)
{
	if (end == TD_CHECKPOINT_NOT_BACK)
		return true;
	if (act->kind != TD_ACTION_RESTORE)
		return false;
	/* If this daemon does not know, the driver's answer tells it. */
	return process->parking.is_saved ? end != TD_CHECKPOINT_NOT_SAVED
					 : end == TD_CHECKPOINT_NO_ROOM;
}

static void failed(struct td_node *node, struct td_act *act, struct td_process *process,
	enum td_checkpoint_end end, uint64_t now_ns)
{
	struct td_list *it;

	if (stays_saved(act, process, end)) {
		lock(process, now_ns);
		td_list_for_each (it, &process->clients)
			td_parking_take_off(td_parking_client_at(it));
		process->parking = (struct td_parking){.closes = true, .is_saved = true};
	} else {
		td_parking_let_go(process);
	}
	td_quota_gather(node);
	td_parking_refuse(node, act, process,
		act->migration.undoes ? "the helper was ended before the driver was done"
				      : td_parking_end_words[end],
		now_ns);
}

/* The helper has not said what it has done: another one brings the program back. */
static void undo(
	struct td_node *node, struct td_act *act, const struct td_process *process, uint64_t now_ns)
{
	struct td_checkpoint_order order = {.number = act->number,
		.what = TD_CHECKPOINT_BACK,
		.pid = process->pid,
		.who = process->who};

	act->migration.undoes = true;
	if (node->io.checkpoint(node->io.arg, &order))
		td_parking_ended(node, act->number, TD_CHECKPOINT_NOT_BACK, now_ns);
}

void td_parking_ended(
	struct td_node *node, uint64_t number, enum td_checkpoint_end end, uint64_t now_ns)
{
	struct td_act *act = NULL;
	struct td_process *process;
	struct td_list *it;

	td_list_for_each (it, &node->acts)
		if (td_container_of(it, struct td_act, of_node)->number == number)
			act = td_container_of(it, struct td_act, of_node);
	if (!act || td_act_has_ended(act))
		return;
	process = td_parking_process(node, act);
	if (!process)
		return; /* the next step finds that the program has ended */
	if (end >= TD_CHECKPOINT_END_N && !act->migration.undoes)
		undo(node, act, process, now_ns);
	else if (end >= TD_CHECKPOINT_END_N)
		failed(node, act, process, TD_CHECKPOINT_NOT_BACK, now_ns);
	else if (end == TD_CHECKPOINT_DONE && !act->migration.undoes)
		done(node, act, process, now_ns);
	else
		failed(node, act, process, end, now_ns);
}
