/* The parts of the engine of Kubernetes, which engine.h and its files share. */
#pragma once

#include "base/time.h"
#include "kubernetes/sched/engine/cache.h"
#include "kubernetes/sched/engine/engine.h"
#include "kubernetes/sched/engine/pools.h"
#include "kubernetes/sched/watch.h"

#define TD_KUBE_PROGRAM "tandem-kube-sched"

struct td_kube_engine {
	struct td_engine engine;
	struct td_kube_api *api;
	struct td_kube_engine_options options;
	struct td_kube_cache cache;
	struct td_kube_pools pools;
	struct td_kube_watch pods, nodes;
	struct td_text body, answer;
	char policy[16]; /* the version of Eviction; "": not asked for yet */
	uint32_t events; /* in this turn */
	bool was_foreign[TD_KUBE_NODES];
	char why[512];
};

/* --- requests --- */

/* Whether the server has done what was asked. */
bool td_kube_is_done(int status);
/* Sends engine->body. Returns the status, or -errno. */
int td_kube_send(
	struct td_kube_engine *engine, const char *method, const char *path, const char *type);
/* Notes a refusal and returns what it means for an order. */
int td_kube_failed(
	struct td_kube_engine *engine, const char *what, const struct td_kube_pod *pod, int status);
/* Writes the pod's path, with what follows it, TD_KUBE_PATH bytes at most. */
void td_kube_pod_path(char *path, const struct td_kube_pod *pod, const char *sub);
/* Tells the pod's users by an event. Returns 0; -EAGAIN: not now. */
int td_kube_say(struct td_kube_engine *engine, const struct td_kube_pod *pod, const char *reason,
	const char *message);
/* Tells why a pod waits, once for each text, and some in each turn. */
void td_kube_say_once(
	struct td_kube_engine *engine, struct td_kube_entry *entry, const char *message);

/* --- what the brain is told (tell.c), and its orders (orders.c) --- */

int td_kube_submitted(struct td_engine *engine, struct td_brain *brain, uint64_t now_ns);
int td_kube_place(struct td_engine *engine, const struct td_placement *placement);
int td_kube_upgrade(struct td_engine *engine, const char *id, uint64_t epoch);
int td_kube_requeue(struct td_engine *engine, const char *id, uint64_t epoch, const char *why);
