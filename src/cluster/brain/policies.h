/*
 * The cluster policies behind one table of operations, so that the brain does not know which one
 * decides. They are the simulator's own code (src/policy/cluster).
 *
 * Jobs, GPUs, tenants and kinds are numbers of the caller, each below its maximum in the shape. All
 * GPUs are down at first.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/cluster/antman_cluster.h"
#include "policy/cluster/guests/guest_cluster.h"

/* The largest cluster that a brain can have, and what does not change while it runs. */
struct td_brain_shape {
	uint32_t nodes_max, node_gpus_max, jobs_max, tenants, kinds_max;
	uint32_t quotas[TD_TENANTS_MAX]; /* in GPUs */
	uint64_t gpu_bytes;              /* the memory of a GPU; 0: memory is not counted */
	bool is_hard;        /* memory does not move: a guest leaves for a holder that needs its */
	uint64_t restart_ns; /* what a stop or a move costs a job; 0: the usual time */
	uint64_t match_ns;   /* muxflow: between two matchings; 0: 15 minutes */
	uint64_t seed;       /* muxflow: of places by chance; 0: the usual one */
};

/* A job, as a policy is told of it. */
struct td_brain_ask {
	uint32_t tenant, gpus, kind;
	bool guaranteed;
	bool automatic; /* guaranteed, and may begin as a guest while it waits */
	bool same_node;
	uint64_t bytes; /* memory needed on each GPU; 0: unknown */
	uint32_t pool;  /* the nodes where it may run; TD_ANYWHERE: all */
	bool stays;     /* it is never stopped or moved */
};

enum td_brain_verb {
	TD_BRAIN_START,
	TD_BRAIN_START_GUEST,
	TD_BRAIN_UPGRADE, /* the guest has guaranteed resources from now on */
	TD_BRAIN_MOVE,    /* the job goes to the GPUs that it has now */
	TD_BRAIN_PREEMPT, /* the job saves its state, leaves and waits again */
	TD_BRAIN_VERB_N,
};

struct td_brain_action {
	enum td_brain_verb verb;
	uint32_t job;
};

struct td_brain_policy {
	const char *name;
	/* Jobs of the same program are of a kind, and it has know(), which decides by profiles. */
	bool by_program;
	size_t (*bytes)(const struct td_brain_shape *shape);
	/* memory is zeroed, aligned to 64 bytes, and has bytes() bytes. */
	int (*init)(void *memory, const struct td_brain_shape *shape);
	/* The errors of both are those of td_tandem_cluster_adopt(). */
	int (*submit)(void *memory, uint32_t job, const struct td_brain_ask *ask, uint64_t now_ns);
	int (*adopt)(void *memory, uint32_t job, const struct td_brain_ask *ask,
		const uint32_t *gpus, bool guest, uint64_t attained_ns, uint64_t now_ns);
	void (*finish)(void *memory, uint32_t job, uint64_t now_ns);
	void (*requeue)(void *memory, uint32_t job, uint64_t now_ns);
	/* Brings a GPU up or takes it down. -EBUSY: a job is on it. */
	int (*gpu)(void *memory, uint32_t gpu, bool up);
	/* Bars jobs from a GPU that is up; those that are there stay. */
	void (*bar)(void *memory, uint32_t gpu, enum td_inventory_bar bar);
	void (*pools)(void *memory, uint32_t node, uint32_t pools);
	void (*load)(void *memory, uint32_t gpu, uint32_t load_ppm);
	void (*demand)(void *memory, uint32_t kind, double demand);
	void (*speed)(void *memory, uint32_t kind, uint32_t other, bool held, double speed);
	uint32_t (*step)(void *memory, uint64_t now_ns, struct td_brain_action *ret, uint32_t room);
	uint32_t (*gpus)(const void *memory, uint32_t job, uint32_t *ret_gpus);
	/* Returns how many more GPUs the tenant's guaranteed jobs may hold. */
	uint32_t (*quota_left)(const void *memory, uint32_t tenant);
	/* Returns the GPU time that the job has had until it was started last. */
	uint64_t (*attained_ns)(const void *memory, uint32_t job);
	/* These may be NULL. See guest_cluster.h. */
	void (*gpu_kind)(void *memory, uint32_t gpu, uint32_t gpu_kind);
	void (*know)(
		void *memory, uint32_t gpu_kind, uint32_t kind, const struct td_guest_known *known);
	enum td_guest_wait (*waits)(const void *memory, uint32_t job);
};

extern const struct td_brain_policy td_brain_tandem, td_brain_antman, td_brain_dcuda,
	td_brain_muxflow, td_brain_mudi;

/* Writes the number of GPUs of each node of the shape. Returns 0 or -EINVAL. */
#define TD_BRAIN_NODES_MAX 8192u
int td_brain_shape_nodes(const struct td_brain_shape *shape, uint32_t *ret_node_gpus);

/* Returns the policy of this name, or NULL. */
const struct td_brain_policy *td_brain_policy_find(const char *name);
/* Returns the policy of this number; NULL behind the last one. */
const struct td_brain_policy *td_brain_policy_at(uint32_t number);
