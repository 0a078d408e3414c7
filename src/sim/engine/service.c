/* Simulates services; see service.h. */
#include "sim/engine/service.h"

#include <math.h>
#include <string.h>

#include "sim/engine/cluster.h"
#include "sim/engine/sched.h"

#define ROUNDS_MAX 64u
#define SAME       0.005 /* MPS does not distinguish shares that differ by less */

double td_service_batch_s(const struct td_service_kind *kind, uint32_t batch)
{
	return fmax(kind->least_s, kind->fixed_s + kind->each_s * batch);
}

uint64_t td_service_bytes(const struct td_services *services, uint32_t index)
{
	const struct td_service *service = &services->list[index];
	const struct td_service_kind *kind = &services->kinds[service->kind];

	return kind->memory_bytes + (uint64_t)service->split.batch * kind->batch_bytes;
}

uint32_t td_service_usual_batch(const struct td_service_kind *kind, double rate_per_s)
{
	uint32_t batch = 256;

	while (batch > 16 && (batch - 1) / rate_per_s > kind->objective_s / 2)
		batch /= 2;
	return batch;
}

void td_service_truth(const struct td_contention *contention, const struct td_service_kind *kind,
	const struct td_split *split, double rate_per_s, const struct td_contender *guests,
	uint32_t count, struct td_batch_table *table, double *ret_speeds,
	struct td_service_seen *ret_seen)
{
	struct td_contender all[1 + TD_SIM_OCCUPANTS];
	struct td_batch_queue queue = {.batch = split->batch, .rate_per_s = rate_per_s};
	uint32_t present = split->paused ? 0 : count;
	double speeds[1 + TD_SIM_OCCUPANTS];

	all[0] = kind->contender;
	all[0].share = split->service_share;
	all[0].duty = 1;
	for (uint32_t i = 0; i < present; i++) {
		all[1 + i] = guests[i];
		all[1 + i].share = fmax(0.01, split->guest_share / present);
		if (split->guest_duty < 1)
			all[1 + i].duty = fmax(1e-6, split->guest_duty / present);
		if (split->guest_share >= 1)
			all[1 + i].share = 1;
	}
	td_contention_speeds(contention, all, 1 + present, speeds);
	queue.batch_s = td_service_batch_s(kind, split->batch) / speeds[0];
	all[0].duty = fmin(1, fmax(1e-3, td_batch_queue_load(&queue)));
	if (present)
		td_contention_speeds(contention, all, 1 + present, speeds);
	*ret_seen = (struct td_service_seen){.rate_per_s = rate_per_s,
		.p99_s = td_batch_table_p99_s(table, &queue),
		.busy = all[0].duty,
		.slowdown = queue.batch_s / td_service_batch_s(kind, split->batch),
		.guest_speed = present ? INFINITY : 0};
	for (uint32_t i = 0; i < count; i++) {
		ret_speeds[i] = present ? speeds[1 + i] : 0;
		ret_seen->guest_speed = fmin(ret_seen->guest_speed, ret_speeds[i]);
	}
}

void td_services_settle(struct td_cluster *cluster, uint32_t index)
{
	struct td_service *service = &cluster->services->list[index];
	double passed = (double)(cluster->now_ns - service->since_ns) * 1e-9;

	service->since_ns = cluster->now_ns;
	if (!service->tuned)
		return;
	service->total_s += passed;
	if (service->seen.p99_s > cluster->services->kinds[service->kind].objective_s)
		service->late_s += passed;
	if (cluster->gpus[service->gpu].count) {
		service->guest_s += passed;
		service->guest_speed_s += passed * service->seen.guest_speed;
		service->swapped_s += service->host_bytes ? passed : 0;
	}
}

void td_services_rate(struct td_cluster *cluster, void (*mark)(struct td_cluster *, uint32_t gpu))
{
	const struct td_services *all = cluster->services;
	uint64_t turn = (cluster->now_ns - cluster->first_ns) / all->interval_ns;

	for (uint32_t s = 0; s < all->count; s++) {
		double rate =
			(double)all->rates[(size_t)s * all->intervals + turn % all->intervals];
		struct td_service *service = &all->list[s];

		if (service->tuned && !(rate < service->seen.rate_per_s) &&
			!(rate > service->seen.rate_per_s))
			continue;
		td_services_settle(cluster, s);
		service->seen.rate_per_s = rate;
		mark(cluster, service->gpu);
	}
}

/*
 * Sets the split for a scheduler that does not know services: all of the GPU, shared with the jobs.
 */
static void divide_by_default(
	const struct td_service_kind *kind, double rate_per_s, struct td_split *split)
{
	*split = (struct td_split){.batch = td_service_usual_batch(kind, rate_per_s),
		.service_share = 1,
		.guest_share = 1,
		.guest_duty = 1};
}

/*
 * Returns the bytes that are moved for jobs that stay. Memory that comes or goes with a job is not
 * copied.
 */
static double moved_bytes(const struct td_service *service, uint64_t guests, uint64_t host)
{
	double before = (double)service->guest_bytes, now = (double)guests;
	double stay = fmin(before, now);

	if (!(stay > 0))
		return 0;
	return fabs((double)host * stay / now - (double)service->host_bytes * stay / before);
}

/* Moves memory of the jobs beside a service. Each job waits for its part. */
static void swap(struct td_cluster *cluster, uint32_t index)
{
	struct td_service *service = &cluster->services->list[index];
	const struct td_sim_gpu *gpu = &cluster->gpus[service->gpu];
	uint64_t guests = 0, needed, host;
	double moved;

	for (uint32_t i = 0; i < gpu->count; i++)
		guests += cluster->jobs[gpu->jobs[i]].memory_bytes;
	needed = guests + td_service_bytes(cluster->services, index);
	host = needed > gpu->memory_bytes ? needed - gpu->memory_bytes : 0;
	if (host > guests)
		host = guests;
	moved = moved_bytes(service, guests, host);
	service->host_bytes = host;
	service->guest_bytes = guests;
	if (!(moved > 0))
		return;
	cluster->counts.swaps++;
	cluster->counts.swapped_bytes += moved;
	for (uint32_t i = 0; i < gpu->count; i++) {
		struct td_sim_job *job = &cluster->jobs[gpu->jobs[i]];
		double part = (double)job->memory_bytes / (double)guests;
		double cost = part * moved / cluster->options.costs.link_bytes_s;

		job->left_s += cost;
		job->stale = true;
		cluster->counts.swap_s += cost * job->gpus;
	}
}

void td_services_refresh(struct td_cluster *cluster, uint32_t index, double *ret_speeds)
{
	struct td_service *service = &cluster->services->list[index];
	const struct td_service_kind *kind = &cluster->services->kinds[service->kind];
	const struct td_sim_gpu *gpu = &cluster->gpus[service->gpu];
	struct td_contender guests[TD_SIM_OCCUPANTS];
	double rate = service->seen.rate_per_s, before = service->split.service_share;
	bool more = false;

	td_services_settle(cluster, index);
	for (uint32_t i = 0; i < gpu->count; i++)
		guests[i] =
			cluster->profiles->profiles[cluster->jobs[gpu->jobs[i]].profile].contender;
	for (uint32_t round = 0; round < ROUNDS_MAX; round++) {
		if (cluster->sched->tune)
			more = cluster->sched->tune(cluster, index, round);
		else
			divide_by_default(kind, rate, &service->split);
		td_service_truth(&cluster->options.contention, kind, &service->split, rate, guests,
			gpu->count, cluster->table, ret_speeds, &service->seen);
		if (cluster->sched->turns && gpu->count) {
			service->seen.p99_s = INFINITY; /* a turn is longer than any objective */
			service->seen.guest_speed = 1. / (gpu->count + 1);
			for (uint32_t i = 0; i < gpu->count; i++)
				ret_speeds[i] = service->seen.guest_speed;
		}
		cluster->counts.rounds++;
		if (!more)
			break;
		service->total_s += cluster->sched->round_s;
		if (service->seen.p99_s > kind->objective_s)
			service->late_s += cluster->sched->round_s;
	}
	if (service->tuned && gpu->count && fabs(before - service->split.service_share) > SAME) {
		cluster->counts.repartitions++;
		for (uint32_t i = 0; i < gpu->count; i++) {
			struct td_sim_job *job = &cluster->jobs[gpu->jobs[i]];

			job->left_s += cluster->options.costs.repartition_s;
			cluster->counts.repartition_s +=
				cluster->options.costs.repartition_s * job->gpus;
			job->stale = true;
		}
	}
	service->tuned = true;
	if (gpu->memory_bytes && cluster->options.costs.link_bytes_s > 0)
		swap(cluster, index);
}
