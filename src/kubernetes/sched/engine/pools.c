/* This file implements pools.h. */
#include "kubernetes/sched/engine/pools.h"

#include <stdlib.h>
#include <string.h>

void td_kube_pools_deinit(struct td_kube_pools *pools)
{
	for (uint32_t k = 0; k < TD_POOLS; k++)
		free(pools->pool[k].demands);
	*pools = (struct td_kube_pools){0};
}

static const char *text_of(const struct td_kube_pod *pod)
{
	return pod->demands ? pod->demands : "";
}

static uint32_t find(const struct td_kube_pools *pools, const char *demands)
{
	uint32_t k = TD_ANYWHERE + 1;

	while (k < TD_POOLS &&
		!(pools->pool[k].demands && !strcmp(pools->pool[k].demands, demands)))
		k++;
	return k;
}

/* Returns a pool for new demands, TD_POOLS if there is none. */
static uint32_t find_room(const struct td_kube_pools *pools, bool waits)
{
	uint32_t k = TD_ANYWHERE + 1;

	while (k < TD_POOLS && pools->pool[k].demands)
		k++;
	if (k < TD_POOLS || !waits)
		return k;
	for (k = TD_ANYWHERE + 1; k < TD_POOLS && pools->pool[k].is_waited_for;)
		k++;
	return k;
}

static void note(struct td_kube_pools *pools, const struct td_kube_pod *pod)
{
	uint32_t k = find(pools, text_of(pod));
	bool waits = !*pod->node;

	if (k == TD_POOLS) {
		k = find_room(pools, waits);
		if (k == TD_POOLS)
			return;
		free(pools->pool[k].demands);
		pools->pool[k].demands = strdup(text_of(pod));
	}
	pools->pool[k].pod = pod;
	pools->pool[k].is_waited_for |= waits;
}

static void look_at_nodes(struct td_kube_pool *pool, struct td_kube_cache *cache)
{
	char why[TD_KUBE_WHY];

	pool->is_everywhere = true;
	pool->is_somewhere = false;
	for (uint32_t at = 0; at < TD_KUBE_NODES; at++) {
		const struct td_kube_place *place = td_kube_cache_node_at(cache, at);
		bool allows = place && td_kube_allows(&place->node, pool->pod, why);

		if (!place || !place->is_there)
			continue;
		pool->is_everywhere &= allows;
		pool->is_somewhere |= allows && place->node.is_open;
	}
}

void td_kube_pools_find(struct td_kube_pools *pools, struct td_kube_cache *cache)
{
	for (uint32_t k = 0; k < TD_POOLS; k++) {
		pools->pool[k].pod = NULL;
		pools->pool[k].is_waited_for = false;
	}
	/* Pods that have a pool keep it before others get one. */
	for (int is_new = 0; is_new < 2; is_new++)
		for (uint32_t at = 0; at < TD_KUBE_PODS; at++) {
			const struct td_kube_entry *entry = td_kube_cache_at(cache, at);

			if (entry && entry->pod.is_ours && !*entry->pod.problem &&
				(is_new || find(pools, text_of(&entry->pod)) != TD_POOLS))
				note(pools, &entry->pod);
		}
	for (uint32_t k = TD_ANYWHERE + 1; k < TD_POOLS; k++) {
		struct td_kube_pool *pool = &pools->pool[k];

		if (pool->pod) {
			look_at_nodes(pool, cache);
			continue;
		}
		free(pool->demands);
		pool->demands = NULL;
	}
}

uint32_t td_kube_pools_of(const struct td_kube_pools *pools, const struct td_kube_pod *pod)
{
	uint32_t k = find(pools, text_of(pod));

	return k < TD_POOLS && pools->pool[k].is_everywhere ? TD_ANYWHERE : k;
}

uint32_t td_kube_pools_without(const struct td_kube_pools *pools, const struct td_kube_node *node)
{
	uint32_t without = 0;
	char why[TD_KUBE_WHY];

	for (uint32_t k = TD_ANYWHERE + 1; k < TD_POOLS; k++)
		if (pools->pool[k].pod && !td_kube_allows(node, pools->pool[k].pod, why))
			without |= 1u << k;
	return without;
}

bool td_kube_pools_somewhere(const struct td_kube_pools *pools, const struct td_kube_pod *pod)
{
	uint32_t k = find(pools, text_of(pod));

	return k == TD_POOLS || pools->pool[k].is_somewhere;
}
