/* This file implements host.h. */
#include "daemon/memory/host.h"

#include "base/bounds.h"
#include "base/time.h"
#include "daemon/model/node.h"
#include "proto/words.h"

/* How long to wait for a process that does not answer. */
#define PATIENCE_NS TD_NS_PER_S

void td_host_init(struct td_host_part *part)
{
	*part = (struct td_host_part){.holding.told = TD_UNBOUNDED};
}

/*
 * Returns the most bytes that the process can have on the host, computed without trusting its own
 * figure. Also returns the bytes that its clients reported there.
 */
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

	/* Only the swap backend keeps memory in an arena on the host; the driver pages its own. */
	if (process->backend != TD_BACKEND_SWAP)
		return 0;
	/*
	 * A process reports its host memory only after it got a bound. Before, its clients' figures
	 * count.
	 */
	return process->host.speaks ? td_min_u64(process->host.used_bytes, most) : host_bytes;
}

/*
 * Returns the bytes that the driver has taken from the GPUs to the host for a checkpoint, or is
 * about to take.
 */
static uint64_t checkpointed(const struct td_process *process)
{
	uint64_t bytes = 0;
	struct td_list *it;

	td_list_for_each (it, &process->clients) {
		const struct td_client *client = td_container_of(it, struct td_client, of_process);

		if (process->parking.is_saved)
			bytes += client->saved.used;
		else if (process->parking.goes)
			bytes += client->device.used;
	}
	return bytes;
}

static uint64_t wants(const struct td_process *process)
{
	return td_min_u64(td_max_u64(process->host.wanted_bytes, process->host.used_bytes),
		demanded(process, NULL));
}

/* Returns the bytes that cannot be called back from the process. */
static uint64_t keeps(const struct td_process *process)
{
	return td_max_u64(uses(process), td_min_u64(wants(process), process->host.holding.told));
}

static bool is_short(const struct td_process *process)
{
	return wants(process) > process->host.holding.told;
}

/*
 * Returns whether it is unknown how much host memory the process uses. Either it had no bound and
 * has not yet reported what it used then, or it reports more than its allocations are.
 */
static bool is_in_doubt(const struct td_process *process)
{
	const struct td_host_part *part = &process->host;
	bool heard = part->speaks && (int32_t)(part->holding.acked - part->bound_seq) >= 0;

	return part->holding.told != TD_UNBOUNDED &&
	       (!heard || part->used_bytes > demanded(process, NULL));
}

/*
 * Returns until when nothing is granted because the others' host memory is not known; 0 if it is
 * known.
 */
static uint64_t doubt_ns(const struct td_node *node, uint64_t now_ns)
{
	/* After a restart, processes come back from the daemon that is gone. */
	uint64_t until = node->settle_ns ? node->settle_ns + PATIENCE_NS : 0;
	struct td_list *it;

	td_list_for_each (it, &node->processes) {
		const struct td_process *process = td_process_at(it);

		if (is_in_doubt(process))
			until = td_max_u64(until, process->host.bound_ns + PATIENCE_NS);
	}
	return until > now_ns ? until : 0;
}

/* The state of one call of td_host_step(). */
struct step {
	struct td_node *node;
	struct td_account account;
	uint64_t doubt_ns, now_ns, wakeup_ns;
};

static void grant(struct step *step, struct td_process *process, uint64_t bytes, bool lacks,
	enum td_answer verdict)
{
	struct td_host_part *part = &process->host;
	struct td_msg msg = {.type = TD_MSG_TYPE_grant};

	part->lacks = lacks;
	td_account_tell(&step->account, &part->holding, bytes, part->holding.seq + 1);
	msg.grant.slot = TD_SLOT_HOST;
	msg.grant.seq = part->holding.seq;
	msg.grant.others_wait = lacks;
	msg.grant.host_bytes = bytes;
	msg.grant.ticket = verdict == TD_ANSWER_NONE ? 0 : part->ticket;
	msg.grant.verdict = (uint8_t)verdict;
	step->node->io.send(process->peer, &msg);
}

static void tell(struct step *step, struct td_process *process, uint64_t bytes, bool lacks)
{
	grant(step, process, bytes, lacks, TD_ANSWER_NONE);
}

void td_host_used(struct td_process *process, const struct td_msg_used *msg)
{
	process->host.speaks = true;
	process->host.used_bytes = msg->host_bytes;
	td_holding_used(&process->host.holding, uses(process), msg->acked_seq);
}

void td_host_ask(struct td_process *process, const struct td_msg_ask *msg, uint64_t now_ns)
{
	struct td_host_part *part = &process->host;

	part->wanted_bytes = msg->bytes;
	if (msg->ticket != part->ticket)
		part->asked_ns = now_ns;
	part->ticket = msg->ticket;
}

/*
 * Takes back host memory that was granted to other processes and that they do not need. Returns
 * whether some of them have not answered yet.
 */
static bool call_back(struct step *step, const struct td_process *lacking)
{
	bool outstanding = false;
	struct td_list *it;

	td_list_for_each (it, &step->node->processes) {
		struct td_process *process = td_process_at(it);
		struct td_host_part *part = &process->host;

		if (process == lacking || !part->speaks || is_short(process) || process->stop.is)
			continue;
		if (part->holding.told > keeps(process) || !part->lacks)
			tell(step, process, keeps(process), true);
		outstanding |= !td_holding_is_heard(&part->holding);
	}
	return outstanding;
}

/* Answers with all that was wanted, or with as much as there is. */
static void answer(struct step *step, struct td_process *process, uint64_t bytes)
{
	process->host.asked_ns = 0;
	grant(step, process, bytes, process->host.lacks,
		bytes >= process->host.wanted_bytes ? TD_ANSWER_OK : TD_ANSWER_NO);
}

/*
 * Puts the process's question off until until_ns, but not beyond PATIENCE_NS after it asked.
 * Returns false if that time has come.
 */
static bool put_off(struct step *step, const struct td_host_part *part, uint64_t until_ns)
{
	uint64_t at =
		part->asked_ns ? td_min_u64(until_ns, part->asked_ns + PATIENCE_NS) : until_ns;

	if (at <= step->now_ns)
		return false;
	step->wakeup_ns = td_min_u64(step->wakeup_ns, at);
	return true;
}

/* Grants the process what it lacks, as far as possible. Returns whether it still lacks some. */
static bool serve(struct step *step, struct td_process *process)
{
	struct td_host_part *part = &process->host;
	uint64_t left, own, most, bytes;

	if (!is_short(process)) {
		if (part->asked_ns)
			answer(step, process, part->holding.told);
		return false;
	}
	if (put_off(step, part, step->doubt_ns))
		return true;
	left = td_account_left(&step->account);
	own = td_holding_charge(&part->holding);
	most = td_max_u64(part->holding.told, own > UINT64_MAX - left ? own : own + left);
	bytes = td_min_u64(wants(process), most);
	if (bytes == wants(process)) {
		answer(step, process, bytes);
		return false;
	}
	if (call_back(step, process) && part->asked_ns && put_off(step, part, UINT64_MAX))
		return true;
	if (part->asked_ns || bytes > part->holding.told)
		answer(step, process, bytes);
	return true;
}

static void release(struct step *step)
{
	struct td_list *it;

	td_list_for_each (it, &step->node->processes) {
		struct td_process *process = td_process_at(it);

		if (process->host.lacks)
			tell(step, process, process->host.holding.told, false);
	}
}

static void bound(struct step *step, struct td_process *process)
{
	struct td_host_part *part = &process->host;

	part->wanted_bytes = 0; /* a request from before the bound counts no more */
	part->bound_ns = step->now_ns;
	part->bound_seq = part->holding.seq + 1;
	tell(step, process, part->speaks ? uses(process) : 0, false);
}

/*
 * Tells whether the process is bound by a limit of host memory. A foreign process runs as without
 * tandem, so its reports are not taken. A process that does not swap pins no memory for that, and
 * one that has stopped swapping loses its bound.
 */
static bool takes_bound(const struct td_process *process)
{
	return process->backend == TD_BACKEND_SWAP && !process->foreign;
}

/* Counts what each process has by now, and tells the processes that get a bound or lose it. */
static void begin(struct step *step)
{
	bool has_limit = step->account.limit != TD_UNBOUNDED;
	struct td_list *it;

	td_list_for_each (it, &step->node->processes) {
		struct td_process *process = td_process_at(it);
		struct td_holding *holding = &process->host.holding;
		bool bounded = holding->told != TD_UNBOUNDED;

		holding->used = uses(process);
		td_account_add(&step->account, holding);
		step->account.charged += checkpointed(process);
		if (bounded == (has_limit && takes_bound(process)))
			continue;
		process->host.lacks = false;
		if (bounded)
			answer(step, process, TD_UNBOUNDED);
		else
			bound(step, process);
	}
}

uint64_t td_host_step(struct td_node *node, uint64_t now_ns)
{
	struct step step = {.node = node,
		.account.limit = td_options_host(&node->options),
		.now_ns = now_ns,
		.wakeup_ns = TD_NEVER};
	bool lacks = false;
	struct td_list *it;

	if (step.account.limit == TD_UNBOUNDED && !node->had.host_limit)
		return TD_NEVER;
	node->had.host_limit = step.account.limit != TD_UNBOUNDED;
	begin(&step);
	if (step.account.limit == TD_UNBOUNDED)
		return TD_NEVER;
	step.doubt_ns = doubt_ns(node, now_ns);
	td_list_for_each (it, &node->processes)
		if (td_process_at(it)->backend == TD_BACKEND_SWAP)
			lacks |= serve(&step, td_process_at(it));
	if (!lacks)
		release(&step);
	return step.wakeup_ns;
}

uint64_t td_host_left(const struct td_node *node)
{
	struct td_account account = {.limit = td_options_host(&node->options)};
	struct td_list *it;

	td_list_for_each (it, &node->processes) {
		const struct td_process *process = td_process_at(it);
		struct td_holding holding = process->host.holding;

		holding.used = uses(process);
		td_account_add(&account, &holding);
		account.charged += checkpointed(process);
	}
	return td_account_left(&account);
}
