/*
 * Computes the speed of each job on a GPU; see cluster.h. Jobs side by side get the contention
 * model's speed, jobs that lack memory are slower, and guests have a duty.
 */
#include <math.h>
#include <string.h>

#include "policy/algo/control/duty.h"
#include "sim/engine/cluster.h"
#include "sim/engine/sched.h"

#define DUTY_ROUNDS  12000u /* steps of the holder after which the duty counts as settled */
#define DUTY_STEP_NS 100000000.

/*
 * Returns the factor by which job `at` is slower for lack of memory. Holders have what they need,
 * and guests share the rest in proportion.
 */
static double memory_speed(
	const struct td_cluster *cluster, const struct td_sim_gpu *gpu, uint32_t at)
{
	uint64_t held = 0, guests = 0, spare;
	const struct td_sim_job *job = &cluster->jobs[gpu->jobs[at]];

	if (gpu->service != TD_SERVICE_NONE)
		held = td_service_bytes(cluster->services, gpu->service);

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

static void gather(const struct td_cluster *cluster, const struct td_sim_gpu *gpu,
	struct td_contender *ret, bool *ret_guest)
{
	for (uint32_t i = 0; i < gpu->count; i++) {
		const struct td_sim_job *job = &cluster->jobs[gpu->jobs[i]];

		ret[i] = cluster->profiles->profiles[job->profile].contender;
		ret_guest[i] = job->guest;
	}
}

/* Computes the speeds at a duty. It is for all guests together, which take turns in it. */
static void speeds_under(const struct td_contention *contention, const struct td_contender *jobs,
	const bool *guest, uint32_t count, double duty, double *ret_speeds)
{
	struct td_contender contenders[TD_SIM_OCCUPANTS];
	uint32_t guests = 0;

	for (uint32_t i = 0; i < count; i++)
		guests += guest[i];
	for (uint32_t i = 0; i < count; i++) {
		contenders[i] = jobs[i];
		if (guest[i] && duty < 1)
			contenders[i].duty = duty / guests;
	}
	td_contention_speeds(contention, contenders, count, ret_speeds);
}

void td_duty_settle(const struct td_contention *contention, const struct td_contender *jobs,
	const bool *guest, uint32_t count, const struct td_duty_params *params, uint32_t rounds,
	double *ret_speeds)
{
	struct td_duty duty = {0};
	struct td_duty_input input = {.guaranteed = true, .busy = true, .job = 1, .company = 1};
	double sums[TD_SIM_OCCUPANTS] = {0}, speeds[TD_SIM_OCCUPANTS], time = 0, now_ns = 1;
	uint32_t holder = 0;

	while (guest[holder])
		holder++;
	for (uint32_t round = 0; round < rounds; round++) {
		struct td_duty_output out = td_duty_step(&duty, params, &input, (uint64_t)now_ns);
		double step_ns;

		speeds_under(contention, jobs, guest, count, out.duty_ppm / 1e6, speeds);
		step_ns = DUTY_STEP_NS / speeds[holder];
		now_ns += step_ns;
		input.steps++;
		input.step_ns = (uint64_t)step_ns;
		input.step_began_ns = (uint64_t)now_ns;
		if (round < rounds / 3)
			continue;
		time += step_ns;
		for (uint32_t i = 0; i < count; i++)
			sums[i] += speeds[i] * step_ns;
	}
	for (uint32_t i = 0; i < count; i++)
		ret_speeds[i] = sums[i] / time;
}

static struct td_duty_params duty_of(const struct td_sched *sched)
{
	struct td_duty_params params = td_duty_default;

	if (sched->slack_ppm)
		params.slack_ppm = params.raise_ppm = sched->slack_ppm;
	return params;
}

/*
 * Computes the speeds beside a guarded holder. They depend only on the kinds of the jobs, and the
 * same kinds meet again and again, so results are cached. An entry may be overwritten.
 */
static void guarded_speeds(
	struct td_cluster *cluster, const struct td_sim_gpu *gpu, double *ret_speeds)
{
	struct td_contender contenders[TD_SIM_OCCUPANTS];
	bool guests[TD_SIM_OCCUPANTS];
	struct td_settled *settled;
	uint64_t key = 1;

	for (uint32_t i = 0; i < gpu->count; i++) {
		const struct td_sim_job *job = &cluster->jobs[gpu->jobs[i]];

		key = key << 9 | job->profile << 1 | job->guest;
	}
	settled = &cluster->settled[key * 0x9e3779b97f4a7c15ull >> (64 - TD_SETTLED_BITS)];
	if (settled->key != key) {
		const struct td_duty_params params = duty_of(cluster->sched);

		gather(cluster, gpu, contenders, guests);
		if (cluster->options.world == TD_WORLD_LEAST_DUTY)
			speeds_under(&cluster->options.contention, contenders, guests, gpu->count,
				params.floor_ppm / 1e6, settled->speeds);
		else
			td_duty_settle(&cluster->options.contention, contenders, guests, gpu->count,
				&params, DUTY_ROUNDS, settled->speeds);
		settled->key = key;
	}
	memcpy(ret_speeds, settled->speeds, gpu->count * sizeof(*ret_speeds));
}

/* Computes speeds where guests beside a holder have the duty, and no other job is slowed down. */
static void guarded_alone(struct td_cluster *cluster, struct td_sim_gpu *gpu, bool guarded)
{
	if (guarded)
		guarded_speeds(cluster, gpu, gpu->speeds);
	for (uint32_t i = 0; i < gpu->count; i++)
		if (!guarded || !cluster->jobs[gpu->jobs[i]].guest)
			gpu->speeds[i] = 1;
}

static void unslowed(struct td_sim_gpu *gpu)
{
	for (uint32_t i = 0; i < gpu->count; i++)
		gpu->speeds[i] = 1;
}

/*
 * Returns the speed with equal turns, with a hand-over of memory at each turn if not all of it fits
 * (nvshare's table 2: 2.08 s of 30).
 */
static double turn_speed(const struct td_cluster *cluster, const struct td_sim_gpu *gpu)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < gpu->count; i++)
		bytes += cluster->jobs[gpu->jobs[i]].memory_bytes;
	return (gpu->memory_bytes && bytes > gpu->memory_bytes ? 30 / 32.08 : 1) / gpu->count;
}

void td_cluster_speeds(struct td_cluster *cluster, struct td_sim_gpu *gpu)
{
	struct td_contender contenders[TD_SIM_OCCUPANTS];
	bool guests[TD_SIM_OCCUPANTS], guarded;
	uint32_t holders = 0;

	if (gpu->service != TD_SERVICE_NONE) {
		td_services_refresh(cluster, gpu->service, gpu->speeds);
		for (uint32_t i = 0; i < gpu->count; i++)
			gpu->speeds[i] *= memory_speed(cluster, gpu, i);
		return;
	}
	for (uint32_t i = 0; i < gpu->count; i++)
		holders += !cluster->jobs[gpu->jobs[i]].guest;
	if (cluster->sched->turns) {
		for (uint32_t i = 0; i < gpu->count; i++)
			gpu->speeds[i] = turn_speed(cluster, gpu);
		return;
	}
	guarded = cluster->sched->guards && holders == 1 && gpu->count > 1;
	if (cluster->options.world == TD_WORLD_GUARD_ALONE) {
		guarded_alone(cluster, gpu, guarded);
	} else if (cluster->options.world == TD_WORLD_GUESTS_ALONE && holders) {
		unslowed(gpu);
	} else if (guarded) {
		guarded_speeds(cluster, gpu, gpu->speeds);
	} else {
		gather(cluster, gpu, contenders, guests);
		speeds_under(&cluster->options.contention, contenders, guests, gpu->count, 1,
			gpu->speeds);
	}
	for (uint32_t i = 0; i < gpu->count; i++)
		gpu->speeds[i] *= memory_speed(cluster, gpu, i);
}

double td_cluster_load(const struct td_cluster *cluster, uint32_t at)
{
	const struct td_sim_gpu *gpu = &cluster->gpus[at];
	double load = gpu->service == TD_SERVICE_NONE
			      ? 0
			      : cluster->services->list[gpu->service].seen.busy;

	for (uint32_t i = 0; i < gpu->count; i++)
		load += cluster->profiles->profiles[cluster->jobs[gpu->jobs[i]].profile]
				.contender.demand *
			gpu->speeds[i];
	return fmin(1, load);
}
