/* This file implements need.h. */
#include "daemon/memory/need.h"

#include <assert.h>

#include "base/time.h"
#include "daemon/memory/capacity.h"
#include "daemon/memory/quota.h"
#include "daemon/memory/soft.h"
#include "daemon/model/job.h"
#include "daemon/model/node.h"
#include "proto/words.h"

/*
 * Returns until when the client waits for host memory to which other jobs' memory can move. A
 * program that asks again after a refusal gets no more time.
 */
static uint64_t stranded_deadline_ns(const struct td_node *node, const struct td_client *needing)
{
	return needing->stranded_since_ns + node->options.memory_patience_ns;
}

static enum td_soft_place place_of(
	const struct td_node *node, const struct td_client *client, uint64_t now_ns)
{
	enum td_soft_place place = td_soft_place(node, client);
	bool waits_not = client->need_refuses || client->asked == TD_ASKED_UNIFIED,
	     is_given_up = waits_not || now_ns >= stranded_deadline_ns(node, client);

	if (place == TD_SOFT_KEPT_OUT && waits_not)
		return TD_SOFT_NO_PLACE;
	return place == TD_SOFT_STRANDED && is_given_up ? TD_SOFT_NO_PLACE : place;
}

/*
 * Returns the bytes that count against the client's limit on the device. If the program runs with a
 * part of its memory on the host, these are the bytes on the device, or the bytes that a GRANT not
 * yet acknowledged may have let onto it.
 */
static uint64_t has_bytes(const struct td_client *client)
{
	uint64_t demanded = client->demanded_bytes;

	if (client->process->phase != TD_PHASE_OPEN || !td_soft_spills(client))
		return demanded;
	if (td_holding_is_heard(&client->device) || client->device.believed <= client->device.used)
		return client->device.used;
	return client->device.believed < demanded ? client->device.believed : demanded;
}

/*
 * Returns the verdict on an allocation for which there is no room. Memory that the driver pages may
 * exceed the GPU, because the driver puts it on the host; it may not exceed the job's limit.
 */
static enum td_answer no_room(const struct td_client *client)
{
	bool is_within = client->total.used + client->need_bytes <= td_quota_room(client);

	return client->asked == TD_ASKED_UNIFIED && is_within ? TD_ANSWER_HOST : TD_ANSWER_NO;
}

/* The facts that decide on a verdict. */
struct question {
	const struct td_node *node;
	const struct td_client *client;
	enum td_quota_verdict quota;
	enum td_soft_place place;
	uint64_t has_bytes;
};

static bool has_failed(const struct question *q)
{
	return q->client->failed;
}

static bool waits_for_its_limit_alone(const struct question *q)
{
	return q->client->asked == TD_ASKED_UNIFIED && q->quota == TD_QUOTA_WAIT;
}

static bool has_no_place(const struct question *q)
{
	return q->quota == TD_QUOTA_REFUSED || q->place == TD_SOFT_NO_PLACE;
}

static bool waits_for_a_place(const struct question *q)
{
	return q->place == TD_SOFT_STRANDED || q->place == TD_SOFT_KEPT_OUT ||
	       q->quota == TD_QUOTA_WAIT ||
	       td_soft_demand(q->client) > q->node->gpus[q->client->gpu].capacity_bytes;
}

/* Returns whether the client's memory has left the device or is about to. */
static bool is_away(const struct question *q)
{
	const struct td_process *process = q->client->process;

	return process->backend != TD_BACKEND_PLAIN &&
	       (process->phase == TD_PHASE_CLOSED || process->phase == TD_PHASE_DRAINING);
}

static bool is_covered(const struct question *q)
{
	return q->client->device.told >= q->has_bytes + q->client->need_bytes && !is_away(q);
}

/*
 * Returns whether the bytes can come with the client's next fill. They cannot where other memory of
 * its job leaves the device for them: that memory would return when the gate opens, and the client
 * would have to ask anew.
 */
static bool can_come_later(const struct question *q)
{
	return is_away(q) &&
	       !(q->client->asked != TD_ASKED_MOVES && q->client->soft_bytes != UINT64_MAX);
}

static bool has_a_part_on_the_host(const struct question *q)
{
	return td_soft_spills(q->client) && q->client->asked == TD_ASKED_MOVES &&
	       q->has_bytes + q->client->need_bytes > q->client->grant.limit_bytes;
}

/*
 * Returns whether the driver makes room for the allocation, so that no program has to move memory.
 */
static bool has_room_made(const struct question *q)
{
	return q->client->process->backend == TD_BACKEND_MANAGED &&
	       td_capacity_is_settled(q->node, q->client->gpu);
}

/*
 * Returns whether the plan will never make room: the client's memory does not move, so no turn of
 * its own can help.
 */
static bool is_beyond_its_plan(const struct question *q)
{
	const struct td_client *client = q->client;

	return client->process->backend == TD_BACKEND_PLAIN &&
	       client->grant.limit_bytes < client->demanded_bytes + client->need_bytes &&
	       !td_capacity_doubt(&q->node->gpus[client->gpu]);
}

/* The first rule whose condition holds gives the verdict. If none holds, the client waits. */
static const struct {
	bool (*holds)(const struct question *q);
	enum td_answer verdict; /* NONE: the client waits */
} rules[] = {
	{has_failed, TD_ANSWER_OK}, /* The driver reports the error of a failed context itself. */
	{waits_for_its_limit_alone, TD_ANSWER_NONE},
	{has_no_place, TD_ANSWER_NO},
	{waits_for_a_place, TD_ANSWER_NONE},
	{is_covered, TD_ANSWER_OK},
	{can_come_later, TD_ANSWER_LATER},
	{has_a_part_on_the_host, TD_ANSWER_HOST},
	{has_room_made, TD_ANSWER_OK},
	{is_beyond_its_plan, TD_ANSWER_NO},
};

static enum td_answer judge(const struct question *q)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (rules[i].holds(q))
			return rules[i].verdict == TD_ANSWER_NO ? no_room(q->client)
								: rules[i].verdict;
	return TD_ANSWER_NONE;
}

/* Counts the granted bytes as used until the client's next report contains them. */
static void count_granted(struct td_client *client, enum td_answer verdict, bool pages)
{
	struct td_job *job = client->process->job;
	struct td_account *account = &job->on[client->gpu].account;

	td_account_used(account, &client->total, client->total.used + client->need_bytes,
		client->total.acked);
	if (pages) {
		client->paged_bytes += client->need_bytes;
		job->on[client->gpu].paged_bytes += client->need_bytes;
		return;
	}
	client->demanded_bytes += client->need_bytes;
	job->on[client->gpu].demanded_bytes += client->need_bytes;
	if (verdict == TD_ANSWER_HOST)
		client->host_bytes += client->need_bytes;
}

/* Answers the client's request if that is possible now. Returns whether it was refused. */
static bool answer(struct td_node *node, struct td_client *client, uint64_t now_ns)
{
	const struct td_process *process = client->process;
	const struct question q = {node, client, td_quota_need(node, client, now_ns),
		place_of(node, client, now_ns), has_bytes(client)};
	enum td_answer verdict = judge(&q);
	bool refused = verdict == TD_ANSWER_NO, counts = !refused && !client->failed,
	     pages = client->asked == TD_ASKED_UNIFIED && verdict == TD_ANSWER_HOST;

	if (verdict == TD_ANSWER_NONE)
		return false;
	if (refused)
		td_node_event(node, TD_EVENT_REFUSED, process, client->gpu, now_ns, 0,
			client->need_bytes,
			q.quota == TD_QUOTA_REFUSED && *process->job->settings.mem
				? "beyond the job's limit"
				: "out of memory");
	/* Memory that comes later, or lies on the host, is not on the device. */
	if (verdict == TD_ANSWER_LATER || verdict == TD_ANSWER_HOST)
		client->was_there = false;
	assert(client->needs); /* a request gets only one verdict */
	client->needs = false;
	if (counts)
		count_granted(client, verdict, pages);
	td_node_answer(node, client, client->device.told, verdict);
	/*
	 * A report that was sent before this verdict does not contain the bytes, and the limit does
	 * not cover them. So they are counted as promised.
	 */
	if (counts && (pages || client->device.told < client->demanded_bytes)) {
		client->promised_bytes = client->need_bytes;
		client->promised_paged = pages;
		client->promised_seq = client->device.seq;
	}
	return refused;
}

/*
 * Before a client of a job is refused, asks the job's other clients to report what they have by
 * now.
 */
static void ask_others(struct td_node *node, const struct td_client *needing, uint64_t now_ns)
{
	struct td_list *it;

	if (td_quota_need(node, needing, now_ns) == TD_QUOTA_FITS)
		return;
	td_list_for_each (it, &node->clients)
		if (td_quota_is_stale(td_client_at(it), needing))
			td_node_tell(node, td_client_at(it), td_client_at(it)->device.told);
}

/*
 * Notes since when the client waits for others' stranded memory: since its first request that did.
 */
static void note_stranded(const struct td_node *node, struct td_client *client, uint64_t now_ns)
{
	if (td_soft_place(node, client) != TD_SOFT_STRANDED)
		client->stranded_since_ns = 0;
	else if (!client->stranded_since_ns)
		client->stranded_since_ns = now_ns;
}

/*
 * Returns whether the client waits for a verdict. A stopped process gets it when it continues;
 * until then others may have the memory.
 */
static bool waits(const struct td_client *client)
{
	return client->needs && !client->process->stop.is;
}

bool td_need_is_there(const struct td_node *node)
{
	uint32_t needs = 0;

	for (uint32_t i = 0; i < node->gpu_count; i++)
		needs += node->gpus[i].needs;
	return needs;
}

bool td_need_step(struct td_node *node, uint64_t now_ns)
{
	bool refused = false;
	struct td_list *it;

	if (!td_need_is_there(node))
		return false;
	td_list_for_each (it, &node->clients)
		if (waits(td_client_at(it)))
			ask_others(node, td_client_at(it), now_ns);
	td_list_for_each (it, &node->clients) {
		if (!waits(td_client_at(it)))
			continue;
		note_stranded(node, td_client_at(it), now_ns);
		refused |= answer(node, td_client_at(it), now_ns);
	}
	return refused;
}

uint64_t td_need_deadline_ns(const struct td_node *node, uint64_t now_ns)
{
	uint64_t at = TD_NEVER, until;
	struct td_list *it;

	if (!td_need_is_there(node))
		return TD_NEVER;
	td_list_for_each (it, &node->clients) {
		const struct td_client *client = td_client_at(it);

		if (!waits(client))
			continue;
		if (td_quota_need(node, client, now_ns) == TD_QUOTA_WAIT)
			until = td_quota_deadline_ns(client);
		else if (place_of(node, client, now_ns) == TD_SOFT_STRANDED)
			until = stranded_deadline_ns(node, client);
		else
			continue;
		at = until < at ? until : at;
	}
	return at;
}
