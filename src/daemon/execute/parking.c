/* This file implements parking.h. */
#include "daemon/execute/parking.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/time.h"
#include "daemon/execute/parking_internal.h"
#include "daemon/memory/host.h"
#include "daemon/memory/quota.h"
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

static void enter(struct td_act *act, enum td_migration_stage stage, uint64_t until_ns)
{
	act->migration.stage = stage;
	act->migration.deadline_ns = until_ns;
}

/* -- beginning -- */

/* Returns why a program cannot be checkpointed now, or NULL. */
static const char *obstacle(const struct td_node *node, const struct td_process *process)
{
	if (!node->io.checkpoint)
		return td_parking_end_words[TD_CHECKPOINT_NO_DRIVER];
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
	if (td_parking_target(node, act) == TD_GPU_MAX)
		return "that GPU is not known";
	to = &node->gpus[td_parking_target(node, act)];
	if (strcmp(from->name, to->name) || from->total_bytes != to->total_bytes)
		return td_unmovable_words(TD_UNMOVABLE(OTHER_CHIP));
	return NULL;
}

/* Asks for the reasons anew: those that the program had told may be a second old. */
static void ask_to_look(struct td_node *node, struct td_process *process)
{
	if (!(process->can & TD_CAN_MOVE))
		return;
	td_parking_tell(node, process, TD_MOVE_LOOK);
	process->parking.looks = true;
}

/* Writes why the host has no room for what the driver would take there, and returns true. */
static bool lacks_host(
	const struct td_node *node, const struct td_process *process, char *ret, size_t len)
{
	uint64_t left = td_host_left(node), bytes = 0;
	char has[32], needs[32];
	struct td_list *it;

	td_list_for_each (it, &process->clients)
		bytes += td_parking_client_at(it)->device.used;
	if (bytes <= left)
		return false;
	(void)td_format_size(has, sizeof(has), left);
	(void)td_format_size(needs, sizeof(needs), bytes);
	snprintf(
		ret, len, "host.limit leaves room for %s on the host, and it needs %s", has, needs);
	return true;
}

void td_parking_begin(struct td_node *node, struct td_act *act, uint64_t now_ns)
{
	struct td_process *process = td_parking_process(node, act);
	const char *why = refusal(node, act, process);
	char host[128];

	if (!why && act->kind != TD_ACTION_RESTORE && lacks_host(node, process, host, sizeof(host)))
		why = host;
	if (!why && act->kind == TD_ACTION_MIGRATE)
		why = target_refusal(node, act, td_parking_client(node, act));
	if (why) {
		td_parking_refuse(node, act, why, now_ns);
		return;
	}
	process->parking.number = act->number;
	if (act->kind == TD_ACTION_CHECKPOINT) {
		process->parking.closes = true;
		ask_to_look(node, process);
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
		pair_up(node, td_parking_client(node, act)->gpu, td_parking_target(node, act),
			&order);
	enter(act, TD_MIGRATION_GO, TD_NEVER);
	act->migration.began_ns = now_ns;
	process->parking.goes = true;
	r = node->io.checkpoint(node->io.arg, &order);
	if (r) {
		td_parking_ended(node, act->number,
			r == -EAGAIN ? TD_CHECKPOINT_BUSY : TD_CHECKPOINT_NO_DRIVER, false, now_ns);
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

	(void)td_format_size(has, sizeof(has), td_parking_room(node, gpu, act));
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
		process->parking.is_saved ? td_parking_lacks_room(node, act, process) : NULL;
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
			td_parking_put_back(td_parking_client_at(it));
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
	uint32_t to = td_parking_target(node, act);

	return to < TD_GPU_MAX && client->device.used <= td_parking_room(node, to, act);
}

static void refuse_target(
	struct td_node *node, struct td_act *act, struct td_client *client, uint64_t now_ns)
{
	uint32_t to = td_parking_target(node, act);

	td_parking_let_go(node, client->process);
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

/*
 * The gate is closed. The library has to hold before the driver blocks calls: an agent that is
 * blocked in one could not come back to another daemon. It answers with its reasons.
 */
static void go(
	struct td_node *node, struct td_act *act, struct td_process *process, uint64_t now_ns)
{
	char host[128];

	if (lacks_host(node, process, host, sizeof(host))) {
		td_parking_let_go(node, process);
		td_parking_refuse(node, act, host, now_ns);
		return;
	}
	if (process->can & TD_CAN_MOVE && !process->parking.holds) {
		process->parking.holds = true;
		td_parking_tell(node, process, TD_MOVE_HOLD);
		ask_to_look(node, process);
		return;
	}
	call_helper(node, act, process, now_ns);
}

static void wait_closed(
	struct td_node *node, struct td_act *act, struct td_process *process, uint64_t now_ns)
{
	if (process->phase == TD_PHASE_CLOSED && td_parking_is_by_driver(act) &&
		!has_target_room(node, act, td_parking_client(node, act))) {
		refuse_target(node, act, td_parking_client(node, act), now_ns);
	} else if (process->phase == TD_PHASE_CLOSED && !process->parking.looks &&
		   !never(process)) {
		go(node, act, process, now_ns);
	} else if (!process->parking.looks && never(process)) {
		td_parking_let_go(node, process);
		td_parking_refuse(node, act, never(process), now_ns);
	} else if (now_ns >= act->migration.deadline_ns) {
		td_parking_let_go(node, process);
		td_act_enter(
			node, act, TD_ACTION_TIMED_OUT, "its work did not end in time", now_ns);
	}
}

/*
 * The client that was to move is gone, and perhaps its program. If a helper is at work for the
 * program, its end is waited for: it may have to be undone.
 */
static void lose(struct td_node *node, struct td_act *act, uint64_t now_ns)
{
	struct td_process *process = td_parking_holder(node, act);

	if (process && process->parking.goes)
		return;
	if (process)
		td_parking_let_go(node, process);
	td_act_enter(node, act, TD_ACTION_REFUSED,
		process ? "it has left the GPU that it was to be moved from"
			: "the program has ended",
		now_ns);
}

void td_parking_found(
	struct td_node *node, struct td_process *process, uint64_t held, uint64_t now_ns)
{
	struct td_list *it;

	if (!(held & TD_UNMOVABLE(HELD)))
		return;
	/* This is set even if a RESTORE is under way: its end then tells the library (FREE). */
	process->parking.holds = true;
	if (process->parking.number || process->parking.is_saved)
		return;
	td_stopped_is_locked(node, process, now_ns);
	process->parking = (struct td_parking){.closes = true, .holds = true};
	if (held & TD_UNMOVABLE(SAVED)) {
		td_list_for_each (it, &process->clients)
			td_parking_take_off(td_parking_client_at(it));
		process->parking.is_saved = true;
		td_quota_gather(node);
	} else {
		/* A helper of the daemon before may have been anywhere: the driver is asked. */
		td_actions_restore(node, process, now_ns);
	}
}

void td_parking_step(struct td_node *node, struct td_act *act, uint64_t now_ns)
{
	struct td_process *process = td_parking_process(node, act);

	if (!process) {
		lose(node, act, now_ns);
		return;
	}
	if (act->migration.stage == TD_MIGRATION_ROOM && act->kind == TD_ACTION_RESTORE)
		find_room(node, act, process, now_ns);
	else if (act->migration.stage == TD_MIGRATION_ROOM)
		find_target_room(node, act, td_parking_client(node, act), now_ns);
	if (!td_act_has_ended(act) && act->migration.stage == TD_MIGRATION_CLOSE)
		wait_closed(node, act, process, now_ns);
}
