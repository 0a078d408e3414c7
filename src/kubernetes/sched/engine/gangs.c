/* This file implements gangs.h. */
#include "kubernetes/sched/engine/gangs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bounds.h"

/* --- counting --- */

static bool is_member(const struct td_kube_entry *entry)
{
	return entry && *entry->pod.gang && entry->pod.is_ours;
}

static bool is_named(const struct td_kube_gang *gang, const struct td_kube_pod *pod)
{
	return *gang->job && !strcmp(gang->space, pod->space) && !strcmp(gang->name, pod->gang);
}

/* Returns the number of the pod's gang, which begins if there is none; TD_KUBE_GANGS: no room. */
static uint32_t find_gang(struct td_kube_cache *cache, const struct td_kube_pod *pod)
{
	uint32_t none = TD_KUBE_GANGS;

	for (uint32_t k = 0; k < TD_KUBE_GANGS; k++) {
		if (is_named(&cache->gang[k], pod))
			return k;
		if (!*cache->gang[k].job && none == TD_KUBE_GANGS)
			none = k;
	}
	if (none == TD_KUBE_GANGS)
		return none;
	cache->gang[none] = (struct td_kube_gang){0};
	strcpy(cache->gang[none].space, pod->space);
	strcpy(cache->gang[none].name, pod->gang);
	strcpy(cache->gang[none].job, pod->uid);
	return none;
}

struct td_kube_gang *td_kube_gang_of(struct td_kube_cache *cache, const struct td_kube_entry *entry)
{
	return entry->gang ? &cache->gang[entry->gang - 1] : NULL;
}

static void join(struct td_kube_cache *cache, struct td_kube_entry *entry)
{
	uint32_t gang = entry->gang ? entry->gang - 1 : TD_KUBE_GANGS;

	if (gang == TD_KUBE_GANGS || !is_named(&cache->gang[gang], &entry->pod))
		gang = find_gang(cache, &entry->pod);
	entry->gang = gang == TD_KUBE_GANGS ? 0 : gang + 1;
}

static const char *demands_of(const struct td_kube_pod *pod)
{
	return pod->demands ? pod->demands : "";
}

static bool is_alike(const struct td_kube_pod *a, const struct td_kube_pod *b)
{
	return a->gang_size == b->gang_size && a->asks.slices == b->asks.slices &&
	       a->is_guaranteed == b->is_guaranteed && a->is_automatic == b->is_automatic &&
	       !strcmp(demands_of(a), demands_of(b));
}

static bool is_bound(const struct td_kube_pod *pod)
{
	return *pod->node && pod->is_placed && pod->gpus == 1;
}

/* Whether the pod is one of those that run together, or may be. */
static bool counts(const struct td_kube_gang *gang, const struct td_kube_entry *entry)
{
	const struct td_kube_pod *pod = &entry->pod;

	if (entry->is_sent_back || pod->is_leaving || *pod->problem || pod->is_gated)
		return false;
	if (*pod->node)
		return is_bound(pod);
	return !gang->first ||
	       (is_alike(pod, &gang->first->pod) && gang->waits + gang->bound < pod->gang_size);
}

static void count(struct td_kube_gang *gang, struct td_kube_entry *entry)
{
	if (!counts(gang, entry)) {
		gang->others++;
		*entry->job = 0;
		return;
	}
	if (!gang->first)
		gang->first = entry;
	strcpy(entry->job, gang->job);
	if (!*entry->pod.node) {
		gang->waits++;
		gang->will_stay |= !*entry->pod.owner;
		return;
	}
	gang->bound++;
	gang->stays |= !*entry->pod.owner;
	gang->epoch = td_max_u64(gang->epoch, entry->pod.epoch);
	gang->evict_ns = td_max_u64(gang->evict_ns, entry->evict_ns);
}

/* Those that are bound are counted before those that want to join them. */
static void count_all(struct td_kube_cache *cache, bool is_bound_)
{
	for (uint32_t at = 0; at < TD_KUBE_PODS; at++) {
		struct td_kube_entry *entry = td_kube_cache_at(cache, at);

		if (!is_member(entry) || is_bound_ != (*entry->pod.node != 0))
			continue;
		join(cache, entry);
		if (entry->gang)
			count(&cache->gang[entry->gang - 1], entry);
	}
}

void td_kube_gangs_count(struct td_kube_cache *cache, uint64_t now_ns)
{
	for (uint32_t k = 0; k < TD_KUBE_GANGS; k++) {
		struct td_kube_gang *gang = &cache->gang[k];

		gang->first = NULL;
		gang->waits = gang->bound = gang->others = 0;
		gang->stays = gang->will_stay = false;
		gang->epoch = gang->evict_ns = 0;
	}
	count_all(cache, true);
	count_all(cache, false);
	for (uint32_t k = 0; k < TD_KUBE_GANGS; k++) {
		struct td_kube_gang *gang = &cache->gang[k];

		if (!gang->waits && !gang->bound && !gang->others && now_ns >= gang->until_ns)
			*gang->job = 0;
	}
}

void td_kube_gang_why(
	struct td_kube_cache *cache, const struct td_kube_entry *entry, char *ret, size_t len)
{
	const struct td_kube_gang *gang = td_kube_gang_of(cache, entry);
	const struct td_kube_pod *pod = &entry->pod;

	*ret = 0;
	if (!gang)
		snprintf(ret, len, "there are %u gangs, more than the scheduler can keep",
			TD_KUBE_GANGS);
	else if (*entry->job && gang->bound && gang->stays)
		snprintf(ret, len,
			"other pods of its gang %.63s run, and no controller would make them again",
			gang->name);
	else if (*entry->job && !gang->bound && gang->waits < pod->gang_size)
		snprintf(ret, len, "its gang %.63s waits for more pods: %u of %u are there",
			gang->name, gang->waits, pod->gang_size);
	else if (!*entry->job && gang->first && !is_alike(pod, &gang->first->pod))
		snprintf(ret, len,
			"it asks for another share, class, gang size or nodes than pod %.120s of "
			"its gang %.63s",
			gang->first->pod.name, gang->name);
	else if (!*entry->job && gang->first)
		snprintf(ret, len, "its gang %.63s has its %u pods already", gang->name,
			pod->gang_size);
}

/* --- places --- */

static bool is_at(const struct td_kube_pod *pod, const struct td_brain_place *place)
{
	return !strcmp(pod->node, place->node) && pod->gpu[0] == place->gpu;
}

/* Marks the places of the pods that are bound. Returns -EAGAIN if one is elsewhere. */
static int mark_taken(struct td_kube_cache *cache, const char *job, uint64_t epoch,
	const struct td_brain_place *places, uint32_t count, bool *taken)
{
	struct td_kube_entry *entry;
	uint32_t at = TD_NO_NAME, k;

	while ((entry = td_kube_cache_next(cache, job, &at))) {
		if (!*entry->pod.node)
			continue;
		for (k = 0; k < count && (taken[k] || !is_at(&entry->pod, &places[k])); k++)
			;
		if (k == count || entry->pod.epoch != epoch)
			return -EAGAIN;
		taken[k] = true;
	}
	return 0;
}

int td_kube_gang_pick(struct td_kube_cache *cache, const char *job, uint64_t epoch,
	const struct td_brain_place *places, uint32_t count, struct td_kube_pick *ret)
{
	bool taken[TD_GANG_MAX] = {false};
	uint32_t at = TD_NO_NAME, place = 0;
	struct td_kube_entry *entry;
	int picks = 0, r = mark_taken(cache, job, epoch, places, count, taken);

	while (!r && (entry = td_kube_cache_next(cache, job, &at))) {
		if (*entry->pod.node)
			continue;
		while (place < count && taken[place])
			place++;
		if (place == count)
			return -EAGAIN;
		ret[picks++] = (struct td_kube_pick){entry, place++};
	}
	while (place < count && taken[place])
		place++;
	return r ? r : place < count ? -EAGAIN : picks;
}
