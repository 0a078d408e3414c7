/* This file implements place.h. */
#include "daemon/node/place.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/memory/quota.h"
#include "daemon/model/job.h"
#include "daemon/model/node.h"
#include "daemon/node/gpus.h"
#include "daemon/node/pairing.h"
#include "policy/algo/control/balance.h"

/* A candidate GPU as td_balance_start() sees it. */
struct spot {
	uint32_t candidate;
	double core,
		/*
		 * The load of the GPU. memory also counts what the newcomer needs here beyond
		 * `need`.
		 */
		memory;
	bool usable;
};

/*
 * Returns the index of the GPU among the GPUs that jobs use or have used; TD_GPU_MAX if no job has
 * used it.
 */
static uint32_t index_of(const struct td_node *node, const uint8_t *uuid)
{
	for (uint32_t i = 0; i < node->gpu_count; i++)
		if (node->gpus[i].used && !memcmp(node->gpus[i].uuid, uuid, 16))
			return i;
	return TD_GPU_MAX;
}

/*
 * Returns what the daemon knows of a GPU. If no job has used it yet, that is what NVML reports. If
 * NVML does not list it either, its size is 0.
 */
static struct td_gpu gpu_of(const struct td_node *node, const uint8_t *uuid)
{
	const struct td_nvml_gpu *listed = td_gpus_find(node, uuid);
	struct td_gpu gpu = {.total_bytes = listed ? listed->total_bytes : 0};
	uint32_t index = index_of(node, uuid);

	if (index < TD_GPU_MAX)
		return node->gpus[index];
	gpu.capacity_bytes = td_options_capacity(&node->options, gpu.total_bytes);
	return gpu;
}

static bool is_placed_on(const struct td_job *job, const uint8_t *uuid)
{
	for (uint32_t i = 0; i < job->placed_count; i++)
		if (!memcmp(job->placed[i], uuid, 16))
			return true;
	return false;
}

/*
 * Returns the load that a job puts on the cores of a GPU. If all of its clients there are measured,
 * this is what they demand (DCUDA III-C4). Otherwise each client counts as if it used all of its
 * duty.
 */
static double core_of(
	const struct td_node *node, const struct td_job *job, uint32_t index, uint32_t clients)
{
	double core = 0;
	bool known = clients != 0;
	struct td_list *it;

	td_list_for_each (it, &node->clients) {
		const struct td_client *client = td_client_at(it);

		if (client->gpu != index || client->process->job != job || client->aside)
			continue;
		known &= client->activity.known;
		core += client->activity.core_ppm / (double)TD_PPM;
	}
	if (known)
		return core;
	return (clients ? clients : 1) *
	       (job->settings.duty_ppm ? job->settings.duty_ppm / (double)TD_PPM : 1);
}

/*
 * Adds the load and the memory that the job has, or may have, on the GPU with that index
 * (TD_GPU_MAX: no job has used the GPU). Adds nothing if the job has no process there and is not
 * placed there.
 */
static void add_job(const struct td_node *node, const struct td_job *job, const uint8_t *uuid,
	uint32_t index, const struct td_gpu *gpu, double *core, uint64_t *bytes)
{
	uint64_t demanded = index < TD_GPU_MAX ? job->on[index].demanded_bytes : 0,
		 limit = td_quota_bytes(node, job, gpu);
	uint32_t clients = index < TD_GPU_MAX ? job->on[index].clients : 0;

	if (!clients && !is_placed_on(job, uuid))
		return;
	*core += core_of(node, job, index, clients);
	*bytes += limit != UINT64_MAX && limit > demanded ? limit : demanded;
}

static struct spot measure_gpu(const struct td_node *node, const struct td_job *newcomer,
	const uint8_t *uuid, double *ret_need)
{
	const struct td_nvml_gpu *listed = td_gpus_find(node, uuid);
	struct td_gpu gpu = gpu_of(node, uuid);
	uint64_t bytes = 0, limit = td_quota_bytes(node, newcomer, &gpu);
	struct spot spot = {.usable = true};
	uint32_t index = index_of(node, uuid);
	struct td_list *it;

	td_list_for_each (it, &node->jobs) {
		const struct td_job *job = td_container_of(it, struct td_job, of_node);

		if (job != newcomer)
			add_job(node, job, uuid, index, &gpu, &spot.core, &bytes);
	}
	if (listed) {
		spot.usable = !listed->lost && !listed->mig;
		if (listed->known & TD_GPU_KNOWS_MEMORY && listed->used_bytes > bytes)
			bytes = listed->used_bytes;
		if (listed->known & TD_GPU_KNOWS_UTILISATION && spot.core <= 0)
			spot.core = listed->utilisation_ppm / (double)TD_PPM;
	}
	*ret_need = 0;
	if (gpu.capacity_bytes) {
		spot.memory = (double)bytes / (double)gpu.capacity_bytes;
		if (limit != UINT64_MAX)
			*ret_need = (double)limit / (double)gpu.capacity_bytes;
	}
	return spot;
}

/*
 * Returns the smallest need of the newcomer over all candidate GPUs. It counts as the newcomer's
 * need on every GPU. If it needs more on one GPU, the difference is added to that GPU's load.
 */
static double level(struct spot *spots, double *needs, uint32_t count)
{
	double least = needs[0];

	for (uint32_t i = 1; i < count; i++)
		if (needs[i] < least)
			least = needs[i];
	for (uint32_t i = 0; i < count; i++)
		spots[i].memory += needs[i] - least;
	return least;
}

static uint32_t list_spots(struct td_node *node, const struct td_process *process, uint32_t wanted,
	struct spot *ret, double *ret_need)
{
	double needs[TD_GPU_MAX];
	uint32_t count = process->candidate_count, usable = 0, n = 0;

	for (uint32_t i = 0; i < count; i++) {
		ret[i] = measure_gpu(node, process->job, process->candidates[i], &needs[i]);
		ret[i].candidate = i;
		ret[i].usable = ret[i].usable && td_node_may_have(node, process->candidates[i]);
		usable += ret[i].usable;
	}
	for (uint32_t i = 0; i < count; i++) {
		if (usable >= wanted && !ret[i].usable)
			continue;
		needs[n] = needs[i];
		ret[n++] = ret[i];
	}
	*ret_need = level(ret, needs, n);
	return n;
}

/* Chooses `wanted` GPUs. Returns one bit per candidate. */
static uint64_t choose(struct td_node *node, const struct td_process *process, uint32_t wanted)
{
	struct td_balance_app apps[TD_GPU_MAX];
	struct spot spots[TD_GPU_MAX];
	double need;
	uint64_t chosen = 0;
	uint32_t count;

	td_quota_gather(node);
	count = list_spots(node, process, wanted, spots, &need);
	for (; wanted && count; wanted--) {
		uint32_t best;

		for (uint32_t i = 0; i < count; i++)
			apps[i] = (struct td_balance_app){
				.gpu = i, .core = spots[i].core, .memory = spots[i].memory};
		best = td_balance_start(&td_balance_default, apps, count, count, need);
		chosen |= 1ull << spots[best].candidate;
		memmove(&spots[best], &spots[best + 1], (count - best - 1) * sizeof(spots[0]));
		count--;
	}
	return chosen;
}

/* Places a job on the GPU to which an exchange of jobs (pairing.h) sends it. */
static void place_bound(struct td_node *node, const struct td_process *process,
	const struct td_bound *bound, uint64_t now_ns)
{
	struct td_job *job = process->job;
	char detail[64];

	memcpy(job->placed[job->placed_count++], bound->gpu, 16);
	job->exchanged = *bound;
	job->exchanged.is_set = true;
	job->exchanged_ns = now_ns;
	snprintf(detail, sizeof(detail), "exchanged from GPU %u, by policy %s", bound->from,
		node->policy->name);
	td_node_gpu_event(
		node, TD_EVENT_PLACED, process, td_gpu_number_of(node, bound->gpu), now_ns, detail);
}

/* Places the job on the chosen GPUs, in the order of the candidates, which is the user's. */
static void place_job(
	struct td_node *node, struct td_process *process, uint32_t wanted, uint64_t now_ns)
{
	const struct td_bound *bound = wanted == 1 ? td_pairing_take(node, process) : NULL;
	struct td_job *job = process->job;
	uint64_t chosen;
	char detail[64];

	if (bound) {
		place_bound(node, process, bound, now_ns);
		return;
	}
	chosen = choose(node, process, wanted);
	for (uint32_t i = 0; i < process->candidate_count; i++) {
		if (!(chosen >> i & 1))
			continue;
		memcpy(job->placed[job->placed_count++], process->candidates[i], 16);
		if (wanted == process->candidate_count)
			continue; /* all candidates were wanted, so no choice is reported */
		snprintf(detail, sizeof(detail), "one of %u that it may use",
			process->candidate_count);
		td_node_gpu_event(node, TD_EVENT_PLACED, process,
			td_gpu_number_of(node, process->candidates[i]), now_ns, detail);
	}
}

/*
 * Tells a program that runs on one GPU how to use that GPU's MPS. Programs whose GPU is known
 * before they start get this from `tandem run`.
 */
static void add_mps(
	const struct td_node *node, const struct td_job *job, struct td_msg_placed *placed)
{
	uint32_t index = index_of(node, job->placed[0]);
	struct td_mps_seen seen;

	if (!node->io.mps || !node->io.mps(node->io.arg, job->placed[0], &seen) || !seen.directory)
		return;
	snprintf(placed->mps, sizeof(placed->mps), "%s", seen.directory);
	if (index < TD_GPU_MAX && job->settings.class == TD_CLASS_BESTEFFORT)
		placed->sm_share_ppm = node->verdicts[index].sm_share_ppm;
}

int td_node_place(struct td_node *node, struct td_process *process, const struct td_msg_place *msg,
	uint64_t now_ns)
{
	struct td_job *job = process->job;

	if (!msg->index)
		process->candidate_count = 0;
	if (msg->candidates > TD_GPU_MAX || msg->index >= msg->candidates || !msg->count ||
		msg->count > msg->candidates || msg->index != process->candidate_count)
		return -EPROTO;
	memcpy(process->candidates[process->candidate_count++], msg->gpu, 16);
	if (process->candidate_count < msg->candidates)
		return 0;
	if (!job->placed_count)
		place_job(node, process, msg->count, now_ns);
	for (uint32_t i = 0; i < job->placed_count; i++) {
		struct td_msg answer = {.type = TD_MSG_TYPE_placed};

		if (job->placed_count == 1)
			add_mps(node, job, &answer.placed);
		answer.placed.index = i;
		answer.placed.count = job->placed_count;
		memcpy(answer.placed.gpu, job->placed[i], 16);
		node->io.send(process->peer, &answer);
	}
	return 0;
}
