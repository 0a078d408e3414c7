/* This file carries out the brain's orders; see engine.c. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bounds.h"
#include "kubernetes/sched/engine/gangs.h"
#include "kubernetes/sched/engine/parts.h"
#include "kubernetes/sched/write.h"

#define JSON      "application/json"
#define PATCH     "application/merge-patch+json"
#define RETURN_NS (300 * TD_NS_PER_S) /* in which a controller makes a pod again */
#define EVICT_NS  (5 * TD_NS_PER_S)   /* after a budget's first refusal; twice as long each time */
#define EVICTS    6u                  /* times that it gets longer */

/* Reads a pod that is not as it was believed to be. */
static void look_at(struct td_kube_engine *k, const struct td_kube_pod *pod)
{
	char path[TD_KUBE_PATH];
	struct td_kube_list object;

	td_kube_pod_path(path, pod, "");
	if (td_kube_api_send(k->api, "GET", path, NULL, NULL, &k->answer) == 200 &&
		!td_kube_list_read(k->answer.text, k->answer.length, &object)) {
		td_kube_cache_pod(&k->cache, object.root, false);
		td_kube_list_deinit(&object);
	}
}

/* Writes the binding into the cache at once; the next event of the watch says the same. */
static void note_binding(struct td_kube_pod *pod, const struct td_placement *placement)
{
	snprintf(pod->node, sizeof(pod->node), "%s", placement->places[0].node);
	pod->gpus = placement->count;
	for (uint32_t n = 0; n < placement->count; n++)
		pod->gpu[n] = placement->places[n].gpu;
	pod->epoch = placement->epoch;
	pod->is_guest = placement->guest;
	pod->is_placed = true;
}

static void say_bound(struct td_kube_engine *k, struct td_kube_entry *entry)
{
	const struct td_kube_pod *pod = &entry->pod;
	char text[2 * TD_KUBE_NAME];
	int used = snprintf(text, sizeof(text), "placed on node %.253s, GPU", pod->node);

	for (uint32_t n = 0; n < pod->gpus && used < (int)sizeof(text); n++)
		used += snprintf(text + used, sizeof(text) - (size_t)used, "%s%u", n ? "," : " ",
			pod->gpu[n]);
	(void)td_kube_say(k, pod, "Scheduled", text);
	entry->said = 0;
}

static int bind_pod(
	struct td_kube_engine *k, struct td_kube_entry *entry, const struct td_placement *placement)
{
	char path[TD_KUBE_PATH];
	int status;

	td_text_clear(&k->body);
	td_kube_write_binding(&k->body, &entry->pod, placement);
	td_kube_pod_path(path, &entry->pod, "/binding");
	status = td_kube_send(k, "POST", path, JSON);
	if (td_kube_is_done(status)) {
		note_binding(&entry->pod, placement);
		say_bound(k, entry);
		return 0;
	}
	/* Without an answer, or with "it is bound", the pod itself says what is so. */
	if (status < 0 || status == 409 || status == 404)
		look_at(k, &entry->pod);
	return td_kube_failed(k, "binding", &entry->pod, status);
}

/* Whether the pod can go to the place now. If not, its users are told why. */
static bool has_place(
	struct td_kube_engine *k, struct td_kube_entry *entry, const struct td_placement *placement)
{
	const struct td_kube_place *place =
		td_kube_cache_find_node(&k->cache, placement->places[0].node);
	uint32_t gpus[TD_KUBE_GPUS];
	char why[TD_KUBE_WHY] = "";

	for (uint32_t n = 0; n < placement->count; n++)
		gpus[n] = placement->places[n].gpu;
	if (!place || !place->node.is_open || place->is_foreign)
		return false;
	if (td_kube_allows(&place->node, &entry->pod, why) &&
		td_kube_cache_has_room(&k->cache, place, &entry->pod, gpus, placement->count, why))
		return true;
	td_kube_say_once(k, entry, why);
	return false;
}

/*
 * Places a gang: all of its pods that are not bound yet have to find room, one beside the other,
 * before the first one is bound. Where a Binding fails, the order comes again for the others.
 */
static int place_gang(struct td_kube_engine *k, const struct td_kube_entry *first,
	const struct td_placement *placement)
{
	struct td_kube_gang *gang = td_kube_gang_of(&k->cache, first);
	struct td_kube_pick picks[TD_GANG_MAX];
	int count = td_kube_gang_pick(&k->cache, placement->id, placement->epoch, placement->places,
		placement->count, picks);
	struct td_placement one = *placement;
	int tried = 0, r = count < 0 ? count : 0;

	one.count = 1;
	for (; tried < count && !r; tried++) {
		one.places = &placement->places[picks[tried].place];
		if (has_place(k, picks[tried].entry, &one))
			note_binding(&picks[tried].entry->pod, &one);
		else
			r = -EAGAIN;
	}
	for (int n = 0; n < tried; n++) /* that was a trial */
		td_kube_cache_unbind(picks[n].entry);
	for (int n = 0; n < count && !r; n++) {
		one.places = &placement->places[picks[n].place];
		r = bind_pod(k, picks[n].entry, &one);
	}
	if (!r && gang)
		gang->whole_epoch = placement->epoch;
	return r;
}

int td_kube_place(struct td_engine *engine, const struct td_placement *placement)
{
	struct td_kube_engine *k = (struct td_kube_engine *)engine;
	struct td_kube_entry *entry = td_kube_cache_find(&k->cache, placement->id);

	if (!entry)
		return -EAGAIN; /* it was sent back, and its controller has not made it again yet */
	if (*entry->pod.gang)
		return place_gang(k, entry, placement);
	if (*entry->pod.node)
		return entry->pod.epoch >= placement->epoch ? 0 : -EAGAIN;
	if (placement->count > TD_KUBE_GPUS)
		return -EINVAL;
	for (uint32_t n = 1; n < placement->count; n++)
		if (strcmp(placement->places[n].node, placement->places[0].node))
			return -EINVAL; /* a pod is on one node */
	if (entry->pod.is_leaving || !has_place(k, entry, placement))
		return -EAGAIN;
	return bind_pod(k, entry, placement);
}

static int upgrade_pod(struct td_kube_engine *k, struct td_kube_entry *entry)
{
	char path[TD_KUBE_PATH];
	int status;

	td_text_clear(&k->body);
	td_kube_write_upgrade(&k->body, &entry->pod);
	/* It carries annotations, too, and whoever may write it cannot change what the pod runs. */
	td_kube_pod_path(path, &entry->pod, "/status");
	status = td_kube_send(k, "PATCH", path, PATCH);
	if (!td_kube_is_done(status))
		return status == 404 || status == 409
			       ? 0
			       : td_kube_failed(k, "upgrade", &entry->pod, status);
	entry->pod.is_guest = false;
	return 0;
}

int td_kube_upgrade(struct td_engine *engine, const char *id, uint64_t epoch)
{
	struct td_kube_engine *k = (struct td_kube_engine *)engine;
	struct td_kube_entry *entry;
	uint32_t at = TD_NO_NAME;
	int r = 0;

	while (!r && (entry = td_kube_cache_next(&k->cache, id, &at)))
		if (*entry->pod.node && entry->pod.epoch == epoch && entry->pod.is_guest)
			r = upgrade_pod(k, entry);
	return r;
}

/* Asks which version of Eviction there is: v1 since 1.22, v1beta1 until 1.24. */
static const char *policy_version(struct td_kube_engine *k)
{
	if (!*k->policy &&
		td_kube_api_send(k->api, "GET", "/apis/policy", NULL, NULL, &k->answer) == 200)
		strcpy(k->policy, td_kube_has_version(k->answer.text, k->answer.length, "v1")
					  ? "v1"
					  : "v1beta1");
	return *k->policy ? k->policy : NULL;
}

static int evict(
	struct td_kube_engine *k, struct td_kube_entry *entry, const char *why, uint64_t now_ns)
{
	const char *version = policy_version(k);
	char path[TD_KUBE_PATH];
	int status;

	if (!version)
		return td_kube_failed(k, "eviction", &entry->pod, 503);
	td_text_clear(&k->body);
	td_kube_write_eviction(&k->body, &entry->pod, version);
	td_kube_pod_path(path, &entry->pod, "/eviction");
	status = td_kube_send(k, "POST", path, JSON);
	if (td_kube_is_done(status)) {
		(void)td_kube_say(k, &entry->pod, "Preempted", why);
		td_kube_cache_sent_back(&k->cache, entry, now_ns + RETURN_NS);
		return 0;
	}
	if (status == 429) {
		entry->evict_ns = now_ns + (EVICT_NS << td_min_u32(entry->refusals, EVICTS));
		entry->refusals++;
		td_kube_say_once(k, entry,
			"it is to leave its GPU, but a PodDisruptionBudget keeps it for now");
	}
	/* The server forgets versions when it is upgraded. */
	if (status == 400)
		*k->policy = 0;
	return status == 404 || status == 409 ? 0
					      : td_kube_failed(k, "eviction", &entry->pod, status);
}

int td_kube_requeue(struct td_engine *engine, const char *id, uint64_t epoch, const char *why)
{
	struct td_kube_engine *k = (struct td_kube_engine *)engine;
	uint64_t now_ns = td_time_now_ns();
	struct td_kube_entry *entry;
	uint32_t at = TD_NO_NAME;
	int r = 0;

	/* Nobody would make one without a controller again. */
	while ((entry = td_kube_cache_next(&k->cache, id, &at)))
		if (*entry->pod.node && entry->pod.epoch == epoch && !*entry->pod.owner)
			return -EOPNOTSUPP;
	at = TD_NO_NAME;
	while (!r && (entry = td_kube_cache_next(&k->cache, id, &at)))
		if (*entry->pod.node && entry->pod.epoch == epoch)
			r = now_ns < entry->evict_ns ? -EAGAIN : evict(k, entry, why, now_ns);
	return r;
}
