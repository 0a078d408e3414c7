/*
 * AntMan's local coordinator: decides what besteffort jobs may have of one GPU (3.3). As the policy
 * "antman" (antman_node.c) it runs on every GPU of a node. The global scheduler is
 * antman_cluster.h.
 *
 *   a guaranteed job is on the GPU:   duty and spare memory by its step time      (duty.h)
 *   one besteffort job alone:         "can be fully utilized by this job without any constraints"
 *   several of them:                  memory by trial and error                  (memory_trial.h)
 *
 * Purpose. The global scheduler puts opportunistic jobs beside guaranteed ones by the load of a GPU
 * alone. This coordinator protects the guaranteed job there: "local coordinator acts in an
 * introspective mode to perform continual job control". It never touches the guaranteed job.
 * AntMan's two mechanisms carry its decisions out: GpuOpManager, which delays launches, for the
 * duty (3.1.2), and dynamic scaling for the memory limit, at the end of a step where possible, with
 * tensors on the host beyond it (3.1.1).
 *
 * Trial and error needs speeds of windows; the caller says when a window is over (antman_node.c:
 * three steps of each job). The search begins anew when jobs come or go, and when a guaranteed
 * job's company ends.
 *
 * Invariants
 * - those of the parts: the duty is at least the floor, the search ends;
 * - besteffort limits plus the guaranteed job's memory never exceed the capacity;
 * - no job gets more than it demands; a besteffort job alone gets all that it demands, as far as
 *   the GPU has it;
 * - same inputs in the same order, same outputs.
 */
#pragma once

#include "policy/algo/control/duty.h"
#include "policy/algo/fit/memory_trial.h"

struct td_antman_gpu {
	struct td_duty duty;
	struct td_memory_trial trial;
};

struct td_antman_gpu_params {
	struct td_duty_params duty;
	struct td_memory_trial_params trial;
};

extern const struct td_antman_gpu_params td_antman_gpu_default;

struct td_antman_gpu_input {
	struct td_duty_input guaranteed;
	uint64_t capacity_bytes;
	uint64_t guaranteed_bytes; /* device memory of the guaranteed job */
	const struct td_memory_trial_job *besteffort;
	uint32_t besteffort_count; /* at most TD_MEMORY_TRIAL_JOBS_MAX */
	/* The speeds are of a whole window, so the next trial may begin. */
	bool window_over;
};

struct td_antman_gpu_output {
	uint32_t duty_ppm; /* share of the time for all besteffort work together */
	uint64_t limit_bytes[TD_MEMORY_TRIAL_JOBS_MAX];
};

/* Makes one step for a GPU. Returns 0, or -EINVAL: too many jobs. */
int td_antman_gpu_step(struct td_antman_gpu *gpu, const struct td_antman_gpu_params *params,
	const struct td_antman_gpu_input *input, uint64_t now_ns,
	struct td_antman_gpu_output *ret_output);
