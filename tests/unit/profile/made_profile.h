/* A profile that a test makes: four linear models. Latency is 20 ms and more with the batch. */
#pragma once

#include <stdio.h>

#include "profile/service.h"

static double made_zeros[TD_MUDI_INPUTS], made_ones[TD_MUDI_INPUTS];
static double made_weights[TD_PROFILE_MODELS][TD_MUDI_INPUTS + 1];

static struct td_service_profile make_profile(const char *gpu, double latency_s)
{
	const double bias[TD_PROFILE_MODELS] = {
		[TD_PROFILE_LEFT_SLOPE] = -0.1,
		[TD_PROFILE_RIGHT_SLOPE] = -0.001,
		[TD_PROFILE_KNEE_SHARE] = 0.4,
		[TD_PROFILE_KNEE_LATENCY] = latency_s,
	};
	struct td_service_profile profile = {
		.batch_min = 1, .batch_max = 64, .curve_count = 12, .error = {0.1, 0.2, 0.3, 0.4}};

	snprintf(profile.gpu, sizeof(profile.gpu), "%s", gpu);
	for (unsigned i = 0; i < TD_MUDI_INPUTS; i++)
		made_ones[i] = 1;
	for (unsigned m = 0; m < TD_PROFILE_MODELS; m++) {
		made_weights[m][TD_MUDI_INPUTS] = bias[m];
		profile.models[m].predictor = (struct td_predictor){.form = TD_PREDICTOR_LINEAR,
			.inputs = TD_MUDI_INPUTS,
			.shift = made_zeros,
			.scale = made_ones,
			.target_scale = 1,
			.coefficients = made_weights[m],
			.coefficient_count = TD_MUDI_INPUTS + 1};
	}
	return profile;
}
