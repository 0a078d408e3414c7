/*
 * Gangs: the pods of a namespace with one tandem.dev/gang are one job of the brain, which places
 * all of them or none. Pure.
 *
 *            all are there        PLACE: all can be bound     the last Binding
 *   (some) --------------> waits -------------------------> placed ------------> runs
 *                           ^                                                     |
 *                           +--- all are evicted: one is made again, or others ---+ all have ended
 *                                go before it, or a Binding failed for too long
 *
 * Its pods ask for the same, up to one GPU each, on different GPUs. Those beyond its size, and
 * those that ask for something else than its first pod, wait and are told why.
 */
#pragma once

#include "kubernetes/sched/engine/cache.h"

/* Gives each pod of a gang its gang, and counts. Call it after pods have changed. */
void td_kube_gangs_count(struct td_kube_cache *cache, uint64_t now_ns);
/* Returns the gang of a pod that td_kube_gangs_count() has seen, or NULL: it has no room. */
struct td_kube_gang *td_kube_gang_of(
	struct td_kube_cache *cache, const struct td_kube_entry *entry);
/* Writes why a pod that waits does not count, or what its gang waits for; "": for nothing. */
void td_kube_gang_why(
	struct td_kube_cache *cache, const struct td_kube_entry *entry, char *ret, size_t len);

/* A pod of a gang, and the GPU that it is to have. */
struct td_kube_pick {
	struct td_kube_entry *entry;
	uint32_t place; /* an index of the places */
};

/*
 * Gives the pods of the gang that are not bound yet the places that its others do not have, which
 * are bound with this epoch. Returns the number of picks; -EAGAIN: a pod is not there yet, or one
 * is bound otherwise.
 */
int td_kube_gang_pick(struct td_kube_cache *cache, const char *job, uint64_t epoch,
	const struct td_brain_place *places, uint32_t count, struct td_kube_pick *ret);
