/*
 * The speed predictor of MuxFlow (5.1) for the programs of a store: how fast an offline program is
 * beside an online one, of its speed alone.
 *
 * Its inputs are those of the cluster's policy (policy/cluster/muxflow_cluster.h), from the dry
 * runs of both programs and the share of the SMs. It is trained on measured pairs, and judged by
 * programs left out: for each program, a model that has seen no pair of it predicts its pairs.
 *
 * Invariants: same rows and options, same model and report. An error leaves ret_ arguments as they
 * were.
 */
#pragma once

#include "learn/learn.h"
#include "learn/store_programs.h"
#include "policy/cluster/muxflow_cluster.h"

struct td_err;

/* The model's target in the store. */
#define TD_SPEEDS_TARGET "speed"

/* Root mean square of what programs left out were predicted wrong, and mean absolute error. */
struct td_speeds_error {
	double square, absolute;
};

struct td_speeds_report {
	uint32_t rows, programs; /* the pairs and the programs that the model was trained on */
	uint32_t unknown;        /* pairs left out, as no dry run of a program is known */
	uint32_t tests;          /* predictions that the errors are of */
	struct td_speeds_error mlp, linear, mean; /* mean: of all pairs that were learnt */
};

/*
 * Trains the perceptron on all pairs, and judges it, ridge regression and the mean. Returns 0;
 * -EINVAL with a message in err: too few pairs or programs; -ERANGE: the training diverged;
 * -ENOMEM.
 */
int td_speeds_learn(const struct td_program *programs, uint32_t program_count,
	const struct td_pair *pairs, uint32_t pair_count, const struct td_learn_options *options,
	struct td_model *ret_model, struct td_speeds_report *ret_report, struct td_err *err);

/* Returns the figures of a program that the predictor takes. */
struct td_muxflow_profile td_speeds_profile(const struct td_program *program);

/* The predicted speed, from 0 to 1. The model has TD_MUXFLOW_INPUTS inputs. */
double td_speeds_predict(const struct td_predictor *predictor, const struct td_program *online,
	const struct td_program *offline, double sm_share);
