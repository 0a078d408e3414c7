/*
 * Lower bounds of completion times and makespan on AntMan's trace for every policy that serves
 * guaranteed jobs in order of arrival, which is AntMan's own rule (3.3). tandem keeps it only while
 * they fit the quotas.
 *
 * Purpose. AntMan's figures in exp_antman.c depend on how it treats its guests. These bounds do
 * not. They hold for every treatment, with all durations known, moves at no cost, parts of jobs on
 * any GPU and no limits of memory. Only these bounds may call a row "bounded".
 *
 * Alone: no job is faster than alone, so it ends no sooner than its arrival and its work.
 *
 * A fluid: a job of kind k has size = work x GPUs x weight_k, with weights such that sum(weight x
 * speed) <= 1 on a GPU in every company. So a GPU does at most 1 of size in a second. A duty
 * changes nothing: jobs that are there a part of the time make companies in turns, for each of
 * which the sum holds, and speeds under a duty are at most the mean over these turns (1 / (1 + x)
 * is convex). The sum of the completion times of a fluid is least when the smallest rest is served
 * first (SRPT), and a gang that needs its GPUs at once is no faster.
 *
 * Guaranteed jobs: each gang takes GPUs that no other guaranteed job has, and runs as if alone. By
 * induction over the order of arrival, none starts or ends sooner in any run that keeps the order,
 * since GPUs that come free later are free no sooner, one by one.
 *
 * Completion: the sum over all jobs is at least each of two bounds. One is the fluid of all jobs.
 * The other is the sum of the guaranteed jobs above, and the larger of the others' alone and their
 * fluid on GPUs that nobody else has.
 *
 * Makespan: at least the last of the guaranteed jobs, of each job alone from its arrival, and of
 * the fluid of the others in what the guaranteed jobs leave. A guaranteed job of kind l leaves
 * beside_l of size in a second of each of its GPUs, which costs it the slack. In every run it is
 * there no sooner and no shorter than above. That makes no room for the others: the work that comes
 * until s and can be done from s to the end T is at most the capacity between them, for each s, and
 * a job that is there later, but before T, leaves no more there.
 *
 * The makespan bound holds for policies that keep the guard, the others for all that keep the
 * order.
 */
#pragma once

#include "sim/engine/cluster.h"

struct td_guest_room {
	/* Per kind: the smallest GPU time for a second of its work. */
	double weight[TD_PROFILES_MAX];
	/* per kind of a guaranteed job: GPU time per second that it leaves to guests */
	double beside[TD_PROFILES_MAX];
};

/*
 * Computes the room for guests. `used` tells the kinds in use. A guaranteed job may become slower
 * by `slack`.
 */
void td_guest_room(const struct td_profiles *profiles, const struct td_contention *contention,
	const bool *used, double slack, struct td_guest_room *ret);

struct td_antman_bound {
	double jct_s, guaranteed_jct_s,
		/*
		 * Means over all jobs and over the guaranteed ones. The span is from the first
		 * arrival to the last end.
		 */
		span_s;
};

/*
 * Computes the bounds. Jobs are sorted by arrival; submit_ns, work_s, gpus, profile and class of
 * each are read. Returns 0, or -ENOMEM.
 */
int td_antman_bound(const struct td_sim_job *jobs, uint32_t count, uint32_t gpus,
	const struct td_guest_room *room, struct td_antman_bound *ret);

/*
 * Returns the least cost to a guaranteed job, pair[0], of a second of work of a guest, pair[1],
 * whatever the coordinator does. Under a duty d the guest does v(d) in a second, and the job loses
 * 1 - u(d) of it. A changing duty costs a mean over its values, so the cost is at least the least
 * (1 - u) / v over all duties. This is no bound for a guest that is not done when the job ends.
 */
double td_least_cost_beside(
	const struct td_contention *contention, const struct td_contender pair[2]);
