/*
 * Divides GPUs for GSLICE and gpulets; chooses and divides GPUs for the bound; see sched_beside.c.
 *
 * GSLICE stops where it first holds the objective after having missed it. As published it would
 * miss it once in each cycle for ever.
 */
#include <math.h>

#include "sim/scheduler/beside.h"

#define SHARE_STEP 0.05

bool td_beside_tune_gslice(struct td_beside_service *own, const struct td_service_kind *kind,
	struct td_service *service, uint32_t round)
{
	double before = own->gslice.share;

	if (!round) {
		own->grown = false;
		service->split.service_share = before;
	} else {
		double share = td_gslice_step(&own->gslice, service->seen.p99_s, kind->objective_s);

		own->grown |= share > before;
		service->split.service_share = share;
		if (share >= before && share <= before)
			return false;
		if (own->grown && share < before) { /* back to the share with which it was missed */
			own->gslice.share = service->split.service_share = before;
			return false;
		}
	}
	service->split.guest_share = 1 - service->split.service_share;
	service->split.paused = service->split.guest_share < 0.01;
	return true;
}

void td_beside_tune_gpulets(const struct td_cluster *cluster, struct td_service *service)
{
	const struct td_service_kind *kind = &cluster->services->kinds[service->kind];
	const struct td_slo slo = {.objective_s = kind->objective_s,
		.rate_per_s = service->seen.rate_per_s,
		.batch = service->split.batch,
		.load_max = 0.8,
		.share_min = 0.01};
	uint32_t b = 0;
	double size;

	while (td_selector_batches[b] < service->split.batch)
		b++;
	size = td_gpulet_size(&slo, &cluster->options.knowledge->pieces[service->kind][b]);
	service->split.paused = !(size > 0 && size < 1);
	service->split.service_share = size > 0 ? size : 1;
	service->split.guest_share = 1 - service->split.service_share;
}

/* Computes the result of one batch and share with a kind of job beside the service. */
static struct td_split try_split(const struct td_cluster *cluster, uint32_t service,
	uint32_t profile, uint32_t batch, double share, double *ret_speed,
	struct td_service_seen *ret_seen)
{
	const struct td_split split = {
		.batch = batch, .service_share = share, .guest_share = 1 - share, .guest_duty = 1};

	td_service_truth(&cluster->options.contention, td_beside_kind(cluster, service), &split,
		cluster->services->list[service].seen.rate_per_s,
		&cluster->profiles->profiles[profile].contender, 1, cluster->table, ret_speed,
		ret_seen);
	return split;
}

/* Tells whether Mudi's two conditions (slo_share.h) hold for the true time of a batch. */
static bool mudi_holds(const struct td_service_kind *kind, const struct td_service_seen *seen,
	const struct td_split *split)
{
	const struct td_slo slo = {.objective_s = kind->objective_s,
		.rate_per_s = seen->rate_per_s,
		.batch = split->batch,
		.load_max = 0.8};

	return seen->slowdown * td_service_batch_s(kind, split->batch) <=
	       td_slo_latency_limit_s(&slo);
}

/*
 * Finds the batch with which the job is fastest. Each batch has the smallest share under which
 * Mudi's conditions hold. The 10 % for errors of predictions stay, though there are none here.
 */
static void find_by_rules(struct td_cluster *cluster, uint32_t service, uint32_t profile,
	struct td_beside_found *found)
{
	const struct td_service_kind *kind = td_beside_kind(cluster, service);

	for (double b = TD_MUDI_BATCH_MIN; b <= TD_MUDI_BATCH_MAX; b *= 1.125) {
		double low = 0.01, high = TD_MUDI_SHARE_MAX, speed;
		struct td_service_seen seen;
		struct td_split split =
			try_split(cluster, service, profile, (uint32_t)b, high, &speed, &seen);

		if (!mudi_holds(kind, &seen, &split))
			continue;
		for (int round = 0; round < 7; round++) {
			double share = (low + high) / 2;

			split = try_split(
				cluster, service, profile, (uint32_t)b, share, &speed, &seen);
			if (mudi_holds(kind, &seen, &split))
				high = share;
			else
				low = share;
		}
		split = try_split(cluster, service, profile, (uint32_t)b,
			fmin(1.1 * high, TD_MUDI_SHARE_MAX), &speed, &seen);
		if (speed > found->speed)
			*found = (struct td_beside_found){
				found->key, split.batch, split.service_share, speed, 0, false};
	}
}

/* Finds the best split by trying all batches and shares with the true speeds. */
static const struct td_beside_found *find_optimum(
	struct td_cluster *cluster, uint32_t service, uint32_t profile)
{
	struct td_beside_found *found = td_beside_look_up(cluster, service, profile);
	const struct td_service_kind *kind = td_beside_kind(cluster, service);
	double rate = cluster->services->list[service].seen.rate_per_s;
	struct td_beside *state = cluster->sched_state;

	if (found->key)
		return found;
	*found = (struct td_beside_found){.key = state->services[service].key,
		.batch = td_service_usual_batch(kind, rate),
		.share = 1,
		.paused = true};
	if (state->variant == TD_BESIDE_MUDI_TRUTH) {
		find_by_rules(cluster, service, profile, found);
		return found;
	}
	for (uint32_t b = 0; b < TD_SELECTOR_BATCHES; b++) {
		for (double share = SHARE_STEP; share < 0.99; share += SHARE_STEP) {
			struct td_service_seen seen;
			double speed;
			struct td_split split = try_split(cluster, service, profile,
				td_selector_batches[b], share, &speed, &seen);

			if (seen.p99_s > kind->objective_s || !(speed > found->speed))
				continue;
			*found = (struct td_beside_found){
				found->key, split.batch, share, speed, 0, false};
		}
	}
	return found;
}

uint32_t td_beside_choose_optimum(struct td_cluster *cluster, uint32_t profile)
{
	uint32_t best = UINT32_MAX;
	double most = -1;

	for (uint32_t g = 0; g < cluster->gpu_count; g++) {
		uint32_t service = cluster->gpus[g].service;
		double speed = 1;

		if (!td_beside_is_open(cluster, g))
			continue;
		if (service != TD_SERVICE_NONE)
			speed = find_optimum(cluster, service, profile)->speed;
		if (!(speed > most))
			continue;
		most = speed;
		best = g;
	}
	return best;
}

void td_beside_tune_optimum(struct td_cluster *cluster, uint32_t index, uint32_t profile)
{
	struct td_service *service = &cluster->services->list[index];
	const struct td_beside_found *found = find_optimum(cluster, index, profile);

	service->split.batch = found->batch;
	service->split.service_share = found->share;
	service->split.guest_share = 1 - found->share;
	service->split.paused = found->paused;
}
