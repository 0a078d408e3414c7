/* Handles the messages of supervisors; see proto/orders.h. */
#include <errno.h>

#include "base/err.h"
#include "daemon/execute/actions.h"
#include "daemon/server/peers/peer_internal.h"

static int supervise(struct td_peer *peer, const struct td_msg_supervise *msg, uint64_t now_ns)
{
	struct td_err err = {0};
	int r = td_supervisors_say(&peer->server->node, &peer->supervisor, peer, peer->pid,
		peer->who, msg, now_ns, &err);

	if (r == -ENOMEM)
		return r;
	if (r)
		td_peer_fail(peer, r, err.msg);
	else
		td_peer_finish(peer, 0);
	return 0;
}

int td_supervise_message(struct td_peer *peer, const struct td_msg *msg, uint64_t now_ns)
{
	switch (msg->type) {
	case TD_MSG_TYPE_supervise:
		return peer->follows ? -EPROTO : supervise(peer, &msg->supervise, now_ns);
	case TD_MSG_TYPE_ordered:
		td_actions_ordered(&peer->server->node, peer->supervisor, &msg->ordered, now_ns);
		return 0;
	case TD_MSG_TYPE_figures:
		if (!peer->supervisor)
			return -EPROTO;
		td_supervisors_figures(
			&peer->server->node, peer->supervisor, &msg->figures, now_ns);
		return 0;
	default: return -EPROTO;
	}
}
