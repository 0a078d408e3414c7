/*
 * Trains models, which policy/algo/fit/predict.h evaluates, from samples.
 *
 * Purpose. MuxFlow trains a multi-layer perceptron per GPU type with momentum SGD (6). Mudi trains
 * small models per target, "determines the optimal model as the learner for each metric
 * individually", and updates them as new co-locations are seen (4.1.2). Four learners are here:
 * ridge regression, MLP (mini-batch momentum SGD on BLAS), random forest, support vector regression
 * (libsvm). td_learn_best() chooses by cross-validation that leaves out one group at a time.
 *
 * Training is deterministic for a seed: shuffles, bootstraps and first weights come from one
 * generator that is passed along.
 *
 * Invariants
 * - same samples, options and seed, same model to the last bit (one BLAS thread);
 * - a returned model passes td_predictor_check() and owns its numbers;
 * - an error leaves *ret_model, and a model to be updated, as they were;
 * - a form whose training failed is never the best;
 * - samples are only read.
 *
 * Errors
 * - -EINVAL: fewer than 2 samples, more than TD_PREDICT_INPUTS_MAX inputs, or numbers that are not
 *   finite;
 * - -EINTR: it was stopped;
 * - -ERANGE: the training diverged, or the samples do not determine a model;
 * - -ENOMEM;
 * - -ENOSYS: built without the library that it needs.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/model.h"

struct td_dataset {
	const double *x; /* count x inputs numbers */
	const double *y;
	uint32_t count, inputs;
};

struct td_learn_options {
	uint64_t seed;
	/* Penalty of ridge regression: 1e-3, in units of the standardised inputs' variance. */
	double ridge;
	/*
	 * For the MLP. MuxFlow has "four layers with hidden size 64 x 64": the input, two hidden
	 * ones, the output.
	 */
	uint32_t hidden_layers, width;
	uint32_t epochs, batch;
	double rate, momentum, decay;
	/* For the forest. */
	uint32_t trees, depth_max, leaf_min;
	/* For the SVR. */
	double cost, tube;
	/* A nonzero value ends an MLP's training at once, with -EINTR. NULL: nothing stops it. */
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

/* Trains a model of this form. See above for errors. */
int td_learn(enum td_predictor_form form, const struct td_dataset *data,
	const struct td_learn_options *options, struct td_model *ret_model);

/*
 * Trains a model of the same form on all samples, old and new. An MLP starts from its weights and
 * keeps its scales, with a quarter of the epochs. Other forms are trained anew, which is as quick.
 * Replaces *model on success only.
 */
int td_learn_update(struct td_model *model, const struct td_dataset *data,
	const struct td_learn_options *options);

struct td_learn_report {
	/* Root mean square of the errors on groups left out; INFINITY: there is no model. */
	double error[TD_PREDICTOR_N];
	enum td_predictor_form chosen;
};

/*
 * Cross-validates each form, then trains the best one on all samples. `groups` has an id for each
 * sample. One group at a time is left out, so that a form is judged by groups that it has not seen.
 * Where the tasks to predict were never profiled, a group should be a task; otherwise the other
 * samples of a task would tell the one that is left out. -EINVAL: leaving out some group would
 * leave fewer than 2 samples.
 */
int td_learn_best(const struct td_dataset *data, const uint32_t *groups,
	const struct td_learn_options *options, struct td_model *ret_model,
	struct td_learn_report *ret_report);
