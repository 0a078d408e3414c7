/*
 * The job's memory and limits, from the daemon. Programs such as nvidia-smi look at GPUs without
 * using them, so this has a connection of its own and not the agent's. Usable from any thread;
 * keeps errno. A daemon that does not answer within a second counts as absent.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TD_JOB_PROCESSES_MAX 1024

struct td_job_view {
	uint64_t limit_bytes; /* limit of the whole job on that GPU; UINT64_MAX: none */
	uint64_t used_bytes;  /* allocated on that GPU by all processes of the job */
	uint32_t pid_count;   /* processes of the job that use any GPU; always includes this one */
	uint32_t pids[TD_JOB_PROCESSES_MAX];
};

/* total_bytes: the device's memory, for a limit given as a share if no daemon tells it. */
void td_job_view(const uint8_t *gpu_uuid, uint64_t total_bytes, struct td_job_view *ret);
