/* Memory that processes share with each other, as they tell it: kept to be shown, and for nothing else. */
#include <errno.h>
#include <stdio.h>

#include "daemon/model/node.h"
#include "daemon/node/tenant.h"

static const char *reason(enum td_denied why)
{
	switch (why) {
	case TD_DENIED_NOBODY:
		return "its owner has ended, or cannot be reached from there: programs that share "
		       "memory need "
		       "the daemon's socket directory, or one network namespace";
	case TD_DENIED_USER: return "it is another user's";
	case TD_DENIED_FREED: return "its owner has freed it";
	case TD_DENIED_FAILED: return "it could not be mapped";
	case TD_DENIED_N: break;
	}
	return "";
}

static const char *obstacle(enum td_unreachable why)
{
	switch (why) {
	case TD_UNREACHABLE_NOT: break;
	case TD_UNREACHABLE_NOWHERE: return "there is no directory .ipc beside its socket";
	case TD_UNREACHABLE_TAKEN:
		return "something that it cannot remove has its name in the directory .ipc beside "
		       "the socket";
	case TD_UNREACHABLE_FAILED:
	case TD_UNREACHABLE_N:
		return "it can make no socket in the directory .ipc beside the daemon's";
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
	/* A newer library may know more reasons. */
	process->shares.unreachable =
		msg->unreachable < TD_UNREACHABLE_N ? msg->unreachable : TD_UNREACHABLE_FAILED;
	if (first)
		td_node_event(node, TD_EVENT_SHARES, process, TD_GPU_ANY, now_ns, 0, 0,
			"handles of its memory are for programs of its user that run under tandem");
	/* No directory: there is one in a moment. */
	if (process->shares.unreachable > TD_UNREACHABLE_NOWHERE &&
		!process->shares.was_unreachable) {
		process->shares.was_unreachable = true;
		td_node_event(node, TD_EVENT_SHARES, process, TD_GPU_ANY, now_ns, 0, 0,
			obstacle(process->shares.unreachable));
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
	/* One that tries for ever does not push all else out of what is kept. */
	if (!*count)
		td_node_event(
			node, TD_EVENT_DENIED, process, TD_GPU_ANY, now_ns, 0, 0, reason(msg->why));
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

char *td_shares_explain(const struct td_process *process, char *buf, size_t len)
{
	const struct td_shares *s = &process->shares;

	*buf = 0;
	if (s->handles)
		snprintf(buf, len,
			"Others may open memory of it: %u handle%s, open %u time%s. A program that "
			"is "
			"not under tandem, or not its user's, is told that they are none "
			"(CUDA_ERROR_INVALID_VALUE).",
			s->handles, s->handles == 1 ? "" : "s", s->open, s->open == 1 ? "" : "s");
	return buf;
}

char *td_shares_explain_unreachable(const struct td_process *process, char *buf, size_t len)
{
	const struct td_shares *s = &process->shares;

	*buf = 0;
	if (s->handles && s->unreachable)
		snprintf(buf, len,
			"Only programs in its network namespace can open its memory: %s.",
			obstacle(s->unreachable));
	return buf;
}

char *td_shares_explain_denied(const struct td_process *process, char *buf, size_t len)
{
	const struct td_shares *s = &process->shares;

	*buf = 0;
	if (s->denied[s->last])
		snprintf(buf, len, "It could not open memory of another process (%u time%s): %s.",
			s->denied[s->last], s->denied[s->last] == 1 ? "" : "s", reason(s->last));
	return buf;
}
