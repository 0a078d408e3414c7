/*
 * This file implements engine.h: the requests, and the life of the engine.
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
#include "kubernetes/sched/engine/engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bounds.h"
#include "base/hash.h"
#include "kubernetes/sched/engine/parts.h"
#include "kubernetes/sched/write.h"

#define JSON       "application/json"
#define EVENTS_MAX 32u /* of the engine itself, in one turn */
/* A pod that has ended leaves the watch as if it were deleted. */
#define ALIVE "&fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed"

/* --- requests --- */

bool td_kube_is_done(int status)
{
	return status == 200 || status == 201 || status == 202;
}

int td_kube_send(struct td_kube_engine *k, const char *method, const char *path, const char *type)
{
	int status = td_kube_api_send(k->api, method, path, &k->body, type, &k->answer);

	if (!td_kube_is_done(status))
		td_kube_api_refused(k->api, status, &k->answer);
	return status;
}

int td_kube_failed(
	struct td_kube_engine *k, const char *what, const struct td_kube_pod *pod, int status)
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

void td_kube_pod_path(char *path, const struct td_kube_pod *pod, const char *sub)
{
	snprintf(path, TD_KUBE_PATH, "/api/v1/namespaces/%s/pods/%s%s", pod->space, pod->name, sub);
}

int td_kube_say(struct td_kube_engine *k, const struct td_kube_pod *pod, const char *reason,
	const char *message)
{
	struct td_kube_said said = {.reason = reason,
		.message = message,
		.program = TD_KUBE_PROGRAM,
		.instance = k->options.instance,
		.is_warning = strcmp(reason, "Scheduled") != 0,
		.time_s = (uint64_t)time(NULL)};
	char path[TD_KUBE_PATH];
	int status;

	snprintf(path, sizeof(path), "/api/v1/namespaces/%s/events", pod->space);
	td_text_clear(&k->body);
	td_kube_write_event(&k->body, pod, &said);
	status = td_kube_send(k, "POST", path, JSON);
	/* One that is refused would be refused again. */
	return status < 0 || status == 429 || status >= 500 ? -EAGAIN : 0;
}

void td_kube_say_once(struct td_kube_engine *k, struct td_kube_entry *entry, const char *message)
{
	uint64_t hash = td_hash_str(message) | 1;

	if (entry->said == hash || k->events >= EVENTS_MAX)
		return;
	k->events++;
	if (!td_kube_say(k, &entry->pod, "FailedScheduling", message))
		entry->said = hash;
}

/* --- what needs no order --- */

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
	struct td_kube_engine *k = (struct td_kube_engine *)engine;
	struct td_kube_entry *entry;
	uint32_t at = TD_NO_NAME;
	bool is_there = false;
	int r = 0;

	while (!r && (entry = td_kube_cache_next(&k->cache, id, &at))) {
		is_there = true;
		if (!*entry->pod.node)
			r = td_kube_say(k, &entry->pod, "FailedScheduling", why);
	}
	/* Its controller may not have made it again yet. */
	return is_there ? r : -EAGAIN;
}

static const char *why(const struct td_engine *engine)
{
	return ((const struct td_kube_engine *)engine)->why;
}

/* --- life --- */

static void engine_free(struct td_engine *engine)
{
	struct td_kube_engine *k = (struct td_kube_engine *)engine;

	td_kube_watch_deinit(&k->pods);
	td_kube_watch_deinit(&k->nodes);
	td_kube_cache_deinit(&k->cache);
	td_kube_pools_deinit(&k->pools);
	td_text_deinit(&k->body);
	td_text_deinit(&k->answer);
	free(k);
}

static const struct td_engine_kind kind = {
	.name = "kubernetes",
	.free = engine_free,
	.submitted = td_kube_submitted,
	.place = td_kube_place,
	.upgrade = td_kube_upgrade,
	.requeue = td_kube_requeue,
	.stop = stop,
	.explain = explain,
	.why = why,
};

struct td_engine *td_kube_engine_new(
	struct td_kube_api *api, const struct td_kube_engine_options *options)
{
	struct td_kube_engine *k = calloc(1, sizeof(*k));

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
	struct td_kube_engine *k = (struct td_kube_engine *)engine;
	uint64_t next_ns = td_kube_watch_turn(&k->nodes, now_ns);

	return td_min_u64(next_ns, td_kube_watch_turn(&k->pods, now_ns));
}

void td_kube_engine_renew(void *engine)
{
	struct td_kube_engine *k = (struct td_kube_engine *)engine;

	td_kube_watch_renew(&k->nodes);
	td_kube_watch_renew(&k->pods);
}
