/* Evaluates a service's latency curves at its present load; see forecast.h. */
#include "policy/node/beside/forecast.h"

#include <string.h>

#include "policy/algo/fit/slo_share.h"
#include "policy/node/profile.h"

#define LOAD_MAX  0.8
#define SHARE_MIN 0.1 /* the curves are measured from a tenth of the SMs on */
#define GROWTH    1.5
/* The least of every duty, so that "no room" differs from "not known". */
#define DUTY_MIN_PPM 1u

/* Returns the only service of the GPU that answers requests, or NULL. */
static const struct td_client_view *find_service(const struct td_view *view, uint32_t gpu)
{
	const struct td_client_view *found = NULL;

	for (uint32_t c = 0; c < view->client_count; c++) {
		const struct td_client_view *client = &view->clients[c];

		if (client->gpu != gpu || client->class != TD_CLASS_ONLINE || client->stands_by)
			continue;
		if (found)
			return NULL;
		found = client;
	}
	return found;
}

static bool has_layers(const struct td_client_view *client)
{
	double sum = 0;

	for (uint32_t k = 0; client->profile && k < TD_MUDI_LAYERS; k++)
		sum += client->profile->layers[k];
	return sum > 0;
}

/* Adds up the layers of the besteffort programs that may run on the GPU. */
static void add_layers(struct td_forecast_of *of, const struct td_view *view,
	const struct td_plan *plan, uint32_t gpu)
{
	bool some = false, all = true;

	for (uint32_t c = 0; c < view->client_count; c++) {
		const struct td_client_view *client = &view->clients[c];

		if (client->gpu != gpu || client->class != TD_CLASS_BESTEFFORT ||
			plan->grants[c].gate == TD_GATE_CLOSED)
			continue;
		some = true;
		all = all && has_layers(client);
		for (uint32_t k = 0; client->profile && k < TD_MUDI_LAYERS; k++)
			of->layers[k] += client->profile->layers[k];
	}
	of->has_layers = some && all;
}

/* Returns the largest batch that the service forms and the curves hold for; 0: there is none. */
static uint32_t largest_batch(const struct td_client_view *service)
{
	const struct td_mudi_service *curves = service->profile->service;
	uint32_t batch = service->batch ? service->batch : service->batch_max;

	if (!batch || (curves->batch_max && batch > curves->batch_max))
		batch = curves->batch_max;
	return batch >= curves->batch_min ? batch : 0;
}

static struct td_forecast_of figures_of(struct td_rate_peak *peak, const struct td_view *view,
	const struct td_plan *plan, uint32_t gpu, uint64_t now_ns)
{
	const struct td_client_view *service = find_service(view, gpu);
	struct td_forecast_of of;

	/* Two of these are compared as bytes. */
	memset(&of, 0, sizeof(of));
	if (!service || !service->profile || !service->profile->service || !service->objective_ns ||
		view->gpus[gpu].mps != TD_MPS_ON) {
		*peak = (struct td_rate_peak){0};
		return of;
	}
	of.curves = service->profile->service;
	of.objective_ns = service->objective_ns;
	of.rate_per_s = td_rate_peak_of(peak, service->rate_per_s, now_ns);
	of.share = service->sm_share_ppm ? service->sm_share_ppm / (double)TD_PPM : 1;
	of.batch = largest_batch(service);
	add_layers(&of, view, plan, gpu);
	return of;
}

static struct td_slo slo_of(const struct td_forecast_of *of, uint32_t batch)
{
	return (struct td_slo){.objective_s = TD_FORECAST_PART * (double)of->objective_ns / 1e9,
		.rate_per_s = of->rate_per_s,
		.batch = batch,
		.load_max = LOAD_MAX,
		.share_min = SHARE_MIN};
}

/* Returns the duty for which a batch of this size takes no longer than it may. */
static double duty_at(const struct td_forecast_of *of, uint32_t batch)
{
	static const double nobody[TD_MUDI_LAYERS];
	const struct td_slo slo = slo_of(of, batch);
	const struct td_curve alone = td_mudi_curve(of->curves, nobody, batch),
			      beside = td_mudi_curve(of->curves, of->layers, batch);
	double alone_s = td_curve_at(&alone, of->share),
	       more_s = td_curve_at(&beside, of->share) + of->curves->error_s - alone_s,
	       room_s = td_slo_latency_limit_s(&slo) - alone_s;

	if (!(room_s > 0))
		return 0;
	return more_s > room_s ? room_s / more_s : 1;
}

/* Returns the smallest share of the SMs with which the service alone holds a rate that grows. */
static double share_at(const struct td_forecast_of *of, uint32_t batch)
{
	static const double nobody[TD_MUDI_LAYERS];
	struct td_slo slo = slo_of(of, batch);
	const struct td_curve alone = td_mudi_curve(of->curves, nobody, batch);

	slo.load_max /= GROWTH;
	return td_curve_smallest_share(&alone, td_slo_latency_limit_s(&slo), SHARE_MIN);
}

static uint32_t to_ppm(double part)
{
	if (!(part > 0))
		return DUTY_MIN_PPM;
	return part < 1 ? (uint32_t)(part * (TD_PPM - DUTY_MIN_PPM)) + DUTY_MIN_PPM : TD_PPM;
}

/* Returns the next batch to try, an eighth larger and at last the largest; 0: that was tried. */
static uint32_t next_batch(uint32_t batch, uint32_t most)
{
	uint32_t next = batch + (batch / 8 ? batch / 8 : 1);

	if (batch >= most)
		return 0;
	return next < most ? next : most;
}

static void evaluate(struct td_forecast *forecast)
{
	const struct td_forecast_of *of = &forecast->of;
	uint32_t least = of->batch ? of->curves->batch_min : 0;
	double duty = 0, share = of->share;

	forecast->duty_ppm = forecast->left_ppm = 0;
	forecast->error_ns = 0;
	if (!of->batch)
		return;
	for (uint32_t batch = least ? least : 1; batch; batch = next_batch(batch, of->batch)) {
		duty = of->has_layers ? fmax(duty, duty_at(of, batch)) : 0;
		share = fmin(share, share_at(of, batch));
	}
	forecast->duty_ppm = of->has_layers ? to_ppm(duty) : 0;
	/* If no share is enough, the service has all of the SMs, and others have the floor. */
	forecast->left_ppm =
		td_dynamic_sm_ppm(&td_dynamic_sm_default, (uint32_t)(fmin(share, 1) * TD_PPM));
	forecast->error_ns = of->curves->error_s > 0 ? (uint64_t)(of->curves->error_s * 1e9) : 0;
}

void td_forecast_step(struct td_forecast *forecast, const struct td_view *view,
	const struct td_plan *plan, uint32_t gpu, uint64_t now_ns)
{
	const struct td_forecast_of of = figures_of(&forecast->peak, view, plan, gpu, now_ns);

	if (!memcmp(&of, &forecast->of, sizeof(of)))
		return;
	forecast->of = of;
	evaluate(forecast);
}
