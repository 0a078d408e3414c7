/*
 * How fast each job on a GPU goes; see cluster.h. The contention model for those side by side, memory for those who lack it, and the duty for guests.
 */
#include <math.h>
#include <string.h>

#include "policy/duty.h"
#include "sim/cluster.h"
#include "sim/sched.h"

#define DUTY_ROUNDS  400 /* steps of the holder until the duty counts as settled */
#define DUTY_SKIP    100 /* of them, before the mean is taken */
#define DUTY_STEP_NS 100000000.

/* Bytes that each occupant finds on the device: holders first, then guests in proportion. */
static double memory_speed(
	const struct td_cluster *cluster, const struct td_sim_gpu *gpu, uint32_t at)
{
	uint64_t held = 0, guests = 0, spare;
	const struct td_sim_job *job = &cluster->jobs[gpu->jobs[at]];

	if (!gpu->memory_bytes || !job->memory_bytes)
		return 1;
	for (uint32_t i = 0; i < gpu->count; i++) {
		const struct td_sim_job *other = &cluster->jobs[gpu->jobs[i]];

		*(other->guest ? &guests : &held) += other->memory_bytes;
	}
	spare = held < gpu->memory_bytes ? gpu->memory_bytes - held : 0;
	if (!job->guest || guests <= spare)
		return 1;
	return td_spilled_speed(job->memory_bytes,
		(uint64_t)((double)job->memory_bytes * (double)spare / (double)guests),
		job->host_cost);
}

static void free_speeds(const struct td_cluster *cluster, const struct td_sim_gpu *gpu, double duty,
	double *ret_speeds)
{
	struct td_contender contenders[TD_SIM_OCCUPANTS];
	uint32_t guests = 0;

	for (uint32_t i = 0; i < gpu->count; i++)
		guests += cluster->jobs[gpu->jobs[i]].guest;
	for (uint32_t i = 0; i < gpu->count; i++) {
		const struct td_sim_job *job = &cluster->jobs[gpu->jobs[i]];

		contenders[i] = cluster->profiles->profiles[job->profile].contender;
		/* The duty is for all guests together: they take turns in it. */
		if (job->guest && duty < 1)
			contenders[i].duty = duty / guests;
	}
	td_contention_speeds(&cluster->options.contention, contenders, gpu->count, ret_speeds);
}

/* Lets the duty's controller see step after step of the holder, and takes the means of what follows. */
static void settle_duty(struct td_cluster *cluster, const struct td_sim_gpu *gpu, uint32_t holder,
	double *ret_speeds)
{
	struct td_duty duty = {0};
	struct td_duty_input input = {.guaranteed = true, .busy = true, .job = 1};
	double sums[TD_SIM_OCCUPANTS] = {0}, speeds[TD_SIM_OCCUPANTS], time = 0, now_ns = 1;

	for (int round = 0; round < DUTY_ROUNDS; round++) {
		struct td_duty_output out =
			td_duty_step(&duty, &td_duty_default, &input, (uint64_t)now_ns);
		double step_ns;

		free_speeds(cluster, gpu, out.duty_ppm / 1e6, speeds);
		step_ns = DUTY_STEP_NS / speeds[holder];
		input.step_began_ns = (uint64_t)now_ns;
		now_ns += step_ns;
		input.steps++;
		input.step_ns = (uint64_t)step_ns;
		input.step_began_ns = (uint64_t)now_ns;
		if (round < DUTY_SKIP)
			continue;
		time += step_ns;
		for (uint32_t i = 0; i < gpu->count; i++)
			sums[i] += speeds[i] * step_ns;
	}
	for (uint32_t i = 0; i < gpu->count; i++)
		ret_speeds[i] = sums[i] / time;
}

/* One guest beside a holder is the common case, and depends on the two kinds alone. */
static void guarded_speeds(struct td_cluster *cluster, const struct td_sim_gpu *gpu,
	uint32_t holder, double *ret_speeds)
{
	uint32_t guest = 1 - holder, kinds = cluster->profiles->count;
	double *settled;

	if (gpu->count != 2) {
		settle_duty(cluster, gpu, holder, ret_speeds);
		return;
	}
	settled = &cluster->settled[2 * ((size_t)cluster->jobs[gpu->jobs[holder]].profile * kinds +
						cluster->jobs[gpu->jobs[guest]].profile)];
	if (settled[0] < 0) {
		settle_duty(cluster, gpu, holder, ret_speeds);
		settled[0] = ret_speeds[holder];
		settled[1] = ret_speeds[guest];
	}
	ret_speeds[holder] = settled[0];
	ret_speeds[guest] = settled[1];
}

void td_cluster_speeds(struct td_cluster *cluster, struct td_sim_gpu *gpu)
{
	uint32_t holders = 0, holder = 0;

	for (uint32_t i = 0; i < gpu->count; i++) {
		if (!cluster->jobs[gpu->jobs[i]].guest) {
			holders++;
			holder = i;
		}
	}
	if (cluster->sched->guards && holders == 1 && gpu->count > 1)
		guarded_speeds(cluster, gpu, holder, gpu->speeds);
	else
		free_speeds(cluster, gpu, 1, gpu->speeds);
	for (uint32_t i = 0; i < gpu->count; i++)
		gpu->speeds[i] *= memory_speed(cluster, gpu, i);
}

double td_cluster_load(const struct td_cluster *cluster, uint32_t at)
{
	const struct td_sim_gpu *gpu = &cluster->gpus[at];
	double load = 0;

	for (uint32_t i = 0; i < gpu->count; i++)
		load += cluster->profiles->profiles[cluster->jobs[gpu->jobs[i]].profile]
				.contender.demand *
			gpu->speeds[i];
	return fmin(1, load);
}
