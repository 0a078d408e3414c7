/*
 * Finds the process whose steps count as a job's, where several of its processes run on a GPU.
 *
 * Purpose. AntMan's coordinator goes by the mini-batch time of the guaranteed job on its GPU (3.3).
 * A job may have several processes there: ranks that wait for each other at the end of each step,
 * workers that do not, helpers that make a few short steps and no more. The job is as fast as its
 * slowest process, so that process's steps are the job's. Where all wait for each other, all have
 * the same steps.
 *
 *   lead   the process whose steps count. Another process becomes it
 *            - if its steps were a quarter longer than the lead's, in the mean of some of them, or
 *            - if its steps since the lead's last one took as long as four of the lead's: the lead
 *              has stopped;
 *          and at once when the lead has gone.
 *
 * Steps of another lead are of another unit (duty.h), with a baseline and a duty of their own.
 * Those of a process that leads again are still known.
 *
 * Invariants
 * - there is a lead as long as a process of the job on the GPU has reported a step;
 * - equally fast processes do not alternate as lead;
 * - a process that makes no more steps is not waited for.
 */
#pragma once

#include "policy/policy.h"

/*
 * The number of processes of a job that are compared on a GPU. Others never lead as long as these
 * exist.
 */
#define TD_SLOWEST_MAX 8

/* The state of one GPU. A zeroed struct has seen nothing. */
struct td_slowest {
	uint32_t group, lead; /* lead: the client's id; 0: none */
	struct {
		uint32_t id, seen; /* seen: number of steps, up to the size of the mean */
		uint64_t steps, mean_ns;
		uint64_t since_ns; /* time of its steps since the lead's last step */
	} processes[TD_SLOWEST_MAX];
};

/*
 * Returns the index of the client whose steps are the group's on that GPU; UINT32_MAX if none has
 * reported any.
 */
uint32_t td_slowest_step(
	struct td_slowest *slowest, const struct td_view *view, uint32_t gpu, uint32_t group);

/* Returns the client's unit of steps, unique among all processes. */
uint32_t td_slowest_unit(const struct td_client_view *client);
