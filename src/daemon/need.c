/* See need.h. */
#include "daemon/need.h"

#include "base/time.h"
#include "daemon/capacity.h"
#include "daemon/job.h"
#include "daemon/node.h"
#include "daemon/quota.h"
#include "daemon/soft.h"
#include "preload/backend.h"
#include "preload/client.h"

static struct td_client *client_at(struct td_list *it)
{
	return td_container_of(it, struct td_client, of_node);
}

/*
 * So long others' memory may take to find a place on the host; who holds that may be waiting for the one that asks. In all: a program that asks again, having
 * emptied its caches, is not to wait again.
 */
static uint64_t stranded_deadline_ns(const struct td_node *node, const struct td_client *needing)
{
	return needing->stranded_since_ns + node->options.memory_patience_ns;
}

static enum td_soft_place place_of(
	const struct td_node *node, const struct td_client *client, uint64_t now_ns)
{
	enum td_soft_place place = td_soft_place(node, client);
	bool is_given_up = client->need_refuses || client->need_paged ||
			   now_ns >= stranded_deadline_ns(node, client);

	if (place == TD_SOFT_KEPT_OUT && (client->need_refuses || client->need_paged))
		return TD_SOFT_NO_PLACE;
	return place == TD_SOFT_STRANDED && is_given_up ? TD_SOFT_NO_PLACE : place;
}

/*
 * What it has, of what its limit is about. Where a part of it lies on the host that is what is on the device; but plans that it has not reported for may have let it bring the rest
 * there.
 */
static uint64_t has_bytes(const struct td_client *client)
{
	uint64_t demanded = client->demanded_bytes;

	if (client->spill_told != TD_SPILL_LIES)
		return demanded;
	if (client->acknowledged_seq == client->seq ||
		client->believed_bytes <= client->resident_bytes)
		return client->resident_bytes;
	return client->believed_bytes < demanded ? client->believed_bytes : demanded;
}

/* What the driver pages may be larger than the GPU, or come where there is no room; not than the job's limit. */
static uint8_t no_room(const struct td_node *node, const struct td_client *client)
{
	bool is_within = td_client_has(client) + client->need_bytes <= td_quota_room(node, client);

	return client->need_paged && is_within ? TD_NEED_HOST : 0;
}

/* What its job has on the device leaves for it while it asks. Told to ask again when the gate is open, it would find that come back. */
static bool makes_room(const struct td_client *client)
{
	return client->need_fixed && client->soft_bytes != UINT64_MAX;
}

/* Until its next MEMORY says so itself. */
static void count_granted(
	const struct td_node *node, struct td_client *client, uint8_t granted, bool pages)
{
	struct td_job *job = client->process->job;

	if (pages) {
		client->paged_bytes += client->need_bytes;
		job->on[client->gpu].paged_bytes += client->need_bytes;
		return;
	}
	client->demanded_bytes += client->need_bytes;
	job->on[client->gpu].demanded_bytes += client->need_bytes;
	if (granted == TD_NEED_HOST) {
		client->host_bytes += client->need_bytes;
		client->limit_bytes = td_quota_plan(node, client, client->limit_bytes);
	}
}

/* True: it is refused. An allocation waits: it goes on once the limit covers it, leaves its bytes off the device if the gate is not open, or is refused. */
static bool answer_need(struct td_node *node, struct td_client *client, uint64_t now_ns)
{
	const struct td_process *process = client->process;
	bool failed = client->failed, pages;
	struct td_msg msg = {.type = TD_MSG_TYPE_answer};
	uint64_t wanted = client->demanded_bytes + client->need_bytes; /* each is bounded */
	enum td_quota_verdict quota = td_quota_need(node, client, now_ns);
	uint64_t has = has_bytes(client);
	const struct td_gpu *gpu = &node->gpus[client->gpu];
	uint64_t before = td_quota_charge(client), doubt = td_capacity_doubt(gpu);
	bool closed = process->phase == TD_PHASE_CLOSED || process->phase == TD_PHASE_DRAINING;
	enum td_soft_place place = place_of(node, client, now_ns);

	if (failed)
		msg.answer.granted = 1; /* the driver has its own answer */
	else if (client->need_paged && quota == TD_QUOTA_WAIT)
		return false; /* the limit alone decides, and it is not known yet */
	else if (quota == TD_QUOTA_REFUSED || place == TD_SOFT_NO_PLACE)
		msg.answer.granted = no_room(node, client);
	else if (place == TD_SOFT_STRANDED || place == TD_SOFT_KEPT_OUT || quota == TD_QUOTA_WAIT ||
		 td_soft_demand(client) > gpu->capacity_bytes)
		return false;
	else if (client->limit_bytes >= has + client->need_bytes &&
		 !(closed && process->backend != TD_BACKEND_PLAIN))
		msg.answer.granted = 1;
	else if (closed && process->backend != TD_BACKEND_PLAIN && !makes_room(client))
		msg.answer.granted = TD_NEED_LATER;
	else if (td_soft_spills(client) && !client->need_fixed &&
		 has + client->need_bytes > client->grant.limit_bytes)
		msg.answer.granted = TD_NEED_HOST;
	else if (process->backend == TD_BACKEND_MANAGED &&
		 td_capacity_is_settled(node, client->gpu))
		msg.answer.granted = 1; /* nobody is to make room for it: the driver does */
	else if (process->backend == TD_BACKEND_PLAIN && client->grant.limit_bytes < wanted &&
		 !doubt)
		msg.answer.granted = no_room(node, client);
	else
		return false;
	pages = client->need_paged && msg.answer.granted == TD_NEED_HOST;
	if (!msg.answer.granted)
		td_node_event(node, TD_EVENT_REFUSED, process, client->gpu, now_ns, 0,
			client->need_bytes,
			quota == TD_QUOTA_REFUSED && *process->job->settings.mem
				? "beyond the job's limit"
				: "out of memory");
	client->needs = false;
	if (msg.answer.granted && !failed)
		count_granted(node, client, msg.answer.granted, pages);
	msg.answer.slot = client->slot;
	msg.answer.ticket = client->need_ticket;
	msg.answer.limit_bytes = client->limit_bytes;
	node->io.send(process->peer, &msg);
	process->job->on[client->gpu].charged_bytes += td_quota_charge(client) - before;
	/* A report that was on its way before the answer says less, and no limit covers it. Its job may get a limit meanwhile. */
	if (msg.answer.granted && !failed && (pages || client->limit_bytes < wanted)) {
		client->promised_bytes = client->need_bytes;
		client->promised_paged = pages;
		td_node_tell_bounded(node, client, client->limit_bytes);
		client->promised_seq = client->seq;
	}
	return !msg.answer.granted;
}

/* Before one of a job is refused, the others say what they have by now. */
static void ask_others(struct td_node *node, const struct td_client *needing, uint64_t now_ns)
{
	struct td_list *it;

	if (td_quota_need(node, needing, now_ns) == TD_QUOTA_FITS)
		return;
	td_list_for_each (it, &node->clients)
		if (td_quota_is_stale(client_at(it), needing))
			td_node_tell(node, client_at(it), client_at(it)->limit_bytes);
}

/* Since when it is others' stranded memory that it waits for: from its first allocation that did, until there is one that does not. */
static void note_stranded(const struct td_node *node, struct td_client *client, uint64_t now_ns)
{
	if (td_soft_place(node, client) != TD_SOFT_STRANDED)
		client->stranded_since_ns = 0;
	else if (!client->stranded_since_ns)
		client->stranded_since_ns = now_ns;
}

bool td_need_step(struct td_node *node, uint64_t now_ns)
{
	bool refused = false;
	struct td_list *it;

	td_list_for_each (it, &node->clients)
		if (client_at(it)->needs)
			ask_others(node, client_at(it), now_ns);
	td_list_for_each (it, &node->clients) {
		if (!client_at(it)->needs)
			continue;
		note_stranded(node, client_at(it), now_ns);
		refused |= answer_need(node, client_at(it), now_ns);
	}
	return refused;
}

uint64_t td_need_deadline_ns(const struct td_node *node, uint64_t now_ns)
{
	uint64_t at = TD_NEVER, until;
	struct td_list *it;

	td_list_for_each (it, &node->clients) {
		const struct td_client *client = client_at(it);

		if (!client->needs)
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
