/* This file implements reshare.h. */
#include "daemon/execute/reshare.h"

#include <stdio.h>
#include <string.h>

#include "base/bounds.h"
#include "base/parse.h"
#include "base/time.h"
#include "daemon/execute/actions.h"
#include "daemon/model/job.h"
#include "daemon/model/node.h"
#include "daemon/node/stopped.h"
#include "proto/orders.h"
#include "proto/proto.h"
#include "proto/unmovable.h"

/* How long the program may take to prepare. A context takes seconds on a busy machine. */
#define PREPARE_NS (60 * TD_NS_PER_S)
/* How long closing the gate may take beyond the drain's own deadlines. */
#define CLOSE_NS (5 * TD_NS_PER_S)
/*
 * How long the switch to the context with the new share may take. The library may still have to
 * make a few of the program's objects, such as streams and events, in that context.
 */
#define GO_NS (30 * TD_NS_PER_S)

static struct td_client *client_of(const struct td_node *node, const struct td_act *act)
{
	struct td_list *it;

	td_list_for_each (it, &node->clients)
		if (td_client_at(it)->id == act->id)
			return td_client_at(it);
	return NULL;
}

static void tell(struct td_node *node, const struct td_client *client, const struct td_act *act,
	enum td_move_stage stage)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_move};

	msg.move.number = act->number;
	msg.move.stage = (uint8_t)stage;
	msg.move.sm_share_ppm = act->sm_share_ppm;
	memcpy(msg.move.gpu, node->gpus[client->gpu].uuid, sizeof(msg.move.gpu));
	node->io.send(client->process->peer, &msg);
}

static void format_share(char *buf, size_t len, uint32_t ppm)
{
	snprintf(buf, len, "%.4g%%", (double)(ppm ? ppm : TD_PPM) / (TD_PPM / 100.0));
}

static bool has_shadows(const struct td_process *process)
{
	return process->job->supervised & TD_SUPERVISOR_SHADOWS;
}

const char *td_reshare_obstacle(const struct td_process *process)
{
	if (!(process->can & TD_CAN_SHARE))
		return td_unmovable_words(TD_UNMOVABLE(LIBRARY));
	if (process->unsharable)
		return td_unmovable_words(process->unsharable);
	return process->failed ? td_unmovable_words(TD_UNMOVABLE(FAILED)) : NULL;
}

bool td_reshare_is_possible(const struct td_node *node, const struct td_client *client)
{
	const struct td_process *process = client->process;
	const struct td_act *refused;

	if (!td_client_reshares(client) || process->moving.number || process->parking.number ||
		process->stop.is || process->leave.asked_ns)
		return false;
	refused = td_actions_of(node, process, TD_ACTION_SHARE);
	return !(refused && td_act_has_ended(refused));
}

/* Ends the change. */
static void end(struct td_node *node, struct td_act *act, struct td_process *process,
	enum td_action_state state, const char *reason, uint64_t now_ns)
{
	if (process && process->moving.number == act->number)
		memset(&process->moving, 0, sizeof(process->moving));
	td_act_enter(node, act, state, reason, now_ns);
}

/* The library does not do it: perhaps a second instance does. */
static void do_without(struct td_node *node, struct td_act *act, struct td_process *process,
	const char *why, uint64_t now_ns)
{
	char reason[192];

	if (!has_shadows(process)) {
		snprintf(reason, sizeof(reason),
			"%s; a second instance could take over: see tandem run --shadow", why);
		end(node, act, process, TD_ACTION_REFUSED, reason, now_ns);
		return;
	}
	if (process->moving.number == act->number)
		memset(&process->moving, 0, sizeof(process->moving));
	td_actions_shadow_instead(node, act, process, now_ns);
}

void td_reshare_begin(struct td_node *node, struct td_act *act, uint64_t now_ns)
{
	struct td_client *client = client_of(node, act);
	struct td_process *process = client->process;
	const char *why = td_reshare_obstacle(process);
	char percent[16], to[64];

	if (process->moving.number || process->parking.number || process->parking.is_saved) {
		end(node, act, process, TD_ACTION_REFUSED, "it is moving, or checkpointed", now_ns);
		return;
	}
	if (why) {
		do_without(node, act, process, why, now_ns);
		return;
	}
	process->moving = (struct td_moving){.number = act->number};
	act->migration.stage = TD_MIGRATION_PREPARE;
	act->migration.deadline_ns = now_ns + PREPARE_NS;
	tell(node, client, act, TD_MOVE_PREPARE);
	format_share(percent, sizeof(percent), act->sm_share_ppm);
	snprintf(to, sizeof(to), "to %s of the SMs", percent);
	td_act_enter(node, act, TD_ACTION_ASKED, to, now_ns);
}

static void time_out(
	struct td_node *node, struct td_act *act, const struct td_client *client, uint64_t now_ns)
{
	static const char *const reasons[] = {
		[TD_MIGRATION_PREPARE] = "it was not ready in time",
		[TD_MIGRATION_CLOSE] = "its work did not end in time",
		[TD_MIGRATION_GO] = "it does not say that its share has changed",
	};

	tell(node, client, act, TD_MOVE_CANCEL);
	end(node, act, client->process, TD_ACTION_TIMED_OUT, reasons[act->migration.stage], now_ns);
}

/*
 * Returns whether the program was stopped in the middle of the switch. It then needs no open gate,
 * and must not find one when it goes on.
 */
static bool is_stopped_within(
	const struct td_node *node, const struct td_act *act, const struct td_process *process)
{
	enum td_stop stop;

	if (act->migration.stage != TD_MIGRATION_GO)
		return false;
	stop = td_stopped_now(node, process);
	return stop != TD_STOP_NONE && stop != TD_STOP_SILENT;
}

void td_reshare_step(struct td_node *node, struct td_act *act, uint64_t now_ns)
{
	struct td_client *client = client_of(node, act);
	struct td_list *it;

	if (!client) {
		/* A program whose context has ended may live on. */
		td_list_for_each (it, &node->processes)
			if (td_process_at(it)->moving.number == act->number)
				memset(&td_process_at(it)->moving, 0, sizeof(struct td_moving));
		td_act_enter(node, act, TD_ACTION_REFUSED, "the program has left the GPU", now_ns);
		return;
	}
	if (act->migration.stage == TD_MIGRATION_CLOSE &&
		client->process->phase == TD_PHASE_CLOSED) {
		client->process->moving.goes = true;
		tell(node, client, act, TD_MOVE_GO);
		act->migration.stage = TD_MIGRATION_GO;
		act->migration.began_ns = now_ns;
		act->migration.deadline_ns = now_ns + GO_NS;
	}
	if (now_ns < act->migration.deadline_ns)
		return;
	if (is_stopped_within(node, act, client->process))
		act->migration.deadline_ns = now_ns + GO_NS;
	else
		time_out(node, act, client, now_ns);
}

/*
 * Returns the pause that the program reports, but no more than has passed since GO: its next share
 * waits for many times as long.
 */
static uint64_t pause_of(const struct td_act *act, const struct td_msg_moved *msg, uint64_t now_ns)
{
	uint64_t most_ns = GO_NS;

	if (act && act->migration.stage == TD_MIGRATION_GO)
		most_ns = now_ns - act->migration.began_ns;
	return td_min_u64(msg->pause_ns, most_ns);
}

static void done(struct td_node *node, struct td_process *process, struct td_act *act,
	struct td_client *client, const struct td_msg_moved *msg, uint64_t now_ns)
{
	char reason[192], before[16], after[16], took[32];
	uint32_t had = client->sm_share_ppm ? client->sm_share_ppm : TD_PPM;

	format_share(before, sizeof(before), client->sm_share_ppm);
	format_share(after, sizeof(after), msg->sm_share_ppm);
	(void)td_format_duration(took, sizeof(took), pause_of(act, msg, now_ns));
	client->sm_share_ppm = msg->sm_share_ppm < TD_PPM ? msg->sm_share_ppm : 0;
	process->reshares++;
	process->reshared_ns = now_ns;
	process->reshare_pause_ns = pause_of(act, msg, now_ns);
	if (!act)
		return;
	/* It has contexts of so many shares already, or its MPS server gives no more. */
	if (msg->sm_share_ppm == had && had != act->sm_share_ppm) {
		snprintf(reason, sizeof(reason),
			"it has %s of the SMs, the nearest that it can have", after);
		end(node, act, process, TD_ACTION_REFUSED, reason, now_ns);
		return;
	}
	snprintf(reason, sizeof(reason), "from %s to %s of the SMs in %s", before, after, took);
	end(node, act, process, TD_ACTION_DONE, reason, now_ns);
}

void td_reshare_message(struct td_node *node, struct td_process *process, struct td_act *act,
	const struct td_msg_moved *msg, uint64_t now_ns)
{
	struct td_client *client = act ? client_of(node, act) : td_process_client(process);

	if (msg->stage == TD_MOVE_DONE && client && msg->sm_share_ppm) {
		done(node, process, act, client, msg, now_ns);
	} else if (act && msg->stage == TD_MOVE_PREPARED &&
		   act->migration.stage == TD_MIGRATION_PREPARE) {
		process->moving.closes = true;
		act->migration.stage = TD_MIGRATION_CLOSE;
		act->migration.deadline_ns =
			now_ns + 2 * node->options.drain_deadline_ns + CLOSE_NS;
		td_act_enter(node, act, TD_ACTION_RUNNING, NULL, now_ns);
	} else if (act && msg->stage == TD_MOVE_FAILED) {
		do_without(node, act, process, td_unmovable_words(msg->reasons), now_ns);
	}
}
