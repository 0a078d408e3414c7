/* A trained model: what policy/algo/fit/predict.h evaluates, with the memory of its numbers. */
#pragma once

#include "policy/algo/fit/predict.h"

/* Owns the coefficients that its predictor points to. */
struct td_model {
	struct td_predictor predictor;
	void *memory;
};

void td_model_deinit(struct td_model *model);
