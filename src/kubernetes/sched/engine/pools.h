/*
 * The nodes that pods may be on by their nodeSelector, required node affinity and tolerations. Pods
 * with the same demands share a pool of the brain (td_brain_request.pool). Pods that wait come
 * first: those that run are on their nodes already. Pure.
 */
#pragma once

#include "kubernetes/sched/engine/cache.h"

#define TD_KUBE_DEMANDS (TD_POOLS - 1) /* demands that can be told apart at a time */

struct td_kube_pools {
	struct td_kube_pool {
		char *demands;                 /* owned; NULL: free */
		const struct td_kube_pod *pod; /* one that has them, until pods change */
		bool is_everywhere;            /* all nodes with GPUs allow its pods */
		bool is_somewhere;             /* an open one does */
		bool is_waited_for;            /* a pod that waits has these demands */
	} pool[TD_POOLS];
};

void td_kube_pools_deinit(struct td_kube_pools *pools);
/* Forgets the demands that no pod has any more, and finds out where the others may run. */
void td_kube_pools_find(struct td_kube_pools *pools, struct td_kube_cache *cache);

/* Returns the pool of a pod of the cache, TD_ANYWHERE too; TD_POOLS: there is none left for it. */
uint32_t td_kube_pools_of(const struct td_kube_pools *pools, const struct td_kube_pod *pod);
/* Returns the pools that the node is not in, as bits. */
uint32_t td_kube_pools_without(const struct td_kube_pools *pools, const struct td_kube_node *node);
/* Whether an open node with GPUs allows the pod, which has a pool. */
bool td_kube_pools_somewhere(const struct td_kube_pools *pools, const struct td_kube_pod *pod);
