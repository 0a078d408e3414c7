/*
 * Training: from samples to a model that policy/algo/fit/predict.h evaluates.
 *
 * Purpose. MuxFlow trains a multi-layer perceptron per GPU type with momentum SGD (6); Mudi trains small models per target and
 * "determines the optimal model as the learner for each metric individually", updated as new co-locations are seen (4.1.2).
 * Four learners: ridge regression, MLP (mini-batch momentum SGD on BLAS), random forest, support vector regression (libsvm);
 * td_learn_best() chooses by cross-validation that leaves out one group at a time.
 *
 * Training is deterministic for a seed: shuffles, bootstraps and initial weights come from one
 * generator that is handed around.
 *
 * Invariants: same samples, options and seed, same model to the last bit (one BLAS thread); what is returned passes
 * td_predictor_check() and owns its numbers; an error leaves *ret_model and a model to be updated as they were; a form whose training
 * failed is never the best; samples are only read.
 *
 * A learner refuses (-EINVAL) what it cannot learn from: fewer than 2 samples, more than TD_PREDICT_INPUTS_MAX inputs, numbers
 * that are not finite. -EINTR: it was stopped. -ERANGE: the training diverged, or the samples do not determine a model. -ENOMEM; -ENOSYS: built without the
 * library that it needs.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/algo/fit/predict.h"

struct td_dataset {
	const double *x; /* count x inputs */
	const double *y;
	uint32_t count, inputs;
};

/* Owns the coefficients that its predictor points to. */
struct td_model {
	struct td_predictor predictor;
	void *memory;
};

void td_model_deinit(struct td_model *model);

struct td_learn_options {
	uint64_t seed;
	double ridge; /* 1e-3, in units of the standardised inputs' variance */
	/* MLP: MuxFlow's "four layers with hidden size 64 x 64": input, two hidden ones, output */
	uint32_t hidden_layers, width;
	uint32_t epochs, batch;
	double rate, momentum, decay;
	/* forest */
	uint32_t trees, depth_max, leaf_min;
	/* SVR */
	double cost, tube;
	/* Nonzero: an MLP's training ends at once, with -EINTR. NULL: nothing stops it. */
	const volatile sig_atomic_t *stop;
};

extern const struct td_learn_options td_learn_default;

int td_learn_linear(const struct td_dataset *data, const struct td_learn_options *options,
	struct td_model *ret_model);
int td_learn_mlp(const struct td_dataset *data, const struct td_learn_options *options,
	struct td_model *ret_model);
int td_learn_forest(const struct td_dataset *data, const struct td_learn_options *options,
	struct td_model *ret_model);
int td_learn_svr(const struct td_dataset *data, const struct td_learn_options *options,
	struct td_model *ret_model);

/* By form. */
int td_learn(enum td_predictor_form form, const struct td_dataset *data,
	const struct td_learn_options *options, struct td_model *ret_model);

/*
 * A model of the same form from more data. An MLP goes on from its weights for a quarter of the epochs, in the scales that it
 * has; the others are trained anew, which takes no longer. data: all samples, old and new. Replaces *model on success only.
 */
int td_learn_update(struct td_model *model, const struct td_dataset *data,
	const struct td_learn_options *options);

struct td_learn_report {
	/* Root mean square over all samples, each predicted without its group; INFINITY: not available, or no model came of it. */
	double error[TD_PREDICTOR_N];
	enum td_predictor_form chosen;
};

/*
 * Cross-validates each form, then trains the best one on everything. groups: an id for each sample,
 * any numbers. One group at a time is left out, so that a form is judged by groups that it has not
 * seen. Where tasks are predicted that were never profiled, a group is a task: a sample that is left
 * out alone is given away by the other samples of its task. -EINVAL: fewer than 2 samples would be
 * left without some group.
 */
int td_learn_best(const struct td_dataset *data, const uint32_t *groups,
	const struct td_learn_options *options, struct td_model *ret_model,
	struct td_learn_report *ret_report);
