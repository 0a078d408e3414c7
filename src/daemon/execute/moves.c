/* This file implements moves.h. */
#include "daemon/execute/moves.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bounds.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/time.h"
#include "base/uuid.h"
#include "daemon/execute/actions.h"
#include "daemon/execute/parking.h"
#include "daemon/execute/reshare.h"
#include "daemon/memory/capacity.h"
#include "daemon/memory/quota.h"
#include "daemon/memory/soft.h"
#include "daemon/model/sharing/account.h"
#include "daemon/model/job.h"
#include "daemon/model/node.h"
#include "daemon/node/gpus.h"
#include "proto/unmovable.h"

/* How long the program may take to prepare. Contexts and code take seconds on a busy machine. */
#define PREPARE_NS (60 * TD_NS_PER_S)
/* How long the other programs may take to make room, as plans tell them. */
#define ROOM_NS (10 * TD_NS_PER_S)
/* Room for what a program allocates between its last report and the closing of its gate. */
#define SPARE_BYTES (4ull << 20)
/* How long closing the gate may take beyond the drain's own deadlines. */
#define CLOSE_NS (5 * TD_NS_PER_S)
/*
 * How long the transfer may take. The bound is for all memory of a GPU, moved slowly through the
 * host.
 */
#define GO_NS (120 * TD_NS_PER_S)

static struct td_client *source_of(const struct td_node *node, const struct td_act *act)
{
	struct td_list *it;

	td_list_for_each (it, &node->clients)
		if (td_container_of(it, struct td_client, of_node)->id == act->id)
			return td_container_of(it, struct td_client, of_node);
	return NULL;
}

struct td_client *td_process_client(const struct td_process *process)
{
	struct td_list *it;

	td_list_for_each (it, &process->clients)
		if (!td_container_of(it, struct td_client, of_process)->aside)
			return td_container_of(it, struct td_client, of_process);
	return NULL;
}

static struct td_client *at_slot(const struct td_process *process, uint32_t slot)
{
	struct td_list *it;

	td_list_for_each (it, &process->clients)
		if (td_container_of(it, struct td_client, of_process)->slot == slot)
			return td_container_of(it, struct td_client, of_process);
	return NULL;
}

static struct td_act *act_of(const struct td_node *node, uint64_t number)
{
	struct td_list *it;

	td_list_for_each (it, &node->acts)
		if (td_container_of(it, struct td_act, of_node)->number == number)
			return td_container_of(it, struct td_act, of_node);
	return NULL;
}

/* The process that moves by the act. NULL: it has ended. */
static struct td_process *mover_of(const struct td_node *node, const struct td_act *act)
{
	struct td_list *it;

	td_list_for_each (it, &node->processes)
		if (td_process_at(it)->moving.number == act->number)
			return td_process_at(it);
	return NULL;
}

static void tell(struct td_node *node, const struct td_process *process, const struct td_act *act,
	enum td_move_stage stage)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_move};

	msg.move.number = act->number;
	msg.move.stage = (uint8_t)stage;
	memcpy(msg.move.gpu, act->migration.gpu, sizeof(msg.move.gpu));
	node->io.send(process->peer, &msg);
}

static void enter(struct td_act *act, enum td_migration_stage stage, uint64_t until_ns)
{
	act->migration.stage = stage;
	act->migration.deadline_ns = until_ns;
}

/* Ends the move. A client that was made on the new GPU stays set aside until it detaches. */
static void end(struct td_node *node, struct td_act *act, struct td_process *process,
	enum td_action_state state, const char *reason, uint64_t now_ns)
{
	if (process && process->moving.number == act->number)
		memset(&process->moving, 0, sizeof(process->moving));
	td_act_enter(node, act, state, reason, now_ns);
}

static void give_up(struct td_node *node, struct td_act *act, struct td_process *process,
	enum td_action_state state, const char *reason, uint64_t now_ns)
{
	if (process->moving.number == act->number)
		tell(node, process, act, TD_MOVE_CANCEL);
	end(node, act, process, state, reason, now_ns);
}

/*
 * Returns why the move is not even begun, or NULL if it can begin; by the driver, if the library
 * does not move it.
 */
static const char *refusal(
	struct td_node *node, const struct td_act *act, const struct td_client *client)
{
	const struct td_process *process = client->process;

	if (!(process->can & TD_CAN_MOVE))
		return td_unmovable_words(TD_UNMOVABLE(LIBRARY));
	if (process->unmovable && !(act->by_hand && td_parking_may_move(node, process->unmovable)))
		return td_unmovable_words(process->unmovable);
	if (process->moving.number || process->parking.number)
		return "it is moving already";
	if (process->parking.is_saved)
		return "it is checkpointed";
	if (process->failed || client->failed)
		return td_unmovable_words(TD_UNMOVABLE(FAILED));
	if (!memcmp(node->gpus[client->gpu].uuid, act->migration.gpu, 16))
		return "it is on that GPU";
	if (!td_node_may_have(node, act->migration.gpu))
		return "another daemon has that GPU";
	if (!td_gpus_have_place(node, process->who, act->migration.gpu))
		return "that would be one more GPU than are shared at once";
	if (!td_node_may_have_client(node, process->who))
		return "its user has its part of the users of GPUs that there can be";
	return NULL;
}

bool td_move_is_possible(const struct td_node *node, const struct td_process *process)
{
	const struct td_act *refused;

	if (!(process->can & TD_CAN_MOVE) || !process->told_movable || process->unmovable ||
		process->moving.number || process->parking.number || process->failed ||
		process->stop.is || process->leave.asked_ns)
		return false;
	refused = td_actions_of(node, process, TD_ACTION_MIGRATE);
	return !(refused && td_act_has_ended(refused));
}

void td_move_begin(struct td_node *node, struct td_act *act, uint64_t now_ns)
{
	struct td_client *client = source_of(node, act);
	const char *why = refusal(node, act, client);
	char to[64];

	if (why) {
		td_act_enter(node, act, TD_ACTION_REFUSED, why, now_ns);
		return;
	}
	if (client->process->unmovable) {
		act->migration.by_driver = true;
		act->migration.unmovable = client->process->unmovable;
		td_parking_begin(node, act, now_ns);
		return;
	}
	client->process->moving =
		(struct td_moving){.number = act->number, .why = act->migration.why};
	memcpy(client->process->moving.gpu, act->migration.gpu, 16);
	enter(act, TD_MIGRATION_PREPARE, now_ns + PREPARE_NS);
	snprintf(to, sizeof(to), "from GPU %u to GPU %u", td_gpu_number(node, client->gpu),
		td_gpu_number_of(node, act->migration.gpu));
	tell(node, client->process, act, TD_MOVE_PREPARE);
	td_act_enter(node, act, TD_ACTION_ASKED, to, now_ns);
}

/*
 * Returns the bytes to reserve on the new GPU: all that the client has or demands on its old one.
 */
static uint64_t needed_bytes(const struct td_client *source)
{
	return source->demanded_bytes > source->device.used ? source->demanded_bytes
							    : source->device.used;
}

/* Returns the bytes that the client may have on the new GPU now, within its job's limit. */
static uint64_t room_of(const struct td_node *node, const struct td_client *target)
{
	return td_min_u64(td_account_room(&node->gpus[target->gpu].account, &target->device),
		td_quota_room(target));
}

/*
 * Returns the bytes of another client that are not moved out for the mover. These are the bytes
 * that cannot leave, or, if its job's class is not lower than the mover's, all that it demands.
 */
static uint64_t kept_bytes(const struct td_client *mover, const struct td_client *other)
{
	const struct td_moving *moving = &other->process->moving;

	if (other->aside)
		return td_max_u64(moving->reserved_bytes, td_client_charge(other));
	if (other->failed || other->process->stop.is ||
		other->process->job->settings.class > mover->process->job->settings.class)
		return td_quota_stays(other);
	return td_max_u64(td_quota_stays(other), td_soft_demand(other));
}

/* Returns the most bytes that can become available to the mover on the new GPU. */
static uint64_t most_bytes(
	const struct td_node *node, const struct td_client *source, const struct td_client *target)
{
	const struct td_gpu *gpu = &node->gpus[target->gpu];
	uint64_t kept = 0, has = gpu->capacity_bytes + td_capacity_doubt(gpu);
	struct td_list *it;

	td_list_for_each (it, &node->clients) {
		const struct td_client *other = td_client_at(it);

		if (other->gpu == target->gpu && other != target)
			kept += kept_bytes(source, other);
	}
	return td_min_u64(
		td_sub_sat(has, kept), source->process->job->on[target->gpu].account.limit);
}

static void say_room(struct td_node *node, struct td_act *act, const struct td_client *source,
	uint64_t room_bytes, uint64_t now_ns)
{
	char reason[192], has[32], needs[32];

	(void)td_format_size(has, sizeof(has), room_bytes);
	(void)td_format_size(needs, sizeof(needs), needed_bytes(source));
	snprintf(reason, sizeof(reason), "GPU %u has room for %s, and it needs %s",
		td_gpu_number_of(node, act->migration.gpu), has, needs);
	give_up(node, act, source->process, TD_ACTION_REFUSED, reason, now_ns);
}

static void find_room(struct td_node *node, struct td_act *act, struct td_client *source,
	struct td_client *target, uint64_t now_ns)
{
	struct td_process *process = source->process;
	uint64_t need = needed_bytes(source), most = most_bytes(node, source, target);

	if (need > most) {
		say_room(node, act, source, most, now_ns);
		return;
	}
	/* Until the gate is closed the program may allocate more than it has reported. */
	process->moving.reserved_bytes = td_min_u64(most, need + need / 4 + SPARE_BYTES);
	if (room_of(node, target) < need)
		return;
	if (target->device.told < need)
		td_node_tell(node, target,
			td_min_u64(room_of(node, target), process->moving.reserved_bytes));
	process->moving.closes = true;
	enter(act, TD_MIGRATION_CLOSE, now_ns + 2 * node->options.drain_deadline_ns + CLOSE_NS);
	td_act_enter(node, act, TD_ACTION_RUNNING, "its gate closes", now_ns);
}

/*
 * Sends GO once the gate is closed. If the program has allocated more meanwhile, it waits for room
 * again.
 */
static void go(struct td_node *node, struct td_act *act, struct td_client *source,
	struct td_client *target, uint64_t now_ns)
{
	struct td_process *process = source->process;

	if (process->phase != TD_PHASE_CLOSED)
		return;
	if (needed_bytes(source) > target->device.told) {
		process->moving.closes = false;
		enter(act, TD_MIGRATION_ROOM, now_ns + ROOM_NS);
		return;
	}
	/*
	 * Reports that arrive from now on may be out of date, so is_there() of ready.c must not
	 * rely on them.
	 */
	source->was_there = target->was_there = false;
	process->moving.goes = true;
	tell(node, process, act, TD_MOVE_GO);
	enter(act, TD_MIGRATION_GO, now_ns + GO_NS);
	td_act_enter(node, act, TD_ACTION_RUNNING, "its memory moves", now_ns);
}

static void time_out(
	struct td_node *node, struct td_act *act, struct td_client *source, uint64_t now_ns)
{
	struct td_process *process = source->process;
	const struct td_client *target = at_slot(process, act->migration.to);
	char reason[192];

	switch (act->migration.stage) {
	case TD_MIGRATION_PREPARE:
		snprintf(reason, sizeof(reason), "it was not ready to move in time");
		break;
	case TD_MIGRATION_ROOM:
		say_room(node, act, source, target ? room_of(node, target) : 0, now_ns);
		return;
	case TD_MIGRATION_CLOSE:
		snprintf(reason, sizeof(reason), "its work did not end in time");
		break;
	case TD_MIGRATION_GO:
		/* The program may have moved by now; it then still sends DONE. */
		snprintf(reason, sizeof(reason), "it does not say that it has moved");
		break;
	}
	give_up(node, act, process, TD_ACTION_TIMED_OUT, reason, now_ns);
}

static void lose_source(struct td_node *node, struct td_act *act, uint64_t now_ns)
{
	struct td_process *process = mover_of(node, act);

	if (process)
		give_up(node, act, process, TD_ACTION_REFUSED,
			"it has given up its context on the GPU that it was to leave", now_ns);
	else
		td_act_enter(node, act, TD_ACTION_REFUSED, "the program has ended", now_ns);
}

void td_move_step(struct td_node *node, struct td_act *act, uint64_t now_ns)
{
	struct td_client *source = source_of(node, act), *target;

	if (act->migration.by_driver) {
		td_parking_step(node, act, now_ns);
		return;
	}
	if (!source) {
		lose_source(node, act, now_ns);
		return;
	}
	target = at_slot(source->process, act->migration.to);
	if (act->migration.stage != TD_MIGRATION_PREPARE && !target) {
		give_up(node, act, source->process, TD_ACTION_REFUSED,
			td_unmovable_words(TD_UNMOVABLE(NO_CONTEXT)), now_ns);
		return;
	}
	if (act->migration.stage == TD_MIGRATION_ROOM)
		find_room(node, act, source, target, now_ns);
	if (td_act_has_ended(act))
		return;
	if (act->migration.stage == TD_MIGRATION_CLOSE)
		go(node, act, source, target, now_ns);
	if (now_ns >= act->migration.deadline_ns)
		time_out(node, act, source, now_ns);
}

uint64_t td_move_wakeup(const struct td_act *act)
{
	return act->migration.deadline_ns;
}

/* -- messages from programs -- */

static void prepared(struct td_node *node, struct td_act *act, struct td_process *process,
	const struct td_msg_moved *msg, uint64_t now_ns)
{
	const struct td_client *target = at_slot(process, msg->to);

	if (act->migration.stage != TD_MIGRATION_PREPARE)
		return;
	if (!target || !target->aside) {
		give_up(node, act, process, TD_ACTION_REFUSED,
			td_unmovable_words(TD_UNMOVABLE(NO_CONTEXT)), now_ns);
		return;
	}
	act->migration.to = msg->to;
	enter(act, TD_MIGRATION_ROOM, now_ns + ROOM_NS);
	td_act_enter(node, act, TD_ACTION_RUNNING, "it is prepared", now_ns);
}

/*
 * Updates the GPUs that the job was placed on, unless the job has other processes, which may still
 * be on the old GPU.
 */
void td_move_place_anew(struct td_job *job, const uint8_t *from, const uint8_t *to)
{
	if (job->members.next->next != &job->members)
		return;
	for (uint32_t i = 0; i < job->placed_count; i++)
		if (!memcmp(job->placed[i], from, 16))
			memcpy(job->placed[i], to, 16);
}

void td_move_left(struct td_node *node, const struct td_process *process)
{
	struct td_list *it;

	if (process->moving.number)
		return;
	td_list_for_each (it, &process->clients)
		if (!td_container_of(it, struct td_client, of_process)->aside)
			return;
	td_list_for_each (it, &process->clients) {
		struct td_client *client = td_container_of(it, struct td_client, of_process);

		client->aside = false;
		td_gpus_changed(node, client->gpu);
	}
}

bool td_move_has_no_place(struct td_node *node, struct td_process *process,
	const struct td_msg_attach *attach, const char *why, uint64_t now_ns)
{
	struct td_act *act = process->moving.number ? act_of(node, process->moving.number) : NULL;

	if (!act || memcmp(process->moving.gpu, attach->gpu, sizeof(process->moving.gpu)) ||
		td_list_empty(&process->clients))
		return false;
	give_up(node, act, process, TD_ACTION_REFUSED, why, now_ns);
	return true;
}

/* The program says that it has moved. act is NULL if the move was given up before. */
static void done(struct td_node *node, struct td_act *act, struct td_process *process,
	const struct td_msg_moved *msg, uint64_t now_ns)
{
	struct td_client *from = at_slot(process, msg->from), *to = at_slot(process, msg->to);
	char reason[192], bytes[32], took[32];

	/* Only a client that was set aside on the new GPU can be the target of a move. */
	if (!from || !to || from == to || from->aside || !to->aside)
		return;
	to->aside = false;
	from->aside = true;
	process->moves++;
	process->moved = (struct td_moved){.at_ns = now_ns,
		.pause_ns = msg->pause_ns,
		.bytes = msg->bytes,
		.from = td_gpu_number(node, from->gpu),
		.why = act ? act->migration.why : TD_MOVE_BY_HAND};
	td_activity_follow(&to->activity, &from->activity);
	td_move_place_anew(process->job, node->gpus[from->gpu].uuid, node->gpus[to->gpu].uuid);
	if (!act)
		return;
	/* From now on the act refers to the program's client on the new GPU. */
	act->id = to->id;
	(void)td_format_size(bytes, sizeof(bytes), msg->bytes);
	(void)td_format_duration(took, sizeof(took), msg->pause_ns);
	snprintf(reason, sizeof(reason), "from GPU %u to GPU %u: %s in %s",
		td_gpu_number(node, from->gpu), td_gpu_number(node, to->gpu), bytes, took);
	end(node, act, process, TD_ACTION_DONE, reason, now_ns);
}

/* The library has found a reason that the daemon did not know: perhaps the driver can do it. */
static void failed(struct td_node *node, struct td_act *act, struct td_process *process,
	uint64_t reasons, uint64_t now_ns)
{
	if (!act->by_hand || !td_parking_may_move(node, reasons)) {
		end(node, act, process, TD_ACTION_REFUSED, td_unmovable_words(reasons), now_ns);
		return;
	}
	memset(&process->moving, 0, sizeof(process->moving));
	process->unmovable = act->migration.unmovable = reasons;
	act->migration.by_driver = true;
	td_parking_begin(node, act, now_ns);
}

int td_move_message(
	struct td_node *node, struct td_process *process, const struct td_msg *msg, uint64_t now_ns)
{
	const struct td_msg_moved *moved = &msg->moved;
	struct td_act *act;

	if (msg->type == TD_MSG_TYPE_movable) {
		process->unmovable =
			msg->movable.reasons & ~(TD_UNMOVABLE(HELD) | TD_UNMOVABLE(SAVED));
		process->unsharable = msg->movable.share_reasons;
		/* Once the process was told to hold, only an answer that says HELD counts. */
		if (!process->parking.holds || msg->movable.reasons & TD_UNMOVABLE(HELD))
			process->parking.looks = false;
		if (!process->told_movable)
			td_parking_found(node, process, msg->movable.reasons, now_ns);
		process->told_movable = true;
		return 0;
	}
	if (moved->stage >= TD_MOVE_STAGE_N)
		return -EPROTO;
	act = process->moving.number == moved->number ? act_of(node, moved->number) : NULL;
	if (moved->sm_share_ppm || (act && act->kind == TD_ACTION_SHARE))
		td_reshare_message(node, process, act, moved, now_ns);
	else if (moved->stage == TD_MOVE_DONE)
		done(node, act, process, moved, now_ns);
	else if (act && moved->stage == TD_MOVE_PREPARED)
		prepared(node, act, process, moved, now_ns);
	else if (act && moved->stage == TD_MOVE_FAILED)
		failed(node, act, process, moved->reasons, now_ns);
	return 0;
}

/* -- the GPUs of a move -- */

int td_move_find_gpu(
	const struct td_node *node, const char *text, uint8_t ret_uuid[16], struct td_err *err)
{
	uint64_t number;

	if (!td_uuid_parse(text, ret_uuid) && td_gpu_number_of(node, ret_uuid) != TD_GPU_ANY)
		return 0;
	if (!td_parse_u64(text, 0, UINT32_MAX, &number, NULL)) {
		for (uint32_t i = 0; i < node->listed_count; i++) {
			if (node->listed[i].index != number || node->listed[i].lost)
				continue;
			memcpy(ret_uuid, node->listed[i].uuid, 16);
			return 0;
		}
		for (uint32_t i = 0; i < node->gpu_count; i++) {
			if (!node->gpus[i].used || td_gpu_number(node, i) != number)
				continue;
			memcpy(ret_uuid, node->gpus[i].uuid, 16);
			return 0;
		}
	}
	return td_err_set(err, -ENOENT,
		"\"%.64s\" is no GPU of this node: expected a number or a UUID as in tandem gpu",
		text);
}

uint64_t td_move_reserved_bytes(const struct td_node *node, uint32_t gpu)
{
	uint64_t bytes = td_parking_reserved_bytes(node, gpu);
	struct td_list *it;

	td_list_for_each (it, &node->clients) {
		const struct td_client *client = td_container_of(it, struct td_client, of_node);
		const struct td_moving *moving = &client->process->moving;

		if (client->gpu != gpu || !client->aside)
			continue;
		/* A client that has left is charged only for what it has not given back. */
		bytes += moving->number && !memcmp(moving->gpu, node->gpus[gpu].uuid, 16)
				 ? moving->reserved_bytes
				 : td_client_charge(client);
	}
	return bytes;
}
