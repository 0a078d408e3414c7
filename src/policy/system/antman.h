/*
 * AntMan's local coordinator: what besteffort jobs may have of one GPU (3.3). The global scheduler is antman_cluster.h. As the policy
 * "antman" (antman_node.c) it runs on every GPU of a node.
 *
 *   a guaranteed job is on the GPU:   duty and spare memory by its step time      (duty.h)
 *   one besteffort job alone:         "can be fully utilized by this job without any constraints"
 *   several of them:                  memory by trial and error                  (memory_trial.h)
 *
 * Purpose. The global scheduler puts opportunistic jobs beside guaranteed ones by the load of a GPU alone; that the guaranteed one does not
 * feel it is this coordinator's matter: "local coordinator acts in an introspective mode to perform continual job control". It
 * never touches the guaranteed job. What it decides is carried out by AntMan's two mechanisms: the duty by GpuOpManager, which
 * delays launches (3.1.2), the memory limit by dynamic scaling, at the end of a step where it can, with tensors on the host beyond
 * it (3.1.1).
 *
 * The speeds that trial and error needs are of windows: the caller says when one is over (antman_node.c: three steps of each job).
 * Jobs that come or go begin the search anew; so does the end of a guaranteed job's company.
 *
 * Invariants
 *  - those of the parts: the duty is at least the floor, the search ends;
 *  - besteffort limits plus the guaranteed job's memory never exceed the capacity;
 *  - nobody gets more than it demands; alone, a besteffort job gets all that it demands, as far as it is there;
 *  - same inputs in the same order, same outputs.
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
	uint64_t guaranteed_bytes; /* what the guaranteed job has on the device */
	const struct td_memory_trial_job *besteffort;
	uint32_t besteffort_count; /* at most TD_MEMORY_TRIAL_JOBS_MAX */
	bool window_over;          /* the speeds are of a whole window: time for the next trial */
};

struct td_antman_gpu_output {
	uint32_t duty_ppm; /* for besteffort work together */
	uint64_t limit_bytes[TD_MEMORY_TRIAL_JOBS_MAX];
};

/* Returns 0, or -EINVAL: too many jobs. */
int td_antman_gpu_step(struct td_antman_gpu *gpu, const struct td_antman_gpu_params *params,
	const struct td_antman_gpu_input *input, uint64_t now_ns,
	struct td_antman_gpu_output *ret_output);
