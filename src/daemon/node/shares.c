/*
 * The memory that processes have opened of each other, as they report it. It decides nothing; users
 * see it.
 */
#include "daemon/node/shares.h"

#include <errno.h>

#include "daemon/model/node.h"
#include "daemon/node/tenant.h"

const char *td_shares_reason(unsigned denied)
{
	switch ((enum td_denied)denied) {
	case TD_DENIED_NOBODY:
		return "its owner has ended, or cannot be reached from there: programs that share "
		       "memory need the daemon's socket directory, or one network namespace";
	case TD_DENIED_USER: return "it is another user's";
	case TD_DENIED_FREED: return "its owner has freed it";
	case TD_DENIED_FAILED: return "it could not be mapped";
	case TD_DENIED_N: break;
	}
	return "";
}

const char *td_shares_obstacle(unsigned unreachable)
{
	switch ((enum td_unreachable)unreachable) {
	case TD_UNREACHABLE_NOT: break;
	case TD_UNREACHABLE_NOWHERE: return "there is no directory .ipc beside its socket";
	case TD_UNREACHABLE_TAKEN:
		return "something that it cannot remove has its name in the directory .ipc beside "
		       "the socket";
	case TD_UNREACHABLE_FAILED:
	case TD_UNREACHABLE_N:
		return "it cannot make a socket in the directory .ipc beside the daemon's socket";
	}
	return "";
}

static int shares(struct td_node *node, struct td_process *process, const struct td_msg_shares *msg,
	uint64_t now_ns)
{
	bool first = msg->handles && !process->shares.was_told;

	process->shares.handles = msg->handles;
	process->shares.open = msg->open;
	process->shares.was_told |= first;
	/* A newer library may send reasons that this daemon does not know. */
	process->shares.unreachable =
		msg->unreachable < TD_UNREACHABLE_N ? msg->unreachable : TD_UNREACHABLE_FAILED;
	if (first)
		td_node_event(node, TD_EVENT_SHARES, process, TD_GPU_ANY, now_ns, 0, 0,
			"handles of its memory are for programs of its user that run under tandem");
	/* UNREACHABLE_NOWHERE is not reported: the directory will exist in a moment. */
	if (process->shares.unreachable > TD_UNREACHABLE_NOWHERE &&
		!process->shares.was_unreachable) {
		process->shares.was_unreachable = true;
		td_node_event(node, TD_EVENT_SHARES, process, TD_GPU_ANY, now_ns, 0, 0,
			td_shares_obstacle(process->shares.unreachable));
	}
	return 0;
}

static int denied(struct td_node *node, struct td_process *process, const struct td_msg_denied *msg,
	uint64_t now_ns)
{
	uint32_t *count;

	if (msg->why >= TD_DENIED_N)
		return -EPROTO;
	count = &process->shares.denied[msg->why];
	/*
	 * Only the first failure is an event, so that a process that tries for ever does not push
	 * out others' events.
	 */
	if (!*count)
		td_node_event(node, TD_EVENT_DENIED, process, TD_GPU_ANY, now_ns, 0, 0,
			td_shares_reason(msg->why));
	*count = msg->count < UINT32_MAX - *count ? *count + msg->count : UINT32_MAX;
	process->shares.last = msg->why;
	return 0;
}

int td_shares_message(
	struct td_node *node, struct td_process *process, const struct td_msg *msg, uint64_t now_ns)
{
	return msg->type == TD_MSG_TYPE_shares ? shares(node, process, &msg->shares, now_ns)
					       : denied(node, process, &msg->denied, now_ns);
}
