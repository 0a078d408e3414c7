/*
 * What no policy can do better on AntMan's trace that serves guaranteed jobs in order of arrival: AntMan's own rule (3.3), and everybody's here.
 *
 * Purpose. AntMan's figures in exp_antman.c depend on how it treats its guests. These bounds do not: they hold for every way of treating them, with all durations known, moves at no cost,
 * parts of jobs on any GPU and no limits of memory. They are the only ones that may call a row "bounded".
 *
 *   alone            no job is faster than alone: it ends no sooner than its arrival and its work
 *   a fluid          a job of kind k has size = work x GPUs x weight_k, weights such that sum(weight x speed) <= 1 on a GPU in every company, so that a GPU does at most 1 of size in a second. Under a duty it is no more:
 *                    who is there a part of the time makes companies in turns, of each of which that holds, and speeds under a duty are at most the mean over these turns (1 / (1 + x) is convex). Of such a fluid the
 *                    sum of the completion times is least when the smallest rest is served first (SRPT), and a gang that needs its GPUs at once is no faster
 *   guaranteed jobs  as their gangs find GPUs that no other guaranteed job has, each as if it were alone: by induction over the order of arrival none starts or ends sooner in any run that keeps the order, since GPUs that come free
 *                    later are free no sooner, one by one
 *   completion       the sum over all jobs is at least each of two: the fluid of all jobs; the guaranteed jobs' above, and the larger of the others' alone and their fluid on GPUs that nobody else has
 *   makespan         at least the last of: the guaranteed jobs, each job alone from its arrival, and the fluid of the others in what the guaranteed jobs leave. A guaranteed job of kind l leaves beside_l of size in a second of each of
 *                    its GPUs, which costs it the slack. In every run it is there no sooner and no shorter than above. That makes no room for the others: of what comes until s and can be done from s to the end T the most is
 *                    what is left between them, for each s, and a job that is there later, but before T, leaves no more there
 *
 * The last one is of those who keep the guard, the others of everybody who keeps the order.
 */
#pragma once

#include "sim/engine/cluster.h"

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
