/* This file implements overhead.h. */
#include "daemon/memory/overhead.h"

#include <stdlib.h>
#include <string.h>

#include "base/bounds.h"
#include "base/time.h"
#include "daemon/memory/capacity.h"
#include "daemon/memory/fixed.h"
#include "daemon/memory/quota.h"
#include "daemon/model/job.h"
#include "daemon/model/node.h"

/*
 * The daemon reads NVML this often for a new client, but only for PATIENCE_NS. A client that NVML
 * has not listed by then is not expected to appear.
 */
#define SOON_NS     (50 * TD_NS_PER_MS)
#define PATIENCE_NS (2 * TD_NS_PER_S)
/*
 * A process is believed to take at most this fraction (1/8) of a device beside its allocations. A
 * context takes 0.3 to 0.5 GB of 8 to 192, and its code as much again. Imported memory may be
 * added, if the process that made it no longer has it.
 */
#define MOST_PART 8

/* The rows of NVML, sorted by process id. */
struct by_pid {
	const struct td_nvml_gpu *gpus;
	const struct td_nvml_use *uses[TD_NVML_USE_MAX];
	uint32_t count;
};

static int compare_pids(const void *a, const void *b)
{
	uint32_t one = (*(const struct td_nvml_use *const *)a)->pid,
		 other = (*(const struct td_nvml_use *const *)b)->pid;

	return (one > other) - (one < other);
}

static void sort_by_pid(struct by_pid *ret, const struct td_nvml_gpu *gpus,
	const struct td_nvml_use *uses, uint32_t count)
{
	ret->gpus = gpus;
	ret->count = count < TD_NVML_USE_MAX ? count : TD_NVML_USE_MAX;
	for (uint32_t i = 0; i < ret->count; i++)
		ret->uses[i] = &uses[i];
	qsort(ret->uses, ret->count, sizeof(ret->uses[0]), compare_pids);
}

/* Returns NVML's row of the client's process on its GPU, or NULL if there is none. */
static const struct td_nvml_use *find(
	const struct td_node *node, const struct td_client *client, const struct by_pid *said)
{
	uint32_t pid = (uint32_t)client->process->pid, low = 0, high = said->count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (said->uses[middle]->pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	/* The first row of the process; it has one for each GPU. */
	for (; low < said->count && said->uses[low]->pid == pid; low++)
		if (!memcmp(said->gpus[said->uses[low]->gpu].uuid, node->gpus[client->gpu].uuid,
			    16))
			return said->uses[low];
	return NULL;
}

/* Returns whether the client's report is up to date and stays so until its next message. */
static bool is_still(const struct td_client *client)
{
	uint64_t limit = client->device.told, fixed = td_fixed_bytes(client);

	if (!td_holding_is_heard(&client->device))
		return false;
	/*
	 * A client acknowledges a GRANT after each part of a move, so its memory must be below the
	 * limit too.
	 */
	return client->process->phase != TD_PHASE_CLOSED ||
	       client->device.used <= (limit > fixed ? limit : fixed);
}

/*
 * Returns whether all clients of the process are still. While a process moves memory on one GPU, it
 * does not report for its others.
 */
static bool all_still(const struct td_process *process)
{
	struct td_list *it;

	if (process->phase != TD_PHASE_OPEN && process->phase != TD_PHASE_CLOSED)
		return false;
	td_list_for_each (it, &process->clients)
		if (!is_still(td_container_of(it, struct td_client, of_process)))
			return false;
	return true;
}

/*
 * Returns whether the process may be in the middle of an allocation, or has not reported one yet:
 * it claims the bytes on its meter page before it takes them. A process that claims too much only
 * keeps its own overhead unknown.
 */
static bool is_allocating(const struct td_node *node, const struct td_client *client)
{
	void *peer = client->process->peer;

	return node->io.ceiling &&
	       node->io.ceiling(peer, client->slot, NULL).device_bytes > client->device.used;
}

static void observe(struct td_client *client, uint64_t used_bytes, uint64_t most_bytes)
{
	/* NVML does not count unified memory for the process (docs/decisions/0007). */
	uint64_t charged = client->device.used - client->managed_bytes,
		 bytes = used_bytes > charged ? used_bytes - charged : 0;
	/*
	 * NVML took this sample after the daemon had read the last one. So the sample matches the
	 * figures that the daemon knew at that time.
	 */
	uint64_t imported = td_min_u64(client->seen.next_imported_bytes, client->imported_bytes);

	bytes = td_min_u64(bytes, most_bytes);
	if (client->seen.valid && client->seen.charged_bytes == charged) {
		client->overhead_bytes = td_min_u64(bytes, client->seen.overhead_bytes);
		client->overhead_known = true;
		client->overhead_imported_bytes = td_min_u64(imported, client->seen.imported_bytes);
	}
	client->seen.valid = true;
	client->seen.charged_bytes = charged;
	client->seen.overhead_bytes = bytes;
	client->seen.imported_bytes = imported;
	client->seen.next_imported_bytes = client->imported_bytes;
}

void td_overhead_seen(struct td_node *node, const struct td_nvml_gpu *gpus,
	const struct td_nvml_use *uses, uint32_t count)
{
	struct by_pid said;
	struct td_list *it;

	sort_by_pid(&said, gpus, uses, count);
	td_list_for_each (it, &node->clients) {
		struct td_client *client = td_client_at(it);
		const struct td_nvml_use *use = find(node, client, &said);

		if (use && all_still(client->process) && !is_allocating(node, client))
			observe(client, use->bytes,
				node->gpus[client->gpu].total_bytes / MOST_PART +
					client->imported_bytes);
		else
			client->seen.valid = false;
	}
	for (uint32_t i = 0; i < node->gpu_count; i++)
		td_capacity_update(node, i);
}

void td_overhead_doubt(struct td_client *client, uint64_t bytes)
{
	uint64_t known = client->overhead_imported_bytes;

	known -= td_min_u64(bytes, known);
	client->overhead_imported_bytes = known;
	client->seen.imported_bytes = td_min_u64(client->seen.imported_bytes, known);
	client->seen.next_imported_bytes = td_min_u64(client->seen.next_imported_bytes, known);
}

void td_overhead_given_up(struct td_node *node, const struct td_client *by, uint64_t bytes)
{
	struct td_list *it;

	td_list_for_each (it, &node->clients) {
		struct td_client *client = td_client_at(it);

		if (client == by || client->gpu != by->gpu || !client->imported_bytes ||
			!td_identity_is_same(client->process->who, by->process->who) || !bytes)
			continue;
		td_overhead_doubt(client, bytes);
		client->has_news = true;
	}
}

/*
 * Returns the imported bytes that no two samples of NVML have shown yet. They may never appear
 * there, so they count for at most PATIENCE_NS.
 */
static uint64_t unseen_bytes(const struct td_client *client, uint64_t now_ns)
{
	return client->imported_bytes > client->overhead_imported_bytes &&
			       now_ns < client->imported_ns + PATIENCE_NS
		       ? client->imported_bytes - client->overhead_imported_bytes
		       : 0;
}

static bool has_news(const struct td_client *client, uint64_t now_ns)
{
	return (!client->overhead_known && now_ns < client->attached_ns + PATIENCE_NS) ||
	       unseen_bytes(client, now_ns);
}

/*
 * Returns whether an allocation of the client's job on this GPU has waited for the longest time
 * allowed.
 */
static bool is_overdue(const struct td_node *node, const struct td_client *client, uint64_t now_ns)
{
	struct td_list *it;

	td_list_for_each (it, &node->clients) {
		const struct td_client *other = td_client_at(it);

		if (other->needs && other->process->job == client->process->job &&
			other->gpu == client->gpu && now_ns >= td_quota_deadline_ns(other))
			return true;
	}
	return false;
}

uint64_t td_overhead_step(struct td_node *node, uint64_t now_ns)
{
	uint64_t wakeup = TD_NEVER, until;
	struct td_list *it;

	if (!node->had.imports)
		return TD_NEVER;
	td_list_for_each (it, &node->clients) {
		struct td_client *client = td_client_at(it);

		client->imported_ns = client->has_news ? now_ns : client->imported_ns;
		client->has_news = false;
		client->unseen_bytes = unseen_bytes(client, now_ns);
		if (!client->unseen_bytes)
			continue;
		if (is_overdue(node, client, now_ns))
			client->unseen_bytes = 0;
		until = client->imported_ns + PATIENCE_NS;
		wakeup = td_min_u64(until, wakeup);
	}
	return wakeup;
}

uint64_t td_overhead_wants_ns(const struct td_node *node, uint64_t sampled_ns, uint64_t now_ns)
{
	struct td_list *it;

	td_list_for_each (it, &node->clients) {
		const struct td_client *client = td_client_at(it);
		const struct td_job_settings *settings = &client->process->job->settings;

		if ((*settings->mem || *settings->mem_soft) && has_news(client, now_ns))
			return sampled_ns + SOON_NS;
	}
	return TD_NEVER;
}
