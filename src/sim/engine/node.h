/*
 * One GPU in virtual time under a policy of src/policy, by the same view and plan as the daemon's.
 * Its jobs are made of blocks: time on the host, then work for the GPU.
 *
 * A gate that the plan opens fills first where the open jobs do not fit together: that takes
 * handover_ns. Closing drains at once, because blocks are long compared with kernels. Side by side,
 * two open jobs that fit do `overlap` times the work of one; jobs that do not fit do 1 / thrash.
 */
#pragma once

#include <stdint.h>

#include "policy/policy.h"

#define TD_NODE_JOBS_MAX 8u

struct td_node_sim {
	const struct td_policy *policy;
	struct td_policy_options options;
	uint64_t capacity_bytes, handover_ns;
	double overlap, thrash;
	double managed_cost; /* factor on GPU work with managed memory while all of it fits */
	bool pages_itself;   /* true: backend managed; false: backend swap */
};

struct td_node_job {
	double host_s, gpu_s;
	uint64_t bytes;
	/* Output. */
	double end_s;
};

struct td_node_result {
	double end_s; /* end of the last job */
	uint32_t handovers;
	bool stuck; /* some job did not end */
};

/*
 * Simulates jobs that start at time 0, a microsecond apart. Returns 0; -ENOMEM; -EINVAL: too many
 * jobs.
 */
int td_node_simulate(const struct td_node_sim *sim, struct td_node_job *jobs, uint32_t count,
	struct td_node_result *ret);
