/* See host.h. */
#include "daemon/host.h"

#include "base/time.h"
#include "daemon/node.h"
#include "preload/backend.h"

/* How long a process that does not answer is waited for. */
#define PATIENCE_NS TD_NS_PER_S

static uint64_t max_bytes(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static struct td_process *process_at(struct td_list *it)
{
	return td_container_of(it, struct td_process, of_node);
}

void td_host_init(struct td_host_part *part)
{
	*part = (struct td_host_part){.told_bytes = UINT64_MAX};
}

static uint64_t charge(const struct td_host_part *part)
{
	return max_bytes(part->believed_bytes, part->used_bytes);
}

/* What cannot be called back. */
static uint64_t keeps(const struct td_host_part *part)
{
	return max_bytes(part->used_bytes,
		part->wanted_bytes < part->told_bytes ? part->wanted_bytes : part->told_bytes);
}

static bool is_short(const struct td_host_part *part)
{
	return part->wanted_bytes > part->told_bytes;
}

static void tell(struct td_node *node, struct td_process *process, uint64_t bytes, bool lacks)
{
	struct td_host_part *part = &process->host;
	struct td_msg msg = {.type = TD_MSG_TYPE_host};

	part->told_bytes = bytes;
	part->lacks = lacks;
	part->seq++;
	if (bytes != UINT64_MAX)
		part->believed_bytes = max_bytes(part->believed_bytes, bytes);
	msg.host.seq = part->seq;
	msg.host.bytes = bytes;
	msg.host.others_lack = lacks;
	msg.host.ticket = part->answered_ticket;
	node->io.send(process->peer, &msg);
}

void td_host_need(struct td_process *process, const struct td_msg_host_need *msg, uint64_t now_ns)
{
	struct td_host_part *part = &process->host;

	part->speaks = true;
	part->used_bytes = msg->used_bytes;
	part->wanted_bytes = max_bytes(msg->wanted_bytes, msg->used_bytes);
	part->acknowledged_seq = msg->seq;
	if (msg->seq == part->seq)
		part->believed_bytes = part->told_bytes == UINT64_MAX ? 0 : part->told_bytes;
	if (msg->ticket != part->ticket)
		part->asked_ns = now_ns;
	part->ticket = msg->ticket;
}

static uint64_t left(const struct td_node *node, uint64_t limit)
{
	struct td_list *it;

	td_list_for_each (it, &node->processes) {
		uint64_t bytes = charge(&process_at(it)->host);

		limit -= bytes < limit ? bytes : limit;
	}
	return limit;
}

/* Of the others' grants, what they do not need. True: some of them have yet to say what they have. */
static bool call_back(struct td_node *node, const struct td_process *lacking)
{
	bool outstanding = false;
	struct td_list *it;

	td_list_for_each (it, &node->processes) {
		struct td_process *process = process_at(it);
		struct td_host_part *part = &process->host;

		if (process == lacking || !part->speaks || is_short(part))
			continue;
		if (part->told_bytes > keeps(part) || !part->lacks)
			tell(node, process, keeps(part), true);
		outstanding |= part->acknowledged_seq != part->seq;
	}
	return outstanding;
}

static void answer(struct td_node *node, struct td_process *process, uint64_t bytes)
{
	process->host.answered_ticket = process->host.ticket;
	process->host.asked_ns = 0;
	tell(node, process, bytes, process->host.lacks);
}

/* True: it lacks some. */
static bool serve(struct td_node *node, struct td_process *process, uint64_t limit, uint64_t now_ns,
	uint64_t *wakeup)
{
	struct td_host_part *part = &process->host;
	uint64_t room = left(node, limit), own = charge(part),
		 most = max_bytes(part->told_bytes, own > UINT64_MAX - room ? own : own + room),
		 bytes = part->wanted_bytes < most ? part->wanted_bytes : most;

	if (!is_short(part)) {
		if (part->asked_ns)
			answer(node, process, part->told_bytes);
		return false;
	}
	if (bytes == part->wanted_bytes) {
		answer(node, process, bytes);
		return false;
	}
	if (call_back(node, process) && part->asked_ns && now_ns < part->asked_ns + PATIENCE_NS) {
		if (part->asked_ns + PATIENCE_NS < *wakeup)
			*wakeup = part->asked_ns + PATIENCE_NS;
		return true;
	}
	if (part->asked_ns || bytes > part->told_bytes)
		answer(node, process, bytes);
	return true;
}

static void release(struct td_node *node)
{
	struct td_list *it;

	td_list_for_each (it, &node->processes) {
		struct td_process *process = process_at(it);

		if (process->host.lacks)
			tell(node, process, process->host.told_bytes, false);
	}
}

static void begin(struct td_node *node, uint64_t limit)
{
	struct td_list *it;

	td_list_for_each (it, &node->processes) {
		struct td_process *process = process_at(it);
		bool bounded = process->host.told_bytes != UINT64_MAX;

		if (process->backend != TD_BACKEND_SWAP || bounded == (limit != UINT64_MAX))
			continue;
		process->host.answered_ticket = process->host.ticket;
		tell(node, process, bounded ? UINT64_MAX : process->host.used_bytes, false);
	}
}

uint64_t td_host_step(struct td_node *node, uint64_t now_ns)
{
	uint64_t limit = td_options_host(&node->options), wakeup = TD_NEVER;
	bool lacks = false;
	struct td_list *it;

	begin(node, limit);
	if (limit == UINT64_MAX)
		return TD_NEVER;
	td_list_for_each (it, &node->processes)
		if (process_at(it)->backend == TD_BACKEND_SWAP)
			lacks |= serve(node, process_at(it), limit, now_ns, &wakeup);
	if (!lacks)
		release(node);
	return wakeup;
}
