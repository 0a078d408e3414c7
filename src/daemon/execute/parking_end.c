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
	[TD_CHECKPOINT_UNLOCKED] = "",
	[TD_CHECKPOINT_NOT_MOVED] = "the driver refuses to restore it on that GPU",
};

void td_parking_refuse(struct td_node *node, struct td_act *act, const char *why, uint64_t now_ns)
{
	char reason[192];

	snprintf(reason, sizeof(reason), "%s", why);
	if (act->migration.unmovable)
		snprintf(reason, sizeof(reason), "%s, and %s",
			td_unmovable_words(act->migration.unmovable), why);
	td_act_enter(node, act, TD_ACTION_REFUSED, reason, now_ns);
}

static void lock(struct td_process *process, uint64_t now_ns)
{
	process->stop.is = TD_STOP_LOCKED;
	process->stop.since_ns = now_ns;
}

void td_parking_tell(
	struct td_node *node, const struct td_process *process, enum td_move_stage stage)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_move};

	msg.move.number = process->parking.number;
	msg.move.stage = (uint8_t)stage;
	node->io.send(process->peer, &msg);
}

void td_parking_let_go(struct td_node *node, struct td_process *process)
{
	if (process->parking.holds)
		td_parking_tell(node, process, TD_MOVE_FREE);
	if (process->stop.is == TD_STOP_LOCKED)
		process->stop.is = TD_STOP_NONE;
	memset(&process->parking, 0, sizeof(process->parking));
}

/* The program stays on the host, where RESTORE finds it. */
static void keep(struct td_node *node, struct td_process *process)
{
	struct td_parking *parking = &process->parking;
	struct td_list *it;

	td_list_for_each (it, &process->clients)
		td_parking_take_off(td_parking_client_at(it));
	if (parking->holds)
		td_parking_tell(node, process, TD_MOVE_SAVED);
	parking->number = 0;
	parking->looks = parking->goes = false;
	parking->closes = parking->is_saved = true;
}

/* The driver has put the client's memory on that GPU. */
static void change_gpu(struct td_node *node, struct td_client *client, const uint8_t *uuid,
	const struct td_act *act, uint64_t now_ns)
{
	struct td_process *process = client->process;
	struct td_msg msg = {.type = TD_MSG_TYPE_move};
	uint32_t from = client->gpu, to = td_parking_gpu(node, uuid);

	if (to == TD_GPU_MAX)
		return;
	td_node_put(node, client, to);
	process->moves++;
	process->moved = (struct td_moved){.at_ns = now_ns,
		.pause_ns = now_ns - act->migration.began_ns,
		.bytes = client->device.used,
		.from = td_gpu_number(node, from),
		.why = act->migration.why};
	td_move_place_anew(process->job, node->gpus[from].uuid, node->gpus[to].uuid);
	msg.move.number = act->number;
	msg.move.stage = TD_MOVE_PUT;
	memcpy(msg.move.gpu, node->gpus[to].uuid, sizeof(msg.move.gpu));
	node->io.send(process->peer, &msg);
}

/* Ends a MIGRATE: records the client's new GPU, and writes how much was moved and where. */
static void move_done(struct td_node *node, struct td_act *act, const char *took, uint64_t now_ns,
	char *ret, size_t len)
{
	struct td_client *client = td_parking_client(node, act);
	uint32_t from;
	char bytes[32];

	if (!client) {
		snprintf(ret, len, "by the driver in %s; it has left its GPU meanwhile", took);
		return;
	}
	from = td_gpu_number(node, client->gpu);
	(void)td_format_size(bytes, sizeof(bytes), client->device.used);
	change_gpu(node, client, act->migration.gpu, act, now_ns);
	snprintf(ret, len, "from GPU %u to GPU %u by the driver: %s in %s", from,
		td_gpu_number(node, client->gpu), bytes, took);
}

/*
 * Ends a RESTORE. The library may still have a limit from before the checkpoint, so each client is
 * sent its limit again. is_there: a move that was broken off has put the program on its new GPU.
 */
static void restore_done(struct td_node *node, const struct td_act *act, struct td_process *process,
	bool is_there, uint64_t now_ns)
{
	struct td_client *moved = is_there ? td_process_client(process) : NULL;
	struct td_list *it;

	td_list_for_each (it, &process->clients)
		if (process->parking.is_saved)
			td_parking_put_back(td_parking_client_at(it));
	/* Whatever the library has said about a checkpoint by an earlier daemon is out of date. */
	process->parking.holds = (process->can & TD_CAN_MOVE) != 0;
	process->told_movable = true;
	if (moved)
		change_gpu(node, moved, process->parking.gpu, act, now_ns);
	td_parking_let_go(node, process);
	td_quota_gather(node);
	td_list_for_each (it, &process->clients)
		td_node_tell(node, td_parking_client_at(it), td_parking_client_at(it)->device.told);
}

static void done(struct td_node *node, struct td_act *act, struct td_process *process,
	bool is_there, uint64_t now_ns)
{
	char reason[192], bytes[32], took[32];

	(void)td_format_duration(took, sizeof(took), now_ns - act->migration.began_ns);
	switch (act->kind) {
	case TD_ACTION_CHECKPOINT:
		keep(node, process);
		(void)td_format_size(bytes, sizeof(bytes), td_parking_saved_bytes(process));
		snprintf(reason, sizeof(reason), "%s left the GPU in %s", bytes, took);
		break;
	case TD_ACTION_RESTORE:
		(void)td_format_size(bytes, sizeof(bytes), td_parking_saved_bytes(process));
		snprintf(reason, sizeof(reason), "%s came back in %s", bytes, took);
		restore_done(node, act, process, is_there, now_ns);
		break;
	default:
		move_done(node, act, took, now_ns, reason, sizeof(reason));
		td_parking_let_go(node, process);
	}
	td_quota_gather(node);
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
	if (stays_saved(act, process, end)) {
		lock(process, now_ns);
		keep(node, process);
	} else {
		td_parking_let_go(node, process);
	}
	td_quota_gather(node);
	td_parking_refuse(node, act,
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
		td_parking_ended(node, act->number, TD_CHECKPOINT_NOT_BACK, false, now_ns);
}

/*
 * Has a MOVE whose helper was ended put the program on the new GPU? The one that was to bring it
 * back has found that it was not checkpointed any more.
 */
static bool is_on_new_gpu(const struct td_process *process, enum td_checkpoint_end end)
{
	return process->parking.may_be_there &&
	       (end == TD_CHECKPOINT_UNLOCKED || end == TD_CHECKPOINT_NOT_SAVED);
}

static bool is_done(
	const struct td_act *act, const struct td_process *process, enum td_checkpoint_end end)
{
	if (is_on_new_gpu(process, end))
		return true;
	if (act->kind == TD_ACTION_RESTORE)
		return end == TD_CHECKPOINT_DONE || end == TD_CHECKPOINT_UNLOCKED ||
		       (end == TD_CHECKPOINT_NOT_SAVED && act->migration.undoes);
	return end == TD_CHECKPOINT_DONE && !act->migration.undoes;
}

void td_parking_ended(struct td_node *node, uint64_t number, enum td_checkpoint_end end,
	bool is_there, uint64_t now_ns)
{
	struct td_act *act = NULL;
	struct td_process *process;
	struct td_list *it;

	td_list_for_each (it, &node->acts)
		if (td_container_of(it, struct td_act, of_node)->number == number)
			act = td_container_of(it, struct td_act, of_node);
	if (!act || td_act_has_ended(act))
		return;
	process = td_parking_holder(node, act);
	if (!process)
		return; /* the next step finds that the program has ended */
	if (end >= TD_CHECKPOINT_END_N && act->kind == TD_ACTION_MIGRATE && is_there) {
		process->parking.may_be_there = true;
		memcpy(process->parking.gpu, act->migration.gpu, sizeof(process->parking.gpu));
	}
	if (end >= TD_CHECKPOINT_END_N && !act->migration.undoes)
		undo(node, act, process, now_ns);
	else if (end >= TD_CHECKPOINT_END_N)
		failed(node, act, process, TD_CHECKPOINT_NOT_BACK, now_ns);
	else if (is_done(act, process, end))
		done(node, act, process, is_on_new_gpu(process, end), now_ns);
	else
		failed(node, act, process, end, now_ns);
}
