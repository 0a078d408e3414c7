/* See host.h. */
#include "daemon/host.h"

#include "base/time.h"
#include "daemon/node.h"
#include "proto/words.h"

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

static uint64_t min_bytes(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Whatever a process says, no more than this can be on the host; of that, what it has reported there. */
static uint64_t demanded(const struct td_process *process, uint64_t *ret_host_bytes)
{
	uint64_t bytes = 0, host_bytes = 0;
	struct td_list *it;

	td_list_for_each (it, &process->clients) {
		const struct td_client *client = td_container_of(it, struct td_client, of_process);

		bytes += client->demanded_bytes;
		host_bytes += client->host_bytes;
	}
	if (ret_host_bytes)
		*ret_host_bytes = host_bytes;
	return bytes;
}

static uint64_t uses(const struct td_process *process)
{
	uint64_t host_bytes, most = demanded(process, &host_bytes);

	/* What the driver pages is in no arena. */
	if (process->backend != TD_BACKEND_SWAP)
		return 0;
	/* A library from before this does not say. */
	return process->host.speaks ? min_bytes(process->host.used_bytes, most) : host_bytes;
}

static uint64_t wants(const struct td_process *process)
{
	return min_bytes(max_bytes(process->host.wanted_bytes, process->host.used_bytes),
		demanded(process, NULL));
}

static uint64_t charge(const struct td_process *process)
{
	return max_bytes(process->host.believed_bytes, uses(process));
}

/* What cannot be called back. */
static uint64_t keeps(const struct td_process *process)
{
	return max_bytes(uses(process), min_bytes(wants(process), process->host.told_bytes));
}

static bool is_short(const struct td_process *process)
{
	return wants(process) > process->host.told_bytes;
}

/* It had no bound, and has not said yet what it took then; or what it says is more than what it has reported so far. */
static bool is_in_doubt(const struct td_process *process)
{
	const struct td_host_part *part = &process->host;
	bool heard = part->speaks && (int32_t)(part->acknowledged_seq - part->bound_seq) >= 0;

	return part->told_bytes != UINT64_MAX &&
	       (!heard || part->used_bytes > demanded(process, NULL));
}

/* Until when nothing is granted, since what others have is not known; 0: it is. */
static uint64_t doubt_ns(const struct td_node *node, uint64_t now_ns)
{
	/* They come back from a daemon that is gone. */
	uint64_t until = node->settle_ns ? node->settle_ns + PATIENCE_NS : 0;
	struct td_list *it;

	td_list_for_each (it, &node->processes) {
		const struct td_process *process = process_at(it);

		if (is_in_doubt(process))
			until = max_bytes(until, process->host.bound_ns + PATIENCE_NS);
	}
	return until > now_ns ? until : 0;
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
	part->wanted_bytes = msg->wanted_bytes;
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

	td_list_for_each (it, &node->processes)
		limit -= min_bytes(charge(process_at(it)), limit);
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

		if (process == lacking || !part->speaks || is_short(process) || process->stop.is)
			continue;
		if (part->told_bytes > keeps(process) || !part->lacks)
			tell(node, process, keeps(process), true);
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

/* Its question is put off, until then or for as long as anybody is waited for. */
static bool put_off(
	const struct td_host_part *part, uint64_t until_ns, uint64_t now_ns, uint64_t *wakeup)
{
	uint64_t at = part->asked_ns ? min_bytes(until_ns, part->asked_ns + PATIENCE_NS) : until_ns;

	if (at <= now_ns)
		return false;
	*wakeup = min_bytes(*wakeup, at);
	return true;
}

/* True: it lacks some. doubt: as doubt_ns says. */
static bool serve(struct td_node *node, struct td_process *process, uint64_t limit, uint64_t doubt,
	uint64_t now_ns, uint64_t *wakeup)
{
	struct td_host_part *part = &process->host;
	uint64_t room, own, most, bytes;

	if (!is_short(process)) {
		if (part->asked_ns)
			answer(node, process, part->told_bytes);
		return false;
	}
	if (put_off(part, doubt, now_ns, wakeup))
		return true;
	room = left(node, limit);
	own = charge(process);
	most = max_bytes(part->told_bytes, own > UINT64_MAX - room ? own : own + room);
	bytes = min_bytes(wants(process), most);
	if (bytes == wants(process)) {
		answer(node, process, bytes);
		return false;
	}
	if (call_back(node, process) && part->asked_ns && put_off(part, UINT64_MAX, now_ns, wakeup))
		return true;
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

static void bound(struct td_node *node, struct td_process *process, uint64_t now_ns)
{
	struct td_host_part *part = &process->host;

	part->wanted_bytes = 0; /* of another time */
	part->bound_ns = now_ns;
	part->bound_seq = part->seq + 1;
	tell(node, process, part->speaks ? uses(process) : 0, false);
}

static void begin(struct td_node *node, uint64_t limit, uint64_t now_ns)
{
	struct td_list *it;

	td_list_for_each (it, &node->processes) {
		struct td_process *process = process_at(it);
		bool bounded = process->host.told_bytes != UINT64_MAX;

		/* What a foreign one says is not heard. */
		if (process->backend != TD_BACKEND_SWAP ||
			bounded == (limit != UINT64_MAX && !process->foreign))
			continue;
		process->host.answered_ticket = process->host.ticket;
		if (bounded)
			tell(node, process, UINT64_MAX, false);
		else
			bound(node, process, now_ns);
	}
}

uint64_t td_host_step(struct td_node *node, uint64_t now_ns)
{
	uint64_t limit = td_options_host(&node->options), wakeup = TD_NEVER, doubt;
	bool lacks = false;
	struct td_list *it;

	begin(node, limit, now_ns);
	if (limit == UINT64_MAX)
		return TD_NEVER;
	doubt = doubt_ns(node, now_ns);
	td_list_for_each (it, &node->processes)
		if (process_at(it)->backend == TD_BACKEND_SWAP)
			lacks |= serve(node, process_at(it), limit, doubt, now_ns, &wakeup);
	if (!lacks)
		release(node);
	return wakeup;
}
