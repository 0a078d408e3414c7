/* Handles ACT: an action that a user asks for by hand, and messages about its progress. */
#include <errno.h>
#include <stdio.h>

#include "base/err.h"
#include "daemon/server/peers/peer_internal.h"

static void send_act(struct td_peer *peer, const struct td_act *act)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_acted};

	msg.acted.number = act->number;
	msg.acted.kind = (uint8_t)act->kind;
	msg.acted.state = (uint8_t)act->state;
	snprintf(msg.acted.job, sizeof(msg.acted.job), "%s", act->job);
	snprintf(msg.acted.name, sizeof(msg.acted.name), "%s", act->name);
	snprintf(msg.acted.reason, sizeof(msg.acted.reason), "%s", act->reason);
	td_peer_send(peer, &msg);
	peer->act_rows++;
}

void td_tool_act(struct td_peer *peer, const struct td_msg_act *msg, uint64_t now_ns)
{
	struct td_act *acts[TD_ACTS_MAX];
	struct td_err err = {0};
	uint32_t count = 0;
	int r;

	if (peer->act_count) {
		td_peer_fail(
			peer, -EBUSY, "an action was asked for already: expected one at a time");
		return;
	}
	peer->act_rows = 0;
	r = td_actions_order(&peer->server->node, peer->who, msg->job,
		(enum td_action_kind)msg->kind, msg->to, now_ns, acts, &count, &err);
	if (r) {
		td_peer_fail(peer, r, err.msg);
		return;
	}
	for (uint32_t i = 0; i < count; i++) {
		send_act(peer, acts[i]);
		if (!td_act_has_ended(acts[i]))
			peer->acts[peer->act_count++] = acts[i]->number;
	}
	if (!peer->act_count)
		td_peer_finish(peer, peer->act_rows);
}

void td_tool_acted(struct td_peer *peer, const struct td_act *act)
{
	for (uint32_t i = 0; i < peer->act_count; i++) {
		if (peer->acts[i] != act->number)
			continue;
		send_act(peer, act);
		if (td_act_has_ended(act))
			peer->acts[i] = peer->acts[--peer->act_count];
		if (!peer->act_count)
			td_peer_finish(peer, peer->act_rows);
		return;
	}
}
