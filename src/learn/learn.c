/* Computes scales, ridge regression, and the choice by cross-validation; see learn.h. */
#include "learn/internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

const struct td_learn_options td_learn_default = {
	.seed = 1,
	.ridge = 1e-3,
	.hidden_layers = 2,
	.width = 64,
	.epochs = 300,
	.batch = 32,
	.rate = 0.01,
	.momentum = 0.9,
	.decay = 1e-3,
	.trees = 60,
	.depth_max = 12,
	.leaf_min = 2,
	.cost = 10,
	.tube = 0.05,
};

void td_rng_init(struct td_rng *rng, uint64_t seed)
{
	rng->state = (seed ^ 0x9e3779b97f4a7c15ull) * 0xbf58476d1ce4e5b9ull;
	rng->state |= !rng->state;
}

uint64_t td_rng_next(struct td_rng *rng)
{
	rng->state ^= rng->state >> 12;
	rng->state ^= rng->state << 25;
	rng->state ^= rng->state >> 27;
	return rng->state * 0x2545f4914f6cdd1dull;
}

uint32_t td_rng_below(struct td_rng *rng, uint32_t n)
{
	return (uint32_t)((td_rng_next(rng) >> 32) * n >> 32);
}

double td_rng_unit(struct td_rng *rng)
{
	return (double)(td_rng_next(rng) >> 11) * 0x1p-53;
}

double td_rng_normal(struct td_rng *rng)
{
	double radius = sqrt(-2 * log(1 - td_rng_unit(rng)));

	return radius * cos(2 * M_PI * td_rng_unit(rng));
}

void td_rng_shuffle(struct td_rng *rng, uint32_t *items, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		items[i] = i;
	for (uint32_t i = n; i > 1; i--) {
		uint32_t k = td_rng_below(rng, i), item = items[k];

		items[k] = items[i - 1];
		items[i - 1] = item;
	}
}

int td_dataset_check(const struct td_dataset *data)
{
	if (data->count < 2 || !data->inputs || data->inputs > TD_PREDICT_INPUTS_MAX)
		return -EINVAL;
	for (size_t k = 0; k < (size_t)data->count * data->inputs; k++)
		if (!isfinite(data->x[k]))
			return -EINVAL;
	for (uint32_t i = 0; i < data->count; i++)
		if (!isfinite(data->y[i]))
			return -EINVAL;
	return 0;
}

/* Computes mean and deviation of every stride-th number. A constant gets the scale 1. */
static void measure(
	const double *values, uint32_t count, uint32_t stride, double *ret_shift, double *ret_scale)
{
	double mean = 0, square = 0;

	for (uint32_t i = 0; i < count; i++)
		mean += values[(size_t)i * stride] / count;
	for (uint32_t i = 0; i < count; i++)
		square += pow(values[(size_t)i * stride] - mean, 2) / count;
	*ret_shift = mean;
	*ret_scale = square > 1e-24 * (1 + mean * mean) ? sqrt(square) : 1;
}

int td_model_init(struct td_model *model, enum td_predictor_form form,
	const struct td_dataset *data, size_t coefficients, size_t vectors)
{
	size_t numbers = 2 * (size_t)data->inputs + coefficients + vectors;
	double *memory = calloc(numbers, sizeof(double));

	if (!memory)
		return -ENOMEM;
	*model = (struct td_model){.memory = memory};
	model->predictor = (struct td_predictor){
		.form = form,
		.inputs = data->inputs,
		.shift = memory,
		.scale = memory + data->inputs,
		.coefficients = memory + 2 * (size_t)data->inputs,
		.coefficient_count = coefficients,
		.vectors = memory + 2 * (size_t)data->inputs + coefficients,
	};
	for (uint32_t i = 0; i < data->inputs; i++)
		measure(data->x + i, data->count, data->inputs, &memory[i],
			&memory[data->inputs + i]);
	measure(data->y, data->count, 1, &model->predictor.target_shift,
		&model->predictor.target_scale);
	return 0;
}

void td_model_standardise(
	const struct td_model *model, const struct td_dataset *data, double *x, double *y)
{
	const struct td_predictor *p = &model->predictor;

	for (uint32_t i = 0; i < data->count; i++) {
		for (uint32_t k = 0; k < data->inputs; k++) {
			size_t at = (size_t)i * data->inputs + k;

			x[at] = (data->x[at] - p->shift[k]) / p->scale[k];
		}
		if (y)
			y[i] = (data->y[i] - p->target_shift) / p->target_scale;
	}
}

/*
 * Solves the positive definite n x n system in place: a is destroyed and b becomes the solution.
 * The solution is not finite if the system is not definite.
 */
static void solve_cholesky(double *a, double *b, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j <= i; j++) {
			double sum = a[i * n + j];

			for (uint32_t k = 0; k < j; k++)
				sum -= a[i * n + k] * a[j * n + k];
			a[i * n + j] = i == j ? sqrt(sum) : sum / a[j * n + j];
		}
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t k = 0; k < i; k++)
			b[i] -= a[i * n + k] * b[k];
		b[i] /= a[i * n + i];
	}
	for (uint32_t i = n; i--;) {
		for (uint32_t k = i + 1; k < n; k++)
			b[i] -= a[k * n + i] * b[k];
		b[i] /= a[i * n + i];
	}
}

int td_learn_linear(const struct td_dataset *data, const struct td_learn_options *options,
	struct td_model *ret_model)
{
	uint32_t n = data->inputs;
	double normal[TD_PREDICT_INPUTS_MAX * TD_PREDICT_INPUTS_MAX] = {0};
	td_auto_free double *x = NULL;
	td_auto_free double *y = NULL;
	struct td_model model;
	double *w;
	int r = td_dataset_check(data);

	if (r < 0)
		return r;
	x = malloc((size_t)data->count * n * sizeof(*x));
	y = malloc(data->count * sizeof(*y));
	if (!x || !y)
		return -ENOMEM;
	r = td_model_init(&model, TD_PREDICTOR_LINEAR, data, n + 1, 0);
	if (r < 0)
		return r;
	td_model_standardise(&model, data, x, y);
	w = td_model_coefficients(&model); /* the bias stays 0, because all data are centred */
	for (uint32_t i = 0; i < data->count; i++)
		for (uint32_t k = 0; k < n; k++) {
			w[k] += x[i * n + k] * y[i];
			for (uint32_t l = 0; l <= k; l++)
				normal[k * n + l] += x[i * n + k] * x[i * n + l];
		}
	for (uint32_t k = 0; k < n; k++)
		normal[k * n + k] += options->ridge * data->count;
	solve_cholesky(normal, w, n);
	if (td_predictor_check(&model.predictor)) {
		td_model_deinit(&model);
		return -ERANGE;
	}
	*ret_model = model;
	return 0;
}

int td_learn(enum td_predictor_form form, const struct td_dataset *data,
	const struct td_learn_options *options, struct td_model *ret_model)
{
	switch (form) {
	case TD_PREDICTOR_LINEAR: return td_learn_linear(data, options, ret_model);
	case TD_PREDICTOR_MLP: return td_learn_mlp(data, options, ret_model);
	case TD_PREDICTOR_FOREST: return td_learn_forest(data, options, ret_model);
	case TD_PREDICTOR_SVR: return td_learn_svr(data, options, ret_model);
	case TD_PREDICTOR_N: break;
	}
	return -EINVAL;
}

/* Copies the samples inside the group, or those outside. Returns their number. */
static uint32_t split(const struct td_dataset *data, const uint32_t *groups, uint32_t group,
	bool inside, double *x, double *y)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < data->count; i++) {
		if ((groups[i] == group) != inside)
			continue;
		memcpy(x + (size_t)n * data->inputs, data->x + (size_t)i * data->inputs,
			data->inputs * sizeof(*x));
		y[n++] = data->y[i];
	}
	return n;
}

/* Trains a model without one group and adds its squared errors on that group. */
static int group_error(enum td_predictor_form form, const struct td_dataset *data,
	const uint32_t *groups, uint32_t group, const struct td_learn_options *options, double *x,
	double *y, double *error)
{
	struct td_dataset part = {x, y, 0, data->inputs};
	struct td_model model;
	int r;

	part.count = split(data, groups, group, false, x, y);
	r = td_learn(form, &part, options, &model);
	if (r < 0)
		return r;
	part.count = split(data, groups, group, true, x, y);
	for (uint32_t i = 0; i < part.count; i++)
		*error += pow(td_predict(&model.predictor, x + (size_t)i * data->inputs) - y[i], 2);
	td_model_deinit(&model);
	return 0;
}

/* Tells whether a sample is the first of its group, so that each group is left out once. */
static bool leads(const uint32_t *groups, uint32_t sample)
{
	for (uint32_t i = 0; i < sample; i++)
		if (groups[i] == groups[sample])
			return false;
	return true;
}

/* Tells whether some training would have fewer than two samples. */
static bool is_too_few(const struct td_dataset *data, const uint32_t *groups)
{
	for (uint32_t i = 0; i < data->count; i++) {
		uint32_t others = 0;

		for (uint32_t k = 0; k < data->count && others < 2; k++)
			others += groups[k] != groups[i];
		if (others < 2)
			return true;
	}
	return false;
}

/*
 * Computes the error of one form. It is INFINITY if the form is not available or a training failed.
 */
static int cross_validate(enum td_predictor_form form, const struct td_dataset *data,
	const uint32_t *groups, const struct td_learn_options *options, double *x, double *y,
	double *ret_error)
{
	double error = 0;

	for (uint32_t i = 0; i < data->count; i++) {
		int r;

		if (!leads(groups, i))
			continue;
		r = group_error(form, data, groups, groups[i], options, x, y, &error);
		if (r == -ENOSYS || r == -ERANGE) {
			error = INFINITY;
			break;
		}
		if (r < 0)
			return r;
	}
	*ret_error = sqrt(error / data->count);
	return 0;
}

int td_learn_best(const struct td_dataset *data, const uint32_t *groups,
	const struct td_learn_options *options, struct td_model *ret_model,
	struct td_learn_report *ret_report)
{
	struct td_learn_report report = {.chosen = TD_PREDICTOR_LINEAR};
	td_auto_free double *x = NULL;
	td_auto_free double *y = NULL;
	int r = td_dataset_check(data);

	if (r < 0)
		return r;
	if (is_too_few(data, groups))
		return -EINVAL;
	x = malloc((size_t)data->count * data->inputs * sizeof(*x));
	y = malloc(data->count * sizeof(*y));
	if (!x || !y)
		return -ENOMEM;
	for (int form = 0; form < TD_PREDICTOR_N; form++) {
		r = cross_validate((enum td_predictor_form)form, data, groups, options, x, y,
			&report.error[form]);
		if (r < 0)
			return r;
		if (report.error[form] < report.error[report.chosen])
			report.chosen = (enum td_predictor_form)form;
	}
	r = td_learn(report.chosen, data, options, ret_model);
	if (r < 0)
		return r;
	*ret_report = report;
	return 0;
}
