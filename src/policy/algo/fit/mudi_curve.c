/* Mudi's learnt latency curves; see mudi_curve.h. */
#include "policy/algo/fit/mudi_curve.h"

#include <math.h>
#include <string.h>

#include "policy/algo/fit/selector.h"

/* Returns by what the latency beside a task differs from the models'; NULL: they never met. */
static const struct td_mudi_met *find_met(
	const struct td_mudi_service *service, const double layers[TD_MUDI_LAYERS])
{
	for (uint32_t i = 0; i < service->met_count; i++) {
		uint32_t k = 0;

		while (k < TD_MUDI_LAYERS && !(service->met[i].layers[k] < layers[k]) &&
			!(service->met[i].layers[k] > layers[k]))
			k++;
		if (k == TD_MUDI_LAYERS)
			return &service->met[i];
	}
	return NULL;
}

struct td_curve td_mudi_curve(
	const struct td_mudi_service *service, const double layers[TD_MUDI_LAYERS], double batch)
{
	const struct td_mudi_met *met = find_met(service, layers);
	double inputs[TD_MUDI_INPUTS];
	struct td_curve curve;

	memcpy(inputs, layers, TD_MUDI_LAYERS * sizeof(double));
	inputs[TD_MUDI_LAYERS] = log2(batch);
	curve = (struct td_curve){
		.form = TD_CURVE_PIECEWISE,
		.knee_x = fmin(fmax(td_predict(service->knee_share, inputs), 0.01), 1),
		.knee_y = td_predict(service->knee_latency, inputs),
		.left_slope = td_predict(service->left_slope, inputs),
		.right_slope = td_predict(service->right_slope, inputs),
	};
	if (met) {
		curve.knee_y *= met->factor;
		curve.left_slope *= met->factor;
		curve.right_slope *= met->factor;
	}
	return curve;
}

double td_mudi_score(const struct td_mudi_service *service, const double layers[TD_MUDI_LAYERS])
{
	double inputs[TD_SELECTOR_BATCHES][TD_MUDI_INPUTS];
	double left[TD_SELECTOR_BATCHES], right[TD_SELECTOR_BATCHES];
	struct td_curve curves[TD_SELECTOR_BATCHES];
	const struct td_mudi_met *met = find_met(service, layers);
	double factor = met ? met->factor : 1;

	for (uint32_t b = 0; b < TD_SELECTOR_BATCHES; b++) {
		memcpy(inputs[b], layers, TD_MUDI_LAYERS * sizeof(double));
		inputs[b][TD_MUDI_LAYERS] = log2(td_selector_batches[b]);
	}
	/* The score needs only the slopes, so the knees are not predicted. */
	td_predict_many(service->left_slope, inputs[0], TD_SELECTOR_BATCHES, left);
	td_predict_many(service->right_slope, inputs[0], TD_SELECTOR_BATCHES, right);
	for (uint32_t b = 0; b < TD_SELECTOR_BATCHES; b++)
		curves[b] = (struct td_curve){.form = TD_CURVE_PIECEWISE,
			.left_slope = left[b] * factor,
			.right_slope = right[b] * factor};
	return td_selector_score(curves, TD_SELECTOR_BATCHES);
}
