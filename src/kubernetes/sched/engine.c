/*
 * This file implements engine.h.
 *
 * A pod waits without a node. A placement is one Binding, whose annotations the server merges into
 * the pod: node, GPUs and epoch come to it at once or not at all, and a scheduler that starts anew
 * reads them there.
 *
 *   waits  --place e+1: Binding-->  bound  --requeue: Eviction-->  leaving, then gone
 *     ^                                                               |
 *     +------------- its controller makes another pod ----------------+
 *
 * A pod without a controller is never evicted: nobody would make it again. Where a
 * PodDisruptionBudget does not allow it now (429), the order comes again.
 */
#include "kubernetes/sched/engine.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bounds.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/time.h"
#include "kubernetes/sched/cache.h"
#include "kubernetes/sched/watch.h"
#include "kubernetes/sched/write.h"

#define PROGRAM    "tandem-kube-sched"
#define JSON       "application/json"
#define PATCH      "application/merge-patch+json"
#define RETURN_NS  (300 * TD_NS_PER_S) /* in which a controller makes a pod again */
#define EVICT_NS   (5 * TD_NS_PER_S)   /* after a refusal by a budget */
#define EVENTS_MAX 32u                 /* of the engine itself, in one turn */
#define CREATED(s) ((s) == 200 || (s) == 201 || (s) == 202)
/* A pod that has ended leaves the watch as if it were deleted. */
#define ALIVE "&fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed"

struct kube {
	struct td_engine engine;
	struct td_kube_api *api;
	struct td_kube_engine_options options;
	struct td_kube_cache cache;
	struct td_kube_watch pods, nodes;
	struct td_text body, answer;
	char policy[16]; /* the version of Eviction; "": not asked for yet */
	uint32_t events; /* in this turn */
	bool was_foreign[TD_KUBE_NODES];
	char why[512];
};

static struct kube *kube_of(struct td_engine *engine)
{
	return (struct kube *)engine;
}

/* --- requests --- */

/* Sends self->body. Returns the status, or -errno. */
static int send_body(struct kube *k, const char *method, const char *path, const char *type)
{
	int status = td_kube_api_send(k->api, method, path, &k->body, type, &k->answer);

	if (!CREATED(status))
		td_kube_api_refused(k->api, status, &k->answer);
	return status;
}

/* Notes a refusal and returns what it means for an order. */
static int failed(struct kube *k, const char *what, const struct td_kube_pod *pod, int status)
{
	snprintf(k->why, sizeof(k->why), "%s of %.63s/%.120s: %.280s", what, pod->space, pod->name,
		td_kube_api_why(k->api));
	switch (status) {
	case 401:
	case 403: return -EACCES;
	case 400:
	case 422: return -EINVAL;
	default: return -EAGAIN;
	}
}

static void pod_path(char *path, const struct td_kube_pod *pod, const char *sub)
{
	snprintf(path, TD_KUBE_PATH, "/api/v1/namespaces/%s/pods/%s%s", pod->space, pod->name, sub);
}

/* Tells the pod's users. Returns 0; -EAGAIN: not now. */
static int say(
	struct kube *k, const struct td_kube_pod *pod, const char *reason, const char *message)
{
	struct td_kube_said said = {.reason = reason,
		.message = message,
		.program = PROGRAM,
		.instance = k->options.instance,
		.is_warning = strcmp(reason, "Scheduled") != 0,
		.time_s = (uint64_t)time(NULL)};
	char path[TD_KUBE_PATH];
	int status;

	snprintf(path, sizeof(path), "/api/v1/namespaces/%s/events", pod->space);
	td_text_clear(&k->body);
	td_kube_write_event(&k->body, pod, &said);
	status = send_body(k, "POST", path, JSON);
	/* One that is refused would be refused again. */
	return status < 0 || status == 429 || status >= 500 ? -EAGAIN : 0;
}

/* The same, once for each text, and some in each turn. */
static void say_once(struct kube *k, struct td_kube_entry *entry, const char *message)
{
	uint64_t hash = td_hash_str(message) | 1;

	if (entry->said == hash || k->events >= EVENTS_MAX)
		return;
	k->events++;
	if (!say(k, &entry->pod, "FailedScheduling", message))
		entry->said = hash;
}

/* --- what is so --- */

static void log_foreign(struct kube *k, uint32_t at, const struct td_kube_place *place)
{
	if (k->was_foreign[at] == place->is_foreign)
		return;
	k->was_foreign[at] = place->is_foreign;
	td_log(place->is_foreign ? TD_LOG_WARN : TD_LOG_INFO, "node=%s %s", place->node.name,
		place->is_foreign ? "closed: pods of another scheduler hold parts of its GPUs"
				  : "no pod of another scheduler is there any more");
}

/* A node that the brain does not know yet is open at first, so that its pods can be adopted. */
static void tell_nodes(struct kube *k, struct td_brain *brain, uint64_t now_ns)
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
static bool fits_everywhere(struct kube *k, struct td_kube_entry *entry)
{
	char why[TD_KUBE_WHY], text[TD_KUBE_WHY + 128];

	for (uint32_t at = 0; at < TD_KUBE_NODES; at++) {
		const struct td_kube_place *place = td_kube_cache_node_at(&k->cache, at);

		if (!place || !place->is_there || !place->node.is_open ||
			td_kube_allows(&place->node, &entry->pod, why))
			continue;
		snprintf(text, sizeof(text),
			"%s; " PROGRAM " places only pods that all open nodes with GPUs allow",
			why);
		say_once(k, entry, text);
		return false;
	}
	return true;
}

static void tell_waiting(
	struct kube *k, struct td_kube_entry *entry, struct td_brain *brain, uint64_t now_ns)
{
	struct td_brain_request request;

	if (td_brain_find(brain, entry->job) != TD_NO_NAME)
		return;
	if (*entry->pod.problem) {
		say_once(k, entry, entry->pod.problem);
		return;
	}
	if (entry->pod.is_gated || !fits_everywhere(k, entry))
		return;
	read_request(entry, &request);
	request.epoch = 0;
	(void)td_brain_submit(brain, &request, now_ns);
}

static void tell_pods(struct kube *k, struct td_brain *brain, bool *is_there, uint64_t now_ns)
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

static int submitted(struct td_engine *engine, struct td_brain *brain, uint64_t now_ns)
{
	struct kube *k = kube_of(engine);
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

/* --- orders --- */

/* Reads a pod that is not as it was believed to be. */
static void look_at(struct kube *k, const struct td_kube_pod *pod)
{
	char path[TD_KUBE_PATH];
	struct td_kube_list object;

	pod_path(path, pod, "");
	if (td_kube_api_send(k->api, "GET", path, NULL, NULL, &k->answer) == 200 &&
		!td_kube_list_read(k->answer.text, k->answer.length, &object)) {
		td_kube_cache_pod(&k->cache, object.root, false);
		td_kube_list_deinit(&object);
	}
}

/* The next event of the watch says the same. */
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

static void say_bound(struct kube *k, struct td_kube_entry *entry)
{
	const struct td_kube_pod *pod = &entry->pod;
	char text[2 * TD_KUBE_NAME];
	int used = snprintf(text, sizeof(text), "placed on node %.253s, GPU", pod->node);

	for (uint32_t n = 0; n < pod->gpus && used < (int)sizeof(text); n++)
		used += snprintf(text + used, sizeof(text) - (size_t)used, "%s%u", n ? "," : " ",
			pod->gpu[n]);
	(void)say(k, pod, "Scheduled", text);
	entry->said = 0;
}

static int bind_pod(
	struct kube *k, struct td_kube_entry *entry, const struct td_placement *placement)
{
	char path[TD_KUBE_PATH];
	int status;

	td_text_clear(&k->body);
	td_kube_write_binding(&k->body, &entry->pod, placement);
	pod_path(path, &entry->pod, "/binding");
	status = send_body(k, "POST", path, JSON);
	if (CREATED(status)) {
		note_binding(&entry->pod, placement);
		say_bound(k, entry);
		return 0;
	}
	/* Without an answer, or with "it is bound", the pod itself says what is so. */
	if (status < 0 || status == 409 || status == 404)
		look_at(k, &entry->pod);
	return failed(k, "binding", &entry->pod, status);
}

/* Whether the pod can go to the place now. If not, its users are told why. */
static bool has_place(
	struct kube *k, struct td_kube_entry *entry, const struct td_placement *placement)
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
	say_once(k, entry, why);
	return false;
}

static int place(struct td_engine *engine, const struct td_placement *placement)
{
	struct kube *k = kube_of(engine);
	struct td_kube_entry *entry = td_kube_cache_find(&k->cache, placement->id);

	if (!entry)
		return -EAGAIN; /* it was sent back, and its controller has not made it again yet */
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

static int upgrade(struct td_engine *engine, const char *id, uint64_t epoch)
{
	struct kube *k = kube_of(engine);
	struct td_kube_entry *entry = td_kube_cache_find(&k->cache, id);
	char path[TD_KUBE_PATH];
	int status;

	if (!entry || !*entry->pod.node || entry->pod.epoch != epoch)
		return 0;
	td_text_clear(&k->body);
	td_kube_write_upgrade(&k->body, &entry->pod);
	/* It carries annotations, too, and whoever may write it cannot change what the pod runs. */
	pod_path(path, &entry->pod, "/status");
	status = send_body(k, "PATCH", path, PATCH);
	if (!CREATED(status))
		return status == 404 || status == 409 ? 0
						      : failed(k, "upgrade", &entry->pod, status);
	entry->pod.is_guest = false;
	return 0;
}

/* Asks which version of Eviction there is: v1 since 1.22, v1beta1 until 1.24. */
static const char *policy_version(struct kube *k)
{
	if (!*k->policy &&
		td_kube_api_send(k->api, "GET", "/apis/policy", NULL, NULL, &k->answer) == 200)
		strcpy(k->policy, td_kube_has_version(k->answer.text, k->answer.length, "v1")
					  ? "v1"
					  : "v1beta1");
	return *k->policy ? k->policy : NULL;
}

static int evict(struct kube *k, struct td_kube_entry *entry, const char *why, uint64_t now_ns)
{
	const char *version = policy_version(k);
	char path[TD_KUBE_PATH];
	int status;

	if (!version)
		return failed(k, "eviction", &entry->pod, 503);
	td_text_clear(&k->body);
	td_kube_write_eviction(&k->body, &entry->pod, version);
	pod_path(path, &entry->pod, "/eviction");
	status = send_body(k, "POST", path, JSON);
	if (CREATED(status)) {
		(void)say(k, &entry->pod, "Preempted", why);
		td_kube_cache_sent_back(&k->cache, entry, now_ns + RETURN_NS);
		return 0;
	}
	if (status == 429) {
		entry->evict_ns = now_ns + EVICT_NS;
		say_once(k, entry,
			"it is to leave its GPU, but a PodDisruptionBudget keeps it for now");
	}
	/* The server forgets versions when it is upgraded. */
	if (status == 400)
		*k->policy = 0;
	return status == 404 || status == 409 ? 0 : failed(k, "eviction", &entry->pod, status);
}

static int requeue(struct td_engine *engine, const char *id, uint64_t epoch, const char *why)
{
	struct kube *k = kube_of(engine);
	struct td_kube_entry *entry = td_kube_cache_find(&k->cache, id);
	uint64_t now_ns = td_time_now_ns();

	if (!entry || !*entry->pod.node || entry->pod.epoch != epoch)
		return 0;
	if (!*entry->pod.owner)
		return -EOPNOTSUPP; /* nobody would make it again */
	if (now_ns < entry->evict_ns)
		return -EAGAIN;
	return evict(k, entry, why, now_ns);
}

/* The brain knows all pods that run, so there is none to be ended. */
static int stop(struct td_engine *engine, const char *id, uint64_t epoch)
{
	(void)engine;
	(void)id;
	(void)epoch;
	return 0;
}

static int explain(struct td_engine *engine, const char *id, const char *why)
{
	struct kube *k = kube_of(engine);
	struct td_kube_entry *entry = td_kube_cache_find(&k->cache, id);

	if (!entry)
		return -EAGAIN; /* its controller has not made it again yet */
	if (*entry->pod.node)
		return 0;
	return say(k, &entry->pod, "FailedScheduling", why);
}

static const char *why(const struct td_engine *engine)
{
	return ((const struct kube *)engine)->why;
}

/* --- life --- */

static void engine_free(struct td_engine *engine)
{
	struct kube *k = kube_of(engine);

	td_kube_watch_deinit(&k->pods);
	td_kube_watch_deinit(&k->nodes);
	td_kube_cache_deinit(&k->cache);
	td_text_deinit(&k->body);
	td_text_deinit(&k->answer);
	free(k);
}

static const struct td_engine_kind kind = {
	.name = "kubernetes",
	.free = engine_free,
	.submitted = submitted,
	.place = place,
	.upgrade = upgrade,
	.requeue = requeue,
	.stop = stop,
	.explain = explain,
	.why = why,
};

struct td_engine *td_kube_engine_new(
	struct td_kube_api *api, const struct td_kube_engine_options *options)
{
	struct kube *k = calloc(1, sizeof(*k));

	if (!k || td_kube_cache_init(&k->cache, &options->names)) {
		free(k);
		return NULL;
	}
	k->engine.kind = &kind;
	k->api = api;
	k->options = *options;
	k->pods = (struct td_kube_watch){.api = api,
		.path = "/api/v1/pods",
		.selector = ALIVE,
		.arg = &k->cache,
		.take = td_kube_cache_pod,
		.begin = td_kube_cache_pods_begin,
		.end = td_kube_cache_pods_end};
	k->nodes = (struct td_kube_watch){.api = api,
		.path = "/api/v1/nodes",
		.selector = "",
		.arg = &k->cache,
		.take = td_kube_cache_node,
		.begin = td_kube_cache_nodes_begin,
		.end = td_kube_cache_nodes_end};
	return &k->engine;
}

uint64_t td_kube_engine_turn(struct td_engine *engine, uint64_t now_ns)
{
	struct kube *k = kube_of(engine);
	uint64_t next_ns = td_kube_watch_turn(&k->nodes, now_ns);

	return td_min_u64(next_ns, td_kube_watch_turn(&k->pods, now_ns));
}

void td_kube_engine_renew(void *engine)
{
	struct kube *k = kube_of(engine);

	td_kube_watch_renew(&k->nodes);
	td_kube_watch_renew(&k->pods);
}
