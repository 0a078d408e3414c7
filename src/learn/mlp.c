/*
 * Trains multi-layer perceptrons by mini-batch SGD with momentum, on BLAS.
 *
 * Forward: A_l = relu(A_(l-1) W_l' + b_l), the last layer without relu. The loss is half the mean
 * squared error of the standardised target. Backward: D_l = (D_(l+1) W_(l+1)) where A_l > 0; dW_l =
 * D_l' A_(l-1) / n. Weights start as He's normal, sqrt(2 / inputs of the layer). The rate falls to
 * a tenth over the last third of the epochs, so that the noise of the batches averages out.
 */
#include "learn/internal.h"

#include <cblas.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

struct training {
	const struct td_learn_options *options;
	uint32_t layers, widths[TD_PREDICT_LAYERS_MAX + 1]; /* widths[0] is the number of inputs */
	/* Out x in weights of each layer, then its biases. */
	double *weights[TD_PREDICT_LAYERS_MAX];
	double *velocity, *gradient; /* same order as all weights in a row */
	/* Outputs of each layer: batch x width. */
	double *active[TD_PREDICT_LAYERS_MAX + 1];
	double *delta[TD_PREDICT_LAYERS_MAX];
	size_t count; /* number of all weights */
};

static size_t count_weights(const struct training *t)
{
	size_t count = 0;

	for (uint32_t l = 0; l < t->layers; l++)
		count += (size_t)t->widths[l + 1] * (t->widths[l] + 1);
	return count;
}

/*
 * Points the layers into the model's coefficients and one block of scratch memory. Returns that
 * block.
 */
static double *lay_out(struct training *t, double *coefficients)
{
	size_t per_row = 0;
	double *scratch, *at;

	for (uint32_t l = 0; l <= t->layers; l++)
		per_row += 2 * (size_t)t->widths[l];
	scratch = calloc(2 * t->count + per_row * t->options->batch, sizeof(double));
	if (!scratch)
		return NULL;
	t->velocity = scratch;
	t->gradient = scratch + t->count;
	at = scratch + 2 * t->count;
	for (uint32_t l = 0; l <= t->layers; l++) {
		t->active[l] = at;
		at += (size_t)t->widths[l] * t->options->batch;
		if (l == t->layers)
			break;
		t->delta[l] = at;
		at += (size_t)t->widths[l + 1] * t->options->batch;
		t->weights[l] = coefficients;
		coefficients += (size_t)t->widths[l + 1] * (t->widths[l] + 1);
	}
	return scratch;
}

static void start_weights(struct training *t, struct td_rng *rng)
{
	for (uint32_t l = 0; l < t->layers; l++)
		for (size_t k = 0; k < (size_t)t->widths[l + 1] * t->widths[l]; k++)
			t->weights[l][k] = td_rng_normal(rng) * sqrt(2. / t->widths[l]);
}

static void forward(struct training *t, uint32_t n)
{
	for (uint32_t l = 0; l < t->layers; l++) {
		uint32_t in = t->widths[l], out = t->widths[l + 1];
		const double *biases = t->weights[l] + (size_t)out * in;
		double *active = t->active[l + 1];

		for (uint32_t i = 0; i < n; i++)
			memcpy(active + (size_t)i * out, biases, out * sizeof(double));
		cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, (int)out, (int)in, 1,
			t->active[l], (int)in, t->weights[l], (int)in, 1, active, (int)out);
		for (size_t k = 0; l + 1 < t->layers && k < (size_t)n * out; k++)
			active[k] = active[k] > 0 ? active[k] : 0;
	}
}

/* Computes the gradients of all layers from the deltas of the last one. */
static void backward(struct training *t, uint32_t n)
{
	for (uint32_t l = t->layers; l--;) {
		uint32_t in = t->widths[l], out = t->widths[l + 1];
		double *gradient = t->gradient + (t->weights[l] - t->weights[0]);

		cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)out, (int)in, (int)n,
			1. / n, t->delta[l], (int)out, t->active[l], (int)in, 0, gradient, (int)in);
		gradient += (size_t)out * in;
		memset(gradient, 0, out * sizeof(double));
		for (uint32_t i = 0; i < n; i++)
			cblas_daxpy(
				(int)out, 1. / n, t->delta[l] + (size_t)i * out, 1, gradient, 1);
		if (!l)
			break;
		cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, (int)in, (int)out, 1,
			t->delta[l], (int)out, t->weights[l], (int)in, 0, t->delta[l - 1], (int)in);
		for (size_t k = 0; k < (size_t)n * in; k++)
			if (!(t->active[l][k] > 0))
				t->delta[l - 1][k] = 0;
	}
}

static void descend(struct training *t, double rate)
{
	double *weights = t->weights[0];

	for (size_t k = 0; k < t->count; k++) {
		t->velocity[k] = t->options->momentum * t->velocity[k] -
				 rate * (t->gradient[k] + t->options->decay * weights[k]);
		weights[k] += t->velocity[k];
	}
}

static bool is_finite(const struct training *t)
{
	for (size_t k = 0; k < t->count; k++)
		if (!isfinite(t->weights[0][k]))
			return false;
	return true;
}

static bool is_stopped(const struct training *t)
{
	return t->options->stop && *t->options->stop;
}

/* Trains for some epochs. Stops early if weights are not finite, since they would stay so. */
static void train(struct training *t, const struct td_dataset *data, const double *x,
	const double *y, uint32_t epochs, uint32_t *order, struct td_rng *rng)
{
	for (uint32_t epoch = 0; epoch < epochs && is_finite(t) && !is_stopped(t); epoch++) {
		double late = epochs > 2 ? (epoch - epochs * 2. / 3) / (epochs / 3.) : 0;
		double rate = t->options->rate * (late > 0 ? 1 - 0.9 * late : 1);

		td_rng_shuffle(rng, order, data->count);
		for (uint32_t from = 0; from < data->count && !is_stopped(t);
			from += t->options->batch) {
			uint32_t n = data->count - from;

			n = n < t->options->batch ? n : t->options->batch;
			for (uint32_t i = 0; i < n; i++)
				memcpy(t->active[0] + (size_t)i * data->inputs,
					x + (size_t)order[from + i] * data->inputs,
					data->inputs * sizeof(double));
			forward(t, n);
			for (uint32_t i = 0; i < n; i++)
				t->delta[t->layers - 1][i] =
					t->active[t->layers][i] - y[order[from + i]];
			backward(t, n);
			descend(t, rate);
		}
	}
}

/* Trains the model's weights on the data, from the present ones or (anew) from random ones. */
static int train_weights(struct td_model *model, const struct td_dataset *data,
	const struct td_learn_options *options, uint32_t epochs, bool anew)
{
	td_auto_free double *x = malloc((size_t)data->count * data->inputs * sizeof(*x));
	td_auto_free double *y = malloc(data->count * sizeof(*y));
	td_auto_free uint32_t *order = malloc(data->count * sizeof(*order));
	td_auto_free double *scratch = NULL;
	struct training t = {.options = options, .layers = model->predictor.layers};
	struct td_rng rng;

	t.widths[0] = data->inputs;
	memcpy(t.widths + 1, model->predictor.widths, t.layers * sizeof(uint32_t));
	t.count = count_weights(&t);
	scratch = lay_out(&t, td_model_coefficients(model));
	if (!x || !y || !order || !scratch)
		return -ENOMEM;
	td_rng_init(&rng, options->seed);
	if (anew)
		start_weights(&t, &rng);
	td_model_standardise(model, data, x, y);
	train(&t, data, x, y, epochs, order, &rng);
	if (is_stopped(&t))
		return -EINTR;
	return td_predictor_check(&model->predictor) ? -ERANGE : 0;
}

int td_learn_mlp(const struct td_dataset *data, const struct td_learn_options *options,
	struct td_model *ret_model)
{
	struct training shape = {.layers = options->hidden_layers + 1};
	struct td_model model;
	int r = td_dataset_check(data);

	if (r < 0)
		return r;
	if (shape.layers > TD_PREDICT_LAYERS_MAX || !options->width ||
		options->width > TD_PREDICT_WIDTH_MAX || !options->batch)
		return -EINVAL;
	shape.widths[0] = data->inputs;
	for (uint32_t l = 1; l <= shape.layers; l++)
		shape.widths[l] = l < shape.layers ? options->width : 1;
	r = td_model_init(&model, TD_PREDICTOR_MLP, data, count_weights(&shape), 0);
	if (r < 0)
		return r;
	model.predictor.layers = shape.layers;
	memcpy(model.predictor.widths, shape.widths + 1, shape.layers * sizeof(uint32_t));
	r = train_weights(&model, data, options, options->epochs, true);
	if (r < 0) {
		td_model_deinit(&model);
		return r;
	}
	*ret_model = model;
	return 0;
}

/* Copies the model, so that the old model is intact if training fails. */
static int copy(const struct td_model *model, struct td_model *ret_copy)
{
	size_t numbers = 2 * (size_t)model->predictor.inputs + model->predictor.coefficient_count;
	double *memory = malloc(numbers * sizeof(double));

	if (!memory)
		return -ENOMEM;
	memcpy(memory, model->memory, numbers * sizeof(double));
	*ret_copy = *model;
	ret_copy->memory = memory;
	ret_copy->predictor.shift = memory;
	ret_copy->predictor.scale = memory + model->predictor.inputs;
	ret_copy->predictor.coefficients = td_model_coefficients(ret_copy);
	return 0;
}

int td_learn_update(struct td_model *model, const struct td_dataset *data,
	const struct td_learn_options *options)
{
	struct td_model next;
	int r = td_dataset_check(data);

	if (r < 0)
		return r;
	if (data->inputs != model->predictor.inputs)
		return -EINVAL;
	if (model->predictor.form == TD_PREDICTOR_MLP) {
		r = copy(model, &next);
		if (r < 0)
			return r;
		r = train_weights(&next, data, options, (options->epochs + 3) / 4, false);
		if (r < 0)
			td_model_deinit(&next);
	} else {
		r = td_learn(model->predictor.form, data, options, &next);
	}
	if (r < 0)
		return r;
	td_model_deinit(model);
	*model = next;
	return 0;
}
