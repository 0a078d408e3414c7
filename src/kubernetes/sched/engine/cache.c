/* This file implements cache.h. */
#include "kubernetes/sched/engine/cache.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int td_kube_cache_init(struct td_kube_cache *cache, const struct td_kube_names *names)
{
	*cache = (struct td_kube_cache){.names = *names};
	cache->pod = calloc(TD_KUBE_PODS, sizeof(*cache->pod));
	cache->node = calloc(TD_KUBE_NODES, sizeof(*cache->node));
	if (!cache->pod || !cache->node || td_name_table_init(&cache->pods, TD_KUBE_PODS, 0) ||
		td_name_table_init(&cache->nodes, TD_KUBE_NODES, 0)) {
		td_kube_cache_deinit(cache);
		return -ENOMEM;
	}
	return 0;
}

void td_kube_cache_deinit(struct td_kube_cache *cache)
{
	for (uint32_t k = 0; cache->pods.name && k < TD_KUBE_PODS; k++)
		if (*cache->pods.name[k])
			td_kube_pod_deinit(&cache->pod[k].pod);
	for (uint32_t k = 0; cache->nodes.name && k < TD_KUBE_NODES; k++)
		if (*cache->nodes.name[k])
			td_kube_node_deinit(&cache->node[k].node);
	td_name_table_deinit(&cache->pods);
	td_name_table_deinit(&cache->nodes);
	free(cache->pod);
	free(cache->node);
	*cache = (struct td_kube_cache){0};
}

struct td_kube_entry *td_kube_cache_at(struct td_kube_cache *cache, uint32_t index)
{
	return *cache->pods.name[index] ? &cache->pod[index] : NULL;
}

struct td_kube_place *td_kube_cache_node_at(struct td_kube_cache *cache, uint32_t index)
{
	return *cache->nodes.name[index] ? &cache->node[index] : NULL;
}

struct td_kube_entry *td_kube_cache_find(struct td_kube_cache *cache, const char *job)
{
	uint32_t at = td_name_table_find(&cache->pods, job);

	/* Most jobs have the name of their pod. */
	if (at != TD_NO_NAME && !strcmp(cache->pod[at].job, job))
		return &cache->pod[at];
	for (at = 0; at < cache->top; at++)
		if (*cache->pods.name[at] && !strcmp(cache->pod[at].job, job))
			return &cache->pod[at];
	return NULL;
}

struct td_kube_entry *td_kube_cache_next(
	struct td_kube_cache *cache, const char *job, uint32_t *index)
{
	struct td_kube_entry *entry;
	uint32_t at = *index == TD_NO_NAME ? 0 : *index + 1;

	if (*index != TD_NO_NAME && !*cache->pod[*index].pod.gang)
		return NULL;
	entry = *index == TD_NO_NAME ? td_kube_cache_find(cache, job) : NULL;
	if (entry && !*entry->pod.gang) {
		*index = (uint32_t)(entry - cache->pod);
		return entry;
	}
	for (; at < cache->top; at++)
		if (*cache->pods.name[at] && !strcmp(cache->pod[at].job, job)) {
			*index = at;
			return &cache->pod[at];
		}
	return NULL;
}

struct td_kube_place *td_kube_cache_find_node(struct td_kube_cache *cache, const char *name)
{
	uint32_t at = td_name_table_find(&cache->nodes, name);

	return at == TD_NO_NAME || !cache->node[at].is_there ? NULL : &cache->node[at];
}

/* --- pods --- */

static bool is_successor(const struct td_kube_pod *pod, const struct td_kube_back *back)
{
	return *pod->owner && !strcmp(back->owner, pod->owner) &&
	       !strcmp(back->space, pod->space) && back->slices == pod->asks.slices &&
	       back->is_guaranteed == pod->is_guaranteed && back->is_automatic == pod->is_automatic;
}

/* Removes a record that the pod succeeds and copies its job. Returns whether there was one. */
static bool claim_job(struct td_kube_cache *cache, const struct td_kube_pod *pod, char *ret_job)
{
	for (uint32_t k = 0; k < cache->backs; k++)
		if (is_successor(pod, &cache->back[k])) {
			strcpy(ret_job, cache->back[k].job);
			cache->back[k] = cache->back[--cache->backs];
			return true;
		}
	return false;
}

static void remove_pod(struct td_kube_cache *cache, uint32_t at)
{
	td_kube_pod_deinit(&cache->pod[at].pod);
	td_name_table_remove(&cache->pods, at);
}

/*
 * Keeps the binding and the placement that are known. Neither changes as long as the pod exists,
 * but the API server may send an older state of the pod, and users may edit its annotations. Only
 * one change counts: a guest may become the holder of its GPUs.
 */
static void keep_binding(struct td_kube_pod *pod, const struct td_kube_pod *known)
{
	if (!*known->node)
		return;
	strcpy(pod->node, known->node);
	pod->is_guest = known->is_guest && (pod->is_guest || !pod->is_placed);
	pod->is_placed = known->is_placed;
	pod->is_guaranteed = known->is_guaranteed;
	pod->is_automatic = known->is_automatic;
	strcpy(pod->gang, known->gang);
	pod->gang_size = known->gang_size;
	pod->epoch = known->epoch;
	pod->gpus = known->gpus;
	memcpy(pod->gpu, known->gpu, sizeof(pod->gpu));
}

static void put_pod(struct td_kube_cache *cache, struct td_kube_pod *pod)
{
	uint32_t at = td_name_table_find(&cache->pods, pod->uid);
	struct td_kube_entry *entry;

	if (at == TD_NO_NAME) {
		at = td_name_table_add(&cache->pods, pod->uid);
		if (at == TD_NO_NAME) {
			cache->is_full = true;
			td_kube_pod_deinit(pod);
			return;
		}
		entry = &cache->pod[at];
		*entry = (struct td_kube_entry){0};
		if (at >= cache->top)
			cache->top = at + 1;
		/* Those of gangs get theirs when these are counted. */
		if (!*pod->gang &&
			(!pod->is_ours || *pod->node || !claim_job(cache, pod, entry->job)))
			strcpy(entry->job, pod->uid);
	}
	entry = &cache->pod[at];
	keep_binding(pod, &entry->pod);
	if (*entry->pod.gang && !*pod->gang && !entry->is_sent_back) {
		/* It has left its gang before it was bound. */
		strcpy(entry->job, pod->uid);
		entry->gang = 0;
	}
	td_kube_pod_deinit(&entry->pod);
	entry->pod = *pod;
	entry->is_listed = true;
}

void td_kube_cache_pod(void *arg, const json_t *object, bool is_deleted)
{
	struct td_kube_cache *cache = arg;
	struct td_kube_pod pod;
	uint32_t at;

	if (td_kube_pod_read(object, &cache->names, &pod))
		return;
	at = td_name_table_find(&cache->pods, pod.uid);
	if (!is_deleted && !pod.is_over && (*pod.node || pod.is_ours || at != TD_NO_NAME)) {
		put_pod(cache, &pod);
		return;
	}
	td_kube_pod_deinit(&pod);
	if (at != TD_NO_NAME)
		remove_pod(cache, at);
}

void td_kube_cache_pods_begin(void *arg)
{
	struct td_kube_cache *cache = arg;

	cache->is_full = false;
	for (uint32_t k = 0; k < TD_KUBE_PODS; k++)
		if (*cache->pods.name[k])
			cache->pod[k].is_listed = false;
}

void td_kube_cache_pods_end(void *arg)
{
	struct td_kube_cache *cache = arg;

	for (uint32_t k = 0; k < TD_KUBE_PODS; k++)
		if (*cache->pods.name[k] && !cache->pod[k].is_listed)
			remove_pod(cache, k);
}

void td_kube_cache_unbind(struct td_kube_entry *entry)
{
	*entry->pod.node = 0;
	entry->pod.gpus = 0;
	entry->pod.is_placed = entry->pod.is_guest = false;
	entry->pod.epoch = 0;
}

void td_kube_cache_sent_back(
	struct td_kube_cache *cache, struct td_kube_entry *entry, uint64_t until_ns)
{
	struct td_kube_back *back;

	entry->pod.is_leaving = entry->is_sent_back = true;
	if (*entry->pod.gang && entry->gang)
		cache->gang[entry->gang - 1].until_ns = until_ns;
	else if (cache->backs < TD_KUBE_BACKS && *entry->pod.owner) {
		back = &cache->back[cache->backs++];
		*back = (struct td_kube_back){.slices = entry->pod.asks.slices,
			.is_guaranteed = entry->pod.is_guaranteed,
			.is_automatic = entry->pod.is_automatic,
			.until_ns = until_ns};
		strcpy(back->owner, entry->pod.owner);
		strcpy(back->space, entry->pod.space);
		strcpy(back->job, entry->job);
	}
	*entry->job = 0;
}

void td_kube_cache_expire(struct td_kube_cache *cache, uint64_t now_ns)
{
	for (uint32_t k = 0; k < cache->backs;)
		if (now_ns >= cache->back[k].until_ns)
			cache->back[k] = cache->back[--cache->backs];
		else
			k++;
}

/* --- nodes --- */

/* A node whose device plugin is away keeps its GPUs, as what runs on them goes on. */
static void put_node(struct td_kube_place *place, struct td_kube_node *node)
{
	uint32_t gpus = place->node.gpus;

	td_kube_node_deinit(&place->node);
	place->node = *node;
	if (gpus > node->gpus) {
		place->node.gpus = gpus;
		place->node.is_open = false;
	}
	place->is_there = place->is_listed = true;
}

void td_kube_cache_node(void *arg, const json_t *object, bool is_deleted)
{
	struct td_kube_cache *cache = arg;
	struct td_kube_node node;
	uint32_t at;

	if (td_kube_node_read(object, cache->names.resource, &node))
		return;
	at = td_name_table_find(&cache->nodes, node.name);
	if (at == TD_NO_NAME && node.gpus && !is_deleted) {
		/* One whose name is too long for the brain is not used. */
		at = td_name_table_add(&cache->nodes, node.name);
		if (at != TD_NO_NAME)
			cache->node[at] = (struct td_kube_place){0};
	}
	if (at != TD_NO_NAME && !is_deleted) {
		put_node(&cache->node[at], &node);
		return;
	}
	td_kube_node_deinit(&node);
	if (at != TD_NO_NAME)
		cache->node[at].is_there = false;
}

void td_kube_cache_nodes_begin(void *arg)
{
	struct td_kube_cache *cache = arg;

	for (uint32_t k = 0; k < TD_KUBE_NODES; k++)
		if (*cache->nodes.name[k])
			cache->node[k].is_listed = false;
}

void td_kube_cache_nodes_end(void *arg)
{
	struct td_kube_cache *cache = arg;

	for (uint32_t k = 0; k < TD_KUBE_NODES; k++)
		if (*cache->nodes.name[k] && !cache->node[k].is_listed)
			cache->node[k].is_there = false;
}

void td_kube_cache_drop_node(struct td_kube_cache *cache, uint32_t index)
{
	td_kube_node_deinit(&cache->node[index].node);
	td_name_table_remove(&cache->nodes, index);
}

void td_kube_cache_mark_foreign(struct td_kube_cache *cache)
{
	for (uint32_t k = 0; k < TD_KUBE_NODES; k++)
		cache->node[k].is_foreign = false;
	for (uint32_t k = 0; k < TD_KUBE_PODS; k++) {
		const struct td_kube_entry *entry = td_kube_cache_at(cache, k);
		struct td_kube_place *node;

		if (!entry || !entry->pod.asks.slices || !*entry->pod.node ||
			(entry->pod.is_ours && entry->pod.is_placed))
			continue;
		node = td_kube_cache_find_node(cache, entry->pod.node);
		if (node)
			node->is_foreign = true;
	}
}

/* --- room --- */

static uint64_t slices_on(const struct td_kube_pod *pod, uint32_t gpu)
{
	for (uint32_t k = 0; k < pod->gpus; k++)
		if (pod->gpu[k] == gpu)
			return pod->asks.slices / pod->gpus;
	return 0;
}

static bool exceeds(uint64_t used, uint64_t asked, uint64_t has)
{
	return used > has || asked > has - used;
}

/* Adds up what the pods on the node have, there and of each GPU. */
static void add_up(struct td_kube_cache *cache, const char *node, struct td_kube_amounts *used,
	uint64_t *slices)
{
	for (uint32_t k = 0; k < TD_KUBE_PODS; k++) {
		const struct td_kube_pod *pod = &cache->pod[k].pod;

		if (!*cache->pods.name[k] || strcmp(pod->node, node))
			continue;
		used->slices += pod->asks.slices;
		used->cpu_milli += pod->asks.cpu_milli;
		used->bytes += pod->asks.bytes;
		used->pods++;
		for (uint32_t gpu = 0; gpu < TD_KUBE_GPUS; gpu++)
			slices[gpu] += slices_on(pod, gpu);
	}
}

bool td_kube_cache_has_room(struct td_kube_cache *cache, const struct td_kube_place *place,
	const struct td_kube_pod *pod, const uint32_t *gpus, uint32_t count, char *ret_why)
{
	const struct td_kube_node *node = &place->node;
	struct td_kube_amounts used = {0};
	uint64_t slices[TD_KUBE_GPUS] = {0};
	const char *missing = NULL;

	add_up(cache, node->name, &used, slices);
	if (exceeds(used.slices, pod->asks.slices, node->has.slices))
		missing = cache->names.resource;
	for (uint32_t k = 0; k < count; k++)
		if (gpus[k] >= TD_KUBE_GPUS ||
			exceeds(slices[gpus[k]], pod->asks.slices / count, TD_KUBE_PER_GPU))
			missing = cache->names.resource;
	/* A node that does not say how much it has is not asked. */
	if (node->has.cpu_milli &&
		exceeds(used.cpu_milli, pod->asks.cpu_milli, node->has.cpu_milli))
		missing = "cpu";
	if (node->has.bytes && exceeds(used.bytes, pod->asks.bytes, node->has.bytes))
		missing = "memory";
	if (node->has.pods && exceeds(used.pods, 1, node->has.pods))
		missing = "pods";
	*ret_why = 0;
	if (missing)
		snprintf(ret_why, TD_KUBE_WHY,
			"node %.63s, where it has a GPU, has not enough %.63s yet", node->name,
			missing);
	return !missing;
}
