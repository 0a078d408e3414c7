/*
 * Evaluation of trained models: pure, so that policies, daemon and simulator predict alike.
 * Training is in src/learn.
 *
 * Purpose. MuxFlow (5) predicts the speed of a sharing pair from utilisation, SM activity,
 * occupancy, time alone and SM share by a multi-layer perceptron; Mudi (4.1.2) predicts slopes and
 * cut-off points from the counts of a network's layers and the batch, by the best of several small
 * models per target: linear, forest, support vectors. All of them map `inputs` numbers to one
 * number.
 *
 * Inputs are standardised, (x - shift) / scale, and the target in reverse:
 * - linear: w.x + b;
 * - MLP: fully connected, ReLU between, none at the end;
 * - forest: the mean of regression trees; at a node left when x <= threshold. Trees see the inputs
 *   as they are (shift 0, scale 1);
 * - SVR: sum of c_k exp(-gamma |x - v_k|^2) - rho.
 *
 * The structs point to coefficients that the caller owns.
 *
 * Invariants
 * - evaluating a model that td_predictor_check() accepts stays inside its arrays and ends, because
 *   trees point forwards only;
 * - finite inputs give the same number to the last bit on every machine, one by one or many at
 *   once: sums are in the order of the inputs, and nothing is contracted;
 * - a forest's answer lies between its least and its greatest leaf for any input; a constant input
 *   has scale 1, never 0;
 * - only the answer is written.
 */
#pragma once

#include <stdint.h>

#define TD_PREDICT_INPUTS_MAX 64u
#define TD_PREDICT_WIDTH_MAX  1024u
#define TD_PREDICT_LAYERS_MAX 8u

enum td_predictor_form {
	TD_PREDICTOR_LINEAR,
	TD_PREDICTOR_MLP,
	TD_PREDICTOR_FOREST,
	TD_PREDICTOR_SVR,
	TD_PREDICTOR_N,
};

struct td_tree_node {
	double value;  /* threshold, or the leaf's answer */
	int32_t input; /* -1: a leaf */
	uint32_t left; /* index of a later node; the right one is next to it */
};

struct td_predictor {
	enum td_predictor_form form;
	uint32_t inputs;
	const double *shift, *scale; /* `inputs` numbers each */
	double target_shift, target_scale;
	/*
	 * Linear: weights, then the bias. MLP: weights[out][in] of each layer, then its biases.
	 * SVR: the coefficients.
	 */
	const double *coefficients;
	uint64_t coefficient_count;
	/* Used by MLP only: the outputs of each layer; the last layer has 1. */
	uint32_t layers, widths[TD_PREDICT_LAYERS_MAX];
	/* Used by forest only. */
	const struct td_tree_node *nodes;
	const uint32_t *roots;
	uint32_t node_count, tree_count;
	/* Used by SVR only. */
	const double *vectors; /* coefficient_count x inputs, standardised */
	double gamma, rho;
};

/*
 * Returns 0, or -EINVAL for sizes, indices or scales that cannot be evaluated, or coefficients that
 * are not finite.
 */
int td_predictor_check(const struct td_predictor *predictor);

/*
 * Returns the prediction for x, which has `inputs` numbers. td_predictor_check() has accepted it.
 */
double td_predict(const struct td_predictor *predictor, const double *x);

/*
 * Predicts `count` points of `inputs` numbers each. The results equal td_predict()'s bit by bit;
 * forests are several times as quick.
 */
void td_predict_many(
	const struct td_predictor *predictor, const double *x, uint32_t count, double *ret_y);
