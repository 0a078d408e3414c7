/*
 * What no policy can do better on AntMan's trace, while guaranteed jobs have what AntMan promises them.
 *
 * Purpose. AntMan's figures in exp_antman.c depend on how it treats its guests. These bounds do not: they hold for every way of treating them, with all durations known, moves at no cost,
 * parts of jobs on any GPU and no limits of memory.
 *
 *   guaranteed jobs  start in order of arrival, as their gangs find GPUs that no other guaranteed job has (AntMan 3.3), and run as if they were alone: no run that serves them in
 *                    this order ends any of them sooner, since who ends sooner lets the next one start sooner
 *   the others       are a fluid. A job of kind k has size = work x GPUs x weight_k; where no guaranteed job is, a GPU does at most 1 of size in a second, whoever is together there:
 *                    weights are such that sum(weight x speed) <= 1 in every company. Beside a guaranteed job of kind l it does at most beside_l, which costs that job the slack
 *   completion       of a fluid the mean is least when the smallest rest is served first (SRPT), and no job is faster than alone
 *   makespan         the last of: the guaranteed jobs, each job alone from its arrival, and the fluid
 *
 * What is not exact: a guaranteed job that is slowed by its 5 % leaves its GPUs that much later than here, and one that waits for it comes later, so that guests find the same GPUs at
 * slightly other times.
 */
#pragma once

#include "sim/cluster.h"

struct td_guest_room {
	double weight
		[TD_PROFILES_MAX]; /* of a kind: GPU time that a second of its work takes at the least */
	double beside[TD_PROFILES_MAX]; /* a guaranteed job of this kind: such time in a second */
};

/* Of the kinds that are used; a guaranteed job may become `slack` slower. */
void td_guest_room(const struct td_profiles *profiles, const struct td_contention *contention,
	const bool *used, double slack, struct td_guest_room *ret);

struct td_antman_bound {
	double jct_s, guaranteed_jct_s,
		span_s; /* means over all jobs, over the guaranteed ones; from the first arrival to the last end */
};

/* 0, or -ENOMEM. Jobs by time of arrival; of each: submit_ns, work_s, gpus, profile, class. */
int td_antman_bound(const struct td_sim_job *jobs, uint32_t count, uint32_t gpus,
	const struct td_guest_room *room, struct td_antman_bound *ret);

/*
 * What a second of a guest's work costs a guaranteed job at the least, pair[0] beside pair[1], whatever the coordinator does. Under a duty d the guest does v(d) in a second and the job loses 1 - u(d)
 * of one: at least the least of (1 - u) / v over all duties, since who changes the duty pays a mean of theirs. It does not bound what a guest costs that is not done when the job ends.
 */
double td_least_cost_beside(
	const struct td_contention *contention, const struct td_contender pair[2]);
