/* The bodies of requests to the API server, as JSON. Pure: the time comes from the caller. */
#pragma once

#include <stdint.h>

#include "base/text.h"
#include "cluster/engine/engine.h"
#include "kubernetes/sched/read.h"

/* A pod is bound to its node, and gets the annotations that say to which GPUs of it. */
void td_kube_write_binding(
	struct td_text *body, const struct td_kube_pod *pod, const struct td_placement *placement);
/* A patch of a pod that is a guest no longer. */
void td_kube_write_upgrade(struct td_text *body, const struct td_kube_pod *pod);
/* version: of the group policy, "v1" or "v1beta1". */
void td_kube_write_eviction(
	struct td_text *body, const struct td_kube_pod *pod, const char *version);

struct td_kube_said {
	const char *reason, *message, *program, *instance;
	bool is_warning;
	uint64_t time_s; /* since 1970 */
};
void td_kube_write_event(
	struct td_text *body, const struct td_kube_pod *pod, const struct td_kube_said *said);

struct td_kube_claim {
	const char *name, *space, *holder; /* holder "": nobody */
	const char *version;               /* of the Lease that it follows; "": there is none */
	uint32_t duration_s;
	uint64_t transitions, time_us; /* since 1970 */
};
void td_kube_write_lease(struct td_text *body, const struct td_kube_claim *claim);
