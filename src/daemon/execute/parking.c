/* This file implements parking.h. */
#include "daemon/execute/parking.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bounds.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/time.h"
#include "daemon/execute/actions.h"
#include "daemon/memory/capacity.h"
#include "daemon/memory/quota.h"
#include "daemon/model/sharing/account.h"
#include "daemon/model/node.h"
#include "daemon/node/gpus.h"
#include "daemon/node/stopped.h"
#include "proto/unmovable.h"

#define CLOSE_NS (5 * TD_NS_PER_S)
#define ROOM_NS  (10 * TD_NS_PER_S)
/* The gate is closed and the device idle, so there is nothing that locking could wait for. */
#define LOCK_MS 10000

/*
 * NVIDIA says that the driver cannot checkpoint these, and that a process may be broken by the
 * attempt (README of cuda-checkpoint: unified memory and IPC; MPS is not established).
 */
#define NEVER_SAVED                                                                                \
	(TD_UNMOVABLE(UNIFIED) | TD_UNMOVABLE(IPC) | TD_UNMOVABLE(EXTERNAL) | TD_UNMOVABLE(MPS) |  \
		TD_UNMOVABLE(FAILED) | TD_UNMOVABLE(CAPTURE))
/* The reasons for which the library does not move a program, and the driver does. */
#define BY_DRIVER                                                                                  \
	(TD_UNMOVABLE(BACKEND) | TD_UNMOVABLE(CONTEXTS) | TD_UNMOVABLE(EXPORT_TABLE) |             \
		TD_UNMOVABLE(VARIABLES) | TD_UNMOVABLE(IMAGE) | TD_UNMOVABLE(LINKED) |             \
		TD_UNMOVABLE(ARRAYS) | TD_UNMOVABLE(GRAPHS) | TD_UNMOVABLE(POOLS) |                \
		TD_UNMOVABLE(VMM) | TD_UNMOVABLE(PLAIN) | TD_UNMOVABLE(REGISTERED) |               \
		TD_UNMOVABLE(HANDLES) | TD_UNMOVABLE(PUT))

static const char *const end_words[TD_CHECKPOINT_END_N] = {
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

static struct td_client *client_at(struct td_list *it)
{
	return td_container_of(it, struct td_client, of_process);
}

static struct td_client *client_of(const struct td_node *node, const struct td_act *act)
{
	struct td_list *it;

	td_list_for_each (it, &node->clients)
		if (td_client_at(it)->id == act->id)
			return td_client_at(it);
	return NULL;
}

/* The process of the act. NULL: it has ended, or has left the GPU that it was to leave. */
static struct td_process *process_of(const struct td_node *node, const struct td_act *act)
{
	const struct td_client *client =
		act->kind == TD_ACTION_MIGRATE ? client_of(node, act) : NULL;
	struct td_list *it;

	if (act->kind == TD_ACTION_MIGRATE)
		return client ? client->process : NULL;
	td_list_for_each (it, &node->processes)
		if (td_process_at(it)->id == act->id)
			return td_process_at(it);
	return NULL;
}

static uint32_t target_of(const struct td_node *node, const struct td_act *act)
{
	for (uint32_t i = 0; i < node->gpu_count; i++)
		if (node->gpus[i].used && !memcmp(node->gpus[i].uuid, act->migration.gpu, 16))
			return i;
	return TD_GPU_MAX;
}

/* A move comes this way because the library refuses: both reasons are told. */
static void refuse(struct td_node *node, struct td_act *act, const struct td_process *process,
	const char *why, uint64_t now_ns)
{
	char reason[192];

	snprintf(reason, sizeof(reason), "%s", why);
	if (process && act->kind == TD_ACTION_MIGRATE && process->unmovable)
		snprintf(reason, sizeof(reason), "%s, and %s",
			td_unmovable_words(process->unmovable), why);
	td_act_enter(node, act, TD_ACTION_REFUSED, reason, now_ns);
}

static void enter(struct td_act *act, enum td_migration_stage stage, uint64_t until_ns)
{
	act->migration.stage = stage;
	act->migration.deadline_ns = until_ns;
}

/* -- the books -- */

/* The driver has taken the memory off the GPU: the client is charged nothing there. */
static void take_off(struct td_client *client)
{
	client->saved = client->device;
	client->device.told = client->device.believed = client->device.used = 0;
}

/* Charges the bytes that the driver is about to bring back as before. */
static void put_back(struct td_client *client)
{
	client->device.told = client->saved.told;
	client->device.believed =
		td_holding_is_heard(&client->device) ? client->saved.told : client->saved.believed;
	client->device.used = client->saved.used;
}

static uint64_t saved_bytes(const struct td_process *process)
{
	uint64_t bytes = 0;
	struct td_list *it;

	td_list_for_each (it, &process->clients)
		bytes += client_at(it)->saved.used;
	return bytes;
}

/* Returns what the act keeps free on the GPU. */
static uint64_t reserved_bytes(const struct td_node *node, const struct td_act *act, uint32_t gpu)
{
	const struct td_process *process = process_of(node, act);
	uint64_t bytes = 0;
	struct td_list *it;

	if (td_act_has_ended(act) || !process || process->parking.number != act->number)
		return 0;
	if (act->kind == TD_ACTION_MIGRATE)
		return target_of(node, act) == gpu ? client_of(node, act)->device.used : 0;
	if (act->kind != TD_ACTION_RESTORE || act->migration.stage != TD_MIGRATION_ROOM)
		return 0;
	td_list_for_each (it, &process->clients)
		bytes += client_at(it)->gpu == gpu ? td_holding_charge(&client_at(it)->saved) : 0;
	return bytes;
}

static bool is_by_driver(const struct td_act *act)
{
	return act->kind == TD_ACTION_MIGRATE && act->migration.by_driver;
}

/*
 * Returns the room on the GPU, without what other moves have found there already. They are charged
 * only when they are done.
 */
static uint64_t room_on(const struct td_node *node, uint32_t gpu, const struct td_act *but)
{
	uint64_t left = td_account_left(&node->gpus[gpu].account);
	struct td_list *it;

	td_list_for_each (it, &node->acts) {
		const struct td_act *act = td_container_of(it, struct td_act, of_node);

		if (act != but && is_by_driver(act) && act->migration.stage != TD_MIGRATION_ROOM)
			left = td_sub_sat(left, reserved_bytes(node, act, gpu));
	}
	return left;
}

/* Returns the first client whose GPU lacks room for what the driver would bring back, or NULL. */
static const struct td_client *lacks_room(
	const struct td_node *node, const struct td_act *act, const struct td_process *process)
{
	struct td_list *it;

	td_list_for_each (it, &process->clients)
		if (td_holding_charge(&client_at(it)->saved) >
			room_on(node, client_at(it)->gpu, act))
			return client_at(it);
	return NULL;
}

static void lock(struct td_process *process, uint64_t now_ns)
{
	process->stop.is = TD_STOP_LOCKED;
	process->stop.since_ns = now_ns;
}

/* The program goes on, and its gate opens when a plan says so. */
static void let_go(struct td_process *process)
{
	if (process->stop.is == TD_STOP_LOCKED)
		process->stop.is = TD_STOP_NONE;
	memset(&process->parking, 0, sizeof(process->parking));
}

/* -- beginning -- */

/* Returns why a program cannot be checkpointed now, or NULL. */
static const char *obstacle(const struct td_node *node, const struct td_process *process)
{
	if (!node->io.checkpoint)
		return end_words[TD_CHECKPOINT_NO_DRIVER];
	if (process->parking.number)
		return "the driver is at it already";
	if (process->moving.number)
		return "it is moving to another GPU";
	if (process->failed || process->foreign)
		return td_unmovable_words(TD_UNMOVABLE(FAILED));
	return NULL;
}

/* Returns why the driver must not be asked for a checkpoint, or NULL. */
static const char *never(const struct td_process *process)
{
	uint64_t why = process->unmovable & NEVER_SAVED;

	return why ? td_unmovable_words(why) : NULL;
}

static const char *refusal(
	const struct td_node *node, const struct td_act *act, const struct td_process *process)
{
	const char *why = obstacle(node, process);

	if (why || act->kind == TD_ACTION_RESTORE)
		return why;
	if (process->parking.is_saved)
		return "it is checkpointed already";
	return never(process);
}

bool td_parking_may_move(const struct td_node *node, uint64_t reasons)
{
	return node->io.checkpoint && reasons && !(reasons & ~BY_DRIVER);
}

/* Finds the GPU, and returns why the driver cannot move the client there, or NULL. */
static const char *target_refusal(
	struct td_node *node, const struct td_act *act, const struct td_client *client)
{
	const struct td_gpu *from = &node->gpus[client->gpu], *to;

	td_gpus_take_listed(node);
	if (target_of(node, act) == TD_GPU_MAX)
		return "that GPU is not known";
	to = &node->gpus[target_of(node, act)];
	if (strcmp(from->name, to->name) || from->total_bytes != to->total_bytes)
		return td_unmovable_words(TD_UNMOVABLE(OTHER_CHIP));
	return NULL;
}

/* Asks for the reasons anew: those that the program had told may be a second old. */
static void ask_to_look(struct td_node *node, struct td_process *process, const struct td_act *act)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_move};

	if (!(process->can & TD_CAN_MOVE))
		return;
	msg.move.number = act->number;
	msg.move.stage = TD_MOVE_LOOK;
	process->parking.looks = true;
	node->io.send(process->peer, &msg);
}

void td_parking_begin(struct td_node *node, struct td_act *act, uint64_t now_ns)
{
	struct td_process *process = process_of(node, act);
	const char *why = refusal(node, act, process);

	if (!why && act->kind == TD_ACTION_MIGRATE)
		why = target_refusal(node, act, client_of(node, act));
	if (why) {
		refuse(node, act, process, why, now_ns);
		return;
	}
	process->parking.number = act->number;
	if (act->kind == TD_ACTION_CHECKPOINT) {
		process->parking.closes = true;
		ask_to_look(node, process, act);
		enter(act, TD_MIGRATION_CLOSE,
			now_ns + 2 * node->options.drain_deadline_ns + CLOSE_NS);
	} else {
		enter(act, TD_MIGRATION_ROOM, now_ns + ROOM_NS);
	}
	td_act_enter(node, act, TD_ACTION_ASKED, NULL, now_ns);
}

/* -- the helper -- */

/*
 * Writes where each GPU's memory goes: the two GPUs change places, and the others stay. The driver
 * wants to be told of every GPU that the process has something on.
 */
static void pair_up(
	const struct td_node *node, uint32_t from, uint32_t to, struct td_checkpoint_order *order)
{
	for (uint32_t i = 0; i < node->gpu_count && order->pair_count < TD_CHECKPOINT_PAIRS_MAX;
		i++) {
		uint32_t there = i == from ? to : i == to ? from : i;

		if (!node->gpus[i].used)
			continue;
		memcpy(order->pairs[order->pair_count][0], node->gpus[i].uuid, 16);
		memcpy(order->pairs[order->pair_count][1], node->gpus[there].uuid, 16);
		order->pair_count++;
	}
}

static void call_helper(
	struct td_node *node, struct td_act *act, struct td_process *process, uint64_t now_ns)
{
	struct td_checkpoint_order order = {.number = act->number,
		.pid = process->pid,
		.who = process->who,
		.timeout_ms = LOCK_MS};
	int r;

	order.what = act->kind == TD_ACTION_CHECKPOINT ? TD_CHECKPOINT_SAVE
		     : act->kind == TD_ACTION_RESTORE  ? TD_CHECKPOINT_BACK
						       : TD_CHECKPOINT_MOVE;
	if (act->kind == TD_ACTION_MIGRATE)
		pair_up(node, client_of(node, act)->gpu, target_of(node, act), &order);
	enter(act, TD_MIGRATION_GO, TD_NEVER);
	act->migration.began_ns = now_ns;
	r = node->io.checkpoint(node->io.arg, &order);
	if (r) {
		td_parking_ended(node, act->number,
			r == -EAGAIN ? TD_CHECKPOINT_BUSY : TD_CHECKPOINT_NO_DRIVER, now_ns);
		return;
	}
	td_stopped_is_locked(node, process, now_ns);
	td_act_enter(node, act, TD_ACTION_RUNNING, NULL, now_ns);
}

/* -- progress -- */

static void say_room(struct td_node *node, struct td_act *act, uint32_t gpu, uint64_t needs_bytes,
	uint64_t now_ns)
{
	char reason[192], has[32], needs[32];

	(void)td_format_size(has, sizeof(has), room_on(node, gpu, act));
	(void)td_format_size(needs, sizeof(needs), needs_bytes);
	snprintf(reason, sizeof(reason), "GPU %u has room for %s, and it needs %s",
		td_gpu_number(node, gpu), has, needs);
	td_act_enter(node, act, TD_ACTION_REFUSED, reason, now_ns);
}

/* RESTORE: waits for room, and charges it. */
static void find_room(
	struct td_node *node, struct td_act *act, struct td_process *process, uint64_t now_ns)
{
	const struct td_client *lacking =
		process->parking.is_saved ? lacks_room(node, act, process) : NULL;
	struct td_list *it;

	if (lacking && now_ns < act->migration.deadline_ns)
		return;
	if (lacking) {
		process->parking.number = 0;
		say_room(node, act, lacking->gpu, td_holding_charge(&lacking->saved), now_ns);
		return;
	}
	if (process->parking.is_saved)
		td_list_for_each (it, &process->clients)
			put_back(client_at(it));
	td_quota_gather(node);
	call_helper(node, act, process, now_ns);
}

/*
 * MIGRATE: does the new GPU have room for what the client uses? What it was told that it may use
 * beyond that does not count: it is taken back before the driver moves it.
 */
static bool has_target_room(
	const struct td_node *node, const struct td_act *act, const struct td_client *client)
{
	uint32_t to = target_of(node, act);

	return to < TD_GPU_MAX && client->device.used <= room_on(node, to, act);
}

static void refuse_target(
	struct td_node *node, struct td_act *act, struct td_client *client, uint64_t now_ns)
{
	uint32_t to = target_of(node, act);

	let_go(client->process);
	say_room(node, act, to < TD_GPU_MAX ? to : client->gpu, client->device.used, now_ns);
}

/* MIGRATE: waits for room on the new GPU, which is kept free from now on, and closes the gate. */
static void find_target_room(
	struct td_node *node, struct td_act *act, struct td_client *client, uint64_t now_ns)
{
	if (!has_target_room(node, act, client)) {
		if (now_ns >= act->migration.deadline_ns)
			refuse_target(node, act, client, now_ns);
		return;
	}
	client->process->parking.closes = true;
	enter(act, TD_MIGRATION_CLOSE, now_ns + 2 * node->options.drain_deadline_ns + CLOSE_NS);
}

static void wait_closed(
	struct td_node *node, struct td_act *act, struct td_process *process, uint64_t now_ns)
{
	if (process->phase == TD_PHASE_CLOSED && is_by_driver(act) &&
		!has_target_room(node, act, client_of(node, act))) {
		refuse_target(node, act, client_of(node, act), now_ns);
	} else if (process->phase == TD_PHASE_CLOSED && !process->parking.looks &&
		   !never(process)) {
		call_helper(node, act, process, now_ns);
	} else if (!process->parking.looks && never(process)) {
		let_go(process);
		refuse(node, act, process, never(process), now_ns);
	} else if (now_ns >= act->migration.deadline_ns) {
		let_go(process);
		td_act_enter(
			node, act, TD_ACTION_TIMED_OUT, "its work did not end in time", now_ns);
	}
}

/* The client that was to move is gone, and perhaps its program. */
static void lose(struct td_node *node, struct td_act *act, uint64_t now_ns)
{
	struct td_list *it;

	td_list_for_each (it, &node->processes)
		if (td_process_at(it)->parking.number == act->number)
			let_go(td_process_at(it));
	td_act_enter(node, act, TD_ACTION_REFUSED, "the program has ended", now_ns);
}

void td_parking_step(struct td_node *node, struct td_act *act, uint64_t now_ns)
{
	struct td_process *process = process_of(node, act);

	if (!process) {
		lose(node, act, now_ns);
		return;
	}
	if (act->migration.stage == TD_MIGRATION_ROOM && act->kind == TD_ACTION_RESTORE)
		find_room(node, act, process, now_ns);
	else if (act->migration.stage == TD_MIGRATION_ROOM)
		find_target_room(node, act, client_of(node, act), now_ns);
	if (!td_act_has_ended(act) && act->migration.stage == TD_MIGRATION_CLOSE)
		wait_closed(node, act, process, now_ns);
}

uint64_t td_parking_reserved_bytes(const struct td_node *node, uint32_t gpu)
{
	uint64_t bytes = 0;
	struct td_list *it;

	td_list_for_each (it, &node->acts) {
		const struct td_act *act = td_container_of(it, struct td_act, of_node);

		if (act->kind == TD_ACTION_RESTORE || is_by_driver(act))
			bytes += reserved_bytes(node, act, gpu);
	}
	return bytes;
}

/* -- the end of a helper -- */

/* The driver has put the client's memory on the new GPU. */
static void change_gpu(struct td_node *node, struct td_client *client, const struct td_act *act)
{
	struct td_process *process = client->process;
	struct td_msg msg = {.type = TD_MSG_TYPE_move};
	uint32_t from = client->gpu, to = target_of(node, act);

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
	struct td_client *client = client_of(node, act);
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
			take_off(client_at(it));
		process->parking = (struct td_parking){.closes = true, .is_saved = true};
		(void)td_format_size(bytes, sizeof(bytes), saved_bytes(process));
		snprintf(reason, sizeof(reason), "%s left the GPU in %s", bytes, took);
		break;
	case TD_ACTION_RESTORE:
		(void)td_format_size(bytes, sizeof(bytes), saved_bytes(process));
		snprintf(reason, sizeof(reason), "%s came back in %s", bytes, took);
		let_go(process);
		break;
	default:
		process->moved.at_ns = now_ns;
		move_done(node, act, took, reason, sizeof(reason));
		let_go(process);
	}
	td_quota_gather(node);
	/* The library may hold a bound from before the restore, so it is told its own anew. */
	td_list_for_each (it, &process->clients)
		if (act->kind == TD_ACTION_RESTORE)
			td_node_tell(node, client_at(it), client_at(it)->device.told);
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
			take_off(client_at(it));
		process->parking = (struct td_parking){.closes = true, .is_saved = true};
	} else {
		let_go(process);
	}
	td_quota_gather(node);
	refuse(node, act, process,
		act->migration.undoes ? "the helper was ended before the driver was done"
				      : end_words[end],
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
	process = process_of(node, act);
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
