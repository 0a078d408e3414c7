/*
 * A state (cluster/state/state.h) whose only key is that of the leader, kept as a Lease of
 * coordination.k8s.io/v1. It is for the leader election and the fence of cluster/sched/scheduler.h:
 * placements are kept in the pods' annotations, so what is written to other keys is dropped, in a
 * commit that the fence guards all the same.
 *
 * As kube-scheduler does, it compares no clocks of two machines: a Lease has ended when its record
 * has not changed for its duration since it was first seen here. The revision that made the key is
 * the number of changes of the holder, and one.
 */
#pragma once

#include "cluster/state/state.h"
#include "kubernetes/sched/api.h"

struct td_kube_lease_options {
	const char *space, *name; /* of the Lease */
	const char *key;          /* of the leader */
	/* This one leads from now on. NULL: nobody is told. */
	void (*leads)(void *arg);
	void *arg;
};

/* The texts and the API must live longer. Returns NULL without memory. */
struct td_state *td_kube_lease_open(
	struct td_kube_api *api, const struct td_kube_lease_options *options);
