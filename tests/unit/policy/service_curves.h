/* A service with a profile, for tests of policies on a node of rows. */
#pragma once

#include "unit/policy/nodes_world.h"

/* Steep to a share of 40 %, flat beyond; 20 ms there, the more the larger the batch. */
static const double zeros[TD_PREDICT_INPUTS_MAX];
static double ones[TD_PREDICT_INPUTS_MAX];
static const double steep[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -0.1},
		    flat[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -0.001},
		    knee[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.4},
		    latency[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.001, 0.02};
static struct td_predictor lines[4];
static const struct td_mudi_service service_curves = {
	&lines[0], &lines[1], &lines[2], &lines[3], 0, 0, 0, NULL, 0};
static const struct td_profile service_profile = {.service = &service_curves};

__attribute__((unused)) static void make_curves(void)
{
	const double *const coefficients[] = {steep, flat, knee, latency};

	for (uint32_t i = 0; i < TD_PREDICT_INPUTS_MAX; i++)
		ones[i] = 1;
	for (uint32_t i = 0; i < 4; i++)
		lines[i] = (struct td_predictor){.form = TD_PREDICTOR_LINEAR,
			.inputs = TD_MUDI_INPUTS,
			.shift = zeros,
			.scale = ones,
			.target_scale = 1,
			.coefficients = coefficients[i],
			.coefficient_count = TD_MUDI_INPUTS + 1};
}

__attribute__((unused)) static struct td_client_view *add_service(void)
{
	struct td_client_view *c = add(1, 0, TD_CLASS_ONLINE, 4 * GIB);

	make_curves();
	c->profile = &service_profile;
	c->objective_ns = 200 * MS;
	c->rate_per_s = 1000;
	return c;
}
