/*
 * Learns a number of latency curves; see curve_model.h.
 *
 * The mean is a perceptron whose weights are written down, not trained. With x = log2 of the batch,
 * L = the sum of the layers, and knots at the batches x_k,
 *
 *   mean(x)  = m_1 + sum of c_k relu(x - x_k)                              c_k: change of slope
 *   more(x)  = d_1 relu(1 - F L) + sum of e_k relu(x - x_k - F L)          alone, less the mean
 *
 * Layers are whole numbers. F is more than log2 of any batch, so more(x) is 0 beside a neighbour.
 */
#include "learn/curve_model.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "learn/internal.h"
#include "policy/algo/fit/mudi_curve.h"

#define FAR       64.0
#define KNOTS_MAX (TD_PREDICT_WIDTH_MAX / 4)
/* The candidates: the forms of models, then the mean. */
#define MEAN       TD_PREDICTOR_N
#define CANDIDATES (TD_PREDICTOR_N + 1)

/* A number over log2 of the batch: lines between knots, flat beyond them. */
struct line {
	uint32_t count;
	double x[KNOTS_MAX], y[KNOTS_MAX], rows[KNOTS_MAX];
};

static double sum_of_layers(const double *row)
{
	double sum = 0;

	for (uint32_t k = 0; k < TD_MUDI_LAYERS; k++)
		sum += row[k];
	return sum;
}

static bool is_alone(const double *row)
{
	return !(sum_of_layers(row) > 0);
}

/* Adds a row to its knot; y is a sum so far. The knots ascend. */
static int add(struct line *line, double x, double y)
{
	uint32_t k = 0;

	while (k < line->count && line->x[k] < x)
		k++;
	if (k == line->count || line->x[k] > x) {
		if (line->count == KNOTS_MAX)
			return -ERANGE;
		for (uint32_t i = line->count++; i > k; i--) {
			line->x[i] = line->x[i - 1];
			line->y[i] = line->y[i - 1];
			line->rows[i] = line->rows[i - 1];
		}
		line->x[k] = x;
		line->y[k] = line->rows[k] = 0;
	}
	line->y[k] += y;
	line->rows[k]++;
	return 0;
}

static int average(const struct td_dataset *data, bool alone, struct line *ret)
{
	int r = 0;

	ret->count = 0;
	for (uint32_t i = 0; i < data->count && !r; i++) {
		const double *row = data->x + (size_t)i * data->inputs;

		if (is_alone(row) == alone)
			r = add(ret, row[TD_MUDI_LAYERS], data->y[i]);
	}
	for (uint32_t k = 0; k < ret->count; k++)
		ret->y[k] /= ret->rows[k];
	return r;
}

static double value_at(const struct line *line, double x)
{
	uint32_t k = 0;

	while (k < line->count && line->x[k] < x)
		k++;
	if (!k)
		return line->y[0];
	if (k == line->count)
		return line->y[k - 1];
	return line->y[k - 1] +
	       (line->y[k] - line->y[k - 1]) * (x - line->x[k - 1]) / (line->x[k] - line->x[k - 1]);
}

/* Makes `line` the difference to `mean`, which bends at the knots of both. */
static int subtract(struct line *line, const struct line *mean)
{
	struct line difference = {0};
	int r = 0;

	for (uint32_t k = 0; k < line->count && !r; k++)
		r = add(&difference, line->x[k], 0);
	for (uint32_t k = 0; k < mean->count && !r; k++)
		r = add(&difference, mean->x[k], 0);
	for (uint32_t k = 0; k < difference.count; k++)
		difference.y[k] = value_at(line, difference.x[k]) - value_at(mean, difference.x[k]);
	*line = difference;
	return r;
}

/* Returns the change of the slope at a knot. */
static double bend(const struct line *line, uint32_t k)
{
	double before = 0, after = 0;

	if (k)
		before = (line->y[k] - line->y[k - 1]) / (line->x[k] - line->x[k - 1]);
	if (k + 1 < line->count)
		after = (line->y[k + 1] - line->y[k]) / (line->x[k + 1] - line->x[k]);
	return after - before;
}

/* One unit of the hidden layer: relu(batch x + layers L + bias), which counts `out` times. */
struct unit {
	double batch, layers, bias, out;
};

static void put_unit(struct td_model *model, uint32_t unit, uint32_t width, struct unit is)
{
	double *weights = td_model_coefficients(model);
	double *in = weights + (size_t)unit * TD_MUDI_INPUTS, *biases;

	for (uint32_t k = 0; k < TD_MUDI_LAYERS; k++)
		in[k] = is.layers;
	in[TD_MUDI_LAYERS] = is.batch;
	biases = weights + (size_t)width * TD_MUDI_INPUTS;
	biases[unit] = is.bias;
	biases[width + unit] = is.out;
}

static void put_units(struct td_model *model, const struct line *mean, const struct line *more)
{
	uint32_t width = mean->count + more->count + 1, unit = 0;

	for (uint32_t k = 0; k < mean->count; k++)
		put_unit(model, unit++, width, (struct unit){1, 0, -mean->x[k], bend(mean, k)});
	for (uint32_t k = 0; k < more->count; k++)
		put_unit(model, unit++, width, (struct unit){1, -FAR, -more->x[k], bend(more, k)});
	put_unit(model, unit, width, (struct unit){0, -FAR, 1, more->y[0]});
	/* The last layer's bias. */
	td_model_coefficients(model)[(size_t)width * (TD_MUDI_INPUTS + 2)] = mean->y[0];
}

int td_curve_model_mean(const struct td_dataset *data, struct td_model *ret_model)
{
	td_auto_free struct line *lines = calloc(2, sizeof(*lines));
	struct line *mean = lines, *more = lines + 1;
	struct td_model model;
	uint32_t width;
	int r;

	if (!lines)
		return -ENOMEM;
	if (data->inputs != TD_MUDI_INPUTS || td_dataset_check(data))
		return -EINVAL;
	r = average(data, false, mean);
	r = r ? r : average(data, true, more);
	if (!mean->count)
		*mean = *more;
	if (!more->count)
		*more = *mean;
	r = r ? r : subtract(more, mean);
	width = mean->count + more->count + 1;
	r = r ? r
	      : td_model_init(&model, TD_PREDICTOR_MLP, data,
			(size_t)width * (TD_MUDI_INPUTS + 2) + 1, 0);
	if (r)
		return r;
	/* The inputs and the target are taken as they are. */
	for (uint32_t k = 0; k < TD_MUDI_INPUTS; k++) {
		((double *)model.memory)[k] = 0;
		((double *)model.memory)[TD_MUDI_INPUTS + k] = 1;
	}
	model.predictor.target_shift = 0;
	model.predictor.target_scale = 1;
	model.predictor.layers = 2;
	model.predictor.widths[0] = width;
	model.predictor.widths[1] = 1;
	put_units(&model, mean, more);
	*ret_model = model;
	return 0;
}

/* -- the choice -- */

struct choice {
	const struct td_dataset *data;
	const uint32_t *groups;
	const struct td_learn_options *options;
	double *x, *y; /* room for the rows without a neighbour */
	/* Mean square of each candidate's errors beside each neighbour left out. */
	double *squares[CANDIDATES];
	uint32_t neighbours;
	double total[CANDIDATES]; /* sum of the squares of all rows; INFINITY: it has failed */
	uint32_t rows;
};

static int train(unsigned candidate, const struct td_dataset *data,
	const struct td_learn_options *options, struct td_model *ret_model)
{
	return candidate == MEAN
		       ? td_curve_model_mean(data, ret_model)
		       : td_learn((enum td_predictor_form)candidate, data, options, ret_model);
}

static uint32_t copy_others(const struct choice *c, uint32_t group)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->data->count; i++) {
		if (c->groups[i] == group)
			continue;
		memcpy(c->x + (size_t)n * c->data->inputs, c->data->x + (size_t)i * c->data->inputs,
			c->data->inputs * sizeof(*c->x));
		c->y[n++] = c->data->y[i];
	}
	return n;
}

/* Adds the errors of one candidate beside one neighbour, trained with the `others`. */
static int judge(
	struct choice *c, unsigned candidate, uint32_t group, const struct td_dataset *others)
{
	struct td_model model;
	double sum = 0;
	uint32_t rows = 0;
	int r = train(candidate, others, c->options, &model);

	if (r == -ENOSYS || r == -ERANGE) {
		c->total[candidate] = INFINITY;
		return 0;
	}
	if (r)
		return r;
	for (uint32_t i = 0; i < c->data->count; i++) {
		const double *row = c->data->x + (size_t)i * c->data->inputs;

		if (c->groups[i] != group)
			continue;
		sum += pow(td_predict(&model.predictor, row) - c->data->y[i], 2);
		rows++;
	}
	td_model_deinit(&model);
	c->squares[candidate][c->neighbours] = sum / rows;
	c->total[candidate] += sum;
	return 0;
}

static int leave_out(struct choice *c, uint32_t group)
{
	const struct td_dataset others = {c->x, c->y, copy_others(c, group), c->data->inputs};
	int r = others.count < 2 ? -EINVAL : 0;

	for (unsigned candidate = 0; candidate < CANDIDATES && !r; candidate++)
		if (isfinite(c->total[candidate]))
			r = judge(c, candidate, group, &others);
	c->neighbours++;
	c->rows += c->data->count - others.count;
	return r;
}

/* Is the candidate better than the mean by more than one standard error of the difference? */
static bool is_clearly_better(const struct choice *c, unsigned candidate)
{
	double gain = 0, variance = 0, n = c->neighbours;

	if (c->neighbours < 2 || !(c->total[candidate] < c->total[MEAN]))
		return false;
	for (uint32_t i = 0; i < c->neighbours; i++)
		gain += (c->squares[MEAN][i] - c->squares[candidate][i]) / n;
	for (uint32_t i = 0; i < c->neighbours; i++)
		variance += pow(c->squares[MEAN][i] - c->squares[candidate][i] - gain, 2) / (n - 1);
	return gain > sqrt(variance / n);
}

static unsigned best_of(const struct choice *c)
{
	unsigned best = 0;

	for (unsigned candidate = 1; candidate < MEAN; candidate++)
		if (c->total[candidate] < c->total[best])
			best = candidate;
	return !isfinite(c->total[MEAN]) || is_clearly_better(c, best) ? best : MEAN;
}

/* Is a row the first of its neighbour? */
static bool leads(const uint32_t *groups, uint32_t row)
{
	for (uint32_t i = 0; i < row; i++)
		if (groups[i] == groups[row])
			return false;
	return true;
}

int td_curve_model_learn(const struct td_dataset *data, const uint32_t *groups,
	const struct td_learn_options *options, struct td_model *ret_model, double *ret_error)
{
	struct choice c = {.data = data, .groups = groups, .options = options};
	td_auto_free double *memory = NULL;
	unsigned chosen;
	int r = td_dataset_check(data);

	if (r || data->inputs != TD_MUDI_INPUTS)
		return r ? r : -EINVAL;
	memory = calloc((size_t)data->count * (data->inputs + 1 + CANDIDATES), sizeof(*memory));
	if (!memory)
		return -ENOMEM;
	c.x = memory;
	c.y = c.x + (size_t)data->count * data->inputs;
	for (unsigned candidate = 0; candidate < CANDIDATES; candidate++)
		c.squares[candidate] = c.y + (size_t)data->count * (candidate + 1);
	for (uint32_t i = 0; i < data->count && !r; i++)
		if (leads(groups, i) && !is_alone(data->x + (size_t)i * data->inputs))
			r = leave_out(&c, groups[i]);
	if (r || !c.neighbours)
		return r ? r : -EINVAL;
	chosen = best_of(&c);
	r = train(chosen, data, options, ret_model);
	if (!r)
		*ret_error = sqrt(c.total[chosen] / c.rows);
	return r;
}
