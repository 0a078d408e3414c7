/* This file tells the brain the nodes and pods as they are. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bounds.h"
#include "base/log.h"
#include "kubernetes/sched/engine/gangs.h"
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
			.not_in = td_kube_pools_without(&k->pools, &place->node),
			.closed = td_brain_knows_node(brain, place->node.name) &&
				  (!place->node.is_open || place->is_foreign)};
		snprintf(node.name, sizeof(node.name), "%.63s", place->node.name);
		log_foreign(k, at, place);
		(void)td_brain_node_seen(brain, &node, now_ns);
	}
}

/* The slices stand for memory: what is given of a GPU never exceeds what the kubelet counts. */
static void read_request(const struct td_kube_engine *k, const struct td_kube_entry *entry,
	uint64_t now_ns, struct td_brain_request *ret)
{
	const struct td_kube_pod *pod = &entry->pod;
	uint32_t slices = (uint32_t)pod->asks.slices;
	uint32_t pool = td_kube_pools_of(&k->pools, pod);

	*ret = (struct td_brain_request){
		.gpus = slices > TD_KUBE_PER_GPU ? slices / TD_KUBE_PER_GPU : 1,
		.share_ppm = td_min_u32(slices, TD_KUBE_PER_GPU) * 10000,
		.guaranteed = pod->is_guaranteed,
		.automatic = pod->is_automatic,
		.same_node = true,
		.stays = !*pod->owner || now_ns < entry->evict_ns,
		/* One that is bound may be where its demands do not let it be any more. */
		.pool = pool < TD_POOLS ? pool : TD_ANYWHERE,
		.bytes = td_min_u32(slices, TD_KUBE_PER_GPU),
		.epoch = pod->epoch};
	strcpy(ret->id, entry->job);
	strcpy(ret->tenant, pod->space);
	snprintf(ret->kind, sizeof(ret->kind), "share%u", ret->share_ppm / 10000);
}

/* Does what read_request() does, for a gang with so many pods. */
static void read_gang(const struct td_kube_engine *k, const struct td_kube_gang *gang,
	uint32_t pods, uint64_t now_ns, struct td_brain_request *ret)
{
	read_request(k, gang->first, now_ns, ret);
	ret->gpus = pods;
	ret->same_node = false;
	ret->stays = gang->stays || gang->will_stay || now_ns < gang->evict_ns;
	ret->epoch = gang->epoch;
}

static uint32_t add_places(const struct td_kube_pod *pod, struct td_brain_place *ret)
{
	for (uint32_t n = 0; n < pod->gpus; n++)
		ret[n] = (struct td_brain_place){pod->node, pod->gpu[n]};
	return pod->gpus;
}

/* Tells of a job that runs and that the brain does not know. */
static void adopt(const struct td_brain_request *request, bool is_guest,
	const struct td_brain_place *places, uint32_t count, struct td_brain *brain,
	uint64_t now_ns)
{
	if (count == request->gpus &&
		td_brain_adopt(brain, request, is_guest, places, now_ns) != -ENOENT)
		return;
	if (!td_brain_submit(brain, request, now_ns))
		td_brain_ran(brain, request->id, request->epoch, now_ns);
}

/* --- those that a budget keeps --- */

/* Sends back the jobs that are to start on these GPUs and are not bound yet. */
static void clear_places(struct td_brain *brain, const struct td_brain_place *places,
	uint32_t count, uint64_t now_ns)
{
	struct td_brain_place its[TD_GANG_MAX];
	uint32_t max = td_brain_jobs_max(brain);

	for (uint32_t at = 0; at < max; at++) {
		const struct td_brain_job *job = td_brain_job(brain, at);
		uint32_t has =
			job && job->phase == TD_BRAIN_PLACED ? td_brain_places(brain, at, its) : 0;
		bool is_there = false;

		for (uint32_t k = 0; k < has * count; k++)
			is_there |= its[k / count].gpu == places[k % count].gpu &&
				    !strcmp(its[k / count].node, places[k % count].node);
		if (is_there)
			td_brain_lost(brain, job->request.id, job->epoch, TD_WHY_BUDGET, now_ns);
	}
}

/*
 * A budget keeps a job that was to leave: it runs on where it is, and stays for a while. Otherwise
 * the brain would take its GPUs for free, and stop others for those that wait. When the while is
 * over, it may be stopped again.
 */
static void keep(const struct td_brain_request *request, bool is_guest,
	const struct td_brain_place *places, uint32_t count, struct td_brain *brain,
	uint64_t now_ns)
{
	uint32_t at = td_brain_find(brain, request->id);
	const struct td_brain_job *job = td_brain_job(brain, at);
	struct td_brain_request kept = *request;

	if (!job || count != request->gpus)
		return;
	if (job->phase == TD_BRAIN_RUNNING) {
		if (job->request.stays == request->stays)
			return;
	} else if (!request->stays) {
		return;
	} else {
		clear_places(brain, places, count, now_ns);
	}
	kept.attained_ns = td_brain_attained_ns(brain, at, now_ns);
	td_brain_ended(brain, kept.id, now_ns);
	adopt(&kept, is_guest, places, count, brain, now_ns);
}

/* --- pods --- */

static void tell_bound(struct td_kube_engine *k, struct td_kube_entry *entry,
	struct td_brain *brain, uint64_t now_ns)
{
	const struct td_kube_pod *pod = &entry->pod;
	struct td_brain_place places[TD_KUBE_GPUS];
	struct td_brain_request request;

	if (!pod->is_placed)
		return; /* whoever bound it is not this scheduler: its node is closed */
	if (entry->refusals) {
		read_request(k, entry, now_ns, &request);
		keep(&request, pod->is_guest, places, add_places(pod, places), brain, now_ns);
	}
	if (td_brain_find(brain, entry->job) != TD_NO_NAME) {
		td_brain_ran(brain, entry->job, pod->epoch, now_ns);
		return;
	}
	read_request(k, entry, now_ns, &request);
	adopt(&request, pod->is_guest, places, add_places(pod, places), brain, now_ns);
}

/* Whether there are nodes for the pod. If not, its users are told. */
static bool has_nodes(struct td_kube_engine *k, struct td_kube_entry *entry)
{
	char why[TD_KUBE_WHY], text[TD_KUBE_WHY + 128];

	if (td_kube_pools_of(&k->pools, &entry->pod) == TD_POOLS) {
		snprintf(text, sizeof(text),
			"the pods that wait have %u different nodeSelectors, affinities and "
			"tolerations, and " TD_KUBE_PROGRAM " cannot tell more apart",
			TD_KUBE_DEMANDS);
		td_kube_say_once(k, entry, text);
		return false;
	}
	for (uint32_t at = 0; at < TD_KUBE_NODES; at++) {
		const struct td_kube_place *place = td_kube_cache_node_at(&k->cache, at);

		if (td_kube_pools_somewhere(&k->pools, &entry->pod))
			return true;
		if (!place || !place->is_there || !place->node.is_open ||
			td_kube_allows(&place->node, &entry->pod, why))
			continue;
		snprintf(text, sizeof(text), "%s, and no other open node with GPUs allows it", why);
		td_kube_say_once(k, entry, text);
		return false;
	}
	return true; /* no node is open, as the brain says */
}

/* Its nodes have changed, or its tolerations: it waits anew, where it does not run any more. */
static void renew(const struct td_kube_engine *k, const struct td_kube_entry *entry,
	struct td_brain *brain, uint64_t now_ns)
{
	uint32_t at = td_brain_find(brain, entry->job);
	const struct td_brain_job *job = td_brain_job(brain, at);
	uint32_t pool = td_kube_pools_of(&k->pools, &entry->pod);
	struct td_brain_request request;

	if (!job || job->phase != TD_BRAIN_WAITING || job->unsaid != TD_NO_NAME ||
		job->request.pool == pool)
		return;
	request = job->request;
	request.epoch = job->epoch;
	request.pool = pool;
	td_brain_ended(brain, request.id, now_ns);
	if (pool != TD_POOLS) /* otherwise its users are told */
		(void)td_brain_submit(brain, &request, now_ns);
}

/* Whether the pod may wait for a place. If not, its users are told why. */
static bool may_wait(struct td_kube_engine *k, struct td_kube_entry *entry)
{
	if (*entry->pod.problem) {
		td_kube_say_once(k, entry, entry->pod.problem);
		return false;
	}
	return !entry->pod.is_gated && has_nodes(k, entry);
}

static void tell_waiting(struct td_kube_engine *k, struct td_kube_entry *entry,
	struct td_brain *brain, uint64_t now_ns)
{
	struct td_brain_request request;

	if (td_brain_find(brain, entry->job) != TD_NO_NAME) {
		renew(k, entry, brain, now_ns);
		return;
	}
	if (!may_wait(k, entry))
		return;
	read_request(k, entry, now_ns, &request);
	request.epoch = 0;
	(void)td_brain_submit(brain, &request, now_ns);
}

static void tell_pod(struct td_kube_engine *k, struct td_kube_entry *entry, struct td_brain *brain,
	bool *is_there, uint64_t now_ns)
{
	uint32_t job;

	if (*entry->pod.node)
		tell_bound(k, entry, brain, now_ns);
	else if (!entry->pod.is_leaving)
		tell_waiting(k, entry, brain, now_ns);
	else
		return;
	job = td_brain_find(brain, entry->job);
	if (job != TD_NO_NAME)
		is_there[job] = true;
}

/* --- gangs --- */

/* A pod of a gang that is not one of those that run together, or that waits for others, says so. */
static void tell_member(struct td_kube_engine *k, struct td_kube_entry *entry)
{
	char text[2 * TD_KUBE_NAME + 128];

	if (*entry->pod.node || entry->pod.is_leaving || entry->pod.is_gated)
		return;
	if (*entry->pod.problem) {
		td_kube_say_once(k, entry, entry->pod.problem);
		return;
	}
	td_kube_gang_why(&k->cache, entry, text, sizeof(text));
	if (*text)
		td_kube_say_once(k, entry, text);
}

/* Writes the places of the pods that are bound with the gang's epoch. Returns their number. */
static uint32_t places_of(
	struct td_kube_engine *k, const struct td_kube_gang *gang, struct td_brain_place *ret)
{
	struct td_kube_entry *entry;
	uint32_t at = TD_NO_NAME, count = 0;

	while ((entry = td_kube_cache_next(&k->cache, gang->job, &at)))
		if (*entry->pod.node && entry->pod.epoch == gang->epoch && count < TD_GANG_MAX)
			count += add_places(&entry->pod, ret + count);
	return count;
}

static void keep_gang(struct td_kube_engine *k, const struct td_kube_gang *gang,
	struct td_brain *brain, uint64_t now_ns)
{
	struct td_brain_place places[TD_GANG_MAX];
	struct td_brain_request request;

	read_gang(k, gang, gang->bound, now_ns, &request);
	keep(&request, gang->first->pod.is_guest, places, places_of(k, gang, places), brain,
		now_ns);
}

/* Tells of a gang that the brain knows. */
static void tell_known(struct td_kube_engine *k, const struct td_kube_gang *gang,
	const struct td_brain_job *job, struct td_brain *brain, uint64_t now_ns)
{
	struct td_kube_entry *entry;
	uint32_t at = TD_NO_NAME;

	/* Those that are bound otherwise than the brain knows are sent back. */
	while ((entry = td_kube_cache_next(&k->cache, gang->job, &at)))
		if (*entry->pod.node &&
			(entry->pod.epoch != job->epoch || job->phase == TD_BRAIN_WAITING))
			td_brain_ran(brain, gang->job, entry->pod.epoch, now_ns);
	if (job->phase == TD_BRAIN_RUNNING && !job->known && gang->stays)
		td_brain_ended(brain, gang->job, now_ns); /* what is bound of it is adopted */
	else if (job->phase == TD_BRAIN_PLACED && gang->whole_epoch == job->epoch)
		td_brain_ran(brain, gang->job, job->epoch, now_ns);
	else if (job->phase == TD_BRAIN_RUNNING && gang->waits && !gang->stays)
		td_brain_lost(brain, gang->job, job->epoch, TD_WHY_GANG_BROKEN, now_ns);
	else if (job->phase == TD_BRAIN_WAITING && job->unsaid == TD_NO_NAME && gang->waits &&
		 gang->first->pod.gang_size != job->request.gpus)
		td_brain_ended(brain, gang->job, now_ns); /* some had ended when it was adopted */
	else if (job->phase != TD_BRAIN_RUNNING && gang->waits && !gang->bound &&
		 gang->waits < job->request.gpus && now_ns >= gang->until_ns)
		td_brain_ended(
			brain, gang->job, now_ns); /* nobody stops for it before it is whole */
	else if (gang->waits && !gang->bound)
		renew(k, gang->first, brain, now_ns);
}

static void adopt_gang(struct td_kube_engine *k, const struct td_kube_gang *gang,
	struct td_brain *brain, uint64_t now_ns)
{
	struct td_brain_place places[TD_GANG_MAX];
	struct td_brain_request request;

	/* Where some are not bound all are sent back; where some have ended, the rest runs on. */
	read_gang(k, gang, gang->waits && !gang->stays ? gang->first->pod.gang_size : gang->bound,
		now_ns, &request);
	if (request.gpus > TD_GANG_MAX)
		return;
	adopt(&request, gang->first->pod.is_guest, places, places_of(k, gang, places), brain,
		now_ns);
}

static void tell_gang(struct td_kube_engine *k, struct td_kube_gang *gang, struct td_brain *brain,
	bool *is_there, uint64_t now_ns)
{
	struct td_brain_request request;
	const struct td_brain_job *job;
	uint32_t at;

	/* One that was evicted in part goes on to be. */
	if (gang->evict_ns && gang->bound && !gang->waits && !gang->others)
		keep_gang(k, gang, brain, now_ns);
	job = td_brain_job(brain, td_brain_find(brain, gang->job));
	if (job)
		tell_known(k, gang, job, brain, now_ns);
	else if (gang->bound)
		adopt_gang(k, gang, brain, now_ns);
	else if (gang->waits && gang->waits == gang->first->pod.gang_size &&
		 may_wait(k, gang->first)) {
		read_gang(k, gang, gang->waits, now_ns, &request);
		gang->whole_epoch = 0; /* its epochs begin anew */
		(void)td_brain_submit(brain, &request, now_ns);
	}
	at = td_brain_find(brain, gang->job);
	if (at != TD_NO_NAME && (gang->waits || gang->bound || now_ns < gang->until_ns))
		is_there[at] = true;
}

static void tell_pods(
	struct td_kube_engine *k, struct td_brain *brain, bool *is_there, uint64_t now_ns)
{
	for (uint32_t at = 0; at < TD_KUBE_PODS; at++) {
		struct td_kube_entry *entry = td_kube_cache_at(&k->cache, at);

		if (!entry || !entry->pod.is_ours)
			continue;
		if (*entry->pod.gang)
			tell_member(k, entry);
		else if (*entry->job)
			tell_pod(k, entry, brain, is_there, now_ns);
	}
	for (uint32_t n = 0; n < TD_KUBE_GANGS; n++)
		if (*k->cache.gang[n].job)
			tell_gang(k, &k->cache.gang[n], brain, is_there, now_ns);
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
	td_kube_gangs_count(&k->cache, now_ns);
	td_kube_pools_find(&k->pools, &k->cache);
	tell_nodes(k, brain, now_ns);
	tell_pods(k, brain, is_there, now_ns);
	tell_nodes(k, brain, now_ns);
	end_others(brain, is_there, now_ns);
	free(is_there);
	return 0;
}
