/* This file implements used.h. */
#include "daemon/memory/used.h"

#include <errno.h>

#include "base/bounds.h"
#include "daemon/memory/capacity.h"
#include "daemon/memory/overhead.h"
#include "daemon/model/node.h"
#include "proto/words.h"

#define BYTES_MAX (1ull << 50)

uint64_t td_used_bounded(uint64_t bytes)
{
	return td_min_u64(bytes, BYTES_MAX);
}

/* Adds the bytes that the client was promised since its last report to the reported ones. */
static void count(struct td_client *client)
{
	uint64_t paged = client->promised_paged ? client->promised_bytes : 0,
		 others = client->promised_bytes - paged;

	client->demanded_bytes = client->reported_bytes + others;
	client->host_bytes = client->reported_host_bytes + others;
	client->paged_bytes = client->reported_paged_bytes + paged;
}

static void note_imported(
	struct td_node *node, struct td_client *client, uint64_t bytes, uint64_t now_ns)
{
	node->had.imports |= bytes != 0;
	if (bytes > client->imported_bytes)
		client->imported_ns = now_ns;
	/* The report does not say which imports were closed. */
	if (bytes < client->imported_bytes)
		td_overhead_doubt(client, client->imported_bytes - bytes);
	client->imported_bytes = bytes;
}

static void note_given_up(struct td_node *node, struct td_client *client, uint64_t bytes)
{
	if (bytes > client->given_up_bytes)
		td_overhead_given_up(node, client, td_used_bounded(bytes - client->given_up_bytes));
	client->given_up_bytes = bytes;
}

/*
 * Clears was_there if the client's memory is not all on the device any more. A client above its
 * lowered limit goes on moving memory out.
 */
static void note_there(struct td_client *client)
{
	client->was_there &= client->device.used == client->demanded_bytes &&
			     !(client->device.acked == client->lowered_seq &&
				     client->device.used > client->lowered_bytes);
}

void td_used_report(struct td_node *node, struct td_client *client, const struct td_msg_used *msg,
	uint64_t now_ns)
{
	uint64_t total = td_used_bounded(msg->total_bytes);

	client->reported_paged_bytes = td_min_u64(msg->paged_bytes, total);
	client->reported_bytes = total - client->reported_paged_bytes;
	client->reported_host_bytes = td_min_u64(msg->host_bytes, client->reported_bytes);
	if (client->promised_bytes && (int32_t)(msg->acked_seq - client->promised_seq) >= 0)
		client->promised_bytes = 0;
	count(client);
	/*
	 * A checkpoint of the driver has the program's memory on the host. The figure is what it
	 * had on the device before, and what it will have again.
	 */
	if (client->process->parking.is_saved)
		client->saved.used = td_used_bounded(msg->device_bytes);
	td_holding_used(&client->device,
		client->process->parking.is_saved ? 0 : td_used_bounded(msg->device_bytes),
		msg->acked_seq);
	td_holding_used(
		&client->total, client->demanded_bytes + client->paged_bytes, msg->acked_seq);
	note_there(client);
	client->fixed_bytes = td_used_bounded(msg->fixed_bytes);
	client->stranded_bytes = td_min_u64(msg->stranded_bytes, client->fixed_bytes);
	client->spilled_bytes = td_min_u64(msg->spilled_bytes, client->reported_host_bytes);
	client->cached_bytes = td_min_u64(msg->cached_bytes, client->reported_bytes);
	client->managed_bytes = td_min_u64(msg->managed_bytes, client->device.used);
	note_imported(node, client, td_used_bounded(msg->imported_bytes), now_ns);
	note_given_up(node, client, msg->given_up_bytes);
}

/*
 * Records one event for all the pieces in which memory leaves the device. Memory that left before
 * the client came to this daemon makes no event.
 */
static void note_shrunk(struct td_node *node, struct td_client *client, uint64_t now_ns)
{
	uint64_t told = client->shrunk_bytes;

	if (told != UINT64_MAX && client->device.used > client->device.told)
		return;
	client->shrunk_bytes = client->out_bytes;
	if (client->out_bytes > told)
		td_node_event(node, TD_EVENT_SHRUNK, client->process, client->gpu, now_ns, 0,
			client->out_bytes - told, NULL);
}

void td_used_stats(struct td_node *node, struct td_client *client, const struct td_msg_stats *msg,
	uint64_t now_ns)
{
	client->peak_bytes = td_used_bounded(msg->peak_bytes);
	client->in_bytes = msg->in_bytes;
	client->out_bytes = msg->out_bytes;
	client->swap_ns = msg->swap_ns;
	client->step_peak_bytes = td_min_u64(msg->step_peak_bytes, client->peak_bytes);
	client->step_least_bytes = td_min_u64(msg->step_least_bytes, client->step_peak_bytes);
	client->by_allocator = msg->by_allocator;
	note_shrunk(node, client, now_ns);
}

/* Memory that the driver pages is moved for turns only by the backend `managed`. */
static enum td_asked asked_by(const struct td_process *process, const struct td_msg_ask *msg)
{
	bool pages = msg->kind == TD_ASKED_PAGES && process->backend == TD_BACKEND_MANAGED;

	if (msg->kind == TD_ASKED_MOVES || msg->kind == TD_ASKED_UNIFIED || pages)
		return (enum td_asked)msg->kind;
	return TD_ASKED_STAYS;
}

int td_used_ask(struct td_node *node, struct td_client *client, const struct td_msg_ask *msg,
	uint64_t now_ns)
{
	/* A program that could not move asks again: the earlier question is over. */
	if (client->needs && msg->ticket == client->need_ticket)
		return -EPROTO;
	client->needs = true;
	/* Nobody allocates in the twin of a move: the program itself has come to that GPU. */
	client->aside = false;
	/*
	 * A client that asks again has received its last verdict and has reported the bytes since.
	 */
	if (client->promised_bytes) {
		client->promised_bytes = 0;
		count(client);
		td_holding_used(&client->total, client->demanded_bytes + client->paged_bytes,
			client->total.acked);
	}
	client->need_ticket = msg->ticket;
	client->need_bytes = td_used_bounded(msg->bytes);
	client->asked = asked_by(client->process, msg);
	client->need_refuses = msg->refuses;
	client->need_seq = node->next_seq;
	client->need_since_ns = now_ns;
	td_capacity_need(node, client->gpu, td_used_bounded(msg->in_use_bytes));
	return 0;
}
