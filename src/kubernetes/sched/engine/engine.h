/* The engine of Kubernetes: see cluster/engine/engine.h. */
#pragma once

#include "cluster/engine/engine.h"
#include "kubernetes/sched/api.h"
#include "kubernetes/sched/read.h"

struct td_kube_engine_options {
	struct td_kube_names names;
	const char *instance; /* of the scheduler, for events */
};

/* The API and the texts must live longer. Returns NULL without memory. */
struct td_engine *td_kube_engine_new(
	struct td_kube_api *api, const struct td_kube_engine_options *options);
/* Lists and watches what is due. Returns when to call it again at the latest. */
uint64_t td_kube_engine_turn(struct td_engine *engine, uint64_t now_ns);
/* Whoever begins to lead knows the newest state first. */
void td_kube_engine_renew(void *engine);
