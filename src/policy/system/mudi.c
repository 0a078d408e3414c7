/* Mudi's assignment and tuning; see mudi.h. */
#include "policy/system/mudi.h"

#include <math.h>
#include <string.h>

#define MARGIN_STEP 0.9

uint32_t td_mudi_assign(const struct td_mudi_service *services, uint32_t service_count,
	const struct td_selector_device *devices, uint32_t device_count,
	const double layers[TD_MUDI_LAYERS], uint64_t needed_bytes, double *scores)
{
	for (uint32_t i = 0; i < service_count; i++)
		scores[i] = td_mudi_score(&services[i], layers);
	return td_selector_choose(
		devices, device_count, scores, needed_bytes, TD_SELECTOR_TASKS_MAX);
}

static double largest_cutoff(
	const struct td_mudi_service *service, const double layers[TD_MUDI_LAYERS])
{
	double share = 0;

	for (uint32_t b = 0; b < TD_SELECTOR_BATCHES; b++)
		share = fmax(share, td_mudi_curve(service, layers, td_selector_batches[b]).knee_x);
	return share;
}

static bool holds(const struct td_slo *slo, const struct td_curve *curve, double share)
{
	return td_curve_at(curve, share) <= td_slo_latency_limit_s(slo);
}

static uint32_t least_batch(const struct td_mudi_service *service)
{
	return service->batch_min ? service->batch_min : TD_MUDI_BATCH_MIN;
}

/* Returns the largest batch to try: the tuner takes TD_BATCH_CANDIDATES_MAX of them at most. */
static uint32_t largest_batch(const struct td_mudi_service *service)
{
	uint32_t most = least_batch(service) + TD_BATCH_CANDIDATES_MAX - 1;

	if (!service->batch_max)
		return TD_MUDI_BATCH_MAX;
	return service->batch_max < most ? service->batch_max : most;
}

static uint32_t largest_batch_of(
	const struct td_mudi_device *device, const struct td_mudi_service *service)
{
	uint32_t most = largest_batch(service);

	return device->batch_max && device->batch_max < most ? device->batch_max : most;
}

/* Lists the batches that hold the objective with the device's share. Returns their number. */
static uint32_t list_candidates(const struct td_mudi_device *device,
	const struct td_mudi_service *service, const double layers[TD_MUDI_LAYERS],
	struct td_slo slo, uint32_t *batches)
{
	uint32_t n = 0, most = largest_batch_of(device, service);

	for (slo.batch = least_batch(service); slo.batch <= most; slo.batch++) {
		struct td_curve curve = td_mudi_curve(service, layers, slo.batch);

		if (holds(&slo, &curve, device->share))
			batches[n++] = slo.batch;
	}
	return n;
}

static struct td_slo within_margin(const struct td_mudi_device *device)
{
	struct td_slo slo = device->slo;

	if (device->margin > 0)
		slo.objective_s *= device->margin;
	return slo;
}

/*
 * Starts a search of the batch at a share. Returns false if no batch holds the objective with it.
 */
static bool search(struct td_mudi_device *device, const struct td_mudi_service *service,
	const double layers[TD_MUDI_LAYERS], double share)
{
	uint32_t batches[TD_BATCH_CANDIDATES_MAX], count;

	device->share =
		device->share_fixed > 0 ? device->share_fixed : fmin(share, TD_MUDI_SHARE_MAX);
	count = list_candidates(device, service, layers, within_margin(device), batches);
	device->paused = td_batch_tuner_init(&device->tuner, batches, count, device->share,
				 TD_MUDI_ITERATIONS) != 0;
	device->batch = td_batch_tuner_propose(&device->tuner);
	return !device->paused;
}

void td_mudi_begin(struct td_mudi_device *device, const struct td_mudi_service *service,
	const double layers[TD_MUDI_LAYERS], const struct td_slo *slo)
{
	device->slo = *slo;
	device->tuned = device->keeps_share = false;
	if (device->share_fixed > 0) {
		(void)search(device, service, layers, device->share_fixed);
		return;
	}
	/* A share above the cut-off gains little, but may be needed. */
	if (!search(device, service, layers, largest_cutoff(service, layers)) &&
		!search(device, service, layers, TD_MUDI_SHARE_MAX))
		device->share = 1;
}

void td_mudi_rescale(struct td_mudi_device *device, const struct td_mudi_service *service,
	const double layers[TD_MUDI_LAYERS], const struct td_slo *slo)
{
	struct td_curve curve;
	struct td_slo within;
	double share;

	device->slo = *slo;
	device->slo.batch = device->batch;
	within = within_margin(device);
	if (!device->paused && device->batch && !(device->share_fixed > 0)) {
		curve = td_mudi_curve(service, layers, device->batch);
		device->tuned = false;
		device->keeps_share = true;
		if (!td_slo_smallest_share(&within, &curve, &share) && share <= TD_MUDI_SHARE_MAX &&
			search(device, service, layers, share))
			return;
	}
	td_mudi_begin(device, service, layers, slo);
}

void td_mudi_miss(struct td_mudi_device *device, const struct td_mudi_service *service,
	const double layers[TD_MUDI_LAYERS])
{
	const struct td_slo slo = device->slo;

	device->margin = (device->margin > 0 ? device->margin : 1) * MARGIN_STEP;
	td_mudi_begin(device, service, layers, &slo);
}

bool td_mudi_recover(struct td_mudi_device *device, const struct td_mudi_service *service,
	const double layers[TD_MUDI_LAYERS])
{
	const struct td_slo slo = device->slo;
	double margin = device->margin / MARGIN_STEP;

	if (!(device->margin > 0))
		return false;
	/* A margin of 1, up to rounding, means no miss. */
	device->margin = margin < (1 + MARGIN_STEP) / 2 ? margin : 0;
	td_mudi_begin(device, service, layers, &slo);
	return true;
}

bool td_mudi_fits(const struct td_mudi_service *service, const double layers[TD_MUDI_LAYERS],
	const struct td_slo *slo)
{
	struct td_slo at = *slo;

	for (double batch = least_batch(service); batch <= largest_batch(service);
		batch = fmax(batch * 1.125, batch + 1)) {
		struct td_curve curve;

		at.batch = (uint32_t)batch;
		curve = td_mudi_curve(service, layers, at.batch);
		if (holds(&at, &curve, TD_MUDI_SHARE_MAX))
			return true;
	}
	return false;
}

/* Sets the smallest share that holds the objective with the batch found. */
static void scale_share(struct td_mudi_device *device, const struct td_mudi_service *service,
	const double layers[TD_MUDI_LAYERS])
{
	struct td_curve curve = td_mudi_curve(service, layers, device->batch);
	struct td_slo slo;
	double share;

	device->slo.batch = device->batch;
	slo = within_margin(device);
	if (!device->keeps_share && !(device->share_fixed > 0) &&
		!td_slo_smallest_share(&slo, &curve, &share))
		device->share = fmin(share, TD_MUDI_SHARE_MAX);
	device->tuned = true;
}

bool td_mudi_observe(struct td_mudi_device *device, const struct td_mudi_service *service,
	const double layers[TD_MUDI_LAYERS], double iteration_s)
{
	uint32_t before = device->batch;

	if (device->paused || device->tuned)
		return false;
	td_batch_tuner_observe(&device->tuner, iteration_s);
	device->batch = td_batch_tuner_propose(&device->tuner);
	if (!device->tuner.converged)
		return device->batch != before;
	scale_share(device, service, layers);
	return true;
}
