/*
 * Whose steps are a job's, where several of its processes run on a GPU.
 *
 * Purpose. AntMan's coordinator goes by the mini-batch time of the guaranteed job on its GPU (3.3). A job may have several processes there: ranks that
 * wait for each other at the end of each step, workers that do not, helpers that make a few short steps and no more. The job is as fast as its slowest
 * process, so that one's steps are the job's; where they wait for each other, all have the same.
 *
 *   lead   the process whose steps count. Another one becomes it
 *            - whose steps have been a quarter longer than the lead's, in the mean of some of them,
 *            - or whose steps together, since the lead's last one, took as long as four of the lead's: that one has stopped;
 *          or at once when the lead has gone.
 *
 * Steps of another lead are of another unit (duty.h): they have a baseline and a duty of their own, and those of one that leads again are known.
 *
 * Invariants
 *  - there is a lead as long as a process of the job on the GPU has told of a step;
 *  - of processes that are equally fast none takes turns with another;
 *  - a process that makes no steps any more is not waited for.
 */
#pragma once

#include "policy/policy.h"

#define TD_SLOWEST_MAX                                                                             \
	8 /* processes of a job on a GPU that are compared; who comes later does not lead while they are there */

/* Zeroed: has seen nothing. One per GPU. */
struct td_slowest {
	uint32_t group, lead; /* lead: a client's id; 0: none */
	struct {
		uint32_t id, seen; /* steps seen, up to what makes a mean */
		uint64_t steps, mean_ns;
		uint64_t since_ns; /* of its steps since the lead's last one */
	} processes[TD_SLOWEST_MAX];
};

/* The index of the client whose steps are the group's on that GPU; UINT32_MAX: none of it has told of any. */
uint32_t td_slowest_step(
	struct td_slowest *slowest, const struct td_view *view, uint32_t gpu, uint32_t group);

/* Its unit of steps among those of all processes. */
uint32_t td_slowest_unit(const struct td_client_view *client);
