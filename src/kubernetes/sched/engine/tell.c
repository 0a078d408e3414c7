/* This file tells the brain the nodes and pods as they are. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bounds.h"
#include "base/log.h"
#include "kubernetes/sched/engine/parts.h"

static void log_foreign(struct td_kube_engine *k, uint32_t at, const struct td_kube_place *place)
{
	if (k->was_foreign[at] == place->is_foreign)
		return;
	k->was_foreign[at] = place->is_foreign;
	td_log(place->is_foreign ? TD_LOG_WARN : TD_LOG_INFO, "node=%s %s", place->node.name,
		place->is_foreign ? "closed: pods of another scheduler hold parts of its GPUs"
				  : "no pod of another scheduler is there any more");
}

/* A node that the brain does not know yet is open at first, so that its pods can be adopted. */
static void tell_nodes(struct td_kube_engine *k, struct td_brain *brain, uint64_t now_ns)
{
	for (uint32_t at = 0; at < TD_KUBE_NODES; at++) {
		const struct td_kube_place *place = td_kube_cache_node_at(&k->cache, at);
		struct td_brain_node node;

		if (!place)
			continue;
		if (!place->is_there) {
			td_brain_node_left(brain, place->node.name, now_ns);
			td_kube_cache_drop_node(&k->cache, at);
			continue;
		}
		node = (struct td_brain_node){.gpus = place->node.gpus,
			.closed = td_brain_knows_node(brain, place->node.name) &&
				  (!place->node.is_open || place->is_foreign)};
		snprintf(node.name, sizeof(node.name), "%.63s", place->node.name);
		log_foreign(k, at, place);
		(void)td_brain_node_seen(brain, &node, now_ns);
	}
}

/* The slices stand for memory: what is given of a GPU never exceeds what the kubelet counts. */
static void read_request(const struct td_kube_entry *entry, struct td_brain_request *ret)
{
	const struct td_kube_pod *pod = &entry->pod;
	uint32_t slices = (uint32_t)pod->asks.slices;

	*ret = (struct td_brain_request){
		.gpus = slices > TD_KUBE_PER_GPU ? slices / TD_KUBE_PER_GPU : 1,
		.share_ppm = td_min_u32(slices, TD_KUBE_PER_GPU) * 10000,
		.guaranteed = pod->is_guaranteed,
		.automatic = pod->is_automatic,
		.same_node = true,
		.bytes = td_min_u32(slices, TD_KUBE_PER_GPU),
		.epoch = pod->epoch};
	strcpy(ret->id, entry->job);
	strcpy(ret->tenant, pod->space);
	snprintf(ret->kind, sizeof(ret->kind), "share%u", ret->share_ppm / 10000);
}

static void tell_bound(const struct td_kube_entry *entry, struct td_brain *brain, uint64_t now_ns)
{
	const struct td_kube_pod *pod = &entry->pod;
	struct td_brain_place places[TD_KUBE_GPUS];
	struct td_brain_request request;

	if (!pod->is_placed)
		return; /* whoever bound it is not this scheduler: its node is closed */
	if (td_brain_find(brain, entry->job) != TD_NO_NAME) {
		td_brain_ran(brain, entry->job, pod->epoch, now_ns);
		return;
	}
	read_request(entry, &request);
	for (uint32_t n = 0; n < pod->gpus; n++)
		places[n] = (struct td_brain_place){pod->node, pod->gpu[n]};
	if (pod->gpus == request.gpus &&
		td_brain_adopt(brain, &request, pod->is_guest, places, now_ns) != -ENOENT)
		return;
	if (!td_brain_submit(brain, &request, now_ns))
		td_brain_ran(brain, request.id, pod->epoch, now_ns);
}

/*
 * Whether the labels and taints of all nodes with GPUs allow the pod. The brain does not choose
 * among nodes by them, so a pod that only some of them allow is not placed.
 */
static bool fits_everywhere(struct td_kube_engine *k, struct td_kube_entry *entry)
{
	char why[TD_KUBE_WHY], text[TD_KUBE_WHY + 128];

	for (uint32_t at = 0; at < TD_KUBE_NODES; at++) {
		const struct td_kube_place *place = td_kube_cache_node_at(&k->cache, at);

		if (!place || !place->is_there || !place->node.is_open ||
			td_kube_allows(&place->node, &entry->pod, why))
			continue;
		snprintf(text, sizeof(text),
			"%s; " TD_KUBE_PROGRAM
			" places only pods that all open nodes with GPUs allow",
			why);
		td_kube_say_once(k, entry, text);
		return false;
	}
	return true;
}

static void tell_waiting(struct td_kube_engine *k, struct td_kube_entry *entry,
	struct td_brain *brain, uint64_t now_ns)
{
	struct td_brain_request request;

	if (td_brain_find(brain, entry->job) != TD_NO_NAME)
		return;
	if (*entry->pod.problem) {
		td_kube_say_once(k, entry, entry->pod.problem);
		return;
	}
	if (entry->pod.is_gated || !fits_everywhere(k, entry))
		return;
	read_request(entry, &request);
	request.epoch = 0;
	(void)td_brain_submit(brain, &request, now_ns);
}

static void tell_pods(
	struct td_kube_engine *k, struct td_brain *brain, bool *is_there, uint64_t now_ns)
{
	for (uint32_t at = 0; at < TD_KUBE_PODS; at++) {
		struct td_kube_entry *entry = td_kube_cache_at(&k->cache, at);
		uint32_t job;

		if (!entry || !entry->pod.is_ours || !*entry->job)
			continue;
		if (*entry->pod.node)
			tell_bound(entry, brain, now_ns);
		else if (!entry->pod.is_leaving)
			tell_waiting(k, entry, brain, now_ns);
		else
			continue;
		job = td_brain_find(brain, entry->job);
		if (job != TD_NO_NAME)
			is_there[job] = true;
	}
	for (uint32_t n = 0; n < k->cache.backs; n++) {
		uint32_t job = td_brain_find(brain, k->cache.back[n].job);

		if (job != TD_NO_NAME)
			is_there[job] = true;
	}
}

static void end_others(struct td_brain *brain, const bool *is_there, uint64_t now_ns)
{
	uint32_t max = td_brain_jobs_max(brain);

	for (uint32_t at = 0; at < max; at++) {
		const struct td_brain_job *job = td_brain_job(brain, at);

		if (job && !is_there[at])
			td_brain_ended(brain, job->request.id, now_ns);
	}
}

int td_kube_submitted(struct td_engine *engine, struct td_brain *brain, uint64_t now_ns)
{
	struct td_kube_engine *k = (struct td_kube_engine *)engine;
	bool *is_there;

	if (!k->pods.is_listed || !k->nodes.is_listed)
		return -EAGAIN;
	if (k->cache.is_full) {
		snprintf(k->why, sizeof(k->why), "more than %u pods", TD_KUBE_PODS);
		return -ENOSPC;
	}
	is_there = calloc(td_brain_jobs_max(brain), sizeof(*is_there));
	if (!is_there)
		return -ENOMEM;
	k->events = 0;
	td_kube_cache_expire(&k->cache, now_ns);
	td_kube_cache_mark_foreign(&k->cache);
	tell_nodes(k, brain, now_ns);
	tell_pods(k, brain, is_there, now_ns);
	tell_nodes(k, brain, now_ns);
	end_others(brain, is_there, now_ns);
	free(is_there);
	return 0;
}
