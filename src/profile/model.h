/* A trained model: a predictor of policy/algo/fit/predict.h with the memory of its numbers. */
#pragma once

#include "policy/algo/fit/predict.h"

/* The model owns the coefficients to which its predictor points. */
struct td_model {
	struct td_predictor predictor;
	void *memory;
};

void td_model_deinit(struct td_model *model);
