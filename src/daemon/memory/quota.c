/* Implements the hard memory limits of jobs; see quota.h. */
#include "daemon/memory/quota.h"

#include <assert.h>
#include <string.h>

#include "base/bounds.h"
#include "base/parse.h"
#include "base/time.h"
#include "daemon/memory/capacity.h"
#include "daemon/memory/fixed.h"
#include "daemon/memory/soft.h"
#include "daemon/model/job.h"
#include "daemon/model/node.h"
#include "proto/words.h"

#define PATIENCE_NS TD_NS_PER_S
/* The processes of a job may together hold this fraction (1/2) of its free bytes in advance. */
#define ADVANCE_PART 2

uint64_t td_quota_bytes(
	const struct td_node *node, const struct td_job *job, const struct td_gpu *gpu)
{
	uint64_t bytes;

	if (!*job->settings.mem ||
		td_parse_size(job->settings.mem,
			td_options_capacity(&node->options, gpu->total_bytes), &bytes, NULL))
		return UINT64_MAX;
	return bytes;
}

uint64_t td_quota_overhead(
	const struct td_node *node, const struct td_job *job, const struct td_gpu *gpu)
{
	return td_quota_bytes(node, job, gpu) <= gpu->capacity_bytes
		       ? job->on[gpu - node->gpus].overhead_bytes
		       : 0;
}

/* Returns the job's limit on its allocations: the hard limit less its overhead. */
static uint64_t limit_of(const struct td_node *node, const struct td_job *job, uint32_t gpu)
{
	uint64_t limit = td_quota_bytes(node, job, &node->gpus[gpu]);

	return limit == UINT64_MAX
		       ? limit
		       : td_sub_sat(limit, job->on[gpu].overhead_bytes + job->on[gpu].unseen_bytes);
}

/* Returns the bytes that would lie on the host after a GRANT of device_bytes on the device. */
static uint64_t lying_bytes(const struct td_client *client, uint64_t device_bytes)
{
	if (!td_soft_spills(client))
		return 0;
	if (client->process->phase == TD_PHASE_OPEN)
		return client->host_bytes;
	return client->told_gate == TD_GATE_OPEN ? td_sub_sat(client->demanded_bytes, device_bytes)
						 : 0;
}

/* Returns the bytes that the client has beside those that the plan's limit on the device covers. */
static uint64_t beside(const struct td_client *client)
{
	bool is_open = client->process->phase == TD_PHASE_OPEN && td_soft_spills(client);

	return (is_open ? client->host_bytes : 0) + client->paged_bytes;
}

uint64_t td_quota_stays(const struct td_client *client)
{
	if (client->failed)
		return client->device.used;
	if (client->process->stop.is)
		return td_client_charge(client);
	return client->process->backend == TD_BACKEND_PLAIN ? client->demanded_bytes
							    : td_fixed_bytes(client);
}

/* Returns the part of td_fixed_bytes() that could leave if the host had a place for it. */
static uint64_t stranded_bytes(const struct td_client *client)
{
	return client->failed || client->process->stop.is ||
			       client->process->backend == TD_BACKEND_PLAIN
		       ? 0
		       : td_min_u64(client->stranded_bytes, td_fixed_bytes(client));
}

/*
 * Returns whether the client is let in, so that a part of its memory may lie on the host. Clients
 * that wait to be let in wait for room for all of their memory.
 */
static bool is_in(const struct td_client *client)
{
	bool has_begun = client->demanded_bytes || client->process->wants;

	return (client->process->phase == TD_PHASE_OPEN && has_begun) ||
	       client->process->phase == TD_PHASE_DRAINING || client->process->exchanges ||
	       client->spilled_bytes;
}

static bool asks(const struct td_client *client)
{
	return !client->failed && !client->process->stop.is &&
	       (client->needs || client->process->wants ||
		       client->process->phase == TD_PHASE_FILLING);
}

/* Adds the client to the sums of its job and of its GPU. */
static void add_client(struct td_node *node, const struct td_client *client)
{
	struct td_job *job = client->process->job;
	struct td_job_on *on = &job->on[client->gpu];
	struct td_gpu *gpu = &node->gpus[client->gpu];
	uint64_t stays = td_quota_stays(client), stranded = stranded_bytes(client);
	uint64_t fixed = td_fixed_bytes(client);
	bool in = is_in(client);

	td_account_add(&on->account, &client->total);
	td_account_add(&gpu->account, &client->device);
	on->demanded_bytes += client->demanded_bytes;
	on->paged_bytes += client->paged_bytes;
	on->overhead_bytes += client->overhead_bytes;
	on->unseen_bytes += client->unseen_bytes;
	job->gpus += !on->clients;
	on->clients++;
	on->needs += client->needs;
	on->needed_bytes += client->needs ? client->need_bytes : 0;
	on->stays_bytes += stays;
	on->stranded_bytes += stranded;
	on->is_in |= in;
	job->asks |= asks(client);
	job->is_in |= in;
	gpu->needs += client->needs;
	gpu->aside += client->aside;
	gpu->fixed_bytes += fixed;
	gpu->stays_bytes += stays;
	gpu->stranded_bytes += stranded;
}

void td_quota_gather(struct td_node *node)
{
	bool limited = false;
	struct td_list *it;

	for (uint32_t i = 0; i < node->gpu_count; i++) {
		node->gpus[i].stays_bytes = node->gpus[i].stranded_bytes = 0;
		node->gpus[i].needs = node->gpus[i].aside = 0;
		node->gpus[i].fixed_bytes = 0;
		node->gpus[i].account = (struct td_account){.limit = node->gpus[i].capacity_bytes};
	}
	td_list_for_each (it, &node->jobs) {
		struct td_job *job = td_container_of(it, struct td_job, of_node);

		for (uint32_t i = 0; i < node->gpu_count; i++)
			job->on[i] = (struct td_job_on){.account.limit = TD_UNBOUNDED};
		job->gpus = 0;
		job->asks = job->is_in = false;
		limited |= *job->settings.mem != 0;
	}
	td_list_for_each (it, &node->clients)
		add_client(node, td_client_at(it));
	if (!limited)
		return;
	td_list_for_each (it, &node->jobs) {
		struct td_job *job = td_container_of(it, struct td_job, of_node);

		for (uint32_t i = 0; i < node->gpu_count && *job->settings.mem; i++)
			if (job->on[i].clients)
				job->on[i].account.limit = limit_of(node, job, i);
	}
}

#ifndef NDEBUG
static void check_holding(const struct td_holding *h)
{
	uint64_t told = h->told == TD_UNBOUNDED ? 0 : h->told;

	assert(h->believed >= told);
	assert(!td_holding_is_heard(h) || h->believed == told);
}

static void check_client(const struct td_client *client)
{
	check_holding(&client->device);
	check_holding(&client->total);
	/* Each GRANT tells both bounds under one number. */
	assert(client->device.seq == client->total.seq);
	assert(client->device.acked == client->total.acked);
	assert(client->total.used == client->demanded_bytes + client->paged_bytes);
}

static void check_job(const struct td_node *node, const struct td_job *job, uint64_t *charged)
{
	uint64_t in_job[TD_GPU_MAX] = {0};
	struct td_list *it, *of;

	td_list_for_each (it, &job->members)
		td_list_for_each (of, &td_container_of(it, struct td_process, of_job)->clients) {
			const struct td_client *client =
				td_container_of(of, struct td_client, of_process);

			check_client(client);
			in_job[client->gpu] += td_holding_charge(&client->total);
			charged[client->gpu] += td_client_charge(client);
		}
	for (uint32_t i = 0; i < node->gpu_count; i++)
		assert(job->on[i].account.charged == in_job[i]);
}

#endif

void td_quota_check(const struct td_node *node)
{
#ifdef NDEBUG
	(void)node;
#else
	uint64_t charged[TD_GPU_MAX] = {0};
	struct td_list *it;

	td_list_for_each (it, &node->jobs)
		check_job(node, td_container_of(it, struct td_job, of_node), charged);
	for (uint32_t i = 0; i < node->gpu_count; i++)
		assert(node->gpus[i].account.charged == charged[i]);
	td_list_for_each (it, &node->processes)
		check_holding(&td_process_at(it)->host.holding);
#endif
}

/*
 * Returns the bytes that the client surely has. Promised bytes may be in its last report already
 * and must not be granted twice.
 */
static uint64_t has_surely(const struct td_client *client)
{
	return td_sub_sat(client->total.used, client->promised_bytes);
}

uint64_t td_quota_room(const struct td_client *client)
{
	const struct td_account *account = &client->process->job->on[client->gpu].account;
	uint64_t room = td_account_room(account, &client->total);

	/* A lowered limit takes nothing away that the client has. */
	return room == TD_UNBOUNDED ? room : td_max_u64(room, has_surely(client));
}

/* Returns the most that the client may have, on the device and on the host together. */
static uint64_t part_of(const struct td_client *client)
{
	const struct td_job *job = client->process->job;
	uint64_t limit = job->on[client->gpu].account.limit, demanded = client->total.used, advance,
		 has = client->total.told;

	if (limit == UINT64_MAX)
		return limit;
	if (job->on[client->gpu].clients == 1)
		return td_max_u64(limit, demanded);
	if (client->needs)
		demanded += client->need_bytes;
	if (job->on[client->gpu].needs)
		return demanded;
	advance = td_sub_sat(limit,
			  job->on[client->gpu].demanded_bytes + job->on[client->gpu].paged_bytes) /
		  (ADVANCE_PART * job->on[client->gpu].clients);
	/* A small change of the part is not worth a message. */
	if (has >= demanded + advance / 2 && has <= demanded + 2 * advance)
		return has;
	return demanded + advance;
}

uint64_t td_quota_limit(const struct td_client *client)
{
	return td_sub_sat(td_quota_room(client), beside(client));
}

uint64_t td_quota_plan(const struct td_client *client, uint64_t planned_bytes)
{
	return td_min_u64(planned_bytes, td_sub_sat(part_of(client), beside(client)));
}

/*
 * Returns the highest limit, of the device and the host together, that the client may be told. If
 * the limit was lowered, this may be less than what the client has.
 */
static uint64_t total_most(const struct td_client *client)
{
	const struct td_account *account = &client->process->job->on[client->gpu].account;

	return td_min_u64(part_of(client), td_account_room(account, &client->total));
}

uint64_t td_quota_total(const struct td_client *client, uint64_t device_bytes)
{
	return td_min_u64(device_bytes + lying_bytes(client, device_bytes) + client->paged_bytes,
		total_most(client));
}

bool td_quota_has_too_much(const struct td_client *client)
{
	return client->process->job->on[client->gpu].account.limit != TD_UNBOUNDED &&
	       client->total.told > total_most(client);
}

bool td_quota_is_stale(const struct td_client *client, const struct td_client *needing)
{
	return client != needing && client->process->job == needing->process->job &&
	       client->gpu == needing->gpu && !client->process->failed &&
	       !client->process->stop.is && client->device.seq <= needing->need_seq;
}

static bool somebody_is_asked(const struct td_node *node, const struct td_client *needing)
{
	struct td_list *it;

	td_list_for_each (it, &node->clients) {
		const struct td_client *client = td_client_at(it);

		if (client == needing || client->process->job != needing->process->job ||
			client->gpu != needing->gpu || client->process->failed ||
			client->process->stop.is)
			continue;
		if (client->device.seq <= needing->need_seq ||
			!td_holding_is_heard(&client->device))
			return true;
	}
	return false;
}

bool td_quota_exceeds_gpu(const struct td_node *node, const struct td_client *client)
{
	const struct td_gpu *gpu = &node->gpus[client->gpu];
	const struct td_job *job = client->process->job;

	return td_soft_bytes(node, job, gpu) == UINT64_MAX &&
	       job->on[client->gpu].demanded_bytes + (client->needs ? client->need_bytes : 0) >
		       gpu->capacity_bytes + td_capacity_doubt(gpu);
}

uint64_t td_quota_deadline_ns(const struct td_client *needing)
{
	return needing->need_since_ns + PATIENCE_NS;
}

enum td_quota_verdict td_quota_need(
	const struct td_node *node, const struct td_client *client, uint64_t now_ns)
{
	uint64_t wanted = client->total.used + client->need_bytes,
		 limit = client->process->job->on[client->gpu].account.limit,
		 unseen = client->process->job->on[client->gpu].unseen_bytes;

	if (wanted <= td_quota_room(client) && !td_quota_exceeds_gpu(node, client))
		return TD_QUOTA_FITS;
	/*
	 * The bytes may turn out to be another process's, which the next samples of NVML tell
	 * (overhead.h).
	 */
	if (unseen && wanted <= limit + unseen)
		return TD_QUOTA_WAIT;
	if (wanted > limit || !somebody_is_asked(node, client) ||
		now_ns >= td_quota_deadline_ns(client))
		return TD_QUOTA_REFUSED;
	return TD_QUOTA_WAIT;
}
