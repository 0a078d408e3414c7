/*
 * Inputs of the leak tests: predictors that do not depend on the truth, and companies in one order
 * or the other.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/contention.h"
#include "policy/algo/fit/predict.h"
#include "test.h"

#define LEAKS_INPUTS_MAX 16u

/*
 * Makes a linear predictor with coefficients from `first` to `last`. coefficients has room for
 * LEAKS_INPUTS_MAX and stays the caller's as long as the predictor exists.
 */
static inline struct td_predictor leaks_predictor(
	double *coefficients, uint32_t inputs, double bias, double first, double last)
{
	static double shift[LEAKS_INPUTS_MAX], scale[LEAKS_INPUTS_MAX];
	struct td_predictor predictor = {.form = TD_PREDICTOR_LINEAR,
		.inputs = inputs,
		.shift = shift,
		.scale = scale,
		.target_scale = 1,
		.coefficients = coefficients,
		.coefficient_count = inputs + 1};

	for (uint32_t i = 0; i < inputs; i++) {
		scale[i] = 1;
		coefficients[i] = first + (last - first) * i / (inputs - 1);
	}
	coefficients[inputs] = bias;
	CHECK_EQ(td_predictor_check(&predictor), 0);
	return predictor;
}

/* Returns the part of a GPU that `which` uses. */
static inline double leaks_demand(double which)
{
	return 0.2 + 0.1 * which;
}

/*
 * Returns the numbers of company `which` of 0 to last, in one order or the other: the whole truth,
 * which includes how much of a GPU it uses.
 */
static inline struct td_contender leaks_contender(uint32_t which, uint32_t last, bool other)
{
	struct td_contender contender = td_contender_neutral;
	double at = other ? last - which : which;

	contender.sensitivity = 0.1 + 0.3 * at;
	contender.pressure = 1.5 - 1.2 * at / last;
	contender.host = 0.02 + 0.05 * at;
	contender.serial = 0.2 + 0.1 * at;
	contender.demand = leaks_demand(at);
	return contender;
}
