/* A file of speeds that a test makes. The speed of a pair is 1.2 less both SM activities. */
#pragma once

#include <stdio.h>

#include "profile/speed_file.h"

static const double made_speed_zeros[TD_MUXFLOW_INPUTS];
static const double made_speed_ones[TD_MUXFLOW_INPUTS] = {1, 1, 1, 1, 1, 1, 1, 1};
static const double made_speed_weights[TD_MUXFLOW_INPUTS + 1] = {0, -1, 0, 0, -1, 0, 0, 0, 1.2};

static const struct td_predictor made_speed = {.form = TD_PREDICTOR_LINEAR,
	.inputs = TD_MUXFLOW_INPUTS,
	.shift = made_speed_zeros,
	.scale = made_speed_ones,
	.target_scale = 1,
	.coefficients = made_speed_weights,
	.coefficient_count = TD_MUXFLOW_INPUTS + 1};

static struct td_speed_program made_programs[] = {
	{"busy", {0.9, 0.6, 0.5, 0.01}},
	{"quiet", {0.2, 0.1, 0.1, 0.01}},
	{"light", {0.3, 0.1, 0.2, 0.5}},
	{"heavy", {1, 0.6, 0.7, 2}},
};

static struct td_speed_kind make_kind(const char *gpu)
{
	struct td_speed_kind kind = {
		.count = sizeof(made_programs) / sizeof(*made_programs), .programs = made_programs};

	snprintf(kind.gpu, sizeof(kind.gpu), "%s", gpu);
	kind.model.predictor = made_speed;
	return kind;
}
