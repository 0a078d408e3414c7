/* Computes the speeds of jobs that share a GPU; see contention.h. */
#include "model/contention.h"

#include <assert.h>
#include <math.h>

const struct td_contender td_contender_neutral = {.serial = 1, .share = 1, .duty = 1, .demand = 1};

double td_contention_solo(const struct td_contender *job)
{
	return 1 / (job->serial + (1 - job->serial) / job->share);
}

/*
 * Returns the factor by which a neighbour's p and h count: it presses only while it runs, and less
 * with a smaller share.
 */
static double weight_of(const struct td_contention *contention, const struct td_contender *job)
{
	double weight = job->duty;

	if (job->share < 1)
		weight *= contention->capped_pressure * td_contention_solo(job);
	return weight;
}

static void side_by_side(const struct td_contention *contention, const struct td_contender *jobs,
	uint32_t count, double *ret_speeds)
{
	double pressure = 0, host = 0;

	for (uint32_t i = 0; i < count; i++) {
		double weight = weight_of(contention, &jobs[i]);

		pressure += weight * jobs[i].pressure;
		host += weight * jobs[i].host;
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct td_contender *job = &jobs[i];
		double own = weight_of(contention, job), slowness = 1 / td_contention_solo(job);

		slowness += job->sensitivity * fmax(0, pressure - own * job->pressure);
		slowness += job->host * fmax(0, host - own * job->host);
		ret_speeds[i] = job->duty / slowness;
	}
}

/*
 * Computes speeds by turns: the parts of the GPU's time are shared as td_spatial_speeds() shares
 * SMs.
 */
static void by_turns(const struct td_contender *jobs, uint32_t count, double *ret_speeds)
{
	struct td_spatial_user users[TD_CONTENDERS_MAX];

	assert(count <= TD_CONTENDERS_MAX);
	for (uint32_t i = 0; i < count; i++)
		users[i] = (struct td_spatial_user){.need = jobs[i].demand,
			.cap = fmin(jobs[i].demand, jobs[i].share) * jobs[i].duty};
	td_spatial_speeds(users, count, ret_speeds);
}

void td_contention_speeds(const struct td_contention *contention, const struct td_contender *jobs,
	uint32_t count, double *ret_speeds)
{
	if (contention->proportional)
		by_turns(jobs, count, ret_speeds);
	else
		side_by_side(contention, jobs, count, ret_speeds);
}

double td_spilled_speed(uint64_t demanded_bytes, uint64_t resident_bytes, double host_cost)
{
	if (resident_bytes >= demanded_bytes)
		return 1;
	return 1 /
	       (1 + host_cost * (double)(demanded_bytes - resident_bytes) / (double)demanded_bytes);
}

double td_thrash_slowdown(uint64_t demanded_bytes, uint64_t capacity_bytes, double worst)
{
	if (demanded_bytes <= capacity_bytes)
		return 1;
	if (!capacity_bytes)
		return worst;
	return 1 + (worst - 1) * fmin(1, (double)(demanded_bytes - capacity_bytes) /
						 (double)capacity_bytes);
}
