/*
 * Sends answers of many rows in parts. A part has a bounded number of rows. Between two parts other
 * users are served, and the peer reads. td_peer.answer.next tells where the next part begins. It is
 * a number and never a pointer, so an object that ends between two parts is simply not found. An
 * object that comes or goes meanwhile may be in the answer or not.
 */
#include <string.h>

#include "base/err.h"
#include "daemon/explain/explain.h"
#include "daemon/memory/quota.h"
#include "daemon/model/job.h"
#include "daemon/node/gpus.h"
#include "daemon/server/peers/peer_internal.h"

/*
 * A part ends with the object (a process, GPU or event) that brings it to this many rows. One
 * object has little more than TD_SLOT_MAX rows at most.
 */
#define PART_ROWS 128
/* A part covers at most this many processes, since each may cost a look at all others. */
#define PART_PROCESSES 32

static const struct td_node *node_of(const struct td_peer *peer)
{
	return &peer->server->node;
}

static void fail_no_job(struct td_peer *peer)
{
	struct td_err err = {0};

	td_peer_fail(peer, td_job_unknown(peer->answer.job, &err), err.msg);
}

static void end(struct td_peer *peer)
{
	peer->answer.type = 0;
	td_peer_finish(peer, peer->answer.rows);
}

/* Ends an answer about a named job, with an error if there were no rows. */
static void end_named(struct td_peer *peer)
{
	peer->answer.type = 0;
	if (peer->answer.rows)
		td_peer_finish(peer, peer->answer.rows);
	else
		fail_no_job(peer);
}

static bool is_asked_for(const struct td_peer *peer, const struct td_process *process)
{
	bool is_named =
		peer->answer.type == TD_MSG_TYPE_explain || peer->answer.type == TD_MSG_TYPE_get;

	return td_tool_may_see(peer, process->who) &&
	       (!is_named || td_process_is_named(process, peer->answer.job));
}

/*
 * Sends the rows of the next processes that the request covers. Returns false if those were the
 * last. send_rows() returns how many rows it sent for a process.
 */
static bool send_processes(struct td_peer *peer, uint64_t now_ns,
	uint32_t (*send_rows)(struct td_peer *peer, struct td_process *process, uint64_t now_ns))
{
	uint32_t count = 0, rows = 0;
	struct td_list *it;

	td_list_for_each (it, &peer->server->node.processes) {
		struct td_process *process = td_process_at(it);

		if (process->id < peer->answer.next || !is_asked_for(peer, process))
			continue;
		if (count++ == PART_PROCESSES || rows >= PART_ROWS) {
			peer->answer.next = process->id;
			peer->answer.rows += rows;
			return true;
		}
		rows += send_rows(peer, process, now_ns);
	}
	peer->answer.rows += rows;
	return false;
}

static void send_jobs(struct td_peer *peer, uint64_t now_ns)
{
	if (send_processes(peer, now_ns, td_tool_send_process))
		return;
	for (uint32_t i = 0; i < node_of(peer)->gpu_count; i++)
		peer->answer.rows += td_tool_send_others(peer, i);
	end(peer);
}

/* Sends a part of a round of WATCH. The GPUs are its first part; ids of processes begin with 1. */
static void send_round(struct td_peer *peer, uint64_t now_ns)
{
	if (peer->answer.next) {
		send_jobs(peer, now_ns);
		return;
	}
	peer->answer.rows = td_tool_send_gpus(peer);
	peer->answer.next = 1;
}

static void send_gpus(struct td_peer *peer, uint64_t now_ns)
{
	(void)now_ns;
	peer->answer.rows = td_tool_send_gpus(peer);
	end(peer);
}

static void send_policies(struct td_peer *peer, uint64_t now_ns)
{
	(void)now_ns;
	peer->answer.rows = td_tool_send_policies(peer);
	end(peer);
}

static void send_cause(void *arg, const struct td_msg *row)
{
	td_peer_send(arg, row);
}

static uint32_t explain_process(struct td_peer *peer, struct td_process *process, uint64_t now_ns)
{
	return td_explain(node_of(peer), process, peer->who, now_ns, send_cause, peer);
}

static void send_causes(struct td_peer *peer, uint64_t now_ns)
{
	if (!send_processes(peer, now_ns, explain_process))
		end_named(peer);
}

/* Sends the settings of a job once: with the first of its processes that the request covers. */
static uint32_t settings_of(struct td_peer *peer, struct td_process *process, uint64_t now_ns)
{
	struct td_list *it;

	(void)now_ns;
	td_list_for_each (it, &process->job->members) {
		const struct td_process *first = td_container_of(it, struct td_process, of_job);

		if (is_asked_for(peer, first))
			return first == process ? td_tool_send_settings(peer, process->job) : 0;
	}
	return 0;
}

static void send_settings(struct td_peer *peer, uint64_t now_ns)
{
	if (!send_processes(peer, now_ns, settings_of))
		end_named(peer);
}

/*
 * Sends the events that existed at the time of the request. A peer that follows is also sent the
 * new ones, and from then on each event as it happens.
 */
static void send_events(struct td_peer *peer, uint64_t now_ns)
{
	const struct td_events *all = &node_of(peer)->events;
	const struct td_event *event = td_events_get(all, peer->answer.next);
	uint32_t rows = 0;

	(void)now_ns;
	for (; event && event->number < peer->answer.until; event = td_events_next(all, event)) {
		if (rows == PART_ROWS) {
			peer->answer.next = event->number;
			peer->answer.rows += rows;
			return;
		}
		rows += td_peer_send_event(peer, event);
	}
	peer->answer.rows += rows;
	if (peer->answer.until < UINT64_MAX) {
		end(peer);
		return;
	}
	peer->answer.type = 0;
	peer->follows = true;
}

/*
 * Returns the job that the peer, a process of it, asks about. NULL: the job has no process that
 * uses a GPU.
 */
static const struct td_job *viewed(const struct td_peer *peer)
{
	struct td_list *it;

	td_list_for_each (it, &node_of(peer)->jobs) {
		const struct td_job *job = td_container_of(it, struct td_job, of_node);

		if (*peer->answer.job && td_identity_is_same(job->who, peer->who) &&
			!strcmp(job->name, peer->answer.job))
			return job;
	}
	return NULL;
}

static void send_view_row(struct td_peer *peer, uint32_t pid, const uint8_t *gpu,
	uint64_t limit_bytes, const struct td_client *client)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_view_row};

	msg.view_row.pid = pid;
	memcpy(msg.view_row.gpu, gpu, 16);
	msg.view_row.limit_bytes = limit_bytes;
	msg.view_row.demanded_bytes = client ? client->total.used : 0;
	msg.view_row.overhead_bytes = client ? client->overhead_bytes : 0;
	td_peer_send(peer, &msg);
	peer->answer.rows++;
}

/* Sends the job's limit on every GPU. */
static void send_limits(struct td_peer *peer, const struct td_job *job)
{
	const struct td_node *node = node_of(peer);

	for (uint32_t i = 0; i < node->gpu_count; i++)
		if (node->gpus[i].used)
			send_view_row(peer, 0, node->gpus[i].uuid,
				td_quota_bytes(node, job, &node->gpus[i]), NULL);
	for (uint32_t i = 0; i < node->listed_count; i++) {
		const struct td_gpu gpu = {.total_bytes = node->listed[i].total_bytes};

		if (td_tool_gpu_index(node, node->listed[i].uuid) == node->gpu_count)
			send_view_row(peer, 0, node->listed[i].uuid,
				td_quota_bytes(node, job, &gpu), NULL);
	}
}

/*
 * Sends the memory of the job's processes on each GPU. Returns false if those were the last rows.
 */
static bool send_clients(struct td_peer *peer, const struct td_job *job)
{
	const struct td_node *node = node_of(peer);
	uint32_t rows = 0;
	struct td_list *it;

	td_list_for_each (it, &node->clients) {
		const struct td_client *client = td_client_at(it);

		if (client->id < peer->answer.next || client->process->job != job)
			continue;
		if (rows++ == PART_ROWS) {
			peer->answer.next = client->id;
			return true;
		}
		send_view_row(peer, (uint32_t)client->process->pid, node->gpus[client->gpu].uuid, 0,
			client);
	}
	return false;
}

/* Sends a part of the view of a job. The limits are its first part; ids of clients begin with 1. */
static void send_view(struct td_peer *peer, uint64_t now_ns)
{
	const struct td_job *job = viewed(peer);

	(void)now_ns;
	if (job && !peer->answer.next) {
		send_limits(peer, job);
		peer->answer.next = 1;
		if (peer->answer.rows >= PART_ROWS)
			return;
	}
	if (!job || !send_clients(peer, job))
		end(peer);
}

static void send_part(struct td_peer *peer, uint64_t now_ns)
{
	switch (peer->answer.type) {
	case TD_MSG_TYPE_list_jobs: send_jobs(peer, now_ns); return;
	case TD_MSG_TYPE_watch: send_round(peer, now_ns); return;
	case TD_MSG_TYPE_list_gpus: send_gpus(peer, now_ns); return;
	case TD_MSG_TYPE_list_policies: send_policies(peer, now_ns); return;
	case TD_MSG_TYPE_explain: send_causes(peer, now_ns); return;
	case TD_MSG_TYPE_get: send_settings(peer, now_ns); return;
	case TD_MSG_TYPE_events: send_events(peer, now_ns); return;
	case TD_MSG_TYPE_view: send_view(peer, now_ns); return;
	default: return;
	}
}

void td_answer_ask(struct td_peer *peer, uint32_t type, const char *job)
{
	peer->answer.type = type;
	peer->answer.next = 0;
	peer->answer.until = UINT64_MAX;
	peer->answer.rows = 0;
	strcpy(peer->answer.job, job);
}

void td_answer_begin(struct td_peer *peer, uint32_t type, const char *job, uint64_t now_ns)
{
	td_answer_ask(peer, type, job);
	send_part(peer, now_ns);
}

void td_answer_begin_events(struct td_peer *peer, const struct td_msg_events *msg, uint64_t now_ns)
{
	td_answer_ask(peer, TD_MSG_TYPE_events, "");
	peer->answer.next = msg->since + 1;
	if (!msg->follow)
		peer->answer.until = node_of(peer)->events.next;
	send_part(peer, now_ns);
}

bool td_answer_is_due(const struct td_peer *peer)
{
	return peer->answer.type && td_outbox_is_empty(&peer->out);
}

void td_answer_send_part(struct td_peer *peer, uint64_t now_ns)
{
	bool was_answered = peer->is_answered;

	peer->is_answered = true;
	send_part(peer, now_ns);
	peer->is_answered = was_answered;
}
